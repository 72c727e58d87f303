#include "plan/covered.h"

#include <algorithm>

namespace belljar {
namespace {

const Place* nearest_above(const Layout& layout, const Place& below) {
  const Place* nearest = nullptr;
  for (const Place& place : layout.places) {
    if (&place == &below || !is_below(below.inside, place.inside)) continue;
    if (place.inside == below.inside && &place > &below) continue;
    if (nearest == nullptr || place.inside.size() >= nearest->inside.size()) nearest = &place;
  }
  return nearest;
}

bool private_between(const Layout& layout, std::string_view inside, std::string_view above) {
  return std::ranges::any_of(layout.private_dirs, [&](const PrivateDir& dir) {
    return is_below(inside, dir.inside) && dir.inside.size() > above.size();
  });
}

bool is_covered(const Layout& layout, const Place& place) {
  if (place.device || place.inside != place.path) return false;
  const Place* above = nearest_above(layout, place);
  const bool found = place.from == "system" || place.from == "toolchain";
  if (above == nullptr) {
    const Access whole = layout.root_writable ? Access::write : Access::read;
    return layout.whole_root && !place.owned && place.access == whole &&
           !private_between(layout, place.inside, "/");
  }
  if (above->inside != above->path || private_between(layout, place.inside, above->inside))
    return false;
  if (found) return true;
  return above->access == place.access && above->owned == place.owned;
}

}  // namespace

void drop_covered(Layout& layout) {
  std::vector<bool> covered;
  for (const Place& place : layout.places) covered.push_back(is_covered(layout, place));
  std::vector<Place> kept;
  for (std::size_t i = 0; i < covered.size(); ++i)
    if (!covered[i]) kept.push_back(std::move(layout.places[i]));
  layout.places = std::move(kept);
}

}  // namespace belljar
