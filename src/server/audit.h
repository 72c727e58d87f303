// Audit: what was asked, decided and done, as JSON lines in a file that is rotated by size.
// It is kept for people who ask later what a model did, so it must not become the place
// where secrets are found: long values are cut, and what looks like a secret is masked.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace belljar::server {

struct AuditSettings {
  std::string file;  // empty: nothing is written
  std::uint64_t max_bytes = std::uint64_t{16} << 20;
  unsigned keep = 4;  // older files, FILE.1 and so on
};

// Takes secrets out of text.
class Mask {
 public:
  // `values`: secrets that are known, such as those of environment variables.
  explicit Mask(std::vector<std::string> values = {});
  std::string text(std::string text) const;
  // Strings cut to a length and masked, in a copy. Values of `environment` go altogether.
  boost::json::value arguments(const boost::json::value& value) const;

 private:
  boost::json::value masked(const boost::json::value& value, int depth) const;
  std::vector<std::string> values_;
};

class Audit {
 public:
  // Nothing is written.
  Audit() = default;
  static Result<Audit> open(AuditSettings settings, Mask mask);

  // `event` gets the time. What cannot be written is lost, and counted.
  void write(boost::json::object event);
  const Mask& mask() const { return mask_; }
  std::uint64_t lost() const { return lost_; }

 private:
  Status reopen();
  void rotate();

  AuditSettings settings_;
  Mask mask_;
  Fd file_;
  std::uint64_t size_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace belljar::server
