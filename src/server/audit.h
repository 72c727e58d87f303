// Audit: what was asked, decided and done, as JSON lines in a file that is rotated by size.
// It is kept for people who ask later what a model did, so it must not become the place
// where secrets are found: long values are cut, and what looks like a secret is masked.
//
// Every principal has a file of its own, FILE with its name before the ending: what one asks
// for in any number pushes only its own lines out. `sort audit*.jsonl` is the whole story.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace belljar::server {

struct AuditSettings {
  std::string file;                                   // empty: nothing is written
  std::uint64_t max_bytes = std::uint64_t{16} << 20;  // of each
  unsigned keep = 4;                                  // older files, FILE.1 and so on
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
  // `room`: how many bytes are still looked at. What is masked takes none in the copy, but time.
  boost::json::value masked(const boost::json::value& value, int depth, std::size_t& room) const;
  std::string masked(std::string_view text, std::size_t& room) const;
  std::vector<std::string> values_;
};

class Audit {
 public:
  // Nothing is written.
  Audit() = default;
  static Result<Audit> open(AuditSettings settings, Mask mask);

  // `event` gets the time, and goes where its `principal` has its lines. What cannot be
  // written is lost, and counted.
  void write(boost::json::object event);
  const Mask& mask() const { return mask_; }
  std::uint64_t lost() const { return lost_; }

 private:
  struct Trail {
    std::string path;
    Fd file;
    std::uint64_t size = 0;
    bool is_torn = false;  // it ends amid a line: the disk was full, or who wrote it was killed
  };
  static Status reopen(Trail& trail);
  void rotate(Trail& trail) const;
  Trail& trail_of(const std::string& principal);

  AuditSettings settings_;
  Mask mask_;
  std::map<std::string, Trail> trails_;  // by path: some principals share one
  std::uint64_t lost_ = 0;
};

}  // namespace belljar::server
