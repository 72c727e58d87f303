#include "session/messages.h"

#include <gtest/gtest.h>

namespace belljar::session {
namespace {

std::string list_of(std::size_t count) {
  std::string text = "[0";
  for (std::size_t i = 1; i < count; ++i) text += ",0";
  return text + "]";
}

TEST(Messages, of_too_many_parts_are_known_before_they_are_taken_apart) {
  EXPECT_TRUE(has_too_many_parts(list_of(2'000'000)));
  EXPECT_TRUE(has_too_many_parts(list_of(3'000)));
  EXPECT_FALSE(has_too_many_parts(list_of(1'000)));
}

TEST(Messages, may_have_long_texts_with_any_signs) {
  EXPECT_FALSE(has_too_many_parts("{\"op\":\"" + std::string(3'000'000, ',') + "\"}"));
  std::string escaped = "\"";
  for (int i = 0; i < 1'500'000; ++i) escaped += "\\\",";
  EXPECT_FALSE(has_too_many_parts(escaped + "\""));
}

TEST(Messages, that_are_none_are_passed_over) {
  for (const char* text : {"", "[]", "{", "{}", "{\"op\":5}", "{\"op\":\"execute\"}", "\xff"})
    EXPECT_FALSE(parse_message(text)) << text;
}

TEST(Messages, with_wrong_types_keep_what_is_right) {
  const auto message =
      parse_message(R"({"op":"done","id":-1,"status":7,"result":[],"exception":{}})");
  ASSERT_TRUE(message && std::holds_alternative<Done>(*message));
  const Done& done = std::get<Done>(*message);
  EXPECT_EQ(done.id, 0U);
  EXPECT_FALSE(done.success || done.result);
  EXPECT_EQ(done.exception->type, "");
}

}  // namespace
}  // namespace belljar::session
