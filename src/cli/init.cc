// init: a belljar.toml to begin with. Everything in it is commented out, so that
// it means the defaults until someone changes it.
#include <fcntl.h>

#include <cstdio>

#include "base/fd.h"
#include "base/file.h"
#include "cli/configuration.h"
#include "cli/flags.h"
#include "policy/server_keys.h"
#include "policy/session_keys.h"

namespace belljar::cli {
namespace {

constexpr std::string_view kHead =
    R"(# What programs started by belljar in this folder may do. `belljar explain` shows
# what comes of it, `belljar config check` finds mistakes.
#
# Without `belljar trust` this file can narrow the policy, but not widen it.

[sandbox]
)";

constexpr std::string_view kTail = R"(
# Profiles of your own, over a built-in one or another of yours.
# [profiles.careful]
# extends = "restricted"
# network = "none"

# Tasks, started by `belljar run NAME`. They take every key of [sandbox]; their
# paths start at `dir`, which starts at this file.
# [tasks.test]
# description = "run the tests"
# run = "make test"
# depends = []
# deny_net = true

# Rules about hosts under one name: in allow_net, @registries stands for them.
# [net_groups]
# registries = ["registry.example", "*.cdn.example:443"]

# Which tools a model may use through `belljar mcp` and `belljar serve`: auto, ask (a person
# is asked first) or deny; of patterns the last that matches decides.
# [permissions]
# default = "auto"
# write = { "*" = "auto", "*.lock" = "ask" }
# shell = { "*" = "ask", "git *" = "auto", "git push*" = "deny" }
)";

constexpr std::string_view kSession = R"(
# How sessions run: `belljar python`, `belljar shell`, `belljar mcp` and `belljar serve`.
# These are the defaults. Needs `belljar trust`.
# [session]
)";

constexpr std::string_view kServer = R"(
# How `belljar serve` runs. Rather a matter for ~/.config/belljar/config.toml, or for the file
# that `belljar serve --config` names; here it needs `belljar trust`.
# [server]
)";

std::string example(const Key& key) {
  switch (key.kind) {
    case Kind::flag:
      return "true";
    case Kind::count:
      return "512";
    case Kind::duration:
      return "\"10m\"";
    case Kind::assignments:
      return R"({ NAME = "value" })";
    case Kind::choice:
      return "\"" + std::string(key.choices.front()) + "\"";
    case Kind::name:
      return std::string("\"") + kDefaultProfile + "\"";
    case Kind::tmp:
      return "\"private\"";
    case Kind::path:
      return "\"./folder\"";
    case Kind::promises:
      return "[\"" + std::string(key.choices.front()) + "\"]";
    default:
      return "[]";
  }
}

// The default where there is one that can be written down.
std::string example(const SessionKey& key) {
  std::string usual = default_text(key);
  if (!usual.empty()) return usual;
  return key.kind == Kind::path ? "\"./folder\"" : "4096";
}

std::string example(const ServerKey& key) {
  return key.kind == Kind::path ? "\"./" + std::string(key.name) + "\"" : std::string(key.fallback);
}

template <class Keys>
void add_keys(std::string& text, const Keys& all, std::string_view gap) {
  for (const auto& key : all)
    text.append(gap)
        .append("# ")
        .append(key.help)
        .append("\n# ")
        .append(key.name)
        .append(" = ")
        .append(example(key))
        .append("\n");
}

std::string starting_file() {
  std::string text(kHead);
  add_keys(text, keys(), "\n");
  text.append(kTail).append(kSession);
  add_keys(text, session_keys(), "");
  text.append(kServer);
  add_keys(text, server_keys(), "");
  return text;
}

Result<int> run_init(const Arguments& arguments) {
  if (!arguments.empty()) return fail("unexpected argument " + arguments[0], 0, "belljar init");
  const std::string path = this_caller().cwd + "/belljar.toml";
  // O_EXCL: neither an existing file nor a symlink is written to.
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) return fail("create " + path, errno, errno == EEXIST ? "edit it instead" : "");
  const std::string text = starting_file();
  if (!write_all(file.get(), text)) return fail("write " + path, errno);
  std::printf("made %s\n", path.c_str());
  return 0;
}

}  // namespace

int init(const Arguments& arguments) { return report(run_init(arguments)); }

}  // namespace belljar::cli
