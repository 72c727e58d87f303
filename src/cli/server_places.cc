#include "cli/server_places.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "server/owner_key.h"

namespace belljar::cli {
namespace {

std::string base_folder(const char* variable, const std::string& otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : otherwise;
}

std::string state_folder() {
  return base_folder("XDG_STATE_HOME", this_caller().home + "/.local/state") + "/belljar";
}

bool names_a_secret(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL"},
      [&](std::string_view word) { return name.find(word) != name.npos; });
}

// Values that the guest gets by the policy, and those of our own that are secret by name.
std::vector<std::string> secret_values(const Policy& policy) {
  std::vector<std::string> values;
  for (const auto& [name, value] : policy.environment.set) values.push_back(value);
  for (const std::string& variable : this_caller().environment) {
    const std::size_t equals = variable.find('=');
    if (equals != variable.npos && names_a_secret(variable.substr(0, equals)))
      values.push_back(variable.substr(equals + 1));
  }
  return values;
}

Status check_private_folder(const std::string& path) {
  struct stat about{};
  if (::lstat(path.c_str(), &about) < 0) return fail("look at " + path, errno);
  if (!S_ISDIR(about.st_mode) || about.st_uid != ::geteuid() || (about.st_mode & 0077) != 0)
    return fail(path + " is not a folder that only you can use", 0, "chmod 700 it, or remove it");
  return {};
}

Status make_private_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) return fail("make " + path, errno);
  return check_private_folder(path);
}

constexpr std::string_view kServePrefix = "serve-";
constexpr std::string_view kUsualName = "/serve.sock";

// In the name of a socket that only one server can have.
std::optional<pid_t> owner_of(std::string_view name) {
  for (const std::string_view prefix :
       {std::string_view("mcp-"), std::string_view("approvals-"), kServePrefix}) {
    if (!name.starts_with(prefix) || !name.ends_with(".sock")) continue;
    name.remove_prefix(prefix.size());
    name.remove_suffix(5);
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.begin(), name.end(), pid);
    if (error == std::errc() && end == name.end() && pid > 0) return pid;
  }
  return std::nullopt;
}

bool nobody_listens(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  path.copy(static_cast<char*>(address.sun_path), path.size());
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const void* untyped = &address;
  return probe &&
         ::connect(probe.get(), static_cast<const sockaddr*>(untyped), sizeof address) < 0 &&
         errno == ECONNREFUSED;
}

// Nobody has the number, and nobody listens: in another pid namespace, whose servers may
// share the folder, the number says nothing.
bool is_dead(pid_t owner, const std::string& path) {
  return ::kill(owner, 0) < 0 && errno == ESRCH && nobody_listens(path);
}

// Of servers that were killed.
void sweep_sockets(const std::string& folder) {
  server::sweep_keys(folder);
  std::error_code ignored;  // what cannot be listed has none to remove
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string path = entry.path();
    const std::optional<pid_t> owner = owner_of(entry.path().filename().string());
    if (owner && is_dead(*owner, path)) (void)::unlink(path.c_str());
  }
}

}  // namespace

Result<server::Audit> open_audit(const std::string& file, const Policy& policy) {
  server::Mask mask(secret_values(policy));
  if (file == "none") return server::Audit::open({}, std::move(mask));
  if (!file.empty()) return server::Audit::open({.file = file}, std::move(mask));
  const std::string folder = state_folder();
  const Status made = make_private_folder(folder);
  Result<server::Audit> audit = server::Audit::open({.file = folder + "/audit.jsonl"}, mask);
  if (made && audit) return audit;
  print_warning("no audit trail is kept: " + (made ? audit.error() : made.error()).message());
  return server::Audit::open({}, std::move(mask));
}

std::vector<std::string> runtime_places(const std::string& given, const std::string& logins) {
  const std::string uid = std::to_string(::geteuid());
  std::vector<std::string> places;
  if (given.starts_with('/')) places.push_back(given + "/belljar");
  struct stat login{};
  const std::string of_login = logins + "/" + uid;
  if (::lstat(of_login.c_str(), &login) == 0 && S_ISDIR(login.st_mode) &&
      login.st_uid == ::geteuid() && (login.st_mode & 0022) == 0)
    places.push_back(of_login + "/belljar");
  places.push_back("/tmp/belljar-run-" + uid);
  if (places.size() > 1 && places[0] == places[1]) places.erase(places.begin());
  return places;
}

namespace {

// The last one is nobody else's to take: everybody may make a folder in /tmp.
std::vector<std::string> all_runtime_places() {
  const char* given = std::getenv("XDG_RUNTIME_DIR");
  std::vector<std::string> places = runtime_places(given != nullptr ? given : "");
  places.push_back(state_folder() + "/run");
  return places;
}

bool is_anothers(const std::string& path) {
  struct stat about{};
  return ::lstat(path.c_str(), &about) == 0 && about.st_uid != ::geteuid();
}

}  // namespace

Result<std::string> runtime_folder() {
  for (std::string& folder : all_runtime_places()) {
    if (is_anothers(folder)) continue;
    const Status ours = check_private_folder(folder);
    if (!ours && ours.error().err != ENOENT) return std::unexpected(ours.error());
    return std::move(folder);
  }
  return fail("every place for the local socket belongs to somebody else", 0,
              "set XDG_RUNTIME_DIR to a folder of yours");
}

Result<std::vector<std::string>> runtime_folders() {
  std::vector<std::string> folders = {TRY(runtime_folder())};
  for (const std::string& place : all_runtime_places())
    // One that somebody else has put there is none of ours.
    if (place != folders[0] && check_private_folder(place)) folders.push_back(place);
  return folders;
}

Result<std::string> owner_key_of(const std::string& socket) {
  return server::read_owner_key(TRY(runtime_folders()), socket);
}

std::string own_serve_socket() {
  return std::string(kServePrefix) + std::to_string(::getpid()) + ".sock";
}

bool is_serve_socket(std::string_view name) {
  return name == kServeSocket || (name.starts_with(kServePrefix) && name.ends_with(".sock"));
}

Result<std::vector<std::string>> runtime_sockets(bool (*wanted)(std::string_view name)) {
  const std::vector<std::string> folders = TRY(runtime_folders());
  std::vector<std::string> all;
  for (const std::string& folder : folders) {
    std::vector<std::string> paths;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (!wanted(entry.path().filename().string())) continue;
      // Where no server of these surroundings starts, nobody sweeps up after one that was killed.
      if (folder != folders[0] && nobody_listens(entry.path())) continue;
      paths.push_back(entry.path());
    }
    if (error && error != std::errc::no_such_file_or_directory)
      return fail("list " + folder, error.value());
    std::ranges::sort(paths);
    all.insert(all.end(), paths.begin(), paths.end());
  }
  return all;
}

Result<std::vector<std::string>> serve_sockets() {
  std::vector<std::string> paths = TRY(runtime_sockets(is_serve_socket));
  const auto is_usual = [](const std::string& path) { return path.ends_with(kUsualName); };
  std::ranges::stable_partition(paths, is_usual);
  return paths;
}

Result<RuntimeFolder> RuntimeFolder::hold() {
  const std::string path = TRY(runtime_folder());
  if (const std::string usual = all_runtime_places().front(); path != usual)
    print_warning(usual + " belongs to somebody else; the local socket is in " + path);
  if (path.starts_with(state_folder())) TRY(make_private_folder(state_folder()));
  for (;;) {
    TRY(make_private_folder(path));
    Fd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!lock && errno != ENOENT) return fail("open " + path, errno);
    if (lock && ::flock(lock.get(), LOCK_SH) < 0) return fail("lock " + path, errno);
    // The last server may have removed it before we had it.
    struct stat held{};
    struct stat there{};
    if (!lock || ::fstat(lock.get(), &held) < 0 || ::lstat(path.c_str(), &there) < 0 ||
        held.st_ino != there.st_ino || held.st_dev != there.st_dev)
      continue;
    sweep_sockets(path);
    return RuntimeFolder(path, std::move(lock));
  }
}

RuntimeFolder::~RuntimeFolder() {
  if (lock_ && ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) (void)::rmdir(path_.c_str());
}

}  // namespace belljar::cli
