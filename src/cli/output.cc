#include "cli/output.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/printable.h"

namespace belljar::cli {
namespace {

Output& the_output() {
  static Output output;
  return output;
}

bool shows_color(int fd) {
  if (output().color != Color::automatic) return output().color == Color::always;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return (no_color == nullptr || no_color[0] == '\0') && ::isatty(fd) == 1 && term != nullptr &&
         std::string_view(term) != "dumb";
}

std::string_view code_of(Style style) {
  switch (style) {
    case Style::bold:
      return "\033[1m";
    case Style::good:
      return "\033[32m";
    case Style::bad:
      return "\033[1;31m";
    case Style::doubtful:
      return "\033[33m";
  }
  return "";
}

// One call, so that a line of ours is not torn apart by what a guest writes. A name
// may hold any byte; the terminal gets none that it would act on.
void print_line(std::string prefix, std::string_view text) {
  prefix.append(printable(text)).append("\n");
  std::fputs(prefix.c_str(), stderr);
}

}  // namespace

void set_output(Output output) { the_output() = output; }
const Output& output() { return the_output(); }

std::string styled(std::string_view text, Style style, int fd) {
  if (!shows_color(fd)) return std::string(text);
  return std::string(code_of(style)).append(text).append("\033[0m");
}

std::string counted(std::size_t count, std::string_view thing) {
  return std::to_string(count) + " " + std::string(thing) +
         (count == 1             ? ""
          : thing.ends_with('s') ? "es"
                                 : "s");
}

void print_error(const Error& error) {
  const std::string prefix = styled("belljar:", Style::bad, STDERR_FILENO) + " ";
  print_line(prefix, Error{.what = error.what, .err = error.err, .hint = {}}.message());
  if (!error.hint.empty()) print_line(prefix + "hint: ", error.hint);
}

void print_warning(std::string_view text) {
  if (output().verbosity == Verbosity::quiet) return;
  print_line("belljar: " + styled("warning:", Style::doubtful, STDERR_FILENO) + " ", text);
}

void print_detail(std::string_view text) {
  if (output().verbosity == Verbosity::verbose) print_line("belljar: ", text);
}

}  // namespace belljar::cli
