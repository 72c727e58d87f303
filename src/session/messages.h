// Messages: what a Python worker says, taken apart. The guest can forge any of them, so
// only their form is checked here, and their sizes are bounded by their frame.
#pragma once

#include <optional>
#include <string_view>
#include <variant>

#include "belljar/session.h"

namespace belljar::session {

struct Ready {
  std::string python;  // its version
};

struct Display {
  std::uint64_t id = 0;
  Representations data;
  std::vector<std::string> video_frames;
  std::size_t size = 0;  // as JSON has it in the answer
};

struct Done {
  std::uint64_t id = 0;
  bool success = false;
  std::optional<Exception> exception;
  std::optional<std::string> result;
  std::string result_type;
  Representations result_data;
  std::optional<int> exit_code;
  std::size_t size = 0;  // as JSON has it in the answer
};

using Message = std::variant<Ready, Display, Done>;

// Whether it has more parts than any honest message: a text of 16 MB can be eight million numbers.
bool has_too_many_parts(std::string_view json);

// nullopt: it is none.
std::optional<Message> parse_message(std::string_view payload);

// `display`: the text of worker_display.py, where the worker does not have it yet.
std::string setup_request(std::size_t max_frame, std::string_view display);
std::string execute_request(std::uint64_t id, const PythonCall& call);

}  // namespace belljar::session
