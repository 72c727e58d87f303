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

// For a page of a configured origin: what lets its browser read the answer, and the question that a
// browser asks before it sends what a form could not
// (https://fetch.spec.whatwg.org/#cors-protocol). No cookies: a token is sent by the page itself.
struct PageRules {
  std::string origin;         // empty if the request does not come from a page
  bool some_origins = false;  // answers differ by Origin

  static PageRules of(const Request& request, const Names& names);
  static bool asks_before(const Request& request);
  // `methods`: what there is at the path.
  Response answer_before(const Request& request, const std::string& methods) const;
  void add_to(Response& response) const;
};

// The refusal, if there is one. On a local socket the name in Host means nothing.
std::optional<Response> refuse_foreign(const Request& request, const Names& names);

}  // namespace belljar::server
