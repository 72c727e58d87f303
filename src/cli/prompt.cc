#include "cli/prompt.h"

#include <editline/readline.h>
#include <langinfo.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/cli.h"

namespace belljar::cli {
namespace {

constexpr int kHistoryLines = 1000;

volatile std::sig_atomic_t interrupted = 0;

// While a line is typed ^C gives it up. The library returns from reading then as if the
// input had ended. It may come just before the library reads, which would then wait for the
// next key: so an alarm follows it, again and again until it has returned.
class InterruptNoted {
 public:
  InterruptNoted() {
    interrupted = 0;
    struct sigaction action{};
    action.sa_handler = [](int) {
      interrupted = 1;
      alarm_every(kAlarmTime);
    };
    ::sigaction(SIGINT, &action, &interrupt_before_);
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, &alarm_before_);
  }
  ~InterruptNoted() {
    ::sigaction(SIGINT, &interrupt_before_, nullptr);
    alarm_every({});
    ::sigaction(SIGALRM, &alarm_before_, nullptr);
  }
  InterruptNoted(const InterruptNoted&) = delete;
  InterruptNoted& operator=(const InterruptNoted&) = delete;

 private:
  static constexpr timeval kAlarmTime{.tv_sec = 0, .tv_usec = 50'000};
  static void alarm_every(timeval time) {
    const itimerval timer{.it_interval = time, .it_value = time};
    ::setitimer(ITIMER_REAL, &timer, nullptr);
  }

  struct sigaction interrupt_before_{};
  struct sigaction alarm_before_{};
};

// ~/.local/state/belljar/NAME_history
std::string history_path(const std::string& name) {
  const Caller caller = this_caller();
  const char* state = std::getenv("XDG_STATE_HOME");  // NOLINT(concurrency-mt-unsafe): one thread
  const std::filesystem::path folder =
      state != nullptr && *state == '/' ? state : caller.home + "/.local/state";
  std::error_code ignored;  // without it there is no history, and nothing else is lost
  std::filesystem::create_directories(folder / "belljar", ignored);
  return folder / "belljar" / (name + "_history");
}

// Goes through brackets, strings and comments, and nothing else.
class Scanner {
 public:
  explicit Scanner(std::string_view code) : code_(code) {}

  bool is_open() {
    while (at_ < code_.size()) step();
    return depth_ > 0 || in_text_ || continues_;
  }

 private:
  bool next_is(std::string_view text) const { return code_.substr(at_).starts_with(text); }

  void step() {
    const char c = code_[at_];
    continues_ = false;
    if (c == '#') {
      at_ = std::min(code_.find('\n', at_), code_.size());
    } else if (c == '\'' || c == '"') {
      skip_text(c);
    } else {
      if (c == '(' || c == '[' || c == '{') ++depth_;
      if (c == ')' || c == ']' || c == '}') --depth_;
      continues_ = c == '\\' && at_ + 1 == code_.size();
      ++at_;
    }
  }

  void skip_text(char quote) {
    const std::string triple(3, quote);
    const bool is_triple = next_is(triple);
    const std::string_view end = is_triple ? std::string_view(triple) : std::string_view(&quote, 1);
    at_ += end.size();
    while (at_ < code_.size() && !next_is(end)) {
      if (!is_triple && code_[at_] == '\n') return;  // a mistake, which Python will tell
      at_ += code_[at_] == '\\' ? std::size_t{2} : std::size_t{1};
    }
    in_text_ = at_ >= code_.size() && is_triple;
    at_ = std::min(at_ + end.size(), code_.size());
  }

  std::string_view code_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool in_text_ = false;
  bool continues_ = false;
};

std::string_view last_line(std::string_view code) {
  return code.substr(code.rfind('\n') + 1);  // npos + 1 is 0
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == line.npos; }

std::string_view without_comment(std::string_view line) {
  line = line.substr(0, line.find(" #"));
  return line.substr(0, line.find_last_not_of(" \t") + 1);
}

}  // namespace

bool is_unfinished_python(std::string_view code) {
  if (Scanner(code).is_open()) return true;
  const std::string_view line = last_line(code);
  if (is_blank(line)) return false;
  const bool in_block = code.find('\n') != code.npos && code.find(":\n") != code.npos;
  const std::string_view first = code.substr(0, code.find('\n'));
  return without_comment(line).ends_with(':') || in_block || first.starts_with('@');
}

Prompt::Prompt(const std::string& history_name) : history_file_(history_path(history_name)) {
  // The library reads characters, not bytes, in the encoding of the locale.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread here
  if (std::setlocale(LC_CTYPE, "") == nullptr ||
      std::string_view(::nl_langinfo(CODESET)) != "UTF-8")
    std::setlocale(LC_CTYPE, "C.UTF-8");  // NOLINT(concurrency-mt-unsafe)
  ::rl_bind_key('\t', ::rl_insert);       // it indents
  ::using_history();
  ::stifle_history(kHistoryLines);
  ::read_history(history_file_.c_str());  // if it cannot be read, it begins empty
}

Prompt::~Prompt() {
  const mode_t before = ::umask(077);
  ::write_history(history_file_.c_str());
  ::umask(before);
}

std::optional<std::string> Prompt::read_line(const char* prompt) {
  const InterruptNoted noted;
  char* line = ::readline(prompt);
  if (line == nullptr) {
    std::fputs("\n", stdout);
    return std::nullopt;
  }
  std::string text = line;
  std::free(line);  // NOLINT(cppcoreguidelines-no-malloc): the library's
  if (!is_blank(text)) ::add_history(text.c_str());
  return text;
}

std::optional<std::string> Prompt::read_python() {
  for (;;) {
    std::optional<std::string> code = read_line(">>> ");
    if (!code && interrupted == 0) return std::nullopt;
    while (code && is_unfinished_python(*code)) {
      std::optional<std::string> line = read_line("... ");
      if (!line) code.reset();  // given up
      if (line) code->append("\n").append(*line);
    }
    if (code && !is_blank(*code)) return code;
  }
}

std::optional<std::string> Prompt::read_command() {
  for (;;) {
    std::optional<std::string> line = read_line("$ ");
    if (!line && interrupted == 0) return std::nullopt;
    if (line && !is_blank(*line)) return line;
  }
}

}  // namespace belljar::cli
