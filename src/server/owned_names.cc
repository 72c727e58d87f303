#include "server/owned_names.h"

namespace belljar::server {

namespace {

// Plain names have no @, but a token's may: the first one counts.
constexpr char kOf = '@';

}  // namespace

std::string whole_name(std::string_view name, std::string_view owner) {
  std::string whole(name);
  if (!owner.empty()) whole.append(1, kOf).append(owner);
  return whole;
}

std::string whole_name_for(std::string_view asker, std::string_view called) {
  const bool is_whole = called.find(kOf) != called.npos;
  return is_whole ? std::string(called) : whole_name(called, asker);
}

std::string called_by(std::string_view asker, std::string_view whole) {
  return std::string(owner_in(whole) == asker ? name_in(whole) : whole);
}

std::string_view name_in(std::string_view whole) { return whole.substr(0, whole.find(kOf)); }

std::string_view owner_in(std::string_view whole) {
  const std::size_t at = whole.find(kOf);
  return at == whole.npos ? std::string_view() : whole.substr(at + 1);
}

}  // namespace belljar::server
