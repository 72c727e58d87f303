#include "broker/allowance.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace belljar::broker {
namespace {

// With this many descriptors, until it ends.
class Limit {
 public:
  explicit Limit(rlim_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit now{.rlim_cur = count, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  ~Limit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  rlimit before_{};
};

TEST(Allowance, a_jar_has_a_quarter_and_what_ends_is_given_back) {
  const Limit limit(400);
  Allowance allowance;
  std::optional<Allowance::Share> most = allowance.take(100, 5);
  ASSERT_TRUE(most);
  EXPECT_FALSE(allowance.take(1, 5));
  Allowance::Share moved = *std::move(most);
  most.reset();
  EXPECT_EQ(allowance.taken(), 100U);
  moved = Allowance::Share();
  EXPECT_EQ(allowance.taken(), 0U);
  EXPECT_TRUE(allowance.take(100, 5));
}

TEST(Allowance, the_last_quarter_is_for_nobodys_connections) {
  const Limit limit(400);
  Allowance allowance;
  EXPECT_TRUE(allowance.take(1, 299));
  EXPECT_FALSE(allowance.take(1, 300));
  EXPECT_FALSE(allowance.take(1, -1));  // there was none at all
}

}  // namespace
}  // namespace belljar::broker
