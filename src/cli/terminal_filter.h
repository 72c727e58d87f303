// TerminalFilter: what a guest wrote, for a person's terminal. Colours and movements
// within the lines pass; whatever else a terminal obeys (titles, the clipboard, answers
// typed into the next command, other character sets) does not. For output that belljar
// itself prints; a guest that was given the terminal writes to it as it likes.
#pragma once

#include <string>
#include <string_view>

namespace belljar::cli {

class TerminalFilter {
 public:
  // Sequences may come in pieces.
  std::string pass(std::string_view bytes);

 private:
  enum class State {
    text,
    escape,   // after ESC
    control,  // in ESC [ …
    string,   // in what ends with BEL or ESC \: passed over
    string_escape,
    charset,  // one byte more
  };
  void step(unsigned char byte, std::string& out);

  void step_text(unsigned char byte, std::string& out);

  State state_ = State::text;
  bool after_c2_ = false;
  int missing_ = 0;  // bytes of a character
  std::string control_;
};

}  // namespace belljar::cli
