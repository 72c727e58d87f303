// Settings: what one source (flags, a task, a file) says about a policy. Unlike a
// Policy it is partial: what it does not mention, it leaves to the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "belljar/policy.h"

namespace belljar {

struct Limit {
  std::optional<std::uint64_t> value;  // absent: unlimited
  bool operator==(const Limit&) const = default;
};

struct Settings {
  std::optional<std::string> mode;
  std::optional<std::string> profile;
  std::optional<std::string> network;

  bool deny_all = false;
  bool deny_read = false;
  bool deny_write = false;
  bool deny_net = false;
  bool deny_env = false;
  std::vector<std::string> allow_read;
  std::vector<std::string> allow_write;
  std::vector<std::string> allow_net;
  std::vector<std::string> allow_env;
  std::vector<std::string> deny_net_hosts;
  std::vector<std::string> publish;  // HOSTPORT:PORT
  std::vector<std::string> extra_fs_read;
  std::vector<std::string> extra_fs_write;
  std::vector<std::string> extra_env;
  std::vector<std::string> hide;
  std::vector<std::string> protect;

  std::optional<Limit> max_memory_mb;
  std::optional<Limit> max_cpu_secs;
  std::optional<Limit> max_procs;
  std::optional<Limit> max_open_fds;
  std::optional<Limit> max_file_sz_mb;
  std::optional<Limit> timeout;  // milliseconds

  std::vector<std::string> env;  // NAME=value
  std::optional<std::string> workdir;
  std::optional<std::string> start_in;
  std::optional<std::string> home;
  std::optional<std::string> cache;
  std::optional<std::string> tmp;
  std::vector<std::string> credential;  // source:destination
  std::vector<std::string> accept_degraded;

  bool operator==(const Settings&) const = default;
  // Any deny or allow: with no profile named, the policy then starts from `open`.
  bool denies_or_allows() const;
};

// `over` wins where both name one value; denies and lists add up.
Settings merge(Settings under, const Settings& over);

}  // namespace belljar
