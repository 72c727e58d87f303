#include "samples.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>

namespace bench {

double quantile(std::vector<Nanoseconds> samples, double share) {
  if (samples.empty()) return 0;
  auto at = static_cast<std::size_t>(std::floor(share * static_cast<double>(samples.size() - 1)));
  std::ranges::nth_element(samples, samples.begin() + static_cast<std::ptrdiff_t>(at));
  return static_cast<double>(samples[at]);
}

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string machine() {
  utsname name{};
  ::uname(&name);
  char date[32];
  std::time_t t = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&t));
  return std::string(name.machine) + ", " + std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)) +
         " virtual cores, Linux " + name.release + ", " + date;
}

std::string version_of(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) line += word + " ";
  line += "2>/dev/null";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(line.c_str(), "re"), ::pclose);
  char text[128] = {};
  if (!pipe || std::fgets(text, sizeof text, pipe.get()) == nullptr) return "not found";
  std::string version = text;
  while (!version.empty() && version.back() == '\n') version.pop_back();
  return version;
}

bool write_between(const std::string& file, const std::string& name, std::string_view text) {
  std::ifstream in(file);
  std::string all((std::istreambuf_iterator<char>(in)), {});
  const std::string begin = "<!-- " + name + ":begin -->\n", end = "<!-- " + name + ":end -->";
  std::size_t from = all.find(begin), to = all.find(end);
  if (from == all.npos || to == all.npos || to < from) return false;
  all.replace(from + begin.size(), to - from - begin.size(), text);
  std::ofstream out(file, std::ios::trunc);
  out << all;
  return out.good();
}

}  // namespace bench
