#include "policy/session_keys.h"

#include <algorithm>

namespace belljar {
namespace {

constexpr std::uint64_t kKb = 1024;

constexpr SessionKey kKeys[] = {
    {"python", Kind::name, &SessionSettings::python,
     "the interpreter: a name in the guest's PATH, or a path"},
    {"shell", Kind::name, &SessionSettings::shell, "the shell: bash, sh, or a path to one"},
    {"python_timeout", Kind::duration, &SessionSettings::python_timeout,
     "how long a Python call may take"},
    {"shell_timeout", Kind::duration, &SessionSettings::shell_timeout,
     "how long a shell call may take"},
    {"max_timeout", Kind::duration, &SessionSettings::max_timeout,
     "the longest time that a call may ask for"},
    {"grace", Kind::duration, &SessionSettings::grace,
     "between asking a call to stop and killing it"},
    {"workdir", Kind::path, &SessionSettings::workdir,
     "a folder that all sessions share; without it each has a fresh one"},
    {"idle", Kind::duration, &SessionSettings::idle, "after which an unused session is ended"},
    {"reap_every", Kind::duration, &SessionSettings::reap_every,
     "how often unused sessions are looked for"},
    {"max_sessions", Kind::count, &SessionSettings::max_sessions, "how many there may be at once"},
    {"max_total_memory_mb", Kind::count, &SessionSettings::max_total_memory_mb,
     "no session is started while those that run use so much together"},
    {"max_output_kb", Kind::count, &SessionSettings::max_output,
     "kept of each output stream of a call, head and tail", kKb},
    {"max_file_kb", Kind::count, &SessionSettings::max_file,
     "a file of a call is returned with its content up to this size", kKb},
    {"max_file_total_kb", Kind::count, &SessionSettings::max_file_total,
     "the same for all files of a call together", kKb},
    {"preload", Kind::names, &SessionSettings::preload,
     "modules that a warm interpreter has imported, where they are installed"},
};

Status set_text(std::string& to, const SessionKey& key, std::string_view text,
                const Origin& origin) {
  if (text.empty() || text.find('\0') != text.npos)
    return fail(std::string(key.name) + ": an empty text, or one with a NUL byte");
  // A name is looked for in PATH; what has a slash is a path.
  const bool is_path = key.kind == Kind::path || text.find('/') != text.npos;
  to = is_path ? absolute_path(text, origin) : std::string(text);
  return {};
}

}  // namespace

std::span<const SessionKey> session_keys() { return kKeys; }

const SessionKey* find_session_key(std::string_view name) {
  const SessionKey* found = std::ranges::find(kKeys, name, &SessionKey::name);
  return found == std::end(kKeys) ? nullptr : found;
}

std::string default_text(const SessionKey& key) {
  const SessionSettings usual;
  if (const auto* text = std::get_if<std::string SessionSettings::*>(&key.target))
    return (usual.*(*text)).empty() ? "" : '"' + usual.*(*text) + '"';
  if (const auto* time = std::get_if<std::chrono::milliseconds SessionSettings::*>(&key.target)) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(usual.*(*time)).count();
    return '"' + std::to_string(seconds) + "s\"";
  }
  if (const auto* count = std::get_if<std::size_t SessionSettings::*>(&key.target))
    return std::to_string(usual.*(*count) / key.factor);
  const auto* list = std::get_if<std::vector<std::string> SessionSettings::*>(&key.target);
  if (list == nullptr) return {};  // a number that is optional
  std::string text;
  for (const std::string& one : usual.*(*list))
    text.append(text.empty() ? "" : ", ").append('"' + one + '"');
  return "[" + text + "]";
}

Status set(SessionSettings& settings, const SessionKey& key, std::span<const std::string> texts,
           const Origin& origin) {
  if (const auto* list = std::get_if<std::vector<std::string> SessionSettings::*>(&key.target)) {
    (settings.*(*list)).assign(texts.begin(), texts.end());
    return {};
  }
  if (texts.size() != 1) return fail(std::string(key.name) + ": must be one value");
  if (const auto* text = std::get_if<std::string SessionSettings::*>(&key.target))
    return set_text(settings.*(*text), key, texts[0], origin);

  const Limit limit = TRY(parse_limit(texts[0], key.name, key.kind));
  if (const auto* optional =
          std::get_if<std::optional<std::uint64_t> SessionSettings::*>(&key.target)) {
    settings.*(*optional) = limit.value;
    return {};
  }
  if (!limit.value) return fail(std::string(key.name) + ": must have a limit");
  if (const auto* time = std::get_if<std::chrono::milliseconds SessionSettings::*>(&key.target))
    settings.*(*time) = std::chrono::milliseconds(*limit.value);
  else
    settings.*std::get<std::size_t SessionSettings::*>(key.target) = *limit.value * key.factor;
  return {};
}

}  // namespace belljar
