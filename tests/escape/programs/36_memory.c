// Has as much memory as it can, touched, for a second: what only looks from
// time to time gets its chance. argv: how, megabytes.
#include "attempt.h"

#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

enum { kPiece = 16 };  // megabytes

static int touch(char* memory, size_t size) {
  if (memory == MAP_FAILED || !memory) return -1;
  for (size_t i = 0; i < size; i += 4096) memory[i] = 1;
  return 0;
}

static int take(const char* how, int i) {
  size_t size = (size_t)kPiece << 20;
  char path[64];
  int fd = -1;
  if (strcmp(how, "heap") == 0) return touch(malloc(size), size);
  if (strcmp(how, "private") == 0) {
    return touch(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                 size);
  }
  if (strcmp(how, "shared") == 0) {
    return touch(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), size);
  }
  if (strcmp(how, "sysv") == 0) {
    int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
    if (id < 0) return -1;
    char* memory = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    return memory == (void*)-1 ? -1 : touch(memory, size);
  }
  if (strcmp(how, "sysv_detached") == 0) {
    // Counted for no process once nobody has it attached.
    int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
    if (id < 0) return -1;
    printf("segment %d\n", id);
    fflush(stdout);
    char* memory = shmat(id, NULL, 0);
    if (memory == (void*)-1 || touch(memory, size) < 0) return -1;
    return shmdt(memory);
  }
  if (strcmp(how, "memfd") == 0) {
    // Written, not mapped: no process shows it as its own.
    fd = syscall(SYS_memfd_create, "m", 0);
  } else if (strcmp(how, "memfd_secret") == 0) {
    fd = syscall(447, 0);
    if (fd < 0 || ftruncate(fd, size) < 0) return -1;
    return touch(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), size);
  } else {
    // A directory: a file in it, gone by name, kept by descriptor.
    snprintf(path, sizeof path, "%s/belljar-%d-%d", how, (int)getpid(), i);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    unlink(path);
  }
  if (fd < 0) return -1;
  static char block[1 << 20];
  memset(block, 1, sizeof block);
  for (int m = 0; m < kPiece; ++m) {
    if (write(fd, block, sizeof block) != (ssize_t)sizeof block) {
      if (!errno) errno = ENOSPC;
      return -1;
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  const char* how = argument(argc, argv, 1);
  int megabytes = atoi(argument(argc, argv, 2));
  int had = 0;
  // `family`: no process has much, all together have it.
  if (strcmp(how, "family") == 0) {
    enum { kChildren = 8 };
    for (int c = 0; c < kChildren; ++c) {
      if (fork() == 0) {
        for (int i = 0; i * kPiece < megabytes / kChildren; ++i) {
          if (take("private", i) < 0) _exit(1);
        }
        sleep(1);
        _exit(0);
      }
    }
    int well = 0;
    for (int c = 0, status; c < kChildren && wait(&status) > 0; ++c) well += status == 0;
    printf("children %d\n", well);
    if (well == kChildren) {
      escaped("memory");
    } else {
      stopped("memory", ENOMEM);
    }
    return done();
  }
  for (int i = 0; had < megabytes; ++i, had += kPiece) {
    if (take(how, i) < 0) {
      int err = errno;
      printf("had %d MB\n", had);
      stopped("memory", err);
      return done();
    }
  }
  sleep(1);
  escaped("memory");
  return done();
}
