#include "server/mcp_http_stream.h"

namespace belljar::server {
namespace {

constexpr std::size_t kMaxKept = 1000;  // events
constexpr int kRetryMs = 500;

}  // namespace

void McpHttpStream::send(McpConnection::Send message) {
  if (message.text.empty()) {  // no answer will come
    if (answer_ && !begun_) begin();
    return end();
  }
  // The last message of a request, if it is the first as well, needs no stream.
  if (message.last && next_ == 0 && answer_ && !begun_) {
    ended_ = true;
    place_.reset();
    const McpHttpAnswer answer = *std::exchange(answer_, std::nullopt);
    McpHttpHeaders headers = json_headers();
    headers.insert(headers.end(), headers_.begin(), headers_.end());
    answer.whole(200, std::move(headers), std::move(message.text));
    return;
  }
  if (answer_ && !begun_) begin();
  keep(std::move(message.text));
  if (answer_) answer_->event(event_text(event_id(next_ - 1), kept_.back()));
  if (message.last) end();
}

void McpHttpStream::attach(McpHttpAnswer answer, McpHttpHeaders headers) {
  detach();
  headers_ = std::move(headers);
  answer_ = std::move(answer);
  begun_ = false;
}

void McpHttpStream::resume(McpHttpAnswer answer, std::size_t after, McpHttpHeaders headers) {
  attach(std::move(answer), std::move(headers));
  begun_ = true;
  answer_->begin(headers_);
  for (std::size_t i = 0; i < kept_.size(); ++i)
    if (first_ + i > after) answer_->event(event_text(event_id(first_ + i), kept_[i]));
  if (ended_) end();
}

void McpHttpStream::begin() {
  begun_ = true;
  answer_->begin(headers_);
  // So that who loses the connection before the first event can come back too.
  if (next_ == 0) ++next_, first_ = 1;
  answer_->event("id: " + event_id(0) + "\nretry: " + std::to_string(kRetryMs) + "\ndata: \n\n");
}

void McpHttpStream::end() {
  if (!ended_) ended_at_ = Clock::now();
  ended_ = true;
  place_.reset();
  detach();
}

void McpHttpStream::detach() {
  const std::optional<McpHttpAnswer> answer = std::exchange(answer_, std::nullopt);
  if (answer && begun_) answer->end();
  if (answer && !begun_) refuse(*answer, 404, "the session has ended: initialize again");
}

void McpHttpStream::lost(const Cancel* gone) {
  if (answer_ && answer_->gone.get() == gone) answer_.reset();
}

void McpHttpStream::forget() {
  kept_.clear();
  bytes_ = 0;
  first_ = next_;
  forgotten_ = true;
}

void McpHttpStream::keep(std::string text) {
  bytes_ += text.size();
  kept_.push_back(std::move(text));
  ++next_;
  while (kept_.size() > 1 && (kept_.size() > kMaxKept || bytes_ > most_)) {
    bytes_ -= kept_.front().size();
    kept_.pop_front();
    ++first_;
  }
}

}  // namespace belljar::server
