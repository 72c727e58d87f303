// Has as much memory as it can, touched, for a second: what only looks from
// time to time gets its chance. argv: how, megabytes.
#include "attempt.h"

#include <pthread.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

enum { kPiece = 16 };  // megabytes

static int touch(char* memory, size_t size) {
  if (memory == MAP_FAILED || !memory) return -1;
  for (size_t i = 0; i < size; i += 4096) memory[i] = 1;
  return 0;
}

// What a namespace of its own would take away with it.
static int made[40000];
static int made_count;

static void remove_made(const char* how) {
  for (int i = 0; i < made_count; ++i) {
    if (strcmp(how, "queues") == 0) msgctl(made[i], IPC_RMID, NULL);
    if (strcmp(how, "semaphores") == 0) semctl(made[i], 0, IPC_RMID);
    if (strcmp(how, "sysv_dropped") == 0) shmctl(made[i], IPC_RMID, NULL);
  }
}

static int keep(int id) {
  if (id >= 0 && made_count < (int)(sizeof made / sizeof *made)) made[made_count++] = id;
  return id;
}

// The kernel's tables for pages that are all the same one: 4 kB for every 2 MB.
static int take_page_tables(size_t size) {
  size_t mapped = size / 4096 << 21;
  volatile char* memory =
      mmap(NULL, mapped, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return -1;
  madvise((char*)memory, mapped, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < mapped; i += 1 << 21) (void)memory[i];
  return 0;
}

static int take_queues(size_t size) {
  static struct {
    long type;
    char text[8000];
  } message = {.type = 1};
  for (size_t had = 0; had < size;) {
    int queue = keep(msgget(IPC_PRIVATE, 0600 | IPC_CREAT));
    if (queue < 0) return -1;
    while (msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT) == 0) had += 8000;
  }
  return 0;
}

static int take_semaphores(size_t size) {
  enum { kInOne = 32000 };
  for (size_t had = 0; had < size; had += kInOne * 64)
    if (keep(semget(IPC_PRIVATE, kInOne, 0600 | IPC_CREAT)) < 0) return -1;
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
  // Let go of, or unmapped but for a page: still there.
  if (strcmp(how, "shared_dropped") == 0 || strcmp(how, "shared_shrunk") == 0 ||
      strcmp(how, "zero_shrunk") == 0) {
    int kind = MAP_SHARED;
    if (strcmp(how, "zero_shrunk") == 0)
      fd = open("/dev/zero", O_RDWR);
    else
      kind |= MAP_ANONYMOUS;
    char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, kind, fd, 0);
    if (touch(memory, size) < 0) return -1;
    if (strcmp(how, "shared_dropped") == 0) return madvise(memory, size, MADV_DONTNEED);
    return munmap(memory + 4096, size - 4096);
  }
  if (strcmp(how, "sysv_dropped") == 0) {
    int id = keep(shmget(IPC_PRIVATE, size, IPC_CREAT | 0600));
    char* memory = id < 0 ? (void*)-1 : shmat(id, NULL, 0);
    if (memory == (void*)-1 || touch(memory, size) < 0) return -1;
    return madvise(memory, size, MADV_DONTNEED);
  }
  if (strcmp(how, "page_tables") == 0) return take_page_tables(size);
  if (strcmp(how, "queues") == 0) return take_queues(size);
  if (strcmp(how, "semaphores") == 0) return take_semaphores(size);
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

static int share;  // of a child, in megabytes

static void* take_share(void* unused) {
  for (int i = 0; i * kPiece < share; ++i)
    if (take("private", i) < 0) _exit(1);
  sleep(1);
  _exit(0);
  return unused;
}

int main(int argc, char** argv) {
  const char* how = argument(argc, argv, 1);
  int megabytes = atoi(argument(argc, argv, 2));
  int had = 0;
  // No process has much, all together have it. Without leaders: the first thread of each has
  // ended, by which /proc shows a process.
  const bool leaderless = strcmp(how, "family_without_leaders") == 0;
  if (leaderless || strcmp(how, "family") == 0) {
    enum { kChildren = 8 };
    share = megabytes / kChildren;
    for (int c = 0; c < kChildren; ++c) {
      if (fork() == 0) {
        pthread_t thread;
        if (!leaderless) take_share(NULL);
        if (pthread_create(&thread, NULL, take_share, NULL) != 0) _exit(1);
        pthread_exit(NULL);
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
      remove_made(how);
      printf("had %d MB\n", had);
      stopped("memory", err);
      return done();
    }
  }
  sleep(1);
  remove_made(how);
  escaped("memory");
  return done();
}
