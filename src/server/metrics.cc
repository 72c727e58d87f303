#include "server/metrics.h"

#include <charconv>

namespace belljar::server {
namespace {

void describe(std::string& text, const std::string& name, const std::string& type,
              const std::string& help) {
  text += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

// The shortest that reads back the same.
std::string number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

double seconds(LoopMeter::Time time) { return std::chrono::duration<double>(time).count(); }

std::string label(const std::string& name, const std::string& value) {
  return name + "=\"" + value + "\"";
}

void render_bucket(std::string& text, const std::string& name, const std::string& labels,
                   const std::string& bound, std::uint64_t count) {
  text += name + "_bucket{" + labels + label("le", bound) + "} " + std::to_string(count) + "\n";
}

void render_loop(std::string& text, const LoopMeter& loop) {
  describe(text, "belljar_loop_longest_turn_seconds", "gauge",
           "The longest time for which one thing kept all others waiting.");
  text += "belljar_loop_longest_turn_seconds " + number(seconds(loop.longest())) + "\n";
  const std::string name = "belljar_loop_turn_seconds";
  describe(text, name, "histogram", "Turns of the event loop, less their wait for a CPU.");
  for (std::size_t i = 0; i < LoopMeter::kBounds.size(); ++i)
    render_bucket(text, name, "", number(seconds(LoopMeter::kBounds[i])), loop.under()[i]);
  render_bucket(text, name, "", "+Inf", loop.turns());
  text += name + "_sum " + number(seconds(loop.sum())) + "\n";
  text += name + "_count " + std::to_string(loop.turns()) + "\n";
}

}  // namespace

void Metrics::Histogram::add(std::chrono::microseconds time) {
  const double seconds = static_cast<double>(time.count()) / 1e6;
  for (std::size_t i = 0; i < kBounds.size(); ++i)
    if (seconds <= kBounds[i]) ++under[i];
  ++count;
  sum += seconds;
}

void Metrics::count_request(std::string_view route, int status, std::chrono::microseconds time) {
  ++requests_[{std::string(route), status}];
  request_time_.add(time);
}

void Metrics::count_call(std::string_view tool, std::string_view status,
                         std::chrono::microseconds time) {
  ++calls_[{std::string(tool), std::string(status)}];
  call_time_[std::string(tool)].add(time);
}

void Metrics::render(std::string& text, const std::string& name, const std::string& labels,
                     const Histogram& histogram) {
  const std::string comma = labels.empty() ? "" : labels + ",";
  for (std::size_t i = 0; i < kBounds.size(); ++i)
    render_bucket(text, name, comma, number(kBounds[i]), histogram.under[i]);
  render_bucket(text, name, comma, "+Inf", histogram.count);
  const std::string braced = labels.empty() ? "" : "{" + labels + "}";
  text += name + "_sum" + braced + " " + number(histogram.sum) + "\n";
  text += name + "_count" + braced + " " + std::to_string(histogram.count) + "\n";
}

std::string Metrics::render(const Gauges& gauges, const LoopMeter& loop) const {
  std::string text;
  auto single = [&](const std::string& name, const std::string& type, const std::string& help,
                    std::uint64_t value) {
    describe(text, name, type, help);
    text += name + " " + std::to_string(value) + "\n";
  };
  single("belljar_connections", "gauge", "Open connections.", gauges.connections);
  single("belljar_requests_running", "gauge", "Requests being answered.", gauges.requests);
  single("belljar_sessions", "gauge", "Sessions.", gauges.sessions);
  single("belljar_event_listeners", "gauge", "Readers of /v1/events.", gauges.event_listeners);
  single("belljar_connections_refused_total", "counter", "Connections without a place.",
         gauges.refused_connections);
  single("belljar_audit_lost_total", "counter", "Lines of the audit that could not be written.",
         gauges.audit_lost);
  render_loop(text, loop);
  describe(text, "belljar_requests_total", "counter", "Requests answered.");
  for (const auto& [key, count] : requests_)
    text += "belljar_requests_total{" + label("route", key.first) + "," +
            label("status", std::to_string(key.second)) + "} " + std::to_string(count) + "\n";
  describe(text, "belljar_request_seconds", "histogram", "From a request's end to its answer.");
  render(text, "belljar_request_seconds", "", request_time_);
  describe(text, "belljar_calls_total", "counter", "Calls of tools.");
  for (const auto& [key, count] : calls_)
    text += "belljar_calls_total{" + label("tool", key.first) + "," + label("status", key.second) +
            "} " + std::to_string(count) + "\n";
  describe(text, "belljar_call_seconds", "histogram", "How long calls took.");
  for (const auto& [tool, histogram] : call_time_)
    render(text, "belljar_call_seconds", label("tool", tool), histogram);
  return text;
}

}  // namespace belljar::server
