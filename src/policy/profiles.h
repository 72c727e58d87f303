// Profiles are data: named policies to start from.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "policy/settings.h"

namespace belljar {

struct Profile {
  std::string_view name;
  std::string_view purpose;  // one line, for people
  Policy policy;
};

// Used when nothing is asked for.
inline constexpr const char* kDefaultProfile = "developer";

std::span<const Profile> profiles();
const Profile* find_profile(std::string_view name);

// What is not the policy's to know but needed to make one.
struct Surroundings {
  std::string cwd;
  std::string home;  // the caller's
};

// The policy that settings ask for, over the built-in profile they name (or the
// default one). Settings of a person's own profiles are merged in before.
Result<Policy> make_policy(const Settings& settings, const Surroundings& around);

}  // namespace belljar
