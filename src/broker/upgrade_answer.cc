#include "broker/upgrade_answer.h"

#include "broker/http_characters.h"

namespace belljar::broker {

std::optional<bool> agrees_to_websocket(std::string_view so_far) {
  constexpr std::string_view kSwitched = "HTTP/1.1 101";
  constexpr std::string_view kUpgrade = "\r\nupgrade:";
  if (!so_far.starts_with(kSwitched.substr(0, so_far.size()))) return false;
  const std::size_t end = so_far.find("\r\n\r\n");
  if (end == so_far.npos && so_far.size() >= kMaxAnswerHead) return false;
  if (end == so_far.npos) return std::nullopt;
  const std::string head = lower(so_far.substr(0, end));
  const std::size_t field = head.find(kUpgrade);
  if (field == head.npos) return false;
  const std::size_t begin = head.find_first_not_of(" \t", field + kUpgrade.size());
  if (begin == head.npos) return false;
  const std::string value = head.substr(begin, head.find("\r\n", begin) - begin);
  return value.substr(0, value.find_last_not_of(" \t") + 1) == "websocket";
}

}  // namespace belljar::broker
