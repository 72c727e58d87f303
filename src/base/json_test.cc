#include "base/json.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace belljar {
namespace {

namespace json = boost::json;

TEST(Json, controls_that_a_terminal_obeys_are_escaped) {
  for (unsigned c = 0; c < 0xA0; ++c) {
    if (c >= 0x20 && c < 0x7F) continue;
    const std::string text = c < 0x80 ? std::string(1, static_cast<char>(c))
                                      : std::string("\xC2") + static_cast<char>(c);
    const std::string printed = pretty(json::object{{text, text}});
    for (const char byte : printed) EXPECT_TRUE((byte >= 0x20 && byte < 0x7F) || byte == '\n') << c;
    EXPECT_EQ(json::parse(printed).at(text), json::string(text)) << c;
  }
}

TEST(Json, other_characters_stand_as_they_are) {
  EXPECT_EQ(pretty(json::string("é ¢ \u00A0 €")), "\"é ¢ \u00A0 €\"\n");
}

}  // namespace
}  // namespace belljar
