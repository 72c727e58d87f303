// The keys of [server]: how `belljar serve` listens and what it allows its clients.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "policy/keys.h"

namespace belljar {

struct ServerSettings {
  std::vector<std::string> listen = {"127.0.0.1:8077"};
  std::string socket;  // path of a local socket; empty: one in the runtime folder
  bool allow_remote = false;
  std::string token_file;  // empty: one in the state folder, made at the first start
  std::string skills_dir;  // empty: one in the state folder
  std::vector<std::string> hosts;
  std::vector<std::string> origins;
  std::size_t max_connections = 16'384;
  std::size_t max_requests = 64;
  std::size_t max_requests_total = 512;
  std::size_t max_sessions_per_token = 16;
  std::chrono::milliseconds idle_timeout = std::chrono::seconds(120);
  std::chrono::milliseconds header_timeout = std::chrono::seconds(10);
  std::chrono::milliseconds body_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds write_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds dispatch_wait = std::chrono::seconds(20);
  std::chrono::milliseconds drain_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds removal_timeout = std::chrono::seconds(10);
  std::chrono::milliseconds approval_timeout = std::chrono::seconds(300);
  bool operator==(const ServerSettings&) const = default;
};

using ServerTarget =
    std::variant<bool ServerSettings::*, std::string ServerSettings::*,
                 std::chrono::milliseconds ServerSettings::*, std::size_t ServerSettings::*,
                 std::vector<std::string> ServerSettings::*>;

struct ServerKey {
  std::string_view name;
  Kind kind;
  ServerTarget target;
  std::string_view fallback;  // the default, as people write it
  std::string_view help;      // one sentence
};

std::span<const ServerKey> server_keys();
const ServerKey* find_server_key(std::string_view name);

// A list replaces the one before.
Status set(ServerSettings& settings, const ServerKey& key, std::span<const std::string> texts,
           const Origin& origin);

}  // namespace belljar
