// Pattern: which paths a glob means. For the glob and grep tools, path rules and .gitignore.
//
//   *  any characters but `/`      **  as a whole part of the path: any number of folders
//   ?  one character but `/`       [a-z] [!a-z] [[:digit:]]  one of these, or none of these
//   {a,b}  either (not in .gitignore)      \x  the character x itself
//
// A model or a guest wrote it, so matching is bounded: at most length of the pattern times length
// of the path, whatever either holds. Names are bytes; a character is one of UTF-8 where the bytes
// are that, else a single byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/failure.h"

namespace belljar::tools {

inline constexpr std::size_t kMaxPattern = 4096;      // bytes
inline constexpr std::size_t kMaxAlternatives = 256;  // that braces may stand for

class Pattern {
 public:
  enum class Braces : std::uint8_t { alternatives, literal };

  static Result<Pattern> parse(std::string_view text, Braces braces = Braces::alternatives);

  // `path` is relative, without `.` and `..`; the whole of it must match.
  bool matches(std::string_view path) const;
  // Whether anything below that folder can match.
  bool reaches_below(std::string_view folder) const;

 private:
  // One character of a part, or what stands for some.
  struct Token {
    enum class Type : std::uint8_t { character, any, star, set };
    Type type = Type::character;
    char32_t character = 0;
    std::size_t set = 0;
  };
  struct Set {
    std::vector<std::pair<char32_t, char32_t>> ranges;
    bool negated = false;
  };
  // What is between two slashes. Most are a name, or a star and an ending.
  struct Part {
    enum class Type : std::uint8_t { folders, name, ending, tokens };
    Type type = Type::tokens;
    std::string text;
    std::vector<Token> tokens;
    std::vector<Set> sets;
  };
  using Parts = std::vector<Part>;

  static Result<Parts> parse_parts(std::string_view text);
  static Result<Part> parse_part(std::string_view text);
  static Result<std::size_t> parse_set(std::string_view text, std::size_t at, Part& part);
  static bool part_matches(const Part& part, std::string_view name);
  static bool tokens_match(const Part& part, std::string_view name);
  static bool parts_match(const Parts& parts, std::string_view path);
  static bool parts_reach_below(const Parts& parts, std::string_view folder);

  std::vector<Parts> alternatives_;
};

}  // namespace belljar::tools
