#include "server/approvals.h"

#include <algorithm>

#include "base/random.h"
#include "base/sha256.h"
#include "policy/permissions.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

constexpr const char* kShutdown = "shutdown";

std::int64_t seconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

Decision ended(const std::string& by, const std::string& why) {
  Decision decision;
  decision.by = by;
  decision.by_nobody = true;
  decision.message = why;
  return decision;
}

std::size_t length_of(const std::vector<std::string>& commands) {
  std::size_t sum = 0;
  for (const std::string& command : commands) sum += command.size();
  return sum;
}

// Of what `same` is about: in JSON, where no text can pass for two, and short.
std::string fingerprint(const Approval& approval) {
  json::array all{approval.tool, approval.exact};
  for (const std::string& subject : approval.subjects) all.emplace_back(subject);
  return sha256_hex(json::serialize(all));
}

}  // namespace

Status check_length(const Decision& decision) {
  if (decision.pattern.size() > kMaxPattern)
    return fail("pattern: it is longer than 4 KiB", 0, "send a shorter one");
  if (decision.message.size() > kMaxDecisionMessage)
    return fail("message: it is longer than 16 KiB", 0, "send a shorter one");
  return {};
}

std::optional<Scope> parse_scope(std::string_view text) {
  if (text.empty() || text == "once") return Scope::once;
  if (text == "tool" || text == "session") return Scope::tool;
  if (text == "pattern") return Scope::pattern;
  if (text == "same") return Scope::same;
  return std::nullopt;
}

std::string_view name(Scope scope) {
  switch (scope) {
    case Scope::once:
      return "once";
    case Scope::tool:
      return "tool";
    case Scope::pattern:
      return "pattern";
    case Scope::same:
      return "same";
  }
  return {};
}

json::object Approval::to_json(std::string_view viewer) const {
  json::object object{{"approval_id", id},
                      {"session_id", called_by(viewer, session)},
                      {"round", round},
                      {"tool", {{"source", "belljar"}, {"kind", tool}, {"label", label}}},
                      {"arguments", arguments},
                      {"asked_at", seconds(asked)},
                      {"expires_at", seconds(expires)}};
  if (!by.empty()) object["asked_by"] = by;
  if (!agent.empty()) object["agent"] = agent;
  return object;
}

Async<std::optional<Decision>> Approvals::ask(Approval approval,
                                              std::function<void(const Approval&)> asked,
                                              std::shared_ptr<Cancel> cancel) {
  if (closed_) co_return ended(kShutdown, *closed_);
  const auto mine = std::make_shared<Pending>(loop_);
  approval.id = "a_" + random_hex(16);
  approval.asked = std::chrono::system_clock::now();
  approval.expires = approval.asked + patience_;
  mine->approval = approval;
  const Clock::time_point end = Clock::now() + patience_;
  pending_[approval.id] = mine;
  tell(ApprovalEvent::Kind::required, approval, {});
  if (asked) asked(approval);
  {
    const Cancel::Hearing hearing(cancel, [mine] { mine->news.raise(); });
    while (!mine->decision && Clock::now() < end) {
      if (cancel != nullptr && cancel->asked()) break;
      (void)co_await mine->news.wait_until(end);  // the loop looks what it was
    }
  }
  pending_.erase(approval.id);
  const bool cancelled = !mine->decision && cancel != nullptr && cancel->asked();
  Decision decision =
      cancelled ? ended("cancelled", "") : ended("timeout", std::string(kTimeWasOver));
  if (mine->decision) decision = *mine->decision;
  tell(ApprovalEvent::Kind::decided, approval, decision);
  if (cancelled) co_return std::nullopt;
  co_return decision;
}

Status Approvals::decide(const std::string& id, Decision decision) {
  TRY(check_length(decision));
  const auto found = pending_.find(id);
  if (found == pending_.end() || found->second->decision)
    return fail("there is no approval " + id + " that waits", 0, "it may have been decided");
  const Approval& approval = found->second->approval;
  if (decision.approved && decision.scope == Scope::pattern) {
    if (approval.subjects.empty())
      return fail("this tool has no commands that a pattern could be about");
    auto matches = [&](const std::string& subject) {
      return matches_pattern(decision.pattern, subject);
    };
    if (decision.pattern != "*" && length_of(approval.subjects) > kMaxPattern)
      return fail("the commands are too long for a pattern", 0, "approve them once, or the tool");
    if (!std::ranges::all_of(approval.subjects, matches))
      return fail("the pattern does not match what it shall approve");
  }
  if (decision.approved && decision.scope == Scope::same && approval.subjects.empty())
    return fail("this tool has no commands that could be the same");
  const bool adds = decision.scope == Scope::pattern || decision.scope == Scope::same;
  if (decision.approved && adds && memory_[approval.session].is_full())
    return fail("this session has as many patterns and commands approved as it may have", 0,
                "approve it once, or the tool");
  remember(approval, decision);
  found->second->decision = std::move(decision);
  found->second->news.raise();
  return {};
}

void Approvals::deny_those(const std::function<bool(const Approval&)>& which, const std::string& by,
                           const std::string& why) {
  for (const auto& [id, one] : pending_) {
    if (one->decision || !which(one->approval)) continue;
    one->decision = ended(by, why);
    one->news.raise();
  }
}

void Approvals::close(const std::string& why) {
  closed_ = why;
  deny_those([](const Approval&) { return true; }, kShutdown, why);
}

std::vector<Approval> Approvals::pending() const {
  std::vector<Approval> all;
  for (const auto& [id, one] : pending_)
    if (!one->decision) all.push_back(one->approval);
  std::ranges::sort(all, {}, &Approval::asked);
  return all;
}

std::optional<Approval> Approvals::find(const std::string& id) const {
  const auto found = pending_.find(id);
  if (found == pending_.end() || found->second->decision) return std::nullopt;
  return found->second->approval;
}

// ---- what was approved for the session ----------------------------------------

bool Approvals::Memory::is_full() const {
  std::size_t bytes = 0;
  for (const auto& [tool, pattern] : patterns) bytes += pattern.size();
  return patterns.size() + same.size() >= kMaxApproved || bytes >= kMaxApprovedBytes;
}

void Approvals::remember(const Approval& approval, const Decision& decision) {
  if (!decision.approved || decision.scope == Scope::once) return;
  Memory& memory = memory_[approval.session];
  if (decision.scope == Scope::tool) memory.tools.insert(approval.tool);
  if (memory.is_full()) return;
  if (decision.scope == Scope::pattern) memory.patterns.emplace(approval.tool, decision.pattern);
  if (decision.scope == Scope::same) memory.same.insert(fingerprint(approval));
}

bool Approvals::remembers_all(const std::string& session, const std::string& tool) const {
  const auto found = memory_.find(session);
  return found != memory_.end() &&
         (found->second.tools.contains(tool) || found->second.patterns.contains({tool, "*"}));
}

bool Approvals::remembered(const Approval& approval) const {
  const auto found = memory_.find(approval.session);
  if (found == memory_.end()) return false;
  const Memory& memory = found->second;
  if (memory.tools.contains(approval.tool)) return true;
  const std::size_t length = length_of(approval.subjects);
  const bool may_be_same = !memory.same.empty() && length <= kMaxAskedAbout;
  if (may_be_same && memory.same.contains(fingerprint(approval))) return true;
  if (approval.subjects.empty() || memory.patterns.empty()) return false;
  if (memory.patterns.contains({approval.tool, "*"})) return true;
  if (approval.altered || length > kMaxPattern) return false;
  auto is_covered = [&](const std::string& subject) {
    return std::ranges::any_of(memory.patterns, [&](const auto& rule) {
      // A pattern says nothing about what comes after a semicolon.
      const bool vague = is_compound_command(subject) && rule.second != subject;
      return rule.first == approval.tool && !vague && matches_pattern(rule.second, subject);
    });
  };
  return std::ranges::all_of(approval.subjects, is_covered);
}

void Approvals::forget(const std::string& session) { memory_.erase(session); }

// ---- who listens --------------------------------------------------------------

std::size_t Approvals::subscribe(Listener listener) {
  listeners_[++last_listener_] = std::move(listener);
  return last_listener_;
}

void Approvals::tell(ApprovalEvent::Kind kind, const Approval& approval, const Decision& decision) {
  const ApprovalEvent event{.kind = kind, .approval = approval, .decision = decision};
  const auto listeners = listeners_;  // one of them may go, or come
  for (const auto& [id, listener] : listeners) listener(event);
}

}  // namespace belljar::server
