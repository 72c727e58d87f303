#include "tools/braces.h"

namespace belljar::tools {
namespace {

std::unexpected<Failure> unbalanced(std::string_view text) {
  return refuse(Kind::bad_pattern, "braces that are not closed in \"" + std::string(text) + "\"",
                "write a backslash before a brace that is meant itself");
}

// Where the class that begins at `at` ends; `at` itself if it does not.
std::size_t end_of_class(std::string_view text, std::size_t at) {
  std::size_t i = at + 1;
  if (i < text.size() && (text[i] == '!' || text[i] == '^')) ++i;
  if (i < text.size() && text[i] == ']') ++i;  // the first one is a member
  for (; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text.substr(i).starts_with("[:")) {
      const std::size_t end = text.find(":]", i + 2);
      if (end != text.npos) i = end + 1;
    } else if (text[i] == ']') {
      return i;
    }
  }
  return at;
}

// The next `{`, `}` or `,` that means something, from `at` on.
std::size_t next_mark(std::string_view text, std::size_t at) {
  for (std::size_t i = at; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '[')
      i = end_of_class(text, i);
    else if (text[i] == '{' || text[i] == '}' || text[i] == ',')
      return i;
  }
  return text.npos;
}

// What stands between commas in the group that opens at `open`, and where it closes.
struct Group {
  std::vector<std::string_view> members;
  std::size_t close = 0;
};

Result<Group> read_group(std::string_view text, std::size_t open) {
  Group group;
  std::size_t begin = open + 1;
  int depth = 1;
  for (std::size_t i = next_mark(text, begin); i != text.npos; i = next_mark(text, i + 1)) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}') --depth;
    if (depth == 0 || (depth == 1 && text[i] == ',')) {
      group.members.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
    if (depth == 0) {
      group.close = i;
      return group;
    }
  }
  return unbalanced(text);
}

// Of what is still to be expanded the last is taken first, so that few wait at any time.
std::size_t first_open(std::string_view text) {
  std::size_t at = next_mark(text, 0);
  while (at != text.npos && text[at] == ',') at = next_mark(text, at + 1);
  return at;
}

}  // namespace

Result<std::vector<std::string>> expand_braces(std::string_view text, std::size_t most) {
  std::vector<std::string> done;
  std::vector<std::string> waiting = {std::string(text)};
  while (!waiting.empty()) {
    const std::string pattern = std::move(waiting.back());
    waiting.pop_back();
    const std::size_t open = first_open(pattern);
    if (open == pattern.npos) {
      done.push_back(pattern);
      continue;
    }
    if (pattern[open] == '}') return unbalanced(text);
    const Group group = TRY(read_group(pattern, open));
    if (done.size() + waiting.size() + group.members.size() > most)
      return refuse(Kind::bad_pattern,
                    "braces that stand for more than " + std::to_string(most) + " patterns",
                    "use `*`, or several calls");
    for (auto member = group.members.rbegin(); member != group.members.rend(); ++member)
      waiting.push_back(pattern.substr(0, open) + std::string(*member) +
                        pattern.substr(group.close + 1));
  }
  return done;
}

}  // namespace belljar::tools
