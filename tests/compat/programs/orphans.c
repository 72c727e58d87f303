// Makes orphans by forking twice: each must be reaped by the jar's init, since
// nobody else will. Then looks for zombies.
//     orphans COUNT
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct Count {
  int processes, zombies;
};

static struct Count look(void) {
  struct Count count = {0, 0};
  DIR* proc = opendir("/proc");
  for (struct dirent* entry; proc && (entry = readdir(proc));) {
    char path[300], state = 0;
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
    FILE* file = fopen(path, "r");
    if (!file) continue;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) == 1) {
      ++count.processes;
      count.zombies += state == 'Z';
    }
    fclose(file);
  }
  if (proc) closedir(proc);
  return count;
}

// There is room for 64 processes: when it is used up, those that ended are being reaped.
static pid_t fork_patiently(void) {
  for (int tries = 0; tries < 5000; ++tries) {
    pid_t pid = fork();
    if (pid >= 0 || errno != EAGAIN) return pid;
    usleep(1000);
  }
  return -1;
}

int main(int argc, char** argv) {
  int wanted = argc > 1 ? atoi(argv[1]) : 1, made = 0;
  for (int i = 0; i < wanted; ++i) {
    int status = 0;
    pid_t child = fork_patiently();
    if (child == 0) {
      pid_t orphan = fork_patiently();
      _exit(orphan == 0 ? 0 : orphan < 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    made += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  struct Count count = look();
  for (int tries = 0; count.processes > 2 && tries < 3000; ++tries) {
    usleep(1000);
    count = look();
  }
  printf("orphans %d processes %d zombies %d init %s\n", made, count.processes, count.zombies,
         kill(1, 0) == 0 ? "alive" : "gone");
  return 0;
}
