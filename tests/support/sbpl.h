// A reader of Seatbelt profiles and a judge of them, from first principles: operation, path,
// the last rule that matches. It shares nothing with what writes them (src/layers/seatbelt*),
// or a mistake there would be made here again.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sbpl {

// One value of Scheme's: a list, or an atom.
struct Value {
  enum class Kind { list, symbol, string, regex };
  Kind kind = Kind::list;
  std::string text;
  std::vector<Value> items;
};

// All forms of a text, or what is wrong with it.
std::expected<std::vector<Value>, std::string> read(std::string_view text);

// What a process does.
struct Act {
  std::string operation;              // without a star: "file-read-data"
  std::optional<std::string> path;    // real; also of a Unix socket
  std::optional<std::string> remote;  // HOST:PORT; "localhost" is this machine
  std::optional<std::string> local;
  std::optional<std::string> name;       // of a service, a sysctl, a semaphore
  std::optional<std::string> target;     // of a signal: "self", "same-sandbox", "others"
  std::optional<std::string> extension;  // that the process was handed
};

class Profile {
 public:
  // An error for anything that this judge does not know: a profile that it passes is one it
  // has understood.
  static std::expected<Profile, std::string> parse(std::string_view text);

  bool allows(const Act& act) const;
  bool allows(std::string_view operation, std::string_view path) const {
    return allows({.operation = std::string(operation), .path = std::string(path)});
  }

  // The strings of all filters of this kind in rules that allow.
  std::vector<std::string> allowed(std::string_view filter) const;
  std::size_t size() const { return rules_.size(); }

 private:
  struct Rule {
    bool allow = false;
    std::vector<std::string> operations;
    std::vector<Value> filters;
  };
  std::vector<Rule> rules_;
};

}  // namespace sbpl
