// Links in a session's workdir that lead to what else it may read: skills, and folders that were
// named by a relative path. What makes them readable, or read-only, is the policy; the guest can
// remove a link, and nothing else.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace belljar::python {

class Links {
 public:
  // `workdir` is the host's. A name may have folders in it, which are made.
  static Result<Links> make(const std::string& workdir,
                            const std::vector<std::pair<std::string, std::string>>& wanted);
  // Takes those away that were made, for a workdir that stays.
  void remove() const;

 private:
  std::string workdir_;
  std::vector<std::string> made_;     // in order
  std::vector<std::string> folders_;  // in order
};

}  // namespace belljar::python
