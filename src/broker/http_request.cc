#include "broker/http_request.h"

#include <algorithm>
#include <charconv>

#include "broker/http_characters.h"

namespace belljar::broker {
namespace {

constexpr std::size_t kMaxChunkDigits = 15;  // far from where numbers wrap
constexpr std::string_view kPreface = "PRI * HTTP/2.0";

std::optional<std::uint64_t> parse_chunk_size(std::string_view line) {
  std::uint64_t size = 0;
  if (line.empty()) return std::nullopt;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), size, 16);
  if (error != std::errc{} || end != line.data() + line.size()) return std::nullopt;
  return size;
}

}  // namespace

HttpRequests::Step HttpRequests::feed(Bytes held) {
  for (;;)
    if (std::optional<Step> step = this->step(held)) return *std::move(step);
}

// Nothing: the state has changed, and the new one is to look at the same bytes.
std::optional<HttpRequests::Step> HttpRequests::step(Bytes held) {
  const std::string_view text = as_text(held);
  switch (state_) {
    case State::opening:
      return opening(text);
    case State::head:
      return head(text);
    case State::body:
    case State::chunk:
      return body(text);
    case State::chunk_size:
      return chunk_size(text);
    case State::chunk_end:
      return chunk_end(text);
    case State::trailer:
      return trailer(text);
    case State::waiting:
      return Step{.kind = Kind::waiting};
    case State::ended:
      return last_;
  }
  return last_;
}

void HttpRequests::continue_as_http() {
  if (state_ == State::waiting) go_on(State::head);
}

// Is this HTTP at all? A word and white space, then something visible: a request, if perhaps a bad
// one. Anything else is refused by every server that we know.
std::optional<HttpRequests::Step> HttpRequests::opening(std::string_view held) {
  for (; scanned_ < held.size(); ++scanned_) {
    const char c = held[scanned_];
    if (scanned_ >= kMaxHttpLine) return end(Kind::malformed, "http: a line of more than 16 KiB");
    if (opening_ == Opening::blank && is_white(c)) {
      // Empty lines before a request are skipped by many and mean nothing to the others.
      odd_ = odd_ || c != (scanned_ % 2 == 0 ? '\r' : '\n');
    } else if (opening_ != Opening::gap && is_token_character(c)) {
      odd_ = odd_ || (opening_ == Opening::blank && scanned_ % 2 != 0);
      opening_ = Opening::method;
    } else if (opening_ == Opening::gap && is_visible(c)) {
      if (odd_) return end(Kind::malformed, "http: odd white space around the method");
      go_on(State::head);
      return std::nullopt;
    } else if (opening_ != Opening::blank && is_white(c)) {
      // A line of one word is none of HTTP's, but a CR alone is a space to some.
      if (c == '\r' && scanned_ + 1 == held.size()) return Step{};
      if (c == '\n' || (c == '\r' && held[scanned_ + 1] == '\n')) return end(Kind::not_http);
      odd_ = odd_ || c != ' ' || opening_ == Opening::gap;
      opening_ = Opening::gap;
    } else {
      return end(Kind::not_http);
    }
  }
  return Step{};
}

// The line that begins at line_, without its CRLF; nothing while it is not whole.
Result<std::optional<std::string_view>> HttpRequests::next_line(std::string_view held) {
  for (; scanned_ < held.size(); ++scanned_) {
    const char c = held[scanned_];
    if (scanned_ >= kMaxHttpHead) return fail("http: a head of more than 64 KiB");
    if (scanned_ - line_ > kMaxHttpLine) return fail("http: a line of more than 16 KiB");
    if (c == '\r') {
      if (scanned_ + 1 == held.size()) return std::nullopt;
      if (held[scanned_ + 1] != '\n') return fail("http: a CR without an LF");
      const std::string_view line = held.substr(line_, scanned_ - line_);
      scanned_ += 2;
      line_ = scanned_;
      return line;
    }
    if (c == '\n') return fail("http: an LF without a CR");
    if (!is_visible(c) && c != ' ' && c != '\t')
      return fail("http: a byte in a head that is no printable ASCII");
  }
  return std::nullopt;
}

std::optional<HttpRequests::Step> HttpRequests::head(std::string_view held) {
  for (;;) {
    const Result<std::optional<std::string_view>> line = next_line(held);
    if (!line) return end(Kind::malformed, line.error().what);
    if (!*line) return Step{};
    if (!has_request_line_) {
      if (line_ > kMaxHttpLine) return end(Kind::malformed, "http: too many empty lines");
      if ((*line)->empty()) continue;
      if (std::optional<Step> step = request_line(**line)) return step;
      continue;
    }
    const Status taken = (*line)->empty() ? head_.finish() : head_.take_field(**line);
    if (!taken) return end(Kind::malformed, taken.error().what);
    if ((*line)->empty()) return request();
  }
}

std::optional<HttpRequests::Step> HttpRequests::request_line(std::string_view line) {
  if (first_ && line == kPreface) return end(Kind::http2);
  const Status taken = head_.take_request_line(line);
  if (!taken && first_ && !resembles_request(line)) return end(Kind::not_http);
  if (!taken) return end(Kind::malformed, taken.error().what);
  has_request_line_ = true;
  return std::nullopt;
}

HttpRequests::Step HttpRequests::request() {
  if (head_.is_websocket() && !first_)
    return end(Kind::malformed, "http: a websocket that is not asked for by the first request");
  const Step step{.kind = Kind::request,
                  .pass = scanned_,
                  .request = {.method = head_.method(),
                              .host = head_.host(),
                              .connect = head_.is_connect(),
                              .upgrade = head_.is_websocket()}};
  first_ = false;
  left_ = head_.content_length();
  hidden_ = HiddenRequest(head_.method());
  go_on(step.request.connect || step.request.upgrade ? State::waiting
        : head_.is_chunked()                         ? State::chunk_size
        : left_ > 0                                  ? State::body
                                                     : State::head);
  return step;
}

HttpRequests::Step HttpRequests::body(std::string_view held) {
  if (held.empty()) return {};
  const std::size_t pass = std::min<std::uint64_t>(held.size(), left_);
  left_ -= pass;
  if (left_ == 0) go_on(state_ == State::chunk ? State::chunk_end : State::head);
  return body_of(held.substr(0, pass));
}

HttpRequests::Step HttpRequests::body_of(std::string_view bytes) {
  const std::size_t pass = hidden_.feed(bytes);
  if (pass < bytes.size()) {
    const Step refused = end(Kind::malformed, "http: a body that some servers take for a request");
    if (pass == 0) return refused;
  }
  return {.kind = Kind::body, .pass = pass};
}

std::optional<HttpRequests::Step> HttpRequests::chunk_size(std::string_view held) {
  constexpr std::size_t kLongest = kMaxChunkDigits + 2;
  const Result<std::optional<std::string_view>> line = next_line(held.substr(0, kLongest));
  if (!line) return end(Kind::malformed, line.error().what);
  if (!*line && held.size() < kLongest) return Step{};
  const std::optional<std::uint64_t> size = parse_chunk_size(line->value_or(""));
  if (!size) return end(Kind::malformed, "http: a wrong size of a chunk");
  const std::size_t pass = scanned_;
  left_ = *size;
  go_on(left_ == 0 ? State::trailer : State::chunk);
  return body_of(held.substr(0, pass));
}

std::optional<HttpRequests::Step> HttpRequests::chunk_end(std::string_view held) {
  constexpr std::string_view kEnd = "\r\n";
  if (!held.starts_with(kEnd.substr(0, held.size())))
    return end(Kind::malformed, "http: a chunk that is longer than its size");
  if (held.size() < kEnd.size()) return Step{};
  go_on(State::chunk_size);
  return body_of(kEnd);
}

std::optional<HttpRequests::Step> HttpRequests::trailer(std::string_view held) {
  for (;;) {
    const Result<std::optional<std::string_view>> line = next_line(held);
    if (!line) return end(Kind::malformed, line.error().what);
    if (!*line) return Step{};
    if ((*line)->empty()) break;
    const Status checked = check_trailer_field(**line);
    if (!checked) return end(Kind::malformed, checked.error().what);
  }
  const std::size_t pass = scanned_;
  go_on(State::head);
  return body_of(held.substr(0, pass));
}

void HttpRequests::go_on(State state) {
  state_ = state;
  scanned_ = 0;
  line_ = 0;
  has_request_line_ = false;
  head_ = {};
}

HttpRequests::Step HttpRequests::end(Kind kind, std::string reason) {
  go_on(State::ended);
  last_ = {.kind = kind, .reason = std::move(reason)};
  return last_;
}

}  // namespace belljar::broker
