// Tokens: who may ask, and for what. Kept as hashes; compared in constant time. The file
// that holds them is the owner's alone (0600), one token a line:
//
//   NAME SCOPE[,SCOPE...] TOKEN
//
// A file with nothing but a token gives it every scope.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace belljar::server {

enum class Right {
  none,      // anybody may
  dispatch,  // call tools of one session, by an address that carries the token
  read,      // look
  run,       // make sessions and use them
  approve,   // decide what waits for a person
  admin,     // everything, of everybody
};
std::string_view name(Right right);

// Someone who asks. Sessions belong to principals.
struct Principal {
  std::string name;  // of the token, or "uid:1000"
  std::set<Right> rights;
  std::string session;  // the only one; empty: all of its own
  // `run` includes `read` and `dispatch`, `approve` includes `read`, `admin` everything.
  bool may(Right right) const;
};

class Tokens {
 public:
  // Lines as above. `file` is for messages.
  static Result<Tokens> parse(std::string_view text, std::string_view file);
  static Result<Tokens> read(const std::string& path);
  // As read; where there is no file, one with a fresh token is made.
  static Result<Tokens> read_or_make(const std::string& path);

  // nullptr: nobody's.
  const Principal* find(std::string_view token) const;
  // Of a principal by its name; a user of the local socket may everything.
  bool may(const std::string& name, Right right) const;
  // One for a session's dispatch address, until the session goes. Returns it.
  Result<std::string> add_dispatch(const std::string& owner, const std::string& session);
  void remove_dispatch(const std::string& session);
  // The tokens of another reading, with what was made here meanwhile. Returns who has lost
  // something by it: the names whose token is gone, is another, or may do less.
  std::set<std::string> replace(Tokens fresh);

 private:
  struct Entry {
    std::string hash;
    Principal principal;
  };
  bool has_at_least(const Entry& entry) const;

  std::vector<Entry> entries_;
  std::vector<Entry> dispatch_;
};

inline constexpr std::size_t kLeastToken = 16;    // characters
inline constexpr std::size_t kMaxTokens = 1'000;  // in one file

// 256 random bits, in hexadecimal digits.
std::string make_token();

}  // namespace belljar::server
