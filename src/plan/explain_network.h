// The network part of an explanation: the rules about hosts in words and as data.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>

#include "belljar/policy.h"

namespace belljar {

std::string explain_network(const Policy& policy);
boost::json::array network_rules_to_json(const Policy& policy);
boost::json::array published_to_json(const Policy& policy);

// HOST[:PORT]: which rule decides about it, and the flag that would change it.
std::string explain_host(const Policy& policy, std::string_view host);

}  // namespace belljar
