#include "server/places.h"

#include <gtest/gtest.h>

namespace belljar::server {
namespace {

TEST(Places, one_that_has_gone_gives_back_what_it_held) {
  const auto all = std::make_shared<Places>();
  {
    Place place(all, "ann");
    EXPECT_TRUE(place.hold(100));
    EXPECT_TRUE(place.hold(40)) << "less than before";
    EXPECT_EQ(all->count("ann"), 1U);
    EXPECT_EQ(all->by_principal.at("ann").bytes, 40U);
    EXPECT_EQ(all->total, 1U);
  }
  EXPECT_TRUE(all->by_principal.empty());
  EXPECT_EQ(all->total, 0U);
}

TEST(Places, all_of_one_hold_so_much_and_those_of_another_as_much_again) {
  const auto all = std::make_shared<Places>();
  Place first(all, "ann");
  Place second(all, "ann");
  Place another(all, "bob");
  const std::size_t large = 2 * kSmall;
  EXPECT_TRUE(first.hold(kMaxHeld - large));
  EXPECT_TRUE(second.hold(large));
  EXPECT_FALSE(second.hold(large + 1));
  EXPECT_EQ(all->by_principal.at("ann").bytes, kMaxHeld) << "what is refused changes nothing";
  EXPECT_TRUE(another.hold(kMaxHeld));
  Place third(all, "ann");
  EXPECT_TRUE(third.hold(kSmall)) << "a little is always possible";
  EXPECT_FALSE(third.hold(kSmall + 1));
  EXPECT_TRUE(first.hold(0));
  EXPECT_TRUE(second.hold(large + 1));
}

}  // namespace
}  // namespace belljar::server
