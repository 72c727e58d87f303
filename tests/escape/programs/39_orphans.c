// Makes orphans that end at once, and counts those that nobody took away. argv: how
// many.
#include "attempt.h"

#include <dirent.h>

int main(int argc, char** argv) {
  int count = atoi(argument(argc, argv, 1));
  for (int i = 0; i < count;) {
    pid_t child = fork();
    if (child == 0) {
      if (fork() == 0) _exit(0);
      _exit(0);
    }
    if (child < 0) {
      static int patience = 5000;
      if (errno != EAGAIN || --patience < 0) {
        printf("forked %d\n", i);
        perror("fork");
        return 1;
      }
      usleep(1000);
      continue;
    }
    waitpid(child, NULL, 0);
    ++i;
  }
  sleep(1);
  int zombies = 0;
  DIR* proc = opendir("/proc");
  for (struct dirent* entry; proc && (entry = readdir(proc));) {
    char path[300];
    char text[512] = {0};
    if (atoi(entry->d_name) <= 0) continue;
    snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
    FILE* stat = fopen(path, "r");
    if (stat && fgets(text, sizeof text, stat) && strstr(text, "39_orphans) Z")) ++zombies;
    if (stat) fclose(stat);
  }
  printf("orphans %d zombies %d\n", count, zombies);
  return done();
}
