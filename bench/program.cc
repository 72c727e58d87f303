#include "program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {
namespace {

class Actions {
 public:
  explicit Actions(const std::vector<int>& data_fds) {
    ::posix_spawn_file_actions_init(&actions_);
    for (int fd : {0, 1, 2})
      ::posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_RDWR, 0);
    for (int fd : data_fds) {
      ::lseek(fd, 0, SEEK_SET);
      ::posix_spawn_file_actions_adddup2(&actions_, fd, fd);  // takes the close-on-exec off
    }
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() { ::posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

int start(const Program& program) {
  Actions actions(program.data_fds);
  std::vector<char*> arguments = pointers(program.arguments);
  pid_t pid = -1;
  if (::posix_spawnp(&pid, arguments[0], actions.get(), nullptr, arguments.data(), environ) != 0)
    return -1;
  return pid;
}

Ran run(const Program& program) {
  Actions actions(program.data_fds);
  std::vector<char*> arguments = pointers(program.arguments);
  Ran ran;
  pid_t pid = -1;
  const Nanoseconds began = now();
  if (::posix_spawnp(&pid, arguments[0], actions.get(), nullptr, arguments.data(), environ) != 0)
    return ran;
  ::wait4(pid, &ran.status, 0, nullptr);
  ran.took = now() - began;
  return ran;
}

}  // namespace bench
