#include "belljar/outcome.h"

namespace belljar {

std::string_view name(Reason reason) {
  switch (reason) {
    case Reason::exited:
      return "exited";
    case Reason::signaled:
      return "signaled";
    case Reason::timeout:
      return "timeout";
    case Reason::out_of_memory:
      return "out of memory";
    case Reason::cpu_limit:
      return "cpu limit";
    case Reason::file_size_limit:
      return "file size limit";
    case Reason::not_started:
      return "not started";
  }
  return "?";
}

int Outcome::exit_code() const {
  if (reason == Reason::timeout) return 124;
  return by_signal ? 128 + code : code;
}

}  // namespace belljar
