// Needle: a regular expression, and the quickest way to a line that it can match.
//
// RE2 takes time linear in the text whatever a model wrote, but it looks at every byte. Most
// patterns hold a text that every match must have, and that is found many times faster; RE2 then
// sees only the lines that have it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tools/failure.h"

namespace re2 {
class RE2;
}

namespace belljar::tools {

inline constexpr std::size_t kMaxExpression = 4096;  // bytes

enum class Case : std::uint8_t { matters, ignored };

class Needle {
 public:
  static Result<Needle> compile(const std::string& pattern, Case letters = Case::matters);
  Needle(const Needle&) = delete;
  Needle& operator=(const Needle&) = delete;
  Needle(Needle&&) noexcept;
  Needle& operator=(Needle&&) noexcept;
  ~Needle();

  // A place in the first line of `block` that matches, at or after `from`, which is the beginning
  // of a line; npos if none does. A match is within a line.
  std::size_t find(std::string_view block, std::size_t from) const;

 private:
  Needle();
  std::size_t find_text(std::string_view block, std::size_t from) const;

  std::unique_ptr<re2::RE2> regex_;
  std::string text_;        // that every match holds; empty: none is known
  std::size_t rarest_ = 0;  // of its bytes
  bool is_text_ = false;    // and nothing else
};

// The longest text that a match of this expression must hold. Empty where that is not plain to
// see: this is no parser, and gives up at whatever it does not know.
std::string required_text(std::string_view pattern);

}  // namespace belljar::tools
