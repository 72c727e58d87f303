// The profile of each built-in profile with each network, as it stands, and what other kinds of
// paths change in it. BELLJAR_UPDATE_GOLDEN=1 rewrites tests/golden/seatbelt.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/file.h"
#include "plan/explain.h"
#include "support/mac.h"

namespace belljar {
namespace {

using namespace testing_mac;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    lines.emplace_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(lines.back().size() + 1, text.size()));
  }
  return lines;
}

Result<Plan> plan_of(std::string_view profile, std::string_view network, const PathKind& kind) {
  Settings settings;
  settings.profile = std::string(profile);
  settings.network = std::string(network);
  settings.workdir = kind.folder;
  settings.extra_fs_read = {"/tmp/in" + kind.folder};
  settings.hide = {kind.folder + "/.env", kind.folder + "/**/*.pem"};
  settings.protect = {kind.folder + "/.git"};
  return mac_plan(policy_of(settings, kind.folder), mac_caller(kind.folder), mac());
}

std::string how_it_starts(const Plan& plan) {
  std::string text = "\n; ---- wrap\n";
  for (const std::string& word : plan.seatbelt->wrap)
    text += "; " + (&word == &plan.seatbelt->wrap[2] ? "PROFILE" : word) + "\n";
  text += "; ---- variables\n";
  for (const std::string& variable : plan.environment) text += "; " + variable + "\n";
  text += "; ---- lost\n";
  for (const Loss& loss : plan.losses)
    text += "; " + std::string(name(loss.promise)) + (loss.broken ? " (lost): " : ": ") +
            loss.what + "\n";
  const Status refused = refuse_lost_promises(plan);
  return text + "; ---- " +
         (refused ? "it starts" : "it is refused: " + refused.error().message()) + "\n";
}

class SeatbeltGolden : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(SeatbeltGolden, is_what_was_reviewed) {
  const auto& [profile, network] = GetParam();
  std::string text;
  std::set<std::string> plain;
  for (const PathKind& kind : path_kinds()) {
    Result<Plan> plan = plan_of(profile, network, kind);
    ASSERT_TRUE(plan) << plan.error().message();
    parsed(*plan);  // every one of them can be read
    if (plain.empty()) {
      text = plan->seatbelt->profile + how_it_starts(*plan);
      for (std::string& line : lines_of(plan->seatbelt->profile)) plain.insert(std::move(line));
      continue;
    }
    text += std::string("\n; ======== ") + kind.name + ": lines that are not above\n";
    for (const std::string& line : lines_of(plan->seatbelt->profile))
      if (!plain.contains(line)) text += line + "\n";
  }
  const std::string folder = std::string(BELLJAR_GOLDEN_DIR) + "/seatbelt";
  const std::string path = folder + "/" + profile + "-" + network + ".sb";
  if (std::getenv("BELLJAR_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(folder);
    std::ofstream(path) << text;
  }
  EXPECT_EQ(text, read_text(path).value_or("(missing)")) << "BELLJAR_UPDATE_GOLDEN=1 rewrites it";
}

INSTANTIATE_TEST_SUITE_P(Profiles, SeatbeltGolden,
                         testing::Combine(testing::Values("open", "developer", "restricted",
                                                          "public-bot", "trusted-maintenance"),
                                          testing::Values("none", "loopback", "full")),
                         [](const auto& one) {
                           std::string name = std::get<0>(one.param) + "_" + std::get<1>(one.param);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace belljar
