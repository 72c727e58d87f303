#include "server/owned_names.h"

#include <gtest/gtest.h>

namespace belljar::server {
namespace {

TEST(OwnedNames, a_plain_name_is_ones_own) {
  EXPECT_EQ(whole_name_for("ann", "main"), "main@ann");
  EXPECT_EQ(whole_name_for("ann", "main@bob"), "main@bob");
  EXPECT_EQ(called_by("ann", "main@ann"), "main");
  EXPECT_EQ(called_by("bob", "main@ann"), "main@ann");
}

TEST(OwnedNames, the_first_at_divides_since_tokens_may_have_more) {
  EXPECT_EQ(whole_name_for("ann@example.org", "main"), "main@ann@example.org");
  EXPECT_EQ(name_in("main@ann@example.org"), "main");
  EXPECT_EQ(owner_in("main@ann@example.org"), "ann@example.org");
}

TEST(OwnedNames, where_one_person_has_everything_nobody_is_said) {
  EXPECT_EQ(whole_name_for("", "main"), "main");
  EXPECT_EQ(called_by("", "main"), "main");
  EXPECT_EQ(owner_in("main"), "");
}

}  // namespace
}  // namespace belljar::server
