// SessionBook: whose sessions there are, and under which policy. The engine knows sessions
// by their whole names only; that one client does not reach another's is decided here.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "belljar/policy.h"
#include "server/owned_names.h"
#include "server/tokens.h"

namespace belljar::server {

struct SessionSkill {
  std::string folder;  // on the host
  std::string description;
};

struct SessionEntry {
  std::string name;     // its owner's word for it
  std::string owner;    // a principal's name
  bool shared = false;  // every token may use it
  std::string profile;
  Policy policy;
  std::map<std::string, SessionSkill> skills;  // by name
  std::chrono::system_clock::time_point created = std::chrono::system_clock::now();
  // Which it is to the engine, and to whoever else keeps something of it.
  std::string id() const { return whole_name(name, owner); }
};

class SessionBook {
 public:
  void add(SessionEntry entry) {
    const std::string id = entry.id();
    entries_.insert_or_assign(id, std::move(entry));
  }
  void remove(const std::string& id) { entries_.erase(id); }
  // The session that this principal means by the name, or nullptr if it may not know of one.
  const SessionEntry* find(const std::string& called, const Principal& principal) const;
  const SessionEntry* find_any(const std::string& id) const;
  std::vector<const SessionEntry*> all(const Principal& principal) const;
  std::size_t count(const std::string& owner) const;

  static bool sees(const Principal& principal, const SessionEntry& entry);

 private:
  std::map<std::string, SessionEntry, std::less<>> entries_;
};

}  // namespace belljar::server
