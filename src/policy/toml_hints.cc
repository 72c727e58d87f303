#include "policy/toml_hints.h"

#include <algorithm>

#include "policy/keys.h"
#include "policy/server_keys.h"
#include "policy/session_keys.h"

namespace belljar {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

std::string_view line_of(std::string_view text, std::size_t number) {
  for (; number > 1 && !text.empty(); --number)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

// Such as names, hosts, paths, and what is neither a number nor a date.
bool is_bare_text(std::string_view value) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr std::string_view kStarts = "/~.@*_$";
  if (value.empty() || value == "true" || value == "false") return false;
  if (value.find_first_of("\"'[]{}") != value.npos) return false;
  return value.find_first_of(kLetters) != value.npos || kStarts.find(value[0]) != kStarts.npos;
}

}  // namespace

std::string missing_quotes(std::string_view file, std::size_t line) {
  const std::string_view text = line_of(file, line);
  const std::size_t equals = text.find('=');
  if (equals == text.npos) return {};
  const std::string key(trimmed(text.substr(0, equals)));
  std::string_view value = trimmed(text.substr(equals + 1));
  value = trimmed(value.substr(0, value.find('#')));
  const std::string start = "text needs quotes: " + key + " = ";
  if (is_bare_text(value)) return start + "\"" + std::string(value) + "\"";
  if (!value.starts_with('[') || !value.ends_with(']')) return {};
  std::string list;
  for (value = value.substr(1, value.size() - 2); !value.empty();) {
    const std::string_view one = value.substr(0, value.find(','));
    value.remove_prefix(std::min(one.size() + 1, value.size()));
    if (!is_bare_text(trimmed(one))) return {};
    list.append(list.empty() ? "\"" : ", \"").append(trimmed(one)).append("\"");
  }
  return list.empty() ? std::string() : start + "[" + list + "]";
}

std::string own_table(std::string_view key) {
  std::string_view table;
  if (find_server_key(key) != nullptr) table = "[server]";
  if (find_session_key(key) != nullptr) table = "[session]";
  if (find_key(key) != nullptr) table = "[sandbox]";
  return table.empty() ? std::string() : "it belongs in " + std::string(table);
}

std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> names,
                         const std::string& otherwise) {
  const std::string_view near = nearest(wrong, names);
  return near.empty() ? otherwise : "did you mean " + std::string(near) + "?";
}

}  // namespace belljar
