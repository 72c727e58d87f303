// Walk: from a path that somebody wrote to a place that is held. See workspace.h for why it takes
// one name at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/workspace.h"

namespace belljar::tools {

// The parts of a path, without empty ones and `.`.
std::vector<std::string> parts_of(std::string_view path);
std::string joined(const std::vector<std::string>& parts);  // "/" in front of each

class Walk {
 public:
  Walk(const Workspace& workspace, std::string_view tool, std::string_view asked,
       Workspace::Missing missing)
      : workspace_(workspace), tool_(tool), asked_(asked), missing_(missing) {}

  Result<Place> to(std::string_view absolute);

 private:
  int here_fd() const { return here_ ? here_.get() : root_->fd.get(); }
  void restart();
  Status step(std::string name);
  Status step_into(const HeldRoot& root, std::string name);
  Status follow(int link_fd);
  Status make_folder(const std::string& name);
  Status arrive(std::string name, Fd self, const struct stat& st);
  std::unexpected<Failure> leads_out(std::string inside) const;
  std::string what(std::string_view doing) const;

  const Workspace& workspace_;
  std::string tool_;
  std::string asked_;  // for messages
  Workspace::Missing missing_;

  std::vector<std::string> ahead_;  // the next one is the last
  std::vector<std::string> behind_;
  const HeldRoot* root_ = nullptr;  // none: above all roots
  Fd here_;                         // the folder that behind_ names; none: the root's own
  Place place_;
  int links_ = 0;
  int made_ = 0;
  int steps_ = 0;
};

}  // namespace belljar::tools
