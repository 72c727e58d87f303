#include "policy/toml_hints.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

TEST(TomlHints, text_without_quotes_is_shown_with_them) {
  EXPECT_EQ(missing_quotes("[sandbox]\n  network=none # not any\nx", 2),
            "text needs quotes: network = \"none\"");
  EXPECT_EQ(missing_quotes("home = ~/x y", 1), "text needs quotes: home = \"~/x y\"");
  EXPECT_EQ(missing_quotes("timeout = 2m\r\n", 1), "text needs quotes: timeout = \"2m\"");
  EXPECT_EQ(missing_quotes("hide = [.env, a/*.key]", 1),
            "text needs quotes: hide = [\".env\", \"a/*.key\"]");
}

TEST(TomlHints, what_may_be_another_mistake_gets_no_advice) {
  for (const char* line : {"", "network", "network = ", "a = true", "a = \"none", "a = [1, 2]",
                           "a = [\"x\", y]", "a = []", "a = [,]", "a = 12.", "a = {b = c}"})
    EXPECT_EQ(missing_quotes(line, 1), "") << line;
  EXPECT_EQ(missing_quotes("a = b", 2), "");
}

TEST(TomlHints, a_key_above_the_tables_is_told_its_own) {
  EXPECT_EQ(own_table("network"), "it belongs in [sandbox]");
  EXPECT_EQ(own_table("max_timeout"), "it belongs in [session]");
  EXPECT_EQ(own_table("token_file"), "it belongs in [server]");
  EXPECT_EQ(own_table("nothing"), "");
}

}  // namespace
}  // namespace belljar
