// What the server reads and answers, free of the HTTP library.
#pragma once

#include <sys/types.h>

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/fd.h"
#include "server/cancel.h"

namespace belljar::server {

class EventStream;
struct Admitted;

// Who is on the other end, as the kernel says.
struct Peer {
  bool is_local_socket = false;
  uid_t uid = 0;  // of a local socket's
  // Root or the server's own user, and not a guest that bears the number in its jar.
  bool is_owner = false;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;
  std::string path;   // as sent, without the query
  std::string query;  // as sent
  Headers headers;    // names in lower case
  std::string body;
  Peer peer;
  std::shared_ptr<const Admitted> admitted;  // from when it was let in
  std::shared_ptr<Cancel> gone;              // asked when who wanted it has hung up

  // The value of the only header of that name (lower case); nullptr when there is none.
  const std::string* header(std::string_view name) const;
};

// A part of a file, sent as it is read.
struct FileBody {
  Fd file;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

struct Response {
  int status = 200;
  Headers headers;
  std::variant<std::string, FileBody, std::shared_ptr<EventStream>> body;
};

// One kind of failure, as clients tell them apart.
struct Fault {
  int status;
  std::string_view type;
};
inline constexpr Fault kBadRequest{400, "bad_request"};
inline constexpr Fault kUnauthorized{401, "unauthorized"};
inline constexpr Fault kForbidden{403, "forbidden"};
inline constexpr Fault kWiderPolicy{403, "wider_policy"};
inline constexpr Fault kNotFound{404, "not_found"};
inline constexpr Fault kMethodNotAllowed{405, "method_not_allowed"};
inline constexpr Fault kTimeout{408, "timeout"};
inline constexpr Fault kConflict{409, "conflict"};
inline constexpr Fault kSessionClosed{409, "session_closed"};
inline constexpr Fault kTooLarge{413, "too_large"};
inline constexpr Fault kUnsupportedMedia{415, "unsupported_media_type"};
inline constexpr Fault kBadRange{416, "range_not_satisfiable"};
inline constexpr Fault kTooMany{429, "too_many_requests"};
inline constexpr Fault kHeadersTooLarge{431, "headers_too_large"};
inline constexpr Fault kInternal{500, "internal"};
inline constexpr Fault kUnavailable{503, "unavailable"};
inline constexpr Fault kSessionFailed{503, "session_failed"};  // its sandbox

// {"error": {"type", "message", "hint"}}
Response refuse(Fault fault, std::string_view message, std::string_view hint = {});
Response refuse(Fault fault, const Error& error);
boost::json::object error_object(Fault fault, const Error& error);
Response answer_json(const boost::json::value& value, int status = 200);

std::string_view reason_phrase(int status);

// `%41` and so on; nullopt for what is none, and for NUL.
std::optional<std::string> percent_decode(std::string_view text);
// The first value of a query's name, decoded.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

}  // namespace belljar::server
