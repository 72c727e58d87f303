// Fields: the JSON object of a request, read strictly. A name that nobody asked for, or a
// value of the wrong kind, is an error that names it.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/message.h"
#include "session/aside.h"

namespace belljar::server {

inline constexpr std::size_t kMaxJsonDepth = 32;

// The body as an object; without a body an empty one.
std::expected<boost::json::object, Response> json_body(const Request& request);
// The same, beside the loop if it is long. It takes the body.
Async<std::expected<boost::json::object, Response>> json_body(const session::Beside& beside,
                                                              Request& request);
// answer_json, beside the loop if it is long.
Async<Response> answer_json(const session::Beside& beside, boost::json::object object);

// Or {}, which many clients send where nothing is asked for.
bool is_no_body(std::string_view body);

class Fields {
 public:
  explicit Fields(boost::json::object object) : object_(std::move(object)) {}

  std::optional<std::string> text(std::string_view name);
  std::string required_text(std::string_view name);
  bool flag(std::string_view name);  // false when it is not there
  std::optional<std::uint64_t> number(std::string_view name);
  std::optional<std::chrono::milliseconds> milliseconds(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  std::optional<boost::json::object> object(std::string_view name);

  // After the last: what was wrong, if anything was.
  std::optional<Response> refusal();

 private:
  boost::json::value* take(std::string_view name);
  void complain(std::string_view name, std::string_view what, std::string hint = {});

  boost::json::object object_;
  std::set<std::string, std::less<>> known_;
  std::string fault_, hint_;
};

}  // namespace belljar::server
