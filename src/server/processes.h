// Processes: programs that run in sessions beside the calls, until they end or their session
// does: process_start, process_poll, process_write, process_signal.
#pragma once

#include <boost/json.hpp>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "server/dispatch.h"

namespace belljar::server {

// The arguments of process_start; else what is wrong with them.
std::expected<ProgramCall, std::string> program_call(const boost::json::object& arguments);

class Processes {
 public:
  explicit Processes(session::Engine& engine) : engine_(engine) {}

  static bool has(std::string_view tool) { return tool.starts_with("process_"); }
  Async<ToolAnswer> run(ToolCall& call);
  void forget(const std::string& session);

 private:
  using Program = std::shared_ptr<session::Program>;
  Async<ToolAnswer> start(ToolCall& call);
  // Why the session has no room for another one.
  std::optional<ToolAnswer> refusal(const std::string& session);
  void forget_ended(const std::string& owner);
  // Of all sessions that have the owner of this one: programs, and what they have not read.
  struct Sums {
    std::size_t programs = 0;
    std::size_t unread = 0;
  };
  Sums sums(const std::string& session) const;
  Async<ToolAnswer> poll(ToolCall& call, std::string id, Program program);
  ToolAnswer write(const ToolCall& call, const std::string& id, session::Program& program);
  static ToolAnswer signal(const ToolCall& call, const std::string& id, session::Program& program);

  session::Engine& engine_;
  std::map<std::string, std::map<std::string, Program>> programs_;  // by session and id
  std::map<std::string, std::size_t> starting_;                     // how many, by session
  std::set<const session::Program*> awaited_;                       // by a poll
  std::uint64_t last_ = 0;
};

}  // namespace belljar::server
