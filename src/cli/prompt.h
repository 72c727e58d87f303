// Prompt: what a person types, with editing and a history that lasts.
#pragma once

#include <optional>
#include <string>

namespace belljar::cli {

class Prompt {
 public:
  explicit Prompt(const std::string& history_name);
  Prompt(const Prompt&) = delete;
  Prompt& operator=(const Prompt&) = delete;
  ~Prompt();

  // A statement of Python, which may have many lines: a block ends with an empty one.
  // nullopt: the person has finished (^D).
  std::optional<std::string> read_python();
  // One line for a shell.
  std::optional<std::string> read_command();

 private:
  std::optional<std::string> read_line(const char* prompt);

  std::string history_file_;
};

// Whether more must follow: an open bracket, string or block, a line that goes on.
bool is_unfinished_python(std::string_view code);

}  // namespace belljar::cli
