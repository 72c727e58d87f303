// Unwritten: files that no guest can have written, in this run or in an earlier one.
//
// A warm interpreter's forks become the workers of other sessions. So no code may run in it that a
// guest wrote: a `.pth` file in a virtual environment, a module in a folder of PYTHONPATH, a
// bytecode cache. What earlier runs granted is not known here, so this does not ask what a guest
// was given; it asks what none can have been given:
//   - every file, and every folder on the way to it, is root's, and neither everybody nor a group
//     of the caller's may write it. The guests of an ordinary caller have that caller's rights.
//   - if root is the caller, its guests may have been given any folder to write. So it has to lie
//     where programs are installed: may_write_programs().
// What cannot be looked at, or is too much to look at, may have been written.
//
// Does not know: that root once let a guest write where programs are installed. Such a guest had
// the machine.
#pragma once

#include <sys/stat.h>

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "belljar/policy.h"

namespace belljar::session {

// Whether root lets its guests write where programs are installed.
bool may_write_programs(const Files& files);

class Unwritten {
 public:
  Unwritten();

  // Where this Python is, by its whole path. An error if a guest may have written it, its
  // libraries, or what these variables (NAME=value) make it load.
  Result<std::string> interpreter(const std::string& python,
                                  const std::vector<std::string>& environment);
  // A file, or a folder and all that is below it, and where symlinks in it lead. What is not there
  // is good if nobody can have it made.
  Status check_tree(const std::string& path);

 private:
  struct Resolved {
    std::string path;                  // without symlinks
    std::vector<std::string> folders;  // in which the links on the way, and it, lie
    struct stat st{};                  // st_mode 0: it is not there
  };
  Result<Resolved> resolve(const std::string& path);
  Status check_entry(const std::string& path, const struct stat& st) const;
  Status check_place(const std::string& path) const;
  Status check_below(const std::string& folder);
  Status check_path_file(const std::string& file);
  Status check_variables(const std::vector<std::string>& environment);
  Status check_modules(const std::string& folder_of_program);
  Status check_environment(const std::string& folder_of_program);
  bool is_writable(const struct stat& st) const;

  bool is_root_;
  std::set<gid_t> groups_;
  std::set<std::string> good_;  // trees that were looked at
  std::size_t left_;            // entries that may still be looked at
};

}  // namespace belljar::session
