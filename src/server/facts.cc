#include <algorithm>

#include "server/mcp_offer.h"

namespace belljar::server {
namespace {

std::string network_words(const Policy& policy) {
  switch (policy.network) {
    case Network::none:
      return "none: no connection can be made";
    case Network::loopback:
      return "loopback only: processes of the session can talk to one another";
    case Network::full:
      return "full";
    case Network::hosts:
      break;
  }
  std::string words = "only these hosts:";
  for (const std::string& host : policy.hosts) words += " " + host;
  return words;
}

// The guest's home is not the person's, and unlike /tmp the tools reach it.
void add_home(std::vector<std::string>& writable, const session::SessionView& view) {
  const Files& files = view.policy.files;
  if (files.home != Home::temporary || view.home.empty()) return;
  // Before there is a session, there is no folder for it yet.
  if (std::ranges::find(writable, view.home) == writable.end()) writable.push_back(view.home);
  *std::ranges::find(writable, view.home) += " (the home)";
}

}  // namespace

tools::Facts facts_of(const session::SessionView& view) {
  tools::Facts facts;
  facts.workdir = view.workdir;
  for (const session::SessionRoot& root : view.roots)
    if (root.writable && !root.hidden) facts.writable.push_back(root.inside);
  // Not made yet: each session gets its own.
  if (view.policy.files.workdir.empty()) {
    facts.workdir = "a folder of the session's own";
    facts.writable.insert(facts.writable.begin(), "the working folder");
  }
  add_home(facts.writable, view);
  if (view.policy.files.private_tmp) facts.writable.emplace_back("/tmp");
  facts.network = network_words(view.policy);
  const Limits& limits = view.policy.limits;
  auto add = [&](std::string_view what, const std::optional<std::uint64_t>& value,
                 std::string_view unit) {
    if (value)
      facts.limits.push_back(std::string(what) + " " + std::to_string(*value) + std::string(unit));
  };
  add("memory", limits.memory_mb, " MB");
  add("CPU time", limits.cpu_secs, " s a call");
  add("processes", limits.procs, "");
  add("open files", limits.open_fds, "");
  add("file size", limits.file_sz_mb, " MB");
  return facts;
}

}  // namespace belljar::server
