// Where servers of the person who started them keep what outlives a call.
#pragma once

#include "base/fd.h"
#include "cli/cli.h"
#include "server/audit.h"

namespace belljar::cli {

// The audit trail: in `file`, or where none is named in the person's state folder. `none`
// is none. One that was named and cannot be written is an error, the usual one a warning.
Result<server::Audit> open_audit(const std::string& file, const Policy& policy);

// Where the folder of the sockets by which `belljar approvals` and `sessions` find servers can be,
// best first: in `given`, which is XDG_RUNTIME_DIR, in the folder of the person's login, below
// /tmp. Clients of MCP start servers without that variable, and the person has it: so that they
// meet, the second is looked for where the first is not said.
std::vector<std::string> runtime_places(const std::string& given,
                                        const std::string& logins = "/run/user");

// The folder of a server that starts now, whether it is there or not. An error where it is one
// that others can use.
Result<std::string> runtime_folder();

// The same first, then the others that are there and only ours, with servers that were started in
// other surroundings.
Result<std::vector<std::string>> runtime_folders();

// That of a server, held as long as it runs: made for the first, removed after the last.
class RuntimeFolder {
 public:
  static Result<RuntimeFolder> hold();
  RuntimeFolder(RuntimeFolder&&) noexcept = default;
  RuntimeFolder& operator=(RuntimeFolder&&) = delete;
  RuntimeFolder(const RuntimeFolder&) = delete;
  RuntimeFolder& operator=(const RuntimeFolder&) = delete;
  ~RuntimeFolder();
  const std::string& path() const { return path_; }

 private:
  RuntimeFolder(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Fd lock_;
};

// In it, the socket of `belljar serve`, which speaks HTTP. Of those that were told where to listen
// there may be several, so that each has a name of its own.
inline constexpr const char* kServeSocket = "serve.sock";
std::string own_serve_socket();
bool is_serve_socket(std::string_view name);
// Those that are there, in all folders: the usual ones first.
Result<std::vector<std::string>> serve_sockets();

// The key by which its owner proves himself to the server with that socket.
Result<std::string> owner_key_of(const std::string& socket);

// The sockets by those names that are there, in all folders.
Result<std::vector<std::string>> runtime_sockets(bool (*wanted)(std::string_view name));

}  // namespace belljar::cli
