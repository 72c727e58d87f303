#include "server/event_stream.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace belljar::server {
namespace {

std::optional<std::string> next(Loop& loop, EventStream& stream) {
  std::optional<std::string> bytes;
  auto work = [](EventStream& from, std::optional<std::string>& to) -> Async<void> {
    to = co_await from.next();
  };
  begin(loop, work(stream, bytes));
  loop.restart();
  loop.run();
  return bytes;
}

TEST(EventStream, events_come_in_order_and_end) {
  Loop loop;
  EventStream stream(loop, EventStream::Overflow::loses_event);
  stream.send("a", {{"x", "1\n2"}});
  stream.send_last("b", {});
  EXPECT_EQ(next(loop, stream), "event: a\ndata: {\"x\":\"1\\n2\"}\n\nevent: b\ndata: {}\n\n");
  EXPECT_EQ(next(loop, stream), std::nullopt);
}

TEST(EventStream, a_slow_reader_of_a_call_loses_events_and_gets_the_last) {
  Loop loop;
  EventStream stream(loop, EventStream::Overflow::loses_event);
  const boost::json::object large{{"x", std::string(1 << 20, 'x')}};
  for (int i = 0; i < 10; ++i) stream.send("output", large);
  stream.send_last("result", {});
  EXPECT_GT(stream.lost(), 0U);
  std::string bytes;
  while (const std::optional<std::string> piece = next(loop, stream)) bytes += *piece;
  EXPECT_LT(bytes.size(), 2 * kMaxQueuedEvents);
  EXPECT_TRUE(bytes.ends_with("event: result\ndata: {}\n\n"));
  EXPECT_NE(bytes.find("event: lost\ndata: {\"events\":"), std::string::npos);
}

TEST(EventStream, a_slow_reader_of_events_is_dropped) {
  Loop loop;
  EventStream stream(loop, EventStream::Overflow::ends_stream);
  const boost::json::object large{{"x", std::string(1 << 20, 'x')}};
  for (int i = 0; i < 10; ++i) stream.send("output", large);
  EXPECT_TRUE(stream.ended());
  EXPECT_TRUE(next(loop, stream)->starts_with("event: dropped\n"));
}

TEST(EventStream, who_was_dropped_has_gone_and_who_heard_the_end_has_not) {
  Loop loop;
  for (const int events : {1, 10}) {
    EventStream stream(loop, EventStream::Overflow::ends_stream);
    int told = 0;
    stream.on_abandon([&] { ++told; });
    for (int i = 0; i < events; ++i) stream.send_text(std::string(1 << 20, 'x'));
    const bool is_dropped = stream.ended();
    EXPECT_EQ(is_dropped, events == 10);
    stream.finish();
    stream.abandon();
    stream.abandon();
    EXPECT_EQ(told, is_dropped ? 1 : 0);
  }
}

TEST(Utf8Pieces, a_character_that_is_cut_waits_for_its_rest) {
  Utf8Pieces pieces;
  EXPECT_EQ(pieces.take("a\xc3"), "a");
  EXPECT_EQ(pieces.take("\xbc\xf0\x9f"), "ü");
  EXPECT_EQ(pieces.take("\x98\x80!"), "😀!");
  EXPECT_EQ(pieces.take("\xe2\x82"), "");
  EXPECT_EQ(pieces.rest(), "\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace belljar::server
