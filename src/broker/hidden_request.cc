#include "broker/hidden_request.h"

#include <algorithm>
#include <array>

#include "broker/http_characters.h"

namespace belljar::broker {
namespace {

constexpr std::array<std::string_view, 6> kWithoutBody = {"GET",     "HEAD",  "DELETE",
                                                          "OPTIONS", "TRACE", "CONNECT"};
constexpr std::array<std::string_view, 3> kWithBody = {"POST", "PUT", "PATCH"};
constexpr std::size_t kKept = 8;  // of a word: the longest method, and "https://"

bool is_common(std::string_view method) {
  return std::ranges::find(kWithoutBody, method) != kWithoutBody.end() ||
         std::ranges::find(kWithBody, method) != kWithBody.end();
}

}  // namespace

HiddenRequest::HiddenRequest(std::string_view method)
    : every_line_(std::ranges::find(kWithoutBody, method) != kWithoutBody.end()) {}

std::size_t HiddenRequest::feed(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size() && !done_; ++i)
    if (feed(bytes[i])) return i;
  return bytes.size();
}

// True: with it a line would end that is a request's first.
bool HiddenRequest::feed(char c) {
  const bool ends_line = c == '\r' || c == '\n';
  if (!is_white(c)) {
    add_to_word(c);
    done_ = !method_like_ && !every_line_;
    return false;
  }
  in_word_ = false;
  if (!ends_line || words_ == 0) return false;
  if (is_request()) return true;
  done_ = !every_line_;
  begin_line();
  return false;
}

void HiddenRequest::add_to_word(char c) {
  if (!in_word_) {
    ++words_;
    last_.clear();
  }
  in_word_ = true;
  if (words_ == 1 && !is_token_character(c)) method_like_ = false;
  for (auto* word : {words_ == 1 ? &first_ : nullptr, words_ == 2 ? &second_ : nullptr, &last_})
    if (word != nullptr && word->size() < kKept) word->push_back(c);
}

// With a version, whatever its method; or as HTTP/0.9 had it, for servers that do not mind.
bool HiddenRequest::is_request() const {
  if (words_ < 2 || !method_like_) return false;
  const std::string target = lower(second_);
  const bool is_target = target.starts_with('/') || target.starts_with('*') ||
                         target.starts_with("http://") || target.starts_with("https://");
  return lower(last_).starts_with("http/") || (is_common(first_) && is_target);
}

void HiddenRequest::begin_line() {
  words_ = 0;
  method_like_ = true;
  first_.clear();
  second_.clear();
  last_.clear();
}

}  // namespace belljar::broker
