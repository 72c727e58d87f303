#include "broker/upgrade_answer.h"

#include <gtest/gtest.h>

#include <string>

namespace belljar::broker {
namespace {

using namespace std::string_literals;

const std::string kAgreed =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nuPGRADE: \tWebSocket \r\n\r\n";

TEST(UpgradeAnswer, a_server_agrees_by_status_and_header) {
  EXPECT_EQ(agrees_to_websocket(kAgreed), true);
  EXPECT_EQ(agrees_to_websocket(kAgreed + "frames"), true);
}

TEST(UpgradeAnswer, it_waits_for_the_whole_head) {
  for (std::size_t there = 0; there < kAgreed.size(); ++there)
    EXPECT_EQ(agrees_to_websocket(kAgreed.substr(0, there)), std::nullopt) << there;
}

TEST(UpgradeAnswer, anything_else_is_a_refusal) {
  for (const std::string& answer :
       {"HTTP/1.1 200 OK"s, "HTTP/1.0 101 x"s, "HTTP/1.1 100 Continue\r\n\r\n"s,
        "HTTP/1.1 101 x\r\n\r\n"s, "HTTP/1.1 101 x\r\nUpgrade: h2c\r\n\r\n"s,
        "HTTP/1.1 101 x\r\nX: y\r\n\r\nUpgrade: websocket\r\n\r\n"s,
        "HTTP/1.1 101 x\r\nUpgrade:\r\n\r\n"s, "HTTP/1.1 101 " + std::string(kMaxAnswerHead, 'x')})
    EXPECT_EQ(agrees_to_websocket(answer), false) << answer;
}

}  // namespace
}  // namespace belljar::broker
