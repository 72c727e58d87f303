// What the program says to a person: how much of it, and in which colours.
#pragma once

#include <string>
#include <string_view>

#include "belljar/error.h"

namespace belljar::cli {

enum class Verbosity {
  quiet,    // errors only
  normal,   // and warnings
  verbose,  // and losses of depth, and how long each step of a launch took
};

enum class Color { automatic, always, never };

struct Output {
  Verbosity verbosity = Verbosity::normal;
  Color color = Color::automatic;
};

// For the whole process, as stderr is: set once, before a command runs.
void set_output(Output output);
const Output& output();

enum class Style { bold, good, bad, doubtful };

// `text` in a style, where what is written to `fd` shows one: on a terminal and
// without NO_COLOR (https://no-color.org), or where --color says so.
std::string styled(std::string_view text, Style style, int fd);

// "1 key", "2 keys".
std::string counted(std::size_t count, std::string_view thing);

void print_error(const Error& error);
void print_warning(std::string_view text);
void print_detail(std::string_view text);  // only with --verbose

}  // namespace belljar::cli
