#include "policy/toml.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

const Origin kOrigin{.folder = "/project", .home = "/home/me"};

Result<Config> parse(std::string_view text, std::vector<std::string> known = {}) {
  return parse_config(
      text, {.file = "belljar.toml", .origin = kOrigin, .known_profiles = std::move(known)});
}

Config good(std::string_view text) {
  Result<Config> config = parse(text);
  EXPECT_TRUE(config.has_value()) << text << "\n" << config.error().message();
  return config.value_or(Config{});
}

std::string error(std::string_view text) {
  Result<Config> config = parse(text);
  EXPECT_FALSE(config.has_value()) << text;
  return config ? "" : config.error().message();
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

// ---- every key, in every form ----

// A valid value of a key as TOML, and the texts that mean the same to set().
struct Form {
  std::string toml;
  std::vector<std::string> texts;
};

std::vector<Form> forms_of(const Key& key) {
  const std::string choice = key.choices.empty() ? "" : std::string(key.choices.front());
  switch (key.kind) {
    case Kind::flag:
      return {{"true", {"true"}}, {"false", {"false"}}};
    case Kind::choice:
      return {{"\"" + choice + "\"", {choice}}};
    case Kind::name:
      return {{"\"restricted\"", {"restricted"}}};
    case Kind::count:
      return {{"70", {"70"}}, {"\"unlimited\"", {"unlimited"}}};
    case Kind::duration:
      return {{"7", {"7"}}, {"\"2m\"", {"2m"}}, {"\"unlimited\"", {"unlimited"}}};
    case Kind::path:
      return {{"\"sub\"", {"sub"}}, {"\"~/x\"", {"~/x"}}};
    case Kind::tmp:
      return {{"\"private\"", {"private"}}, {"\"/tmp/x\"", {"/tmp/x"}}};
    case Kind::paths:
    case Kind::globs:
    case Kind::names:
      return {{"[]", {}}, {"[\"a\", \"b\"]", {"a", "b"}}, {"\"a\"", {"a"}}};
    case Kind::hosts:
      return {{"[]", {}}, {"[\"a.test\", \"10.0.0.0/8:22\"]", {"a.test", "10.0.0.0/8:22"}}};
    case Kind::ports:
      return {{"[]", {}}, {"[\"8080:80\"]", {"8080:80"}}, {"\"8080:80\"", {"8080:80"}}};
    case Kind::assignments:
      return {{"{}", {}}, {"{ A = \"1\", B = \"\" }", {"A=1", "B="}}, {"[\"A=1\"]", {"A=1"}}};
    case Kind::mounts:
      return {{"[\"a:b\"]", {"a:b"}}};
    case Kind::promises:
      return {{"[\"" + choice + "\"]", {choice}}, {"[]", {}}};
  }
  return {};
}

TEST(Toml, every_key_takes_its_forms) {
  for (const Key& key : keys()) {
    ASSERT_FALSE(forms_of(key).empty()) << key.name;
    for (const Form& form : forms_of(key)) {
      Settings expected;
      for (const std::string& text : form.texts)
        ASSERT_TRUE(set(expected, key, text, kOrigin)) << key.name << " " << text;
      const std::string line = std::string(key.name) + " = " + form.toml + "\n";
      Config config = good("[sandbox]\n" + line);
      EXPECT_EQ(config.sandbox.settings, expected) << line;
      EXPECT_EQ(config.sandbox.positions[std::string(key.name)], (Position{2, 1})) << line;
      EXPECT_EQ(good("[tasks.t]\nrun = \"x\"\n" + line).tasks["t"].section.settings, expected);
      if (key.name != "profile") {
        EXPECT_EQ(good("[profiles.p]\n" + line).profiles["p"].section.settings, expected);
      }
    }
  }
}

TEST(Toml, every_key_refuses_other_types) {
  for (const Key& key : keys())
    for (const char* value : {"1.5", "1979-05-27", "[[1]]", "[1]", "{ a = 1 }"}) {
      std::string message = error("[sandbox]\n" + std::string(key.name) + " = " + value);
      EXPECT_TRUE(has(message, "belljar.toml:2:")) << message;
      EXPECT_TRUE(has(message, key.name)) << message;
    }
}

TEST(Toml, an_empty_list_adds_nothing) {
  EXPECT_EQ(good("[sandbox]\nallow_read = []\nallow_net = []").sandbox.settings, Settings{});
}

TEST(Toml, an_empty_file_says_nothing) {
  Config config = good("");
  EXPECT_EQ(config.sandbox.settings, Settings{});
  EXPECT_TRUE(config.tasks.empty());
}

TEST(Toml, groups_are_lists_of_rules) {
  Config config = good(
      "[net_groups]\nnpm = [\"registry.example\", \"@cdn\"]\ncdn = \"*.cdn.example\"\n"
      "[sandbox]\nallow_net = [\"@npm\"]");
  EXPECT_EQ(net_groups(config),
            (NetGroups{{"cdn", {"*.cdn.example"}}, {"npm", {"registry.example", "@cdn"}}}));
  EXPECT_EQ(config.net_groups["npm"].position, (Position{2, 1}));
}

// ---- mistakes ----

TEST(Toml, an_unknown_key_is_named_with_its_place_and_the_nearest) {
  EXPECT_EQ(error("[sandbox]\n\n  alow_write = []"),
            "belljar.toml:3:3: unknown key \"alow_write\" in [sandbox]"
            " (hint: did you mean allow_write?)");
  EXPECT_TRUE(has(error("[sandbx]"), "did you mean sandbox?"));
  EXPECT_TRUE(has(error("[tasks.t]\nrum = \"x\""), "did you mean run?"));
  EXPECT_TRUE(has(error("[profiles.p]\nextend = \"x\""), "did you mean extends?"));
}

TEST(Toml, a_bad_value_is_named_with_its_own_place) {
  EXPECT_EQ(error("[sandbox]\nmode = \"atuo\""),
            "belljar.toml:2:8: mode: \"atuo\" is not one of auto, on, full, off (hint: did you "
            "mean auto?)");
  EXPECT_TRUE(has(error("[sandbox]\nallow_read = [\"a\",\n \"\"]"), "belljar.toml:3:2: "));
  EXPECT_TRUE(has(error("[sandbox]\nmax_procs = 0"), "belljar.toml:2:13: max_procs"));
  EXPECT_TRUE(has(error("[sandbox]\nmax_procs = -1"), "belljar.toml:2:13: max_procs"));
  EXPECT_TRUE(has(error("[sandbox]\nmax_procs = \"12\""), "whole number"));
  EXPECT_TRUE(has(error("[sandbox]\ntimeout = \"soon\""), "not a time"));
  EXPECT_TRUE(has(error("[sandbox]\nenv = { \"A=B\" = \"1\" }"), "belljar.toml:2:9: "));
}

TEST(Toml, a_duplicate_is_an_error) {
  EXPECT_TRUE(has(error("[sandbox]\nmode = \"on\"\nmode = \"off\""), "belljar.toml:3:"));
  EXPECT_TRUE(has(error("[sandbox]\n[sandbox]"), "belljar.toml:2:"));
}

TEST(Toml, tables_must_be_tables) {
  EXPECT_TRUE(has(error("sandbox = 1"), "must be a table"));
  EXPECT_TRUE(has(error("[[tasks]]\nrun = \"x\""), "must be a table"));
  EXPECT_TRUE(has(error("[tasks]\nt = \"x\""), "must be a table"));
}

// ---- profiles ----

TEST(Toml, a_profile_must_exist) {
  EXPECT_EQ(error("[sandbox]\nprofile = \"restrictd\""),
            "belljar.toml:2:1: there is no profile \"restrictd\""
            " (hint: did you mean restricted?)");
  EXPECT_TRUE(has(error("[profiles.p]\nextends = \"q\""), "there is no profile \"q\""));
  EXPECT_TRUE(has(error("[tasks.t]\nrun = \"x\"\nprofile = \"q\""), "there is no profile \"q\""));
  EXPECT_TRUE(parse("[sandbox]\nprofile = \"mine\"", {"mine"}));
}

TEST(Toml, profiles_cannot_extend_in_a_circle) {
  EXPECT_TRUE(has(error("[profiles.p]\nextends = \"p\""), "extends itself"));
  EXPECT_TRUE(
      has(error("[profiles.p]\nextends = \"q\"\n[profiles.q]\nextends = \"p\""), "extends itself"));
}

TEST(Toml, a_name_that_is_taken_cannot_be_defined) {
  EXPECT_TRUE(has(error("[profiles.developer]"), "built in"));
  EXPECT_FALSE(parse("[profiles.mine]", {"mine"}));
}

// ---- tasks ----

TEST(Toml, a_task_runs_one_command_or_several) {
  EXPECT_EQ(good("[tasks.t]\nrun = \"a b\"").tasks["t"].run, std::vector<std::string>{"a b"});
  EXPECT_EQ(good("[tasks.t]\nrun = [\"a\", \"b\"]").tasks["t"].run,
            (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(has(error("[tasks.t]\nrun = \"\""), "run: "));
  EXPECT_TRUE(has(error("[tasks.t]\nrun = []"), "nothing to run"));
  EXPECT_TRUE(has(error("[tasks.t]\nrun = \"a\\u0000b\""), "NUL"));
}

TEST(Toml, the_paths_of_a_task_start_at_its_folder) {
  Config config = good("[tasks.t]\nrun = \"x\"\nallow_read = [\"a\"]\ndir = \"sub\"");
  EXPECT_EQ(config.tasks["t"].dir, "/project/sub");
  EXPECT_EQ(config.tasks["t"].section.settings.allow_read[0], "/project/sub/a");
  EXPECT_EQ(good("[tasks.t]\nrun = \"x\"").tasks["t"].dir, "/project");
  EXPECT_FALSE(parse("[tasks.t]\nrun = \"x\"\ndir = \"a\"\nworkdir = \"b\""));
}

TEST(Toml, dependencies_must_exist_and_not_go_in_a_circle) {
  EXPECT_TRUE(has(error("[tasks.build]\nrun = \"x\"\n[tasks.t]\nrun=\"x\"\ndepends = \"buidl\""),
                  "did you mean build?"));
  EXPECT_TRUE(
      has(error("[tasks.a]\ndepends = [\"b\"]\n[tasks.b]\ndepends = [\"a\"]"), "a -> b -> a"));
  EXPECT_TRUE(has(error("[tasks.a]\ndepends = [\"a\"]"), "a -> a"));
}

TEST(Toml, the_persons_own_file_has_no_tasks) {
  Result<Config> config = parse_config(
      "[tasks.t]\nrun = \"x\"",
      {.file = "config.toml", .origin = kOrigin, .owner = ConfigSource::Owner::person});
  ASSERT_FALSE(config);
  EXPECT_TRUE(has(config.error().what, "config.toml:1:2: tasks belong")) << config.error().what;
}

// ---- hostile files ----

TEST(Toml, nesting_is_an_error_and_not_a_crash) {
  EXPECT_TRUE(has(error("a = " + std::string(100'000, '[')), "nested"));
  std::string tables = "a = ";
  for (int i = 0; i < 50'000; ++i) tables += "{a=";
  EXPECT_TRUE(has(error(tables), "nested"));
  std::string dots = "[a";
  for (int i = 0; i < 300'000; ++i) dots += ".a";
  EXPECT_TRUE(has(error(dots + "]"), "too many dots"));
  EXPECT_TRUE(has(error(dots.substr(0, 16'000) + "]"), "unknown key"));
}

TEST(Toml, size_is_limited) {
  EXPECT_TRUE(has(error(std::string(kMaxConfigBytes + 1, '#')), "1 MiB"));
  EXPECT_TRUE(parse(std::string(kMaxConfigBytes, '#')));
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "[tasks.t" + std::to_string(i) + "]\nrun = \"x\"\n";
  EXPECT_TRUE(has(error(many), "too many"));
}

TEST(Toml, what_the_parser_thinks_impossible_is_an_error) {
  EXPECT_TRUE(has(error("ä = 1"), "belljar.toml:1:1: "));
  EXPECT_TRUE(has(error("[="), "belljar.toml:1:2: "));
  EXPECT_TRUE(has(error(std::string_view("[\0sandbox]", 10)), "belljar.toml:1:2: "));
}

TEST(Toml, bytes_that_are_no_text_are_errors) {
  EXPECT_TRUE(has(error("[sandbox]\nprofile = \"\xff\xfe\""), "belljar.toml:2:"));
  EXPECT_TRUE(has(error(std::string_view("[sandbox]\nmode = \"a\0b\"", 20)), "belljar.toml:2:"));
  EXPECT_TRUE(has(error("[sandbox]\nallow_read = [\"a\\u0000b\"]"), "NUL"));
}

TEST(Toml, what_a_file_holds_cannot_reach_the_terminal) {
  for (const char* text : {"\"\\u001b[2J\" = 1", "[sandbox]\nmode = \"\\u001b[2J\"",
                           "[tasks.\"\\u001b[2J\"]\nrun = \"x\""}) {
    std::string message = error(text);
    EXPECT_EQ(message.find('\x1b'), message.npos) << message;
  }
  EXPECT_LT(error(std::string(900'000, 'x') + " = 1").size(), 2100U);
}

TEST(Toml, a_wrong_group_is_named_with_its_place) {
  EXPECT_TRUE(has(error("[net_groups]\na = [\"b.test\", \"127.0.0.1\"]"),
                  "belljar.toml:2:16: a: \"127.0.0.1\" is the host's own loopback"));
  EXPECT_TRUE(has(error("[net_groups]\n\"a b\" = [\"c.test\"]"), "cannot be the name of a group"));
  EXPECT_TRUE(has(error("[net_groups]\na = []"), "belljar.toml:2:1: the group @a is empty"));
  EXPECT_TRUE(has(error("[net_groups]\na = 1"), "a: must be a list of strings"));
  EXPECT_TRUE(has(error("[net_groups]\na = [\"@b\"]\nb = [\"@a\"]"), "holds itself"));
  EXPECT_TRUE(
      has(error("[net_groups]\nnpm = [\"a.test\"]\n[sandbox]\nallow_net = [\"@nmp\"]"),
          "belljar.toml:4:1: allow_net: there is no group @nmp (hint: did you mean @npm?)"));
  EXPECT_TRUE(has(error("[tasks.t]\nrun = \"x\"\ndeny_net_hosts = [\"@nmp\"]"),
                  "belljar.toml:3:1: deny_net_hosts: there is no group @nmp"));
  EXPECT_TRUE(has(error("[profiles.p]\nallow_net = [\"@p\"]"), "there is no group @p"));
}

TEST(Toml, a_wrong_rule_is_named_with_its_place) {
  EXPECT_TRUE(has(error("[sandbox]\nallow_net = [\"a.test\", \"b.test:0\"]"),
                  "belljar.toml:2:24: allow_net: \"0\" is no port"));
  EXPECT_TRUE(has(error("[sandbox]\nallow_net = \"localhost\""), "localhost needs a port"));
  EXPECT_TRUE(has(error("[sandbox]\npublish = [\"80\"]"), "publish: \"80\" is not HOSTPORT:PORT"));
}

TEST(Toml, sessions_are_laid_over_what_was_set_before) {
  const Config config = good(
      "[session]\npython = \"./venv/bin/python\"\nmax_timeout = \"2m\"\nmax_output_kb = 64\n"
      "preload = []\nmax_total_memory_mb = \"unlimited\"\nworkdir = \"~/shared\"");
  SessionSettings under;
  under.shell = "sh";
  const SessionSettings settings = session_settings(config, under, "/home/ann");
  EXPECT_EQ(settings.python, config.folder + "/venv/bin/python");
  EXPECT_EQ(settings.shell, "sh");
  EXPECT_EQ(settings.max_timeout, std::chrono::minutes(2));
  EXPECT_EQ(settings.max_output, 64U * 1024);
  EXPECT_TRUE(settings.preload.empty());
  EXPECT_EQ(settings.workdir, "/home/ann/shared");
  EXPECT_FALSE(settings.max_total_memory_mb);
}

TEST(Toml, a_wrong_key_of_sessions_is_named_with_its_place) {
  EXPECT_TRUE(
      has(error("[session]\npyhton = \"x\""),
          "belljar.toml:2:1: unknown key \"pyhton\" in [session] (hint: did you mean python?)"));
  EXPECT_TRUE(has(error("[session]\nidle = \"soon\""), "belljar.toml:2:8: idle: not a time"));
  EXPECT_TRUE(has(error("[session]\nidle = \"unlimited\""), "idle: must have a limit"));
  EXPECT_TRUE(has(error("[session]\nmax_sessions = 0"), "max_sessions: must be between 1 and"));
  EXPECT_TRUE(has(error("[session]\nshell = \"\""), "shell: an empty text"));
  EXPECT_TRUE(has(error("[session]\npreload = 1"), "preload: must be a list of strings"));
  EXPECT_TRUE(has(error("[session]\npython = [\"a\", \"b\"]"), "python: must be one value"));
}

TEST(Toml, permissions_keep_the_order_of_the_file) {
  const Config config = good(
      "[permissions]\ndefault = \"deny\"\npython = \"auto\"\n"
      "shell = { \"*\" = \"ask\", \"git *\" = \"auto\", \"a *\" = \"deny\" }\n");
  ASSERT_TRUE(config.permissions.permissions);
  const Permissions& permissions = *config.permissions.permissions;
  EXPECT_EQ(permissions.otherwise, Permission::deny);
  const std::vector<PermissionRule> rules = {
      {"*", Permission::ask}, {"git *", Permission::automatic}, {"a *", Permission::deny}};
  EXPECT_EQ(permissions.tools.at("shell"), rules);
  EXPECT_EQ(permissions.decide("python", {.text = "1"}), Permission::automatic);
  EXPECT_TRUE(has(error("[permissions]\nshell = \"maybe\""), "belljar.toml:2:9: shell: must be"));
  EXPECT_TRUE(has(error("[permissions]\nshell = { a = 1 }"), "shell: must be auto, ask or deny"));
  EXPECT_TRUE(
      has(error("[permissions]\nshel = \"ask\""), "unknown tool \"shel\" in [permissions]"));
}

}  // namespace
}  // namespace belljar
