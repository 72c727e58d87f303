// The policy that a client asks for: the operator's, or narrower in what it names.
#pragma once

#include <boost/json/fwd.hpp>
#include <expected>

#include "policy/load.h"
#include "server/message.h"

namespace belljar::server {

// `profile` may be empty; `wishes` are keys of [sandbox]. What would allow more than the
// operator's own policy does is refused, and so are keys that name places of the host.
std::expected<Policy, Response> requested_policy(const Loaded& operators, const Caller& caller,
                                                 const std::string& profile,
                                                 const boost::json::object& wishes);

}  // namespace belljar::server
