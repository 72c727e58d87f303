// Tree: all files below a folder that .gitignore and the path rules let one see, by two threads.
//
// The guest can make trees of any size and change them meanwhile: every folder is opened in its
// parent's descriptor, symlinks are passed over, and entries, depth and time are bounded. What is
// in .git is nobody's file.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tools/ignore.h"
#include "tools/workspace.h"

namespace belljar::tools {

struct TreeLimits {
  std::size_t entries = 2'000'000;
  int depth = 128;
  std::chrono::milliseconds time = std::chrono::seconds(20);
};

// A regular file, as its folder lists it.
struct TreeFile {
  int folder_fd;
  const std::string& name;
  std::string_view inside;  // its path
  std::string_view below;   // from where the search began
  std::size_t thread;       // 0 or 1: who asks
};

struct TreeSearch {
  const Workspace& workspace;
  std::string_view tool;  // for the rules
  const Place& base;
  // Whether to look into a folder, by its path from the base.
  std::function<bool(std::string_view below)> enters;
  // From both threads. False: enough, all is over.
  std::function<bool(const TreeFile&)> visit;
  std::stop_token stop;
  TreeLimits limits = {};
};

class Tree {
 public:
  static constexpr std::size_t kThreads = 2;

  explicit Tree(const TreeSearch& search);
  // False: it was not all looked at, because of a limit.
  Result<bool> run();

 private:
  struct Folder {
    Fd fd;
    std::string inside;
    const HeldRoot* root = nullptr;
    std::shared_ptr<const IgnoreChain> ignore;  // up to and with its own
    int depth = 0;
  };
  // Work: a folder that is to be read, or some files of one that was.
  struct Work {
    std::shared_ptr<Folder> folder;    // of the files; or the parent of
    std::string name;                  // the folder, and
    const HeldRoot* enters = nullptr;  // the root that this is, if it is one
    std::vector<std::string> files;
  };
  struct Listing {
    std::vector<std::string> files, folders;
    bool has_ignore = false;
  };

  std::shared_ptr<const IgnoreChain> ignores_above() const;
  void work(std::size_t thread);
  std::optional<Work> next();
  void done();
  void read_folder(const Work& work, std::size_t thread);
  void read_list(const std::shared_ptr<Folder>& folder, std::size_t thread);
  std::optional<Listing> list(const Folder& folder);
  void add_nested_roots(const Folder& folder, Listing& listing) const;
  void visit_files(const Folder& folder, const std::vector<std::string>& files, std::size_t thread);
  void push(Work work);
  void begin_helper();
  bool over();
  void cut() { complete_ = false; }

  const TreeSearch& search_;
  std::size_t base_length_;
  bool has_hidden_;
  std::chrono::steady_clock::time_point deadline_;
  std::atomic<std::size_t> seen_ = 0;
  std::atomic<bool> over_ = false;
  std::atomic<bool> complete_ = true;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Work> waiting_;  // the last comes first, so that few folders are open
  std::size_t active_ = 0;
  std::jthread helper_;
};

// The folder's own .gitignore, or nothing.
std::optional<Ignore> read_ignore(int folder_fd);

}  // namespace belljar::tools
