#include "server/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/file.h"
#include "support/folder.h"

namespace belljar::server {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Mask, what_looks_like_a_secret_goes_and_the_rest_stays) {
  const Mask mask({"hunter2hunter2", "no"});
  for (const char* text :
       {"x hunter2hunter2 y",
        "export API_KEY=SECRETVALUE",
        "password: SECRETVALUE",
        "curl -H 'Authorization: Bearer SECRETVALUE0'",
        "\"token\": \"SECRETVALUE\"",
        "https://me:SECRETVALUE@host/x",
        "ghp_SECRETVALUE0123456789",
        "sk-SECRETVALUE0123456789",
        "AKIA0123456789ABCDEF",
        "eyJhbGciOiJI.eyJzdWIiOiIx.SECRETVALUE",
        "-----BEGIN RSA PRIVATE KEY-----\nSECRETVALUE\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nSECRETVALUE",
        "-----BEGIN EC PRIVATE KEY-----\nDEK-Info: AES,0\n\nSECRETVALUE+/\nSECRETVALUE=\n",
        R"(k = "-----BEGIN PRIVATE KEY-----\nSECRETVALUE\n-----END PRIVATE KEY-----\n")",
        "Cookie: id=SECRETVALUE; b=SECRETVALUE",
        "Authorization: AWS4-HMAC-SHA256 Cred=SECRETVALUE, S=SECRETVALUE",
        "password=\"pa$SECRETVALUE\"",
        "AGE-SECRET-KEY-1SECRETVALUE0123456789",
        "aws_secret_access_key = SECRETVALUE/+x",
        "ASIA0123456789ABCDEF",
        "Authorization: token SECRETVALUE",
        "'authorization': 'AWS4-HMAC-SHA256 Cred=SECRETVALUE, S=1'",
        "Proxy-Authorization: Digest SECRETVALUE",
        "-H 'Cookie: id=SECRETVALUE; b=SECRETVALUE' url",
        "glptt-SECRETVALUE0123456789",
        "glrt-t1_SECRETVALUE0123",
        "github_pat_SECRETVALUE0123",
        "xoxe-1-SECRETVALUE",
        "xapp-1-SECRETVALUE",
        "https://hooks.slack.com/services/T0/B0/SECRETVALUE",
        "AIzaSECRETVALUE0123456789012345678901",
        "AccountKey=SECRETVALUE0123456789==;x",
        "postgres://me:SECRETVALUE@db/x",
        "curl -u me:SECRETVALUE https://host",
        "mysql --password SECRETVALUE db",
        "tool --api-key 'SECRETVALUE'",
        "sshpass -p SECRETVALUE ssh h",
        "SG.SECRETVALUE0123456.SECRETVALUE0123456",
        "dckr_pat_SECRETVALUE0123"}) {
    const std::string masked = mask.text(text);
    EXPECT_THAT(masked, HasSubstr("***")) << text;
    EXPECT_THAT(masked, Not(HasSubstr("SECRETVALUE"))) << text;
    EXPECT_THAT(masked, Not(HasSubstr("hunter2"))) << text;
  }
  for (const char* text :
       {"git commit -m 'no secrets here'", "print(tokens)", "x = 5", "no",
        "docker run -u 1000:1000 image", "tool --token --verbose", "cookies = 3",
        "http://host:8080/x", "authorization is needed", "glance-at-the-log-files"})
    EXPECT_EQ(mask.text(text), text);
}

// Else a model would write what it does beside something that looks like a secret.
TEST(Mask, code_beside_what_looks_like_a_secret_stays) {
  const Mask mask;
  for (const char* text :
       {R"x(token="$(CODE; id)"; echo "$token")x", "token=$(CODE)", "token=`CODE`",
        "# -----BEGIN PRIVATE KEY-----\nimport os\nos.system('CODE')",
        "true # cookie: x; CODE ; ls", "echo authorization: x | CODE", "echo cookie: x && CODE",
        "echo cookie: $(CODE)"})
    EXPECT_THAT(mask.text(text), HasSubstr("CODE"));
}

TEST(Mask, arguments_are_cut_and_variables_have_no_values) {
  const Mask mask;
  json::value value = json::parse(R"({"environment":{"A":"private"},"list":["token=abcdef"]})");
  value.as_object()["code"] = std::string(100'000, 'x');
  const std::string said = json::serialize(mask.arguments(value));
  EXPECT_LT(said.size(), 3000U);
  EXPECT_THAT(said, HasSubstr("100000 bytes"));
  EXPECT_THAT(said, HasSubstr(R"("A":"***")"));
  EXPECT_THAT(said, Not(HasSubstr("private")));
  EXPECT_THAT(said, Not(HasSubstr("abcdef")));
}

TEST(Mask, deep_values_end) {
  std::string deep;
  for (int i = 0; i < 30; ++i) deep += "[";
  for (int i = 0; i < 30; ++i) deep += "]";
  EXPECT_LT(json::serialize(Mask().arguments(json::parse(deep))).size(), 30U);
}

TEST(Audit, lines_are_private_and_rotated_by_size) {
  const belljar::testing::Folder folder;
  const std::string file = folder.path() + "/audit.jsonl";
  Result<Audit> audit = Audit::open({.file = file, .max_bytes = 300, .keep = 2}, Mask());
  ASSERT_TRUE(audit);
  for (int i = 0; i < 20; ++i) audit->write({{"event", "call"}, {"number", i}});
  struct stat about{};
  ASSERT_EQ(::stat(file.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
  EXPECT_LE(about.st_size, 300);
  EXPECT_THAT(*read_text(file), HasSubstr("\"number\":19"));
  EXPECT_TRUE(std::filesystem::exists(file + ".1"));
  EXPECT_TRUE(std::filesystem::exists(file + ".2"));
  EXPECT_FALSE(std::filesystem::exists(file + ".3"));
  EXPECT_EQ(audit->lost(), 0U);
}

TEST(Audit, one_principal_pushes_only_its_own_lines_out) {
  const belljar::testing::Folder folder;
  const std::string file = folder.path() + "/audit.jsonl";
  Result<Audit> audit = Audit::open({.file = file, .max_bytes = 300, .keep = 2}, Mask());
  ASSERT_TRUE(audit);
  audit->write({{"event", "call"}, {"principal", "ann"}, {"number", -1}});
  for (int i = 0; i < 100; ++i)
    audit->write({{"event", "call"}, {"principal", "bob"}, {"number", i}});
  EXPECT_THAT(*read_text(folder.path() + "/audit.ann.jsonl"), HasSubstr("\"number\":-1"));
  EXPECT_THAT(*read_text(folder.path() + "/audit.bob.jsonl"), HasSubstr("\"number\":99"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/audit.bob.jsonl.2"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/audit.ann.jsonl.1"));
  EXPECT_EQ(audit->lost(), 0U);
}

std::vector<std::string> lines_of(const std::string& file) {
  std::istringstream text(read_text(file).value_or(""));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TEST(Audit, principals_of_one_file_rotate_it_together) {
  const belljar::testing::Folder folder;
  const std::string file = folder.path() + "/audit.jsonl";
  Result<Audit> audit = Audit::open({.file = file, .max_bytes = 300, .keep = 4}, Mask());
  ASSERT_TRUE(audit);
  for (int i = 0; i < 12; ++i) {
    const char* who = i % 3 == 0 ? "" : i % 3 == 1 ? "uid:0" : "uid:1000";
    audit->write({{"event", "call"}, {"principal", who}, {"number", i}});
  }
  std::vector<std::int64_t> numbers;
  for (const char* older : {".4", ".3", ".2", ".1", ""})
    for (const std::string& line : lines_of(file + older))
      numbers.push_back(json::parse(line).at("number").as_int64());
  EXPECT_THAT(numbers, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(Audit, a_line_that_did_not_fit_spoils_no_other) {
  const belljar::testing::Folder folder;
  const std::string file = folder.path() + "/audit.jsonl";
  Result<Audit> audit = Audit::open({.file = file}, Mask());
  ASSERT_TRUE(audit);
  audit->write({{"event", "first"}});
  // As on a disk with room for a few bytes more.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit little = before;
  little.rlim_cur = read_text(file)->size() + 20;
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  audit->write({{"event", "second"}});
  audit->write({{"event", "third"}});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)std::signal(SIGXFSZ, handler);
  EXPECT_EQ(audit->lost(), 2U);
  audit->write({{"event", "fourth"}});
  EXPECT_EQ(audit->lost(), 2U);
  std::vector<std::string> lines = lines_of(file);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], HasSubstr("first"));
  EXPECT_EQ(lines[1].size(), 20U);
  EXPECT_EQ(json::parse(lines[2]).at("event").as_string(), "fourth");
  // And so after who wrote it was killed amid a line.
  std::filesystem::resize_file(file, lines[0].size() + 1 + lines[1].size());
  audit = Audit::open({.file = file}, Mask());
  ASSERT_TRUE(audit);
  audit->write({{"event", "fifth"}});
  lines = lines_of(file);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(json::parse(lines[2]).at("event").as_string(), "fifth");
}

TEST(Audit, a_principals_name_is_no_path) {
  const belljar::testing::Folder folder;
  std::filesystem::create_directory(folder.path() + "/in");
  Result<Audit> audit = Audit::open({.file = folder.path() + "/in/trail"}, Mask());
  ASSERT_TRUE(audit);
  for (const std::string& name : {std::string("../x"), std::string("a/../../y"), std::string("."),
                                  std::string(5000, 'n'), std::string("uid:0")})
    audit->write({{"event", "call"}, {"principal", name}});
  EXPECT_EQ(audit->lost(), 0U);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/in"))
    names.insert(entry.path().filename());
  EXPECT_EQ(names.size(), 5U);  // the person's own, and four
  EXPECT_TRUE(names.contains("trail") && names.contains("trail.%2E%2E%2Fx"));
  EXPECT_THAT(*read_text(folder.path() + "/in/trail"), HasSubstr("uid:0"));
}

TEST(Audit, a_line_has_a_length) {
  const belljar::testing::Folder folder;
  const std::string file = folder.path() + "/audit.jsonl";
  Result<Audit> audit = Audit::open({.file = file}, Mask());
  ASSERT_TRUE(audit);
  json::object arguments;
  for (int i = 0; i < 90; ++i) arguments["key" + std::to_string(i)] = std::string(2000, 'x');
  const json::value masked = audit->mask().arguments(arguments);
  EXPECT_LT(json::serialize(masked).size(), 17U << 10);
  const std::string longest(1 << 20, 'y');
  audit->write({{"event", "call"},
                {"session", longest},
                {"agent", longest},
                {"message", longest},
                {"arguments", masked}});
  EXPECT_LT(read_text(file)->size(), 32U << 10);
  EXPECT_THAT(*read_text(file), HasSubstr("1048576 bytes"));
}

TEST(Audit, a_symlink_or_a_fifo_is_refused) {
  const belljar::testing::Folder folder;
  std::filesystem::create_symlink(folder.path() + "/elsewhere", folder.path() + "/link");
  ASSERT_EQ(::mkfifo((folder.path() + "/fifo").c_str(), 0600), 0);
  EXPECT_FALSE(Audit::open({.file = folder.path() + "/link"}, Mask()));
  EXPECT_FALSE(Audit::open({.file = folder.path() + "/fifo"}, Mask()));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/elsewhere"));
}

}  // namespace
}  // namespace belljar::server
