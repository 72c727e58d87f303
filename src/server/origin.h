// Which names and which web pages may talk to the server. A page on another origin can
// make a browser send requests here, and can have its own name lead here (DNS rebinding):
// the first shows in Origin, the second in Host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/message.h"

namespace belljar::server {

struct Names {
  std::vector<std::string> hosts;    // allowed in Host, without port; beside the loopback names
  std::vector<std::string> origins;  // allowed in Origin, as browsers write them
};

// The name in a Host header, without its port and in lower case; empty: there is none.
std::string host_name_of(std::string_view host_header);

// The refusal, if there is one. On a local socket the name in Host means nothing.
std::optional<Response> refuse_foreign(const Request& request, const Names& names);

}  // namespace belljar::server
