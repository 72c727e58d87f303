#include "policy/tasks.h"

#include <set>

namespace belljar {
namespace {

using Entry = Tasks::value_type;

// A task that is being looked at, and how many of its dependencies are done.
struct Step {
  const Entry* entry;
  std::size_t done = 0;
};

// Depth first with a stack of its own: a file may chain tens of thousands.
class Order {
 public:
  explicit Order(const Config& config) : config_(config) {}

  Status add(std::string_view name) {
    TRY(enter(name, {}));
    while (!path_.empty()) {
      Step& step = path_.back();
      const Task& task = step.entry->second;
      if (step.done < task.depends.size()) {
        const std::string& next = task.depends[step.done++];
        TRY(enter(next, task.position));
        continue;
      }
      open_.erase(step.entry);
      finished_.insert(step.entry);
      order_.push_back(step.entry);
      path_.pop_back();
    }
    return {};
  }

  std::vector<const Entry*> take() { return std::move(order_); }

 private:
  Status enter(std::string_view name, Position from) {
    auto found = config_.tasks.find(name);
    if (found == config_.tasks.end()) {
      std::vector<std::string_view> names;
      for (const auto& [known, task] : config_.tasks) names.push_back(known);
      std::string_view near = nearest(name, names);
      return fail("there is no task \"" + std::string(name) + "\" in " + config_.file, 0,
                  near.empty() ? "belljar tasks" : "did you mean " + std::string(near) + "?");
    }
    const Entry* entry = &*found;
    if (finished_.contains(entry)) return {};
    if (!open_.insert(entry).second) return std::unexpected(circle(entry, from));
    path_.push_back({entry});
    return {};
  }

  Error circle(const Entry* entry, Position from) const {
    std::string names;
    bool in_circle = false;
    for (const Step& step : path_) {
      in_circle = in_circle || step.entry == entry;
      if (in_circle) names += step.entry->first + " -> ";
    }
    return config_.error(from, "tasks depend on each other: " + names + entry->first);
  }

  const Config& config_;
  std::vector<Step> path_;
  std::set<const Entry*> open_;  // those in path_
  std::set<const Entry*> finished_;
  std::vector<const Entry*> order_;
};

}  // namespace

Result<std::vector<const Entry*>> task_order(const Config& config,
                                             std::span<const std::string_view> names) {
  Order order(config);
  for (std::string_view name : names) TRY(order.add(name));
  return order.take();
}

}  // namespace belljar
