// What this host can enforce, found by trying it: what `belljar doctor` says.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "policy/profiles.h"

namespace belljar {

struct Finding {
  const char* name;
  bool there;
  std::string detail;
  const char* gives;
};

std::vector<Finding> findings(const Host& host);

// Whether the profile starts here, and what it loses, in a line.
std::string profile_verdict(const Profile& profile, const Host& host, const Caller& caller);

boost::json::object doctor_json(const Host& host, const Caller& caller);

}  // namespace belljar
