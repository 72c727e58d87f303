#include "support/sbpl.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <span>

namespace sbpl {
namespace {

using Kind = Value::Kind;

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::expected<std::vector<Value>, std::string> all() {
    std::vector<Value> values;
    for (skip(); !rest_.empty(); skip()) {
      values.push_back(value());
      if (!error_.empty()) return std::unexpected(error_);
    }
    return values;
  }

 private:
  void skip() {
    while (!rest_.empty()) {
      if (rest_[0] == ';') {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (std::string_view(" \t\r\n").find(rest_[0]) != std::string_view::npos) {
        rest_.remove_prefix(1);
      } else {
        return;
      }
    }
  }

  Value value() {
    if (rest_[0] == '(') return list();
    if (rest_[0] == '"') return {Kind::string, string(), {}};
    if (rest_.starts_with("#\"")) {
      rest_.remove_prefix(1);
      return {Kind::regex, string(), {}};
    }
    const std::size_t size = std::min(rest_.find_first_of(" \t\r\n();\""), rest_.size());
    if (size == 0) error_ = "unexpected " + std::string(rest_.substr(0, 10));
    Value symbol{Kind::symbol, std::string(rest_.substr(0, size)), {}};
    rest_.remove_prefix(std::max<std::size_t>(size, 1));
    return symbol;
  }

  Value list() {
    Value list;
    rest_.remove_prefix(1);
    for (skip(); !rest_.empty() && rest_[0] != ')' && error_.empty(); skip())
      list.items.push_back(value());
    if (rest_.empty()) error_ = "a list does not end";
    if (!rest_.empty()) rest_.remove_prefix(1);
    return list;
  }

  std::string string() {
    std::string text;
    for (rest_.remove_prefix(1); !rest_.empty() && rest_[0] != '"'; rest_.remove_prefix(1)) {
      if (rest_[0] == '\\') {
        rest_.remove_prefix(1);
        // Others mean something in one Scheme and something else in another.
        if (rest_.empty() || (rest_[0] != '"' && rest_[0] != '\\')) error_ = "an unknown escape";
        if (rest_.empty()) break;
      }
      text.push_back(rest_[0]);
    }
    if (rest_.empty()) error_ = "a string does not end";
    if (!rest_.empty()) rest_.remove_prefix(1);
    return text;
  }

  std::string_view rest_;
  std::string error_;
};

// `file-read*` is the family of file-read-data; `file*` of that too.
bool covers(std::string_view rule, std::string_view operation) {
  if (rule == "default" || rule == operation) return true;
  return rule.ends_with('*') && operation.starts_with(rule.substr(0, rule.size() - 1));
}

bool is_in(std::string_view path, std::string_view tree) {
  if (tree == "/") return path.starts_with('/');
  return path == tree || (path.starts_with(tree) && path.substr(tree.size()).starts_with('/'));
}

bool matches_regex(const std::string& text, const std::string& expression) {
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);
  options.set_dot_nl(true);
  return RE2::PartialMatch(text, RE2(expression, options));
}

// HOST:PORT against localhost:*, *:* or the like.
bool matches_address(std::string_view address, std::string_view pattern) {
  const std::size_t at = address.rfind(':');
  const std::size_t colon = pattern.rfind(':');
  auto same = [](std::string_view has, std::string_view wants) {
    return wants == "*" || has == wants;
  };
  return same(address.substr(0, at), pattern.substr(0, colon)) &&
         same(address.substr(at + 1), pattern.substr(colon + 1));
}

constexpr std::array kPathFilters = {"literal", "subpath", "regex"};
constexpr std::array kNameFilters = {"global-name", "sysctl-name", "sysctl-name-prefix",
                                     "ipc-posix-name-regex", "extension"};

bool is_one_of(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool matches(const Value& filter, const Act& act) {
  const std::string& kind = filter.items[0].text;
  const std::string& value = filter.items.back().text;
  if (kind == "literal") return act.path == value;
  if (kind == "subpath") return act.path && is_in(*act.path, value);
  if (kind == "regex") return act.path && matches_regex(*act.path, value);
  if (kind == "ipc-posix-name-regex") return act.name && matches_regex(*act.name, value);
  if (kind == "sysctl-name-prefix") return act.name && act.name->starts_with(value);
  if (kind == "global-name" || kind == "sysctl-name") return act.name == value;
  if (kind == "target") return act.target == value || (act.target == "self" && value != "others");
  if (kind == "remote") return act.remote && matches_address(*act.remote, value);
  if (kind == "local") return act.local && matches_address(*act.local, value);
  if (kind == "require-all")
    return std::ranges::all_of(filter.items.begin() + 1, filter.items.end(),
                               [&](const Value& part) { return matches(part, act); });
  if (kind == "extension") return act.extension == value;
  return false;
}

std::optional<std::string> wrong_with(const Value& filter) {
  if (filter.kind != Kind::list || filter.items.size() < 2) return "a filter is no list of two";
  const std::string& kind = filter.items[0].text;
  const Value& value = filter.items.back();
  if (kind == "remote" || kind == "local") {
    const bool known = filter.items.size() == 3 && filter.items[1].text == "ip" &&
                       value.kind == Kind::string &&
                       (value.text.starts_with("localhost:") || value.text.starts_with("*:"));
    return known ? std::nullopt : std::optional("an address that Seatbelt refuses: " + value.text);
  }
  if (kind == "require-all") {
    for (std::size_t i = 1; i < filter.items.size(); ++i)
      if (auto wrong = wrong_with(filter.items[i])) return wrong;
    return std::nullopt;
  }
  if (filter.items.size() != 2) return "a filter with more than one value";
  if (kind == "target")
    return value.kind == Kind::symbol ? std::nullopt : std::optional("a target that is no symbol");
  const bool regex = kind == "regex" || kind == "ipc-posix-name-regex";
  if (!is_one_of(kPathFilters, kind) && !is_one_of(kNameFilters, kind))
    return "an unknown filter " + kind;
  if (value.kind != (regex ? Kind::regex : Kind::string)) return "a wrong value of " + kind;
  if (regex && (!RE2(value.text, RE2::Latin1).ok() || value.text.find('\\') != std::string::npos))
    return "a bad expression " + value.text;
  return std::nullopt;
}

}  // namespace

std::expected<std::vector<Value>, std::string> read(std::string_view text) {
  return Reader(text).all();
}

std::expected<Profile, std::string> Profile::parse(std::string_view text) {
  const auto forms = read(text);
  if (!forms) return std::unexpected(forms.error());
  Profile profile;
  for (const Value& form : *forms) {
    if (form.kind != Kind::list || form.items.empty() || form.items[0].kind != Kind::symbol)
      return std::unexpected("a form that is no rule");
    const std::string& head = form.items[0].text;
    const bool first = &form == &forms->front();
    if ((head == "version") != first) return std::unexpected("version is not the first form");
    if (first) continue;
    if (head != "allow" && head != "deny") return std::unexpected("an unknown form " + head);
    Rule rule{.allow = head == "allow", .operations = {}, .filters = {}};
    for (const Value& item : std::span(form.items).subspan(1)) {
      if (item.kind == Kind::symbol && rule.filters.empty()) {
        rule.operations.push_back(item.text);
        continue;
      }
      if (const auto wrong = wrong_with(item)) return std::unexpected(*wrong);
      rule.filters.push_back(item);
    }
    if (rule.operations.empty()) return std::unexpected("a rule about nothing");
    profile.rules_.push_back(std::move(rule));
  }
  if (profile.rules_.empty() || profile.rules_[0].allow ||
      profile.rules_[0].operations != std::vector<std::string>{"default"})
    return std::unexpected("it does not begin with (deny default)");
  return profile;
}

bool Profile::allows(const Act& act) const {
  bool allowed = false;
  for (const Rule& rule : rules_) {
    const bool about = std::ranges::any_of(
        rule.operations, [&](const std::string& name) { return covers(name, act.operation); });
    if (!about) continue;
    const bool applies =
        rule.filters.empty() || std::ranges::any_of(rule.filters, [&](const Value& filter) {
          return matches(filter, act);
        });
    if (applies) allowed = rule.allow;
  }
  return allowed;
}

std::vector<std::string> Profile::allowed(std::string_view filter) const {
  std::vector<std::string> values;
  for (const Rule& rule : rules_)
    for (const Value& one : rule.filters)
      if (rule.allow && one.items[0].text == filter) values.push_back(one.items.back().text);
  return values;
}

}  // namespace sbpl
