// Between clone and exec the child allocates nothing. It shares its caller's memory,
// so a lock of malloc that another thread holds at that moment is held for ever. A
// program of its own, because it replaces malloc: each call looks which process it is
// made in.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "belljar/belljar.h"
#include "launcher/start.h"
#include "support/folder.h"
#include "support/leavings.h"

namespace {

std::atomic<long> host_process{0};   // 0: nothing is watched
std::atomic<int> calls_in_child{0};  // the memory is shared, so the parent sees it

// glibc's getpid is a plain system call too, but says nowhere that it will remain one.
void must_be_host() {
  const long host = host_process.load(std::memory_order_relaxed);
  if (host == 0 || ::syscall(SYS_getpid) == host) return;
  ++calls_in_child;
  ::syscall(SYS_exit_group, 99);
}

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t size) {
  must_be_host();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  must_be_host();
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  must_be_host();
  return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  must_be_host();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** into, std::size_t alignment, std::size_t size) {
  must_be_host();
  *into = __libc_memalign(alignment, size);
  return *into == nullptr ? ENOMEM : 0;
}
void free(void* old) {
  must_be_host();
  __libc_free(old);
}
}

// libstdc++'s own call malloc and free, but may be replaced by others.
void* operator new(std::size_t size) {
  if (void* memory = malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* old) noexcept { free(old); }
void operator delete(void* old, std::size_t) noexcept { free(old); }

namespace belljar {
namespace {

using testing::Folder;

constexpr const char* kProfiles[] = {"open", "developer", "restricted", "public-bot",
                                     "trusted-maintenance"};

class Watched {
 public:
  Watched() {
    calls_in_child = 0;
    host_process = ::getpid();
  }
  ~Watched() { host_process = 0; }
};

void launch_every_profile() {
  Folder folder;
  for (const char* name : kProfiles) {
    Policy policy = profile(name).value();
    policy.files.workdir = folder.path();
    policy.files.grants.push_back({folder.path() + "/made", Access::write, "test"});
    policy.limits.timeout = std::chrono::seconds(20);
    Result<Outcome> outcome = run(policy, {.arguments = {"sh", "-c", "echo x"}});
    ASSERT_TRUE(outcome) << name << ": " << outcome.error().message();
    EXPECT_EQ(outcome->out, "x\n") << name << ": " << outcome->err;
  }
}

TEST(NoMalloc, a_call_in_a_child_is_seen) {  // the control
  Watched watched;
  pid_t pid = ::fork();
  if (pid == 0) {
    void* volatile made = ::malloc(100);
    ::_exit(made == nullptr ? 1 : 0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 99);
}

TEST(NoMalloc, no_launch_allocates_in_the_child) {
  Watched watched;
  launch_every_profile();
  EXPECT_EQ(calls_in_child, 0);
}

TEST(NoMalloc, no_launch_beneath_another_jar_allocates_in_a_child) {
  Folder folder;
  Policy policy = profile("restricted").value();
  policy.files.workdir = folder.path();
  Host host = assume_host();
  auto start = [&](const launcher::Origin& origin) {
    return launcher::start(
        policy, this_process(), host, nullptr, [](const Plan&) { return Status(); }, {}, origin);
  };
  Watched watched;
  Result<launcher::Started> above = start({.role = Role::warm});
  ASSERT_TRUE(above) << above.error().message();
  const launcher::Beneath beneath{.init_pidfd = above->jar.init_pidfd(),
                                  .user_namespace = above->plan.identity->user_namespace,
                                  .owner = above->jar.uid()};
  Result<launcher::Started> jar = start({.role = Role::joinable, .beneath = &beneath});
  EXPECT_TRUE(jar) << jar.error().message();
  EXPECT_EQ(calls_in_child, 0);
}

TEST(NoMalloc, fifty_threads_that_allocate_and_half_a_gigabyte_do_not_matter) {
  constexpr std::size_t kTouched = std::size_t{512} << 20;
  void* memory =
      ::mmap(nullptr, kTouched, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kTouched);
  std::atomic<bool> stop{false};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 50; ++i)
      threads.emplace_back([&] {
        while (!stop) {
          std::vector<std::string> some(100, std::string(1000, 'x'));
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      });
    Watched watched;
    launch_every_profile();
    EXPECT_EQ(calls_in_child, 0);
    stop = true;
  }
  ::munmap(memory, kTouched);
  EXPECT_FALSE(testing::has_children());
}

}  // namespace
}  // namespace belljar
