#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>

#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "launcher/wait.h"
#include "policy/profiles.h"

namespace belljar::cli {
namespace {

namespace json = boost::json;

struct Check {
  std::string claim;
  std::string script;         // exits 0 inside when the claim is BROKEN
  bool must_succeed = false;  // or: exits 0 when it holds
};

// A folder of our own with something to steal outside the workdir, and a server
// on the host's loopback to call.
class Trap {
 public:
  static Result<Trap> set(const Caller& caller) {
    Trap trap;
    std::string path = "/tmp/belljar-verify-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return fail("make a folder in /tmp", errno);
    trap.folder_ = path;
    for (const char* name : {"/work", "/outside", "/cache"})
      if (::mkdir((path + name).c_str(), 0755) < 0) return fail("make " + path + name, errno);
    Fd secret(::open((path + "/outside/secret").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    if (::write(secret.get(), "secret\n", 7) != 7) return fail("write a secret", errno);
    trap.server_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (!trap.server_ || ::bind(trap.server_.get(), generic, size) < 0 ||
        ::listen(trap.server_.get(), 8) < 0 ||
        ::getsockname(trap.server_.get(), generic, &size) < 0)
      return fail("listen on loopback", errno);
    trap.port_ = ntohs(address.sin_port);
    trap.home_ = caller.home;
    return trap;
  }
  Trap(Trap&& other) noexcept
      : folder_(std::exchange(other.folder_, {})),
        home_(std::move(other.home_)),
        server_(std::move(other.server_)),
        port_(other.port_) {}
  Trap& operator=(Trap&&) = delete;
  Trap(const Trap&) = delete;
  Trap& operator=(const Trap&) = delete;
  ~Trap() {
    std::error_code ignored;  // nothing more can be done about what stays
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  std::string work() const { return folder_ + "/work"; }
  std::string cache() const { return folder_ + "/cache"; }
  std::string outside() const { return folder_ + "/outside"; }
  std::string home() const { return home_; }
  std::string port() const { return std::to_string(port_); }

 private:
  Trap() = default;
  std::string folder_, home_;
  Fd server_;
  int port_ = 0;
};

std::vector<Check> checks_for(const std::string& profile, const Trap& trap) {
  const std::string outside = trap.outside();
  std::vector<Check> checks = {
      {"programs run, and the workspace is writable", "echo ok > file && grep -q ok file", true},
      {"/tmp is writable inside", "f=$(mktemp /tmp/verify.XXXXXX) && rm \"$f\"", true},
      {"writes outside the workspace do not reach the host", "echo x > " + outside + "/written"},
      {"nothing of the host's /etc, /usr or / is writable",
       "for f in /etc/verify /usr/verify /verify; do touch $f 2>/dev/null && rm $f && exit 0; "
       "done; "
       "exit 1"},
      {"no host credentials are readable: ~/.ssh, ~/.aws, ~/.config/gcloud, ~/.netrc",
       "cd " + trap.home() +
           " 2>/dev/null && for f in .ssh/* .aws/* .config/gcloud/* .netrc .npmrc "
           ".docker/config.json; do [ -s \"$f\" ] && exit 0; done; exit 1"},
      {"processes of the host cannot be seen", "[ -d /proc/" + std::to_string(::getpid()) +
                                                   "/fd ] && ls /proc/" +
                                                   std::to_string(::getpid()) + "/fd"},
      {"the guest is not root", "[ \"$(id -u)\" = 0 ]"},
  };
  if (profile != "trusted-maintenance")
    checks.push_back(
        {"files outside the workspace are not readable", "cat " + outside + "/secret"});
  else
    checks.push_back(
        {"the cache folder is writable and kept", "echo x > " + trap.cache() + "/file", true});
  if (profile == "public-bot" || profile == "restricted")
    checks.push_back({"no outbound connection is possible",
                      "bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + trap.port() + "'"});
  return checks;
}

Result<bool> holds(const Check& check, const Policy& policy, const Caller& caller) {
  Fd null = TRY(open_path("/dev/null", O_RDWR));
  launcher::Command command{.arguments = {"/bin/sh", "-c", check.script},
                            .stdio_fds = {null.get(), null.get(), null.get()}};
  Outcome outcome =
      TRY(launcher::run(policy, caller, command, {}, [](const Plan&) { return Status(); }));
  const bool succeeded = outcome.exit_code() == 0;
  return succeeded == check.must_succeed;
}

}  // namespace

Result<int> verify_profile(const std::string& profile, As as) {
  const Caller caller = this_caller();
  Trap trap = TRY(Trap::set(caller));
  Settings settings;
  settings.profile = profile;
  settings.workdir = trap.work();
  if (profile == "trusted-maintenance") settings.cache = trap.cache();
  Policy policy = TRY(make_policy(settings, {.cwd = trap.work(), .home = caller.home}));
  json::array checks;
  bool all = true;
  auto tell = [&](const std::string& claim, bool held) {
    all = all && held;
    checks.push_back({{"claim", claim}, {"held", held}});
    if (as == As::text) std::printf("  %-6s %s\n", held ? "ok" : "FAILED", claim.c_str());
  };
  for (const Check& check : checks_for(profile, trap))
    tell(check.claim, TRY(holds(check, policy, caller)));
  struct stat st{};
  if (::stat((trap.outside() + "/written").c_str(), &st) == 0)
    tell("the host's folder was not written", false);
  if (as == As::text)
    std::puts(all ? "the profile holds on this host" : "do not deploy this profile here");
  else
    std::fputs(
        pretty(json::object{
                   {"schema_version", 1}, {"profile", profile}, {"holds", all}, {"checks", checks}})
            .c_str(),
        stdout);
  return all ? 0 : 1;
}

}  // namespace belljar::cli
