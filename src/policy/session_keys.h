// The keys of [session]: how sessions run. Unlike a policy's they have no flags.
#pragma once

#include <span>
#include <variant>

#include "belljar/session.h"
#include "policy/keys.h"

namespace belljar {

using SessionTarget =
    std::variant<std::string SessionSettings::*, std::chrono::milliseconds SessionSettings::*,
                 std::size_t SessionSettings::*, std::optional<std::uint64_t> SessionSettings::*,
                 std::vector<std::string> SessionSettings::*>;

struct SessionKey {
  std::string_view name;
  Kind kind;
  SessionTarget target;
  std::string_view help;     // one sentence
  std::uint64_t factor = 1;  // of a count
};

std::span<const SessionKey> session_keys();
const SessionKey* find_session_key(std::string_view name);

// As TOML has it; empty: none.
std::string default_text(const SessionKey& key);

// A list replaces the one before.
Status set(SessionSettings& settings, const SessionKey& key, std::span<const std::string> texts,
           const Origin& origin);

}  // namespace belljar
