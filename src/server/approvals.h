// Approvals: calls that wait for a person. Whoever shows them (a terminal, MCP, REST) hears
// of each and decides by its id; a call that nobody decides about is denied in the end.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "server/cancel.h"
#include "server/limits.h"
#include "server/owned_names.h"

namespace belljar::server {

// Why it was denied when nobody had decided.
inline constexpr std::string_view kTimeWasOver = "its time was over";

struct Approval {
  std::string id;
  std::string session;
  std::string principal;    // whose call it is
  std::string by;           // who asks: a token's name; empty: the person who started us
  std::string agent;        // whose permissions count too; empty: nobody's
  std::uint64_t round = 0;  // which call of its session
  std::string tool;
  std::string label;  // the tool's title
  boost::json::object arguments;
  // What a pattern for the rest of the session is matched against: the commands. Empty:
  // patterns make no sense for this tool.
  std::vector<std::string> subjects;
  // All that `same` is about besides; empty: they are.
  std::string exact;
  // In a folder or with variables of its own, of which no pattern says anything but `*`.
  bool altered = false;
  std::chrono::system_clock::time_point asked, expires;

  // As `viewer` calls its session.
  boost::json::object to_json(std::string_view viewer) const;
};

enum class Scope {
  once,
  tool,     // this tool, until the session ends
  pattern,  // calls of this tool whose every subject matches, until the session ends
  same,     // calls of this tool with the very same subjects and `exact`, until the session ends
};

struct Decision {
  bool approved = false;
  Scope scope = Scope::once;
  std::string pattern;
  std::string message;  // for the model
  std::string by;       // who decided: a person's way in, or what ended the wait
  bool by_nobody = false;
};

struct ApprovalEvent {
  enum class Kind { required, decided };
  Kind kind = Kind::required;
  Approval approval;
  Decision decision;  // when it was decided
};

class Approvals {
 public:
  Approvals(Loop& loop, std::chrono::milliseconds patience) : loop_(loop), patience_(patience) {}
  Approvals(const Approvals&) = delete;
  Approvals& operator=(const Approvals&) = delete;
  ~Approvals() = default;

  // Waits for a decision; `id` and the times are filled in. `asked` hears of it first, which
  // may be enough to decide. nullopt: it was cancelled.
  Async<std::optional<Decision>> ask(Approval approval, std::function<void(const Approval&)> asked,
                                     std::shared_ptr<Cancel> cancel);
  // Error: it is not pending (any more), the decision makes no sense or is too long, or too much is
  // remembered already.
  Status decide(const std::string& id, Decision decision);
  // Who asked is gone, or wants it no more: what waits of it is denied.
  void deny_those(const std::function<bool(const Approval&)>& which, const std::string& by,
                  const std::string& why);
  // Nobody will decide any more: what waits is denied, and what asks from now on.
  void close(const std::string& why);
  // Of what is asked from now on.
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

  std::vector<Approval> pending() const;
  std::optional<Approval> find(const std::string& id) const;

  // What was approved for more than once counts from now on, unless too much is remembered.
  // decide() does it by itself.
  void remember(const Approval& approval, const Decision& decision);
  // Whether an earlier decision of this session covers the call.
  bool remembered(const Approval& approval) const;
  // Whether every call of the tool was approved.
  bool remembers_all(const std::string& session, const std::string& tool) const;
  void forget(const std::string& session);

  using Listener = std::function<void(const ApprovalEvent&)>;
  std::size_t subscribe(Listener listener);
  void unsubscribe(std::size_t id) { listeners_.erase(id); }

 private:
  struct Pending {
    explicit Pending(Loop& loop) : news(loop) {}
    Approval approval;
    Signal news;
    std::optional<Decision> decision;
  };
  struct Memory {
    std::set<std::string> tools;
    std::set<std::pair<std::string, std::string>> patterns;  // of a tool
    std::set<std::string> same;                              // by what fingerprint() gives
    bool is_full() const;
  };
  void tell(ApprovalEvent::Kind kind, const Approval& approval, const Decision& decision);

  Loop& loop_;
  std::chrono::milliseconds patience_;
  std::map<std::string, std::shared_ptr<Pending>> pending_;
  std::map<std::string, Memory> memory_;  // by session
  std::map<std::size_t, Listener> listeners_;
  std::size_t last_listener_ = 0;
  std::optional<std::string> closed_;  // why
};

// Whether a person would write so much. The hint of an error says what to do.
Status check_length(const Decision& decision);

// once, tool, pattern or same.
std::optional<Scope> parse_scope(std::string_view text);
std::string_view name(Scope scope);

}  // namespace belljar::server
