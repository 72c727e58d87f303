#include "base/account.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

namespace belljar {

std::optional<Account> find_account(std::string_view passwd, uid_t uid) {
  const std::string wanted = std::to_string(uid);
  while (!passwd.empty()) {
    std::string_view line = passwd.substr(0, passwd.find('\n'));
    passwd.remove_prefix(std::min(line.size() + 1, passwd.size()));
    std::array<std::string_view, 6> fields;  // name, password, uid, gid, full name, home
    for (std::string_view& field : fields) {
      field = line.substr(0, line.find(':'));
      line.remove_prefix(std::min(field.size() + 1, line.size()));
    }
    if (fields[2] != wanted) continue;
    const bool absolute = fields[5].starts_with('/');
    return Account{.name = std::string(fields[0]),
                   .home = absolute ? std::string(fields[5]) : std::string()};
  }
  return std::nullopt;
}

std::optional<Account> account_of(uid_t uid) {
  std::ifstream file("/etc/passwd");
  return find_account(std::string(std::istreambuf_iterator<char>(file), {}), uid);
}

}  // namespace belljar
