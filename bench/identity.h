// Measuring as someone: in a process of its own, with surroundings that do not
// depend on the shell that started the benchmark.
#pragma once

#include <functional>
#include <string>

namespace bench {

struct Report {
  std::string text;
  bool missed = false;  // a target
};

// Calls `measure` as this user (us, where empty), in a fresh folder of its home
// that is removed afterwards.
Report measure_as(const std::string& user, const std::function<Report()>& measure);

// "As root", "As an ordinary user", each once, as far as we may.
Report measure_as_everyone(const std::string& user, const std::function<Report()>& measure);

}  // namespace bench
