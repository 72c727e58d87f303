#include "cli/summary.h"

#include <boost/json.hpp>

namespace belljar::cli {
namespace {

namespace json = boost::json;

std::string_view name(Need need) {
  switch (need) {
    case Need::unasked:
      return "unasked";
    case Need::best_effort:
      return "best_effort";
    case Need::required:
      return "required";
  }
  return "?";
}

std::string_view name(Reads reads) {
  switch (reads) {
    case Reads::runtime:
      return "runtime";
    case Reads::system:
      return "system";
    case Reads::everything:
      return "everything";
  }
  return "?";
}

std::string writes(const Files& files) {
  if (files.writes_everything) return "writes everything";
  std::string text;
  if (files.workdir_access == Access::write) text = "the workdir";
  for (const Grant& grant : files.grants)
    if (grant.access == Access::write) text.append(text.empty() ? "" : " ").append(grant.path);
  return "writes " + (text.empty() ? "nothing" : text);
}

json::array strings(const std::vector<std::string>& list) {
  return json::array(list.begin(), list.end());
}

template <class T>
json::value or_null(const std::optional<T>& limit) {
  if (!limit) return nullptr;
  return *limit;
}

json::object files_to_json(const Files& files) {
  json::object object;
  object["reads"] = name(files.reads);
  object["toolchains"] = files.toolchains;
  object["writes_everything"] = files.writes_everything;
  object["other_homes"] = files.other_homes;
  object["services"] = files.services;
  object["workdir"] = files.workdir;
  object["workdir_access"] = name(files.workdir_access);
  object["home"] = files.home == Home::caller ? "caller" : "private";
  object["home_dir"] = files.home_dir;
  object["cache_dir"] = files.cache_dir;
  object["private_tmp"] = files.private_tmp;
  object["tmp_dir"] = files.tmp_dir;
  json::array& grants = object["grants"].emplace_array();
  for (const Grant& grant : files.grants)
    grants.push_back({{"path", grant.path}, {"access", name(grant.access)}, {"from", grant.from}});
  object["hide"] = strings(files.hide_globs);
  object["protect"] = strings(files.protect_globs);
  json::array& credentials = object["credentials"].emplace_array();
  for (const Credential& credential : files.credentials)
    credentials.push_back({{"source", credential.source}, {"destination", credential.destination}});
  return object;
}

json::object environment_to_json(const Environment& environment) {
  json::object object;
  object["everything"] = environment.everything;
  object["pass"] = strings(environment.pass);
  json::object& set = object["set"].emplace_object();
  for (const auto& [variable, value] : environment.set) set[variable] = value;
  object["system_path_only"] = environment.system_path_only;
  return object;
}

json::object limits_to_json(const Limits& limits) {
  json::object object;
  object["max_memory_mb"] = or_null(limits.memory_mb);
  object["max_cpu_secs"] = or_null(limits.cpu_secs);
  object["max_procs"] = or_null(limits.procs);
  object["max_open_fds"] = or_null(limits.open_fds);
  object["max_file_sz_mb"] = or_null(limits.file_sz_mb);
  object["timeout_ms"] = limits.timeout ? json::value(limits.timeout->count()) : nullptr;
  return object;
}

}  // namespace

std::string summary(const Policy& policy) {
  if (policy.mode == Mode::off) return "no sandbox";
  std::string text = policy.profile;
  if (policy.mode >= Mode::on) text += ", mode " + std::string(name(policy.mode));
  text += ", network ";
  text += name(policy.network);
  for (const std::string& host : policy.hosts) text.append(" ").append(host);
  for (const std::string& host : policy.deny_hosts) text.append(" not ").append(host);
  for (const Published& pair : policy.publish)
    text += ", port " + std::to_string(pair.port) + " at " + std::to_string(pair.host_port);
  text.append(", ").append(writes(policy.files));
  if (policy.limits.memory_mb) text += ", " + std::to_string(*policy.limits.memory_mb) + " MB";
  if (policy.limits.timeout) text += ", " + std::to_string(policy.limits.timeout->count()) + " ms";
  return text;
}

json::object policy_to_json(const Policy& policy) {
  json::object object;
  object["profile"] = policy.profile;
  object["mode"] = name(policy.mode);
  object["network"] = name(policy.network);
  object["hosts"] = strings(policy.hosts);
  object["deny_hosts"] = strings(policy.deny_hosts);
  json::array& publish = object["publish"].emplace_array();
  for (const Published& pair : policy.publish)
    publish.push_back({{"host_port", pair.host_port}, {"port", pair.port}});
  object["files"] = files_to_json(policy.files);
  object["environment"] = environment_to_json(policy.environment);
  object["limits"] = limits_to_json(policy.limits);
  object["syscalls"] = policy.syscalls == Syscalls::allow_list ? "allow_list" : "deny_list";
  json::object& needs = object["promises"].emplace_object();
  for (std::size_t i = 0; i < kPromiseCount; ++i)
    needs[name(static_cast<Promise>(i))] = name(policy.needs[i]);
  json::array& accepted = object["accept_degraded"].emplace_array();
  for (Promise promise : policy.accepted) accepted.push_back(json::value(name(promise)));
  return object;
}

}  // namespace belljar::cli
