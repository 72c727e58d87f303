// Accounts of this machine, as /etc/passwd has them. It is read here and not asked for by
// getpwuid, which in a static program would load the host's name services. So who is known only
// to one of those (LDAP, macOS's own directory) is not found.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace belljar {

struct Account {
  std::string name;
  std::string home;  // absolute, or empty
};

// The first with that uid, as the C library takes it.
std::optional<Account> find_account(std::string_view passwd, uid_t uid);

// In this machine's file.
std::optional<Account> account_of(uid_t uid);

}  // namespace belljar
