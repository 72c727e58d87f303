#include "cli/prompt.h"

#include <gtest/gtest.h>

namespace belljar::cli {
namespace {

TEST(Prompt, a_statement_on_one_line_is_finished) {
  for (const char* code : {"1 + 1", "print('a: b')", "x = {1: 2}", "# only: this", "s = 'it(s'",
                           "f(a,\n  b)", "'''a\nb'''", "x = 1 # comment:"})
    EXPECT_FALSE(is_unfinished_python(code)) << code;
}

TEST(Prompt, an_open_bracket_string_or_line_goes_on) {
  for (const char* code : {"f(", "x = [1,", "s = '''a", "s = \"\"\"a\nb", "x = 1 + \\", "f('(',"})
    EXPECT_TRUE(is_unfinished_python(code)) << code;
}

TEST(Prompt, a_block_ends_with_an_empty_line) {
  EXPECT_TRUE(is_unfinished_python("if x:"));
  EXPECT_TRUE(is_unfinished_python("if x:  # why"));
  EXPECT_TRUE(is_unfinished_python("for i in x:\n  print(i)"));
  EXPECT_FALSE(is_unfinished_python("for i in x:\n  print(i)\n"));
  EXPECT_TRUE(is_unfinished_python("@cached"));
  EXPECT_TRUE(is_unfinished_python("@cached\ndef f():"));
}

}  // namespace
}  // namespace belljar::cli
