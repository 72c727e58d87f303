// Whether one policy allows what another does not. The rule about projects that
// are not trusted rests on this and not on a list of harmless values: what counts
// is what would be allowed with the project's wish against without it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/policy.h"

namespace belljar {

// What a policy's files allow, by path. Its paths are resolved once, when this is made:
// what a plan has opened later can be judged by it, though a guest that runs meanwhile
// changes what they lead to.
class Reach {
 public:
  explicit Reach(const Files& files);

  // `path` has no symlinks in it.
  bool allows(const std::string& path, Access access) const;
  // Whether something hidden is at the path, above it or below it.
  bool hides_near(const std::string& path) const;
  bool excepts_near(const std::string& path) const;  // or protected

 private:
  struct Tree {
    std::string path;
    int rank;
  };
  void add(const std::string& path, Access access);
  int at(const std::string& path) const;

  std::vector<std::string> hide_, protect_;  // patterns
  std::vector<Tree> trees_;
  std::vector<std::string> protected_;
  int everywhere_ = 0;
};

// What `after` allows beyond `before`, in words for people ("network full instead
// of none"); nullopt when nothing is. In doubt it does. Paths are compared as they
// stand on this host, symlinks and `..` resolved; what a guest sees at which path
// is not compared.
std::optional<std::string> widening(const Policy& before, const Policy& after);

}  // namespace belljar
