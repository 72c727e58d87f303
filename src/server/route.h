// The table of routes: what is served, to whom, and what it is asked and answers with. The
// router, the OpenAPI document and the page about it all come from this one table.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "server/message.h"
#include "server/origin.h"
#include "server/places.h"
#include "server/tokens.h"

namespace belljar::server {

class App;

// What the pattern's {names} stand for, decoded.
using Parameters = std::map<std::string, std::string, std::less<>>;

using Handler = Async<Response> (*)(App& app, Request request);

// Many clients send `{}` where nothing is asked for.
inline constexpr std::uint64_t kNoBody = 16;
inline constexpr std::uint64_t kMaxJson = std::uint64_t{20} << 20;    // code may have 16 MiB
inline constexpr std::uint64_t kMaxUpload = std::uint64_t{16} << 20;  // a file

struct QueryField {
  std::string_view name;
  std::string_view help;
};

struct Route {
  std::string_view method;
  std::string_view pattern;  // {name} is one part of a path; {name*}, at the end, all the rest
  Right right;
  std::string_view tag;      // what it is about
  std::string_view summary;  // one line
  Handler handler;
  std::string_view takes = {};  // a schema's name; "bytes", "form"; empty: no body
  std::string_view gives = {};  // a schema's name; "bytes", "text", "html", "events"
  int status = 200;             // of a good answer
  std::uint64_t max_body = kNoBody;
  std::vector<QueryField> query = {};
  std::vector<int> refusals = {};  // besides those that follow from the rest
};

const std::vector<Route>& routes();

struct Match {
  const Route* route = nullptr;  // none: `allowed` says which methods there are
  Parameters parameters;
  std::string allowed;  // empty: there is no such path
};
Match match(std::span<const Route> table, std::string_view method, std::string_view path);

// What is known of a request from its head.
struct Admitted {
  const Route* route = nullptr;
  Parameters parameters;
  Principal principal;
  PageRules page;
  std::shared_ptr<Place> place;  // it counts against its limits while this lives; null: it does not
};

}  // namespace belljar::server
