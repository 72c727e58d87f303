// HiddenRequest: looks for a request inside the body of another.
//
// Some servers do not read the body of a request that they expect none with, or that they answer
// early, and take it for the next request on the connection. Its Host would be nobody's to judge.
// So a body must not begin with what such a server would take for a request. Where a body has no
// meaning (GET), servers that ignore it are common, and no line of it may look so.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace belljar::broker {

class HiddenRequest {
 public:
  HiddenRequest() = default;
  explicit HiddenRequest(std::string_view method);

  // Every byte behind the head, in order, in any pieces. How many of them may go on: fewer than
  // there are when a request was found.
  std::size_t feed(std::string_view bytes);

 private:
  bool feed(char c);
  void add_to_word(char c);
  bool is_request() const;
  void begin_line();

  bool every_line_ = true;
  bool done_ = false;  // no later line matters
  // The current line.
  int words_ = 0;
  bool in_word_ = false;
  bool method_like_ = true;            // the first word is made of what methods are made of
  std::string first_, second_, last_;  // the beginnings of these words
};

}  // namespace belljar::broker
