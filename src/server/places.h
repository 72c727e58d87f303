// Places: how many requests each token has under way, and how much memory it makes the server
// hold for them: bodies until they are dealt with, and answers until they are sent. Who has as
// much as he may is told so; the others do not notice.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace belljar::server {

inline constexpr std::size_t kMaxHeld = std::size_t{256} << 20;  // bytes, of one token
// So much a request may always have: who has reached the limit can still look and close.
inline constexpr std::size_t kSmall = std::size_t{64} << 10;

struct Places {
  struct Used {
    std::size_t count = 0;
    std::size_t bytes = 0;
  };
  std::map<std::string, Used, std::less<>> by_principal;  // of those who have any
  std::size_t total = 0;

  std::size_t count(const std::string& principal) const {
    const auto found = by_principal.find(principal);
    return found != by_principal.end() ? found->second.count : 0;
  }
};

// One place of those that a principal has, and of all.
class Place {
 public:
  Place(std::shared_ptr<Places> all, std::string principal)
      : all_(std::move(all)), principal_(std::move(principal)) {
    ++all_->total;
    ++all_->by_principal[principal_].count;
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    --all_->total;
    Places::Used& mine = all_->by_principal[principal_];
    mine.bytes -= bytes_;
    if (--mine.count == 0) all_->by_principal.erase(principal_);
  }

  // So many bytes from now on, whatever it was. False: they are too many, and it is what it was.
  bool hold(std::size_t bytes) {
    std::size_t& mine = all_->by_principal[principal_].bytes;
    const std::size_t others = mine - bytes_;
    if (bytes > bytes_ && bytes > kSmall && others + bytes > kMaxHeld) return false;
    mine = others + bytes;
    bytes_ = bytes;
    return true;
  }

 private:
  std::shared_ptr<Places> all_;
  std::string principal_;
  std::size_t bytes_ = 0;
};

}  // namespace belljar::server
