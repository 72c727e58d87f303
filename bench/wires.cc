#include "wires.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "traffic.h"

namespace bench {
namespace {

void must(bool done, const char* what) {
  if (done) return;
  std::perror(what);
  std::exit(2);
}

void shell(const std::string& command) { must(std::system(command.c_str()) == 0, command.c_str()); }

// Ports are needed again soon, and connections wait in a long queue.
constexpr char kTuning[] =
    "echo 2048 65000 > /proc/sys/net/ipv4/ip_local_port_range; "
    "echo 1 > /proc/sys/net/ipv4/tcp_tw_reuse; "
    "echo 4096 > /proc/sys/net/core/somaxconn";

// The child tells when it serves, after we told it that its network is there.
struct Talk {
  int fds[2];
  Talk() { must(::pipe2(fds, O_CLOEXEC) == 0, "pipe"); }
  void tell() const { must(::write(fds[1], "r", 1) == 1, "tell"); }
  void hear() const {
    char byte = 0;
    must(::read(fds[0], &byte, 1) == 1, "hear");
  }
};

pid_t start_server(const Talk& ready) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  serve([&] { ready.tell(); });
}

pid_t start_far_server(const Talk& made, const Talk& cable, const Talk& ready) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  must(::unshare(CLONE_NEWNET) == 0, "unshare");
  made.tell();
  cable.hear();
  shell(
      "ip link set lo up && ip link set cable up && ip address add 198.51.100.254/24 dev cable && "
      "ip address add " +
      std::string(kThere) + "/32 dev cable");
  shell(kTuning);
  serve([&] { ready.tell(); });
}

// Where belljar and the proxies look names up.
std::string name_the_host() {
  std::string path = "/tmp/belljar-bench-hosts-XXXXXX";
  const int fd = ::mkstemp(path.data());
  must(fd >= 0 && ::fchmod(fd, 0644) == 0, path.c_str());
  std::ofstream(path) << "127.0.0.1 localhost\n" << kThere << ' ' << kServerName << '\n';
  must(::mount(path.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) == 0, "mount");
  ::close(fd);
  return path;
}

}  // namespace

Wires::Wires() {
  must(::unshare(CLONE_NEWNET | CLONE_NEWNS) == 0, "unshare (as root?)");
  must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "mount");
  hosts_file_ = name_the_host();
  const Talk made, cable, ready;
  there_ = start_far_server(made, cable, ready);
  made.hear();
  shell("ip link add name cable type veth peer name cable netns " + std::to_string(there_));
  shell("ip link set lo up && ip link set cable up && ip address add " + std::string(kHere) +
        "/24 dev cable && ip route add default via 198.51.100.254");
  shell(kTuning);
  cable.tell();
  here_ = start_server(ready);
  ready.hear();
  ready.hear();
}

Wires::~Wires() {
  for (const pid_t pid : {here_, there_}) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  ::unlink(hosts_file_.c_str());
}

}  // namespace bench
