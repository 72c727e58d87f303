#include "launcher/request.h"

#include <poll.h>
#include <sys/socket.h>

#include <climits>
#include <cstring>
#include <ranges>
#include <set>

#include "base/syscall.h"

namespace belljar::launcher {
namespace {

// Each of its folders is joined with the command: a text for every two bytes, at worst.
constexpr std::size_t kMaxSearchPath = 64 << 10;

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

void append(std::string& bytes, const void* data, std::size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}

// A request may be larger than what a socket holds, and an init that reads is quick.
bool becomes_writable(int socket_fd) {
  constexpr int kPatienceMs = 100;
  pollfd ready{.fd = socket_fd, .events = POLLOUT, .revents = 0};
  const int n = retry([&] { return ::poll(&ready, 1, kPatienceMs); });
  errno = EAGAIN;
  return n == 1;
}

}  // namespace

Result<std::vector<std::string>> paths_to_try(const std::string& command,
                                              const std::vector<std::string>& environment) {
  if (command.find('/') != std::string::npos) return std::vector<std::string>{command};
  std::string_view path = "/usr/local/bin:/usr/bin:/bin";
  for (const std::string& variable : environment)
    if (variable.starts_with("PATH=")) path = std::string_view(variable).substr(5);
  if (path.size() > kMaxSearchPath)
    return fail("look for the command: PATH has more than 64 KiB", E2BIG);
  std::vector<std::string> paths;
  while (!path.empty()) {
    std::string_view folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(folder.size() + 1, path.size()));
    // An empty entry means the current folder, which the guest can fill.
    if (!folder.empty()) paths.push_back(std::string(folder) + "/" + command);
    // No folder holds such a name, and the first says so.
    if (command.size() > NAME_MAX && !paths.empty()) break;
  }
  return paths;
}

// Of one that is given twice the last counts.
std::vector<std::string> overlay(std::vector<std::string> variables,
                                 const std::vector<std::string>& over) {
  std::set<std::string_view> names;
  std::vector<std::string> given;
  for (const std::string& variable : std::views::reverse(over))
    if (names.insert(name_of(variable)).second) given.push_back(variable);
  std::erase_if(variables,
                [&](const std::string& under) { return names.contains(name_of(under)); });
  variables.insert(variables.end(), given.rbegin(), given.rend());
  return variables;
}

Result<std::string> encode_spawn(const Command& command, std::uint32_t id,
                                 const std::string& workdir,
                                 const std::vector<std::string>& plans_environment) {
  if (command.arguments.empty() || command.arguments[0].empty())
    return fail("no command to run", 0, "belljar exec -- COMMAND");
  const std::vector<std::string> environment = overlay(plans_environment, command.environment);
  const std::vector<std::string> paths = TRY(paths_to_try(command.arguments[0], environment));
  protocol::Spawn spawn{.signal_mask = command.signal_mask,
                        .paths = static_cast<std::uint32_t>(paths.size()),
                        .arguments = static_cast<std::uint32_t>(command.arguments.size()),
                        .variables = static_cast<std::uint32_t>(environment.size()),
                        .takes_terminal = command.has_terminal,
                        .owns_terminal = command.owns_terminal,
                        .leads = command.leads,
                        .unused = 0};
  std::string payload;
  append(payload, &spawn, sizeof spawn);
  const std::string& folder = command.folder.empty() ? workdir : command.folder;
  if (folder.find('\0') != std::string::npos) return fail("a folder holds a NUL byte");
  payload.append(folder.empty() ? "/" : folder).push_back('\0');
  for (const std::vector<std::string>* list : {&paths, &command.arguments, &environment})
    for (const std::string& text : *list) {
      if (text.find('\0') != std::string::npos) return fail("an argument holds a NUL byte");
      payload.append(text).push_back('\0');
    }
  if (payload.size() > protocol::kMaxPayload)
    return fail("command and environment are too long", E2BIG);
  protocol::Header header{protocol::Kind::spawn, id, 0, static_cast<std::uint32_t>(payload.size())};
  std::string bytes;
  append(bytes, &header, sizeof header);
  return bytes + payload;
}

Status send_all(int socket_fd, std::string_view bytes, std::span<const int> fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(protocol::kMaxDescriptors * sizeof(int))] = {};
  bool part_sent = false;
  while (!bytes.empty()) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
    }
    ssize_t n = retry([&] { return ::sendmsg(socket_fd, &message, MSG_NOSIGNAL); });
    if (n < 0 && errno == EAGAIN && part_sent && becomes_writable(socket_fd)) continue;
    if (n < 0) return fail("send to init", errno);
    part_sent = true;
    bytes.remove_prefix(static_cast<std::size_t>(n));
    fds = {};
  }
  return {};
}

}  // namespace belljar::launcher
