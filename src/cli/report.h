// The outcome of a run, as JSON and as the one line a person needs.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "belljar/caller.h"
#include "belljar/outcome.h"

namespace belljar::cli {

// Where the report goes. The folder is found before the guest runs, since it may be the
// guest's to replace by a symlink.
class ReportFile {
 public:
  static Result<ReportFile> prepare(const std::string& path, const Files& files,
                                    const Caller& caller);
  Status write(const Policy& policy, const Outcome& outcome) const;

 private:
  ReportFile(std::string path, std::string name, Fd folder)
      : path_(std::move(path)), name_(std::move(name)), folder_(std::move(folder)) {}
  Status check_replaceable() const;

  std::string path_;  // as the person wrote it
  std::string name_;
  Fd folder_;
};

// One line about a decision, and one for each different thing that was denied.
std::string in_words(const NetworkEvent& event);
std::vector<std::string> denials(const std::vector<NetworkEvent>& events);

// What ended the guest and which flag changes it; empty when it ended by itself.
std::string last_words(const Policy& policy, const Outcome& outcome);

}  // namespace belljar::cli
