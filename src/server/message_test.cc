#include "server/message.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>

namespace belljar::server {
namespace {

namespace json = boost::json;

json::object error_of(const Response& response) {
  return json::parse(std::get<std::string>(response.body)).at("error").as_object();
}

TEST(Message, every_error_says_what_to_do_next) {
  std::set<std::string_view> types;
  for (const Fault* fault : kFaults) {
    EXPECT_TRUE(types.insert(fault->type).second) << fault->type << " is there twice";
    for (const Response& response :
         {refuse(*fault, "why"), refuse(*fault, Error{.what = "why", .err = 0, .hint = {}})}) {
      EXPECT_EQ(response.status, fault->status);
      EXPECT_NE(reason_phrase(response.status), "Error") << response.status;
      const json::object error = error_of(response);
      EXPECT_EQ(error.at("type"), json::value(fault->type));
      EXPECT_EQ(error.at("message"), "why");
      EXPECT_FALSE(error.at("hint").as_string().empty()) << fault->type;
    }
    const json::object streamed = error_object(*fault, {.what = "why", .err = 0, .hint = {}});
    EXPECT_FALSE(streamed.at("hint").as_string().empty()) << fault->type;
  }
}

TEST(Message, a_hint_of_its_own_counts_more) {
  EXPECT_EQ(error_of(refuse(kNotFound, "why", "do that")).at("hint"), "do that");
  const Error error{.what = "why", .err = 0, .hint = "do that"};
  EXPECT_EQ(error_of(refuse(kNotFound, error)).at("hint"), "do that");
  EXPECT_EQ(error_object(kNotFound, error).at("hint"), "do that");
}

}  // namespace
}  // namespace belljar::server
