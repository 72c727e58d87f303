#include "server/policy_request.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "base/commas.h"
#include "base/printable.h"
#include "policy/validate.h"
#include "policy/widening.h"
#include "server/limits.h"
#include "session/session.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

// Keys that can only ever take away, or whose effect is compared. Not: folders of the
// host's as workdir, home or /tmp, credentials, ports, variables, accepted losses.
constexpr std::array<std::string_view, 19> kAllowed = {
    "network",        "deny_all",     "deny_read",      "deny_write",    "deny_net",
    "deny_env",       "allow_read",   "allow_write",    "allow_net",     "allow_env",
    "deny_net_hosts", "hide",         "protect",        "max_memory_mb", "max_cpu_secs",
    "max_procs",      "max_open_fds", "max_file_sz_mb", "timeout"};

std::string which_key(std::string_view wrong) {
  const std::string_view near = find_key(wrong) == nullptr ? nearest(wrong, kAllowed) : "";
  return near.empty() ? "there are " + with_commas(kAllowed)
                      : "did you mean " + std::string(near) + "?";
}

// A profile of the operator's own file is none that can be asked for.
std::string which_profile(std::string_view wrong) {
  std::vector<std::string_view> names;
  for (const Profile& profile : profiles()) names.push_back(profile.name);
  const std::string_view near = nearest(wrong, names);
  return (near.empty() ? "" : "did you mean " + std::string(near) + "? ") + "there are " +
         with_commas(names) + ", of which those count that allow no more than the server's";
}

Result<std::vector<std::string>> texts_of(std::string_view name, const json::value& value) {
  std::vector<std::string> texts;
  if (value.is_string()) texts.emplace_back(value.as_string());
  if (value.is_bool()) texts.emplace_back(value.as_bool() ? "true" : "false");
  if (value.is_int64()) texts.push_back(std::to_string(value.as_int64()));
  if (const json::array* list = value.if_array())
    for (const json::value& item : *list) {
      if (!item.is_string()) return fail(std::string(name) + ": must be a list of texts");
      texts.emplace_back(item.as_string());
    }
  if (texts.empty() && !value.is_array())
    return fail(std::string(name) + ": a value of this kind is not understood");
  return texts;
}

Result<Settings> read_wishes(const json::object& wishes, const Caller& caller) {
  Settings settings;
  std::size_t patterns = 0, values = 0;
  const Origin origin{.folder = caller.cwd, .home = caller.home};
  for (const auto& member : wishes) {
    const std::string name(member.key());
    const Key* key = find_key(name);
    if (key == nullptr || std::ranges::find(kAllowed, name) == kAllowed.end())
      return fail("policy: " + (key == nullptr ? "there is no key " + printable(name)
                                               : name + " cannot be asked for here"),
                  0, which_key(name));
    for (const std::string& text : TRY(texts_of(name, member.value()))) {
      if (++values > kMaxPolicyValues)
        return fail("policy: more than " + std::to_string(kMaxPolicyValues) + " values");
      if (text.size() > kMaxPolicyValue)
        return fail("policy: " + name + " has a value of more than " +
                    std::to_string(kMaxPolicyValue) + " bytes");
      const bool is_pattern = name == "hide" || name == "protect";
      if (is_pattern && text.find_first_of("*?[") != text.npos && ++patterns > kMaxPolicyPatterns)
        return fail("policy: more than " + std::to_string(kMaxPolicyPatterns) +
                    " patterns with * ? [ in hide and protect");
      TRY(set(settings, *key, text, origin));
    }
  }
  return settings;
}

// Denies and allows of both would add up, and an allow wins over a deny. What a request denies, or
// allows by name, takes the place of what the operator allows besides. What comes out is compared
// with the operator's policy in any case.
void give_way(Settings& operators, const Settings& asked, const json::object& wishes) {
  auto replaces = [&](bool denies, std::string_view allow) {
    return asked.deny_all || denies || wishes.contains(allow);
  };
  if (replaces(asked.deny_read, "allow_read")) {
    operators.allow_read.clear();
    operators.extra_fs_read.clear();
  }
  if (replaces(asked.deny_read || asked.deny_write, "allow_write")) {
    operators.allow_write.clear();
    operators.extra_fs_write.clear();
  }
  if (replaces(asked.deny_net || asked.network, "allow_net")) {
    operators.allow_net.clear();
    operators.publish.clear();
    operators.deny_net = operators.deny_net || wishes.contains("allow_net");
  }
  if (replaces(asked.deny_env, "allow_env")) {
    operators.allow_env.clear();
    operators.extra_env.clear();
  }
}

// Another profile than the operator's is meant as it is: without what was added to that one.
void take_profile(Settings& operators, const Profile& profile) {
  if (operators.profile == profile.name) return;
  const Network own = profile.policy.network;
  const bool is_narrower =
      operators.network == "none" || (operators.network == "loopback" && own != Network::none);
  if (!is_narrower) operators.network.reset();
  operators.profile = profile.name;
  for (auto list : {&Settings::allow_read, &Settings::allow_write, &Settings::allow_net,
                    &Settings::allow_env, &Settings::publish, &Settings::extra_fs_read,
                    &Settings::extra_fs_write, &Settings::extra_env})
    (operators.*list).clear();
}

Result<Policy> compose(const Loaded& operators, const Caller& caller, const std::string& profile,
                       const json::object& wishes) {
  const Settings asked = TRY(read_wishes(wishes, caller));
  Settings settings = operators.settings;
  if (const Profile* named = find_profile(profile)) take_profile(settings, *named);
  give_way(settings, asked, wishes);
  settings = merge(std::move(settings), asked);
  Policy policy = TRY(make_policy(settings, {.cwd = caller.cwd, .home = caller.home}));
  TRY(validate(policy));
  return policy;
}

}  // namespace

std::expected<Policy, Response> requested_policy(const Loaded& operators, const Caller& caller,
                                                 const std::string& profile,
                                                 const json::object& wishes) {
  if (profile.empty() && wishes.empty()) return operators.policy;
  if (!profile.empty() && find_profile(profile) == nullptr)
    return std::unexpected(
        refuse(kBadRequest, "there is no profile " + printable(profile), which_profile(profile)));
  Result<Policy> policy = compose(operators, caller, profile, wishes);
  if (!policy) return std::unexpected(refuse(kBadRequest, policy.error()));
  // As sessions have them: the folder that the server was started in is none of theirs.
  const Policy most = session::shared_by_sessions(operators.policy, operators.session);
  const Policy asked = session::shared_by_sessions(*policy, operators.session);
  if (const std::optional<std::string> wider = widening(most, asked))
    return std::unexpected(
        refuse(kWiderPolicy, "the policy would allow more than this server: " + *wider));
  return std::move(*policy);
}

}  // namespace belljar::server
