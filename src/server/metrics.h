// Metrics: what the server counts, as the Prometheus text format has it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "server/loop_meter.h"

namespace belljar::server {

// Values that are so now.
struct Gauges {
  std::size_t connections = 0;
  std::size_t requests = 0;
  std::size_t sessions = 0;
  std::size_t event_listeners = 0;
  std::uint64_t refused_connections = 0;
  std::uint64_t audit_lost = 0;
};

class Metrics {
 public:
  // `route` is a pattern of the table, never what a client wrote.
  void count_request(std::string_view route, int status, std::chrono::microseconds time);
  void count_call(std::string_view tool, std::string_view status, std::chrono::microseconds time);
  std::string render(const Gauges& gauges, const LoopMeter& loop) const;

 private:
  static constexpr std::array kBounds = {0.001, 0.005, 0.01, 0.05, 0.1,  0.5,
                                         1.0,   5.0,   10.0, 60.0, 600.0};
  struct Histogram {
    std::array<std::uint64_t, kBounds.size()> under{};
    std::uint64_t count = 0;
    double sum = 0;
    void add(std::chrono::microseconds time);
  };
  static void render(std::string& text, const std::string& name, const std::string& labels,
                     const Histogram& histogram);

  std::map<std::pair<std::string, int>, std::uint64_t> requests_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> calls_;
  Histogram request_time_;
  std::map<std::string, Histogram> call_time_;
};

}  // namespace belljar::server
