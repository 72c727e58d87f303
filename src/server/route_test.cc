#include "server/route.h"

#include <gtest/gtest.h>

namespace belljar::server {
namespace {

const std::vector<Route>& table() {
  static const std::vector<Route> routes = {
      {"GET", "/a", Right::none, "", "", nullptr},
      {"GET", "/a/{id}", Right::none, "", "", nullptr},
      {"DELETE", "/a/{id}", Right::none, "", "", nullptr},
      {"GET", "/a/{id}/files/{path*}", Right::none, "", "", nullptr},
  };
  return routes;
}

std::string value(std::string_view path, std::string_view name) {
  const Match found = match(table(), "GET", path);
  if (found.route == nullptr) return "no route";
  return found.parameters.find(name)->second;
}

TEST(Route, matches_whole_paths_only) {
  EXPECT_NE(match(table(), "GET", "/a").route, nullptr);
  for (std::string_view path : {"/", "", "/a/", "/ab", "/a/b/c", "//a", "/a/b/", "/A"})
    EXPECT_EQ(match(table(), "GET", path).route, nullptr) << path;
}

TEST(Route, names_are_decoded) {
  EXPECT_EQ(value("/a/x%20y", "id"), "x y");
  EXPECT_EQ(value("/a/b/files/c/d%2e", "path"), "c/d.");
}

TEST(Route, what_would_be_another_path_further_down_is_none) {
  for (std::string_view path : {"/a/x%2fy", "/a/x%00", "/a/x%4", "/a/%zz", "/a/b/files/",
                                "/a/b/files/c//d", "/a/b/files/c%2Fd"})
    EXPECT_EQ(match(table(), "GET", path).route, nullptr) << path;
}

TEST(Route, a_wrong_method_is_told_the_right_ones) {
  const Match found = match(table(), "POST", "/a/x");
  EXPECT_EQ(found.route, nullptr);
  EXPECT_EQ(found.allowed, "GET, DELETE");
  EXPECT_EQ(match(table(), "POST", "/b").allowed, "");
}

TEST(Route, head_is_get) { EXPECT_EQ(match(table(), "HEAD", "/a").route, &table()[0]); }

TEST(Route, no_two_of_the_real_table_are_the_same) {
  for (const Route& one : routes())
    for (const Route& other : routes())
      EXPECT_FALSE(&one != &other && one.method == other.method && one.pattern == other.pattern)
          << one.pattern;
}

TEST(Query, values_are_found_and_decoded) {
  EXPECT_EQ(query_value("a=1&b=%41&c", "b"), "A");
  EXPECT_EQ(query_value("a=1&b=%41&c", "c"), "");
  EXPECT_EQ(query_value("a=1", "b"), std::nullopt);
  EXPECT_EQ(query_value("ab=1", "b"), std::nullopt);
  EXPECT_EQ(query_value("a=%0", "a"), std::nullopt);
}

}  // namespace
}  // namespace belljar::server
