#include "cli/flags.h"

#include <algorithm>

#include "cli/commands.h"

namespace belljar::cli {
namespace {

class Reader {
 public:
  Reader(const Arguments& arguments, const std::vector<Flag>& own)
      : arguments_(arguments), own_(own) {
    Caller caller = this_caller();
    origin_ = {.folder = caller.cwd, .home = caller.home};
  }

  Result<Parsed> read() {
    for (; at_ < arguments_.size(); ++at_) {
      std::string_view argument = arguments_[at_];
      if (argument == "--") {
        ++at_;
        break;
      }
      if (!argument.starts_with('-') || argument == "-") break;
      TRY(read_flag(argument));
    }
    parsed_.rest.assign(arguments_.begin() + static_cast<std::ptrdiff_t>(at_), arguments_.end());
    return std::move(parsed_);
  }

 private:
  Status read_flag(std::string_view argument) {
    if (!argument.starts_with("--")) return read_letter(argument);
    argument.remove_prefix(2);
    std::size_t equals = argument.find('=');
    std::string_view name = argument.substr(0, equals);
    std::optional<std::string_view> value;
    if (equals != argument.npos) value = argument.substr(equals + 1);

    auto own = std::ranges::find(own_, name, &Flag::name);
    if (own != own_.end()) {
      if (own->seen != nullptr) *own->seen = true;
      if (own->values != nullptr) {
        own->values->push_back(TRY(value_of(name, value)));
        return {};
      }
      if (own->value == nullptr) return no_value(name, value);
      *own->value = TRY(value_of(name, value));
      return {};
    }
    const Key* key = find_flag(name);
    if (key == nullptr) return unknown(name);
    if (key->kind == Kind::flag) {
      TRY(no_value(name, value));
      return set(parsed_.settings, *key, "true", origin_);
    }
    return set_flag(*key, TRY(value_of(name, value)));
  }

  // An error speaks of the flag that was written, not of the key behind it.
  Status set_flag(const Key& key, const std::string& value) {
    Status status = set(parsed_.settings, key, value, origin_);
    if (status) return status;
    Error error = status.error();
    if (error.what.starts_with(key.name))
      error.what.replace(0, key.name.size(), "--" + std::string(key.flag));
    return std::unexpected(std::move(error));
  }

  Status read_letter(std::string_view argument) {
    for (const Flag& own : own_) {
      if (own.letter == 0 || own.value == nullptr || argument[1] != own.letter) continue;
      std::optional<std::string_view> value;
      if (argument.size() > 2) value = argument.substr(2);
      if (own.seen != nullptr) *own.seen = true;
      *own.value = TRY(value_of(argument.substr(1, 1), value));
      return {};
    }
    for (const Key& key : keys()) {
      if (key.letter == 0 || argument[1] != key.letter) continue;
      std::optional<std::string_view> value;
      if (argument.size() > 2) value = argument.substr(2);
      return set_flag(key, TRY(value_of(argument.substr(1, 1), value)));
    }
    return unknown(argument.substr(1, 1));
  }

  Result<std::string> value_of(std::string_view name, std::optional<std::string_view> value) {
    if (value) return std::string(*value);
    if (at_ + 1 >= arguments_.size() || arguments_[at_ + 1] == "--")
      return fail(dashed(name) + " needs a value");
    return arguments_[++at_];
  }

  static std::string dashed(std::string_view name) {
    return (name.size() == 1 ? "-" : "--") + std::string(name);
  }

  static Status no_value(std::string_view name, std::optional<std::string_view> value) {
    if (value) return fail("--" + std::string(name) + " takes no value");
    return {};
  }

  Status unknown(std::string_view name) const {
    std::vector<std::string_view> names;
    for (const Key& key : keys()) names.push_back(key.flag);
    for (const Flag& flag : own_) names.push_back(flag.name);
    for (const FlagHelp& flag : kGlobalFlags) names.push_back(flag.name);
    std::string_view near = name.size() > 1 ? nearest(name, names) : std::string_view();
    return fail("unknown flag " + dashed(name), 0,
                near.empty() ? "belljar --help" : "did you mean --" + std::string(near) + "?");
  }

  const Arguments& arguments_;
  const std::vector<Flag>& own_;
  Origin origin_;
  std::size_t at_ = 0;
  Parsed parsed_;
};

}  // namespace

Result<Parsed> parse_flags(const Arguments& arguments, const std::vector<Flag>& own) {
  return Reader(arguments, own).read();
}

Result<Arguments> parse_words(const Arguments& arguments, const std::vector<Flag>& own) {
  Arguments words;
  Arguments rest = arguments;
  do {
    Parsed parsed = TRY(parse_flags(rest, own));
    if (parsed.settings != Settings{}) return fail("this command takes no policy");
    rest = std::move(parsed.rest);
    if (rest.empty()) break;
    words.push_back(rest.front());
    rest.erase(rest.begin());
  } while (!rest.empty());
  return words;
}

}  // namespace belljar::cli
