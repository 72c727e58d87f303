#include "plan/sights.h"

#include <algorithm>

namespace belljar {
namespace {

bool is_emptied(const Layout& layout, std::string_view inside, std::size_t above) {
  return std::ranges::any_of(layout.private_dirs, [&](const PrivateDir& dir) {
    return dir.inside.size() >= above && is_below(inside, dir.inside);
  });
}

// The place whose mount a path inside ends up in; null: none, or one of our own.
const Place* shown_at(const Layout& layout, std::string_view inside) {
  const Place* nearest = nullptr;
  for (const Place& place : layout.places)
    if (is_below(inside, place.inside) &&
        (nearest == nullptr || place.inside.size() >= nearest->inside.size()))
      nearest = &place;
  const bool emptied = nearest != nullptr && is_emptied(layout, inside, nearest->inside.size());
  return emptied ? nullptr : nearest;
}

}  // namespace

std::vector<Sight> sights(const Layout& layout, const std::string& path) {
  std::vector<Sight> seen;
  for (const Place& place : layout.places) {
    if (place.access == Access::hide || !is_below(path, place.path)) continue;
    std::string inside = (place.inside == "/" ? "" : place.inside) +
                         path.substr(place.path == "/" ? 0 : place.path.size());
    if (shown_at(layout, inside) == &place)
      seen.push_back({std::move(inside), place.inside, place.access == Access::write, place.owned});
  }
  if (layout.whole_root && shown_at(layout, path) == nullptr && !is_emptied(layout, path, 0))
    seen.push_back({path, "/", layout.root_writable, false});
  return seen;
}

}  // namespace belljar
