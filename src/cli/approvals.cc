// approvals: what models wait for, shown to a person who decides.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <iostream>

#include "base/fd.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/syscall.h"
#include "cli/flags.h"
#include "cli/server_places.h"
#include "cli/session_loop.h"

namespace belljar::cli {
namespace {

namespace json = boost::json;

constexpr int kPatienceMs = 5000;
constexpr std::size_t kMaxLine = std::size_t{64} << 20;

// A server that may have something to approve.
class Server {
 public:
  static Result<Server> connect(const std::string& path) {
    Server server;
    server.fd_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!server.fd_) return fail("socket", errno);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return fail("the path " + path + " is too long");
    path.copy(static_cast<char*>(address.sun_path), path.size());
    const auto* to = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(server.fd_.get(), to, sizeof address) < 0) return fail("connect", errno);
    return server;
  }

  void send(const json::object& request) { write_all(fd_.get(), json::serialize(request) + "\n"); }

  // nullopt: it has ended, or says nothing.
  std::optional<json::object> receive(int patience_ms) {
    for (;;) {
      if (std::optional<json::object> ready = take()) return ready;
      pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
      if (retry([&] { return ::poll(&wait, 1, patience_ms); }) <= 0) return std::nullopt;
      if (!read()) return std::nullopt;
    }
  }

  bool read() {
    std::array<char, 65536> bytes{};
    const ssize_t n = retry([&] { return ::read(fd_.get(), bytes.data(), bytes.size()); });
    if (n <= 0 || in_.size() > kMaxLine) return false;
    in_.append(bytes.data(), static_cast<std::size_t>(n));
    return true;
  }

  // A message that is there already.
  std::optional<json::object> take() {
    const std::size_t end = in_.find('\n');
    if (end == in_.npos) return std::nullopt;
    boost::system::error_code error;
    json::value value = json::parse(in_.substr(0, end), error);
    in_.erase(0, end + 1);
    if (error || !value.is_object()) return json::object();
    return value.get_object();
  }

  int fd() const { return fd_.get(); }

 private:
  Fd fd_;
  std::string in_;
};

std::deque<Server> servers() {
  std::deque<Server> found;
  const Result<std::string> folder = runtime_folder();
  std::error_code error;
  if (!folder) return found;
  for (const auto& entry : std::filesystem::directory_iterator(*folder, error)) {
    if (entry.path().extension() != ".sock" || entry.path().filename() == kServeSocket) continue;
    Result<Server> server = Server::connect(entry.path());
    if (server) found.push_back(*std::move(server));
  }
  return found;
}

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

// All of it: what is not shown must not be approved.
std::string shown(std::string_view text) {
  constexpr std::size_t kPiece = 100;
  std::string safe;
  while (!text.empty()) {
    std::size_t size = std::min(text.find('\n'), kPiece);
    size = std::min(size, text.size());
    // Not through the middle of a character.
    while (size < text.size() && size > 1 &&
           (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80)
      --size;
    safe += printable(text.substr(0, size));
    text.remove_prefix(size);
    if (text.starts_with('\n')) safe += "\n    ", text.remove_prefix(1);
  }
  return safe;
}

std::string tool_of(const json::object& approval) {
  const json::value* tool = approval.if_contains("tool");
  return tool != nullptr && tool->is_object() ? text_of(tool->get_object(), "kind") : "";
}

void print(const json::object& approval) {
  std::printf("%s  %s  session %s\n", styled(shown(tool_of(approval)), Style::bold, 1).c_str(),
              shown(text_of(approval, "approval_id")).c_str(),
              shown(text_of(approval, "session_id")).c_str());
  const json::value* arguments = approval.if_contains("arguments");
  if (arguments == nullptr || !arguments->is_object()) return;
  for (const auto& argument : arguments->get_object()) {
    const json::value& value = argument.value();
    const std::string text =
        value.is_string() ? std::string(value.get_string()) : json::serialize(value);
    std::printf("  %s:\n    %s\n", shown(argument.key()).c_str(), shown(text).c_str());
  }
}

Result<int> list(bool as_json) {
  json::array all;
  for (Server& server : servers()) {
    server.send({{"op", "list"}});
    const std::optional<json::object> answer = server.receive(kPatienceMs);
    const json::value* pending = answer ? answer->if_contains("pending") : nullptr;
    if (pending == nullptr || !pending->is_array()) continue;
    for (const json::value& one : pending->get_array()) all.push_back(one);
  }
  if (as_json) {
    write_all(1, pretty(all));
    return 0;
  }
  if (all.empty()) std::puts("Nothing waits for approval.");
  for (const json::value& one : all)
    if (one.is_object()) print(one.get_object());
  return 0;
}

Result<int> decide(const json::object& decision) {
  for (Server& server : servers()) {
    server.send({{"op", "list"}});
    const std::optional<json::object> answer = server.receive(kPatienceMs);
    const json::value* pending = answer ? answer->if_contains("pending") : nullptr;
    if (pending == nullptr || !pending->is_array()) continue;
    for (const json::value& one : pending->get_array()) {
      if (!one.is_object() || one.get_object().at("approval_id") != decision.at("approval_id"))
        continue;
      server.send(decision);
      const std::optional<json::object> done = server.receive(kPatienceMs);
      if (done && done->contains("ok")) return 0;
      return fail(done ? printable(text_of(*done, "error")) : "the server does not answer");
    }
  }
  return fail("nothing of that id waits for approval", 0, "belljar approvals list");
}

// ---- asking -------------------------------------------------------------------

std::optional<json::object> ask(const json::object& approval) {
  print(approval);
  json::object decision{{"op", "decide"}, {"approval_id", approval.at("approval_id")}};
  for (;;) {
    std::printf("[y]es [n]o [a]lways (this tool, in this session) ? ");
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    if (line == "y" || line == "yes") decision["decision"] = "approve";
    if (line == "n" || line == "no") decision["decision"] = "deny";
    if (line == "a" || line == "always") {
      decision["decision"] = "approve";
      decision["scope"] = "tool";
    }
    if (decision.contains("decision")) return decision;
  }
}

Result<int> converse() {
  std::deque<Server> all = servers();
  if (all.empty())
    return fail("no server of yours runs", 0, "start `belljar mcp` with permissions that ask");
  for (Server& server : all) server.send({{"op", "watch"}});
  std::fputs("Waiting for calls to approve; ^C ends.\n", stderr);
  while (!all.empty()) {
    std::vector<pollfd> waits;
    for (const Server& server : all)
      waits.push_back({.fd = server.fd(), .events = POLLIN, .revents = 0});
    if (retry([&] { return ::poll(waits.data(), waits.size(), -1); }) < 0)
      return fail("poll", errno);
    for (std::size_t i = all.size(); i-- > 0;) {
      if (waits[i].revents == 0) continue;
      if (!all[i].read()) {
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      while (std::optional<json::object> message = all[i].take()) {
        if (message->contains("error")) print_warning(printable(text_of(*message, "error")));
        if (text_of(*message, "event") != "required") continue;
        const std::optional<json::object> decision = ask(*message);
        if (!decision) return 0;
        all[i].send(*decision);
      }
    }
  }
  return 0;
}

Result<int> run_approvals(const Arguments& arguments) {
  bool as_json = false;
  std::string scope;
  std::string pattern;
  std::string message;
  const std::vector<Flag> own = {{.name = "json", .seen = &as_json},
                                 {.name = "scope", .value = &scope},
                                 {.name = "pattern", .value = &pattern},
                                 {.name = "message", .value = &message}};
  const Arguments rest = TRY(parse_words(arguments, own));
  const auto wrong = fail("wrong arguments", 0, "belljar approvals [list | approve ID | deny ID]");
  if (rest.size() > 2) return wrong;
  if (rest.empty()) return as_json ? Result<int>(wrong) : converse();
  if (rest[0] == "list" && rest.size() == 1) return list(as_json);
  if ((rest[0] != "approve" && rest[0] != "deny") || rest.size() != 2) return wrong;
  json::object decision{{"op", "decide"}, {"approval_id", rest[1]}, {"decision", rest[0]}};
  if (!pattern.empty() && scope.empty()) scope = "pattern";
  if (!scope.empty()) decision["scope"] = scope;
  if (!pattern.empty()) decision["pattern"] = pattern;
  if (!message.empty()) decision["message"] = message;
  return decide(decision);
}

}  // namespace

int approvals(const Arguments& arguments) { return report(run_approvals(arguments)); }

}  // namespace belljar::cli
