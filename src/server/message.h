// What the server reads and answers, free of the HTTP library.
#pragma once

#include <sys/types.h>

#include <boost/json/fwd.hpp>
#include <cerrno>
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
  // Root or the server's own user, as far as the kernel can tell; a key has to prove it.
  bool may_be_owner = false;
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
  bool listens = false;               // a stream that lasts: not counted with requests that end
  std::shared_ptr<const void> place;  // it counts against its limits until its last byte is gone
};

// One kind of failure, as clients tell them apart, and what to do about it where nothing
// better is known.
struct Fault {
  int status;
  std::string_view type;
  std::string_view hint;
};
inline constexpr Fault kBadRequest{400, "bad_request", "/openapi.json describes every request"};
inline constexpr Fault kUnauthorized{
    401, "unauthorized",
    "send `Authorization: Bearer TOKEN`; `belljar serve` says at its start where the tokens are"};
inline constexpr Fault kForbidden{403, "forbidden",
                                  "use a token that may, or ask who runs the server"};
inline constexpr Fault kWiderPolicy{
    403, "wider_policy", "ask for the same or less; /v1/capabilities says what there is"};
inline constexpr Fault kDenied{
    403, "denied",
    "[permissions], --permission and agent files of the server say what may be done"};
inline constexpr Fault kNotApproved{403, "not_approved",
                                    "ask again and have it approved: POST /v1/approvals/{id}"};
inline constexpr Fault kNotFound{404, "not_found",
                                 "GET the list that it should be in; another token's is not shown"};
inline constexpr Fault kMethodNotAllowed{405, "method_not_allowed",
                                         "use a method of the header Allow"};
inline constexpr Fault kTimeout{408, "timeout",
                                "send faster, or raise header_timeout or body_timeout in [server]"};
inline constexpr Fault kConflict{409, "conflict", "look at what is there now, and choose another"};
inline constexpr Fault kSessionClosed{409, "session_closed",
                                      "POST /v1/sessions makes another session"};
inline constexpr Fault kCancelled{409, "cancelled", "send it again if it is still wanted"};
inline constexpr Fault kTooLarge{
    413, "too_large",
    "send less at once: code and files may have 16 MiB, and many requests "
    "take no body at all"};
inline constexpr Fault kUnsupportedMedia{
    415, "unsupported_media_type",
    "send the header `Content-Type: application/json` (curl: -H 'Content-Type: application/json')"};
inline constexpr Fault kBadRange{416, "range_not_satisfiable",
                                 "ask for bytes that the file has, or leave Range out"};
inline constexpr Fault kTooMany{429, "too_many_requests", "wait, as Retry-After says"};
inline constexpr Fault kHeadersTooLarge{431, "headers_too_large",
                                        "send fewer or shorter headers, or a shorter address"};
inline constexpr Fault kInternal{500, "internal", "what the server printed says more"};
inline constexpr Fault kUnavailable{503, "unavailable", "wait, as Retry-After says, and try again"};
inline constexpr Fault kDiskFull{507, "disk_full",
                                 "make room on the server's disk, or ask who can"};
inline constexpr Fault kSessionFailed{
    // its sandbox
    503, "session_failed", "`belljar doctor` and `belljar explain` say what this host can do"};

// It has run out of something that no request can be blamed for.
inline constexpr Fault kHostFailed{503, "host_failed", "try again later"};

// Hints that several have.
inline constexpr std::string_view kStartsAgain = "try again when it has been started again";
inline constexpr std::string_view kWhichSessions =
    "GET /v1/sessions lists yours, POST /v1/sessions makes one; another token's is NAME@TOKEN";
inline constexpr std::string_view kWhichApprovals =
    "GET /v1/approvals lists what waits; it may have been decided, or its time was over";
// What comes after the words that a call waits for a person.
inline constexpr std::string_view kHowToApprove =
    "`belljar approvals` or POST /v1/approvals/{id} decides";
inline constexpr std::string_view kWhichSkills =
    "GET /v1/skills lists those that you can use, POST /v1/skills uploads one; another token's is "
    "NAME@TOKEN";
inline constexpr std::string_view kOnlyItsOwner =
    "only the token that made it may do that, or one with the scope admin, who names it NAME@TOKEN";

inline constexpr const Fault* kFaults[] = {
    &kBadRequest,  &kUnauthorized,     &kForbidden, &kWiderPolicy, &kDenied,          &kNotApproved,
    &kNotFound,    &kMethodNotAllowed, &kTimeout,   &kConflict,    &kSessionClosed,   &kCancelled,
    &kTooLarge,    &kUnsupportedMedia, &kBadRange,  &kTooMany,     &kHeadersTooLarge, &kInternal,
    &kUnavailable, &kSessionFailed,    &kDiskFull,  &kHostFailed};

// Of a system call that was made for a client.
inline bool is_disk_full(const Error& error) { return error.err == ENOSPC || error.err == EDQUOT; }

// {"error": {"type", "message", "hint"}}. Without a hint of its own it has the fault's.
Response refuse(Fault fault, std::string_view message, std::string_view hint = {});
Response refuse(Fault fault, const Error& error);
boost::json::object error_object(Fault fault, const Error& error);
Response answer_json(const boost::json::value& value, int status = 200);

std::string_view reason_phrase(int status);

// `%41` and so on; nullopt for what is none, and for NUL.
std::optional<std::string> percent_decode(std::string_view text);
// What is not a letter, a digit or one of `plain` as %41 and so on.
std::string percent_encode(std::string_view text, std::string_view plain = "-_.~@:");
// The first value of a query's name, decoded.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

}  // namespace belljar::server
