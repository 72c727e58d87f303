#include "tools/walk.h"

#include <fcntl.h>

#include <algorithm>

#include "base/printable.h"
#include "tools/beneath.h"
#include "tools/create.h"

namespace belljar::tools {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel
constexpr int kMaxSteps = 10'000;
constexpr int kMaxMade = 256;  // folders on the way, those that vanish again counted too

}  // namespace

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path.remove_prefix(slash == path.npos ? path.size() : slash + 1);
  }
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  if (parts.empty()) return "/";
  std::string path;
  for (const std::string& part : parts) path.append("/").append(part);
  return path;
}

Result<Place> Walk::to(std::string_view absolute) {
  ahead_ = parts_of(absolute);
  std::ranges::reverse(ahead_);
  while (!ahead_.empty()) {
    if (++steps_ > kMaxSteps)
      return refuse(Kind::bad_argument, what("follow"), "use a shorter path");
    std::string name = std::move(ahead_.back());
    ahead_.pop_back();
    TRY(step(std::move(name)));
  }
  if (root_ == nullptr) return leads_out(joined(behind_));
  if (!place_.root) {  // it ended at a root, or by `..` in a folder
    place_.self = TRY(duplicate(here_fd()));
    if (::fstat(place_.self.get(), &place_.st) < 0) return refuse_errno(what("look at"), errno);
  }
  place_.root = root_;
  place_.inside = joined(behind_);
  return std::move(place_);
}

std::string Walk::what(std::string_view doing) const {
  return std::string(doing) + " " + printable(asked_);
}

std::unexpected<Failure> Walk::leads_out(std::string inside) const {
  for (auto part = ahead_.rbegin(); part != ahead_.rend(); ++part) inside += "/" + *part;
  if (workspace_.is_unreached(inside))
    return refuse(Kind::outside, printable(asked_) + " is not among the files that the tools reach",
                  "what runs in the session may see it: use shell or python for it, or a path in " +
                      workspace_.places());
  return refuse(Kind::outside, printable(asked_) + " is not shown to this session",
                "the shell does not see it either; use a path in " + workspace_.places());
}

// Back to the top, with all that was passed still ahead: only a folder's own descriptor is held,
// and what is above it may have changed.
void Walk::restart() {
  ahead_.insert(ahead_.end(), behind_.rbegin(), behind_.rend());
  behind_.clear();
  root_ = nullptr;
  here_.reset();
}

Status Walk::step(std::string name) {
  place_ = {};
  if (name == "..") {
    if (!behind_.empty()) behind_.pop_back();
    restart();
    return {};
  }
  std::string inside = joined(behind_);
  if (inside != "/") inside += '/';
  inside += name;
  if (const HeldRoot* root = workspace_.root_at(inside)) return step_into(*root, std::move(name));
  if (root_ == nullptr) {
    const bool leads_to_one = std::ranges::any_of(workspace_.roots(), [&](const HeldRoot& held) {
      return held.root.inside.starts_with(inside + "/");
    });
    if (!leads_to_one) return leads_out(std::move(inside));
    behind_.push_back(std::move(name));
    return {};
  }

  const AsGuest as_guest(root_->guest);
  if (as_guest.failed()) return refuse_errno(what("look at"), EPERM);
  Fd next = open_name(here_fd(), name, O_PATH);
  if (!next && errno == ENOENT) {
    if (ahead_.empty() && missing_ != Workspace::Missing::is_an_error)
      return arrive(std::move(name), {}, {});
    if (missing_ == Workspace::Missing::makes_parents) return make_folder(name);
    errno = ENOENT;
  }
  if (!next) return refuse_in(*root_, what("find"), errno);
  struct stat st{};
  if (::fstat(next.get(), &st) < 0) return refuse_errno(what("look at"), errno);
  if (S_ISLNK(st.st_mode)) return follow(next.get());
  if (const HeldRoot* root = workspace_.root_of(st)) return step_into(*root, std::move(name));
  if (!S_ISDIR(st.st_mode)) {
    if (!ahead_.empty()) return refuse_errno(what("find"), ENOTDIR);
    return arrive(std::move(name), std::move(next), st);
  }
  if (ahead_.empty()) return arrive(std::move(name), std::move(next), st);
  here_ = std::move(next);
  behind_.push_back(std::move(name));
  return {};
}

Status Walk::step_into(const HeldRoot& root, std::string name) {
  if (root.root.hidden)
    return refuse(Kind::denied_by_rule, printable(asked_) + " is hidden from this session",
                  "do without it");
  root_ = &root;
  here_.reset();
  behind_.push_back(std::move(name));
  struct stat st{};
  if (::fstat(root.fd.get(), &st) < 0) return refuse_errno(what("look at"), errno);
  if (!ahead_.empty() && !S_ISDIR(st.st_mode)) return refuse_errno(what("find"), ENOTDIR);
  return {};
}

// As the guest's own kernel would: from the folder of the link, or from the guest's `/`.
Status Walk::follow(int link_fd) {
  if (++links_ > kMaxLinks)
    return refuse(Kind::bad_argument, what("find"), "its symbolic links lead to one another",
                  ELOOP);
  const std::string target = TRY(read_link(link_fd));
  std::vector<std::string> parts = parts_of(target);
  ahead_.insert(ahead_.end(), parts.rbegin(), parts.rend());
  if (target.starts_with('/')) {
    behind_.clear();
    root_ = nullptr;
    here_.reset();
  }
  return {};
}

Status Walk::make_folder(const std::string& name) {
  if (!root_->root.writable)
    return refuse(Kind::read_only, what("write to") + ": it is in a place that is read-only",
                  "write to " + workspace_.places());
  if (!workspace_.allows(tool_, joined(behind_) + "/" + name))
    return refuse(Kind::denied_by_rule, what("make the folder of"),
                  "a rule of the operator's says so; do without it");
  if (++made_ > kMaxMade)
    return refuse(Kind::bad_argument, what("make the folders of"), "use a shorter path");
  TRY(create_folder(here_fd(), name, what("make the folder of")));
  ahead_.push_back(name);  // opened like one that was there
  return {};
}

Status Walk::arrive(std::string name, Fd self, const struct stat& st) {
  place_.root = root_;
  place_.folder = TRY(duplicate(here_fd()));
  place_.name = name;
  place_.self = std::move(self);
  place_.st = st;
  behind_.push_back(std::move(name));
  return {};
}

}  // namespace belljar::tools
