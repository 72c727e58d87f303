#include "server/session_book.h"

#include <algorithm>

namespace belljar::server {

bool SessionBook::sees(const Principal& principal, const SessionEntry& entry) {
  if (!principal.session.empty() && principal.session != entry.id()) return false;
  return entry.shared || entry.owner == principal.name || principal.may(Right::admin);
}

const SessionEntry* SessionBook::find_any(const std::string& id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

const SessionEntry* SessionBook::find(const std::string& called, const Principal& principal) const {
  const SessionEntry* entry = find_any(whole_name_for(principal.name, called));
  return entry != nullptr && sees(principal, *entry) ? entry : nullptr;
}

std::vector<const SessionEntry*> SessionBook::all(const Principal& principal) const {
  std::vector<const SessionEntry*> list;
  for (const auto& [id, entry] : entries_)
    if (sees(principal, entry)) list.push_back(&entry);
  return list;
}

std::size_t SessionBook::count(const std::string& owner) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      entries_, [&](const auto& pair) { return pair.second.owner == owner; }));
}

}  // namespace belljar::server
