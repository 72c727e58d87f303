// Lists each directory given and tells the size of each file: names and sizes are
// secrets too. argv: paths.
#include "attempt.h"

#include <dirent.h>

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    struct stat st;
    if (lstat(argv[i], &st) == 0) printf("size %lld\n", (long long)st.st_size);
    DIR* dir = opendir(argv[i]);
    if (!dir) continue;
    for (struct dirent* entry; (entry = readdir(dir));) {
      printf("name %s\n", entry->d_name);
      if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        printf("size %lld\n", (long long)st.st_size);
      }
    }
    closedir(dir);
  }
  return done();
}
