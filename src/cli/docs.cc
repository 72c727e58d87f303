// docs: docs/policy.md, from the tables of keys and profiles, the table of docs/hosts.md, from
// plans, and that of limits in docs/server.md, from their constants, so that they cannot say
// anything else than the program does. A test compares them.
#include <algorithm>
#include <cstdio>

#include "cli/help.h"
#include "cli/ladder.h"
#include "cli/limits_table.h"
#include "policy/profiles.h"
#include "policy/server_keys.h"
#include "policy/session_keys.h"

namespace belljar::cli {
namespace {

// A `|` would end a cell.
std::string cell(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string code(std::string_view text) { return "`" + cell(text) + "`"; }

std::string_view form(Kind kind) {
  switch (kind) {
    case Kind::flag:
      return "true or false";
    case Kind::choice:
      return "one of a list";
    case Kind::name:
      return "a word";
    case Kind::count:
      return "a number, or `unlimited`";
    case Kind::duration:
      return "a time, or `unlimited`";
    case Kind::path:
      return "a path";
    case Kind::tmp:
      return "`private` or a path";
    case Kind::paths:
      return "paths";
    case Kind::globs:
      return "paths; `*` `?` `[]` `**` match";
    case Kind::hosts:
      return "rules about hosts, or `@GROUP`";
    case Kind::ports:
      return "pairs of ports";
    case Kind::names:
      return "names; `*` matches";
    case Kind::assignments:
      return "assignments";
    case Kind::mounts:
      return "pairs of paths";
    case Kind::promises:
      return "promises";
  }
  return "";
}

std::string_view need_word(Need need) {
  switch (need) {
    case Need::required:
      return "required";
    case Need::best_effort:
      return "best effort";
    case Need::unasked:
      return "as asked";
  }
  return "";
}

std::string limit_word(const std::optional<std::uint64_t>& limit) {
  return limit ? std::to_string(*limit) : "none";
}

std::string reads_word(const Files& files) {
  std::string text = files.reads == Reads::everything ? "everything"
                     : files.reads == Reads::system   ? "system folders"
                                                      : "programs and libraries";
  if (files.toolchains) text += ", toolchains, `PATH`";
  for (const Grant& grant : files.grants)
    if (grant.access == Access::hide)
      text += (&grant == files.grants.data() ? "; not " : ", ") + code(grant.path);
  if (files.reads == Reads::everything && !files.other_homes) text += ", `/home`";
  if (files.reads == Reads::everything && !files.services) text += ", `/run`";
  return text;
}

std::string workdir_word(const Files& files) {
  if (files.writes_everything) return "as everything";
  std::string text = files.workdir_access == Access::write ? "read and write" : "read";
  if (!files.workdir_inside.empty()) text += ", at " + code(files.workdir_inside);
  return text;
}

std::string home_word(const Files& files) {
  if (files.home == Home::caller) return "yours";
  return files.home_inside.empty() ? "empty, private"
                                   : "empty, private, at " + code(files.home_inside);
}

std::string environment_word(const Environment& environment) {
  if (environment.everything) return "all of yours";
  // Each list of more names than a person reads is only counted; `explain` prints it.
  constexpr std::size_t kReadable = 10;
  std::string text = std::to_string(environment.pass.size()) + " names";
  if (environment.pass.size() <= kReadable) {
    text.clear();
    for (const std::string& name : environment.pass) text += (text.empty() ? "" : " ") + code(name);
  }
  if (environment.system_path_only) text += "; system entries of `PATH` only";
  return text;
}

void add_keys(std::string& text) {
  text +=
      "## Keys\n\n"
      "The same keys are flags of `exec` and `explain`, and keys of `belljar.toml`. A list adds up "
      "over all sources; of single values the flag wins. *May widen*: a project's own file cannot "
      "set it before the project is trusted.\n\n"
      "| flag | key | value | may widen | meaning |\n|---|---|---|---|---|\n";
  for (const Key& key : keys()) {
    std::string flag = "--" + std::string(key.flag);
    if (!key.value.empty()) flag.append("=").append(key.value);
    text += "| " + code(flag);
    if (key.letter != 0) text += ", " + code(std::string("-") + key.letter);
    text += " | " + code(key.name) + " | ";
    if (key.choices.empty()) text += form(key.kind);
    for (std::size_t i = 0; i < key.choices.size(); ++i)
      text += (i == 0 ? "" : ", ") + code(key.choices[i]);
    if (is_repeatable(key.kind)) text += "; repeatable";
    text.append(" | ").append(key.widens ? "yes" : "").append(" | ").append(cell(key.help));
    text += " |\n";
  }
}

void add_hosts(std::string& text) {
  text +=
      "\n## Rules about hosts\n\n"
      "`allow_net` makes the network those hosts and an own loopback, whatever the mode was: over "
      "`network = \"full\"` it narrows. `deny_net_hosts` wins over every allow; since the host's "
      "own network is not watched, it needs `allow_net`. A rule is `HOST[:PORT[-PORT]]`:\n\n"
      "| HOST | means | without a port |\n|---|---|---|\n"
      "| `example.com` | this name | 80 and 443 |\n"
      "| `*.example.com` | every name below it, not itself | 80 and 443 |\n"
      "| `192.0.2.7`, `2001:db8::1`, `[2001:db8::1]:443` | this address | any |\n"
      "| `10.1.0.0/16`, `[2001:db8::]/32:443` | every address of the range | any |\n"
      "| `localhost:8080` | the host's own loopback | refused |\n"
      "| `@NAME` | the rules of a group, from `[net_groups]` in `belljar.toml` or your own "
      "`config.toml` | as they say |\n\n"
      "- In `deny_net_hosts` no port means all of them.\n"
      "- Names are compared in one form: lower case, no last dot, A-labels "
      "(`bücher.example` is `xn--bcher-kva.example`). What is no host name is refused, and with it "
      "everything that some program takes for an address: `127.1`, `0x7f.1`, `2130706433`.\n"
      "- A name is checked again in the connection: the server that TLS (SNI) or HTTP (Host) asks "
      "for must be an allowed name. TLS without SNI is refused. Other protocols go by the "
      "addresses that the name had when it was resolved.\n"
      "- What an allowed name resolves to is refused where it is a loopback, link-local (the "
      "metadata services of clouds), private or multicast address or one of the host's own, also "
      "inside an IPv6 address (NAT64, 6to4), unless a rule for addresses allows it on that port. "
      "No range reaches the host's loopback.\n"
      "- A denied name says nothing about the address behind it, and a denied address is denied "
      "under every name.\n"
      "- A connection takes two descriptors of the process that runs belljar, up to six while much "
      "data is on its way, and each address and port of the last ten seconds one more. The "
      "connections of one jar have at most a quarter of what `ulimit -n` allows that process, and "
      "8,192; when three quarters are taken by whomever, no jar gets more. A `connect` beyond that "
      "fails at once with `ENOBUFS` (\"No buffer space available\"), and the report says why. What "
      "ends makes room.\n"
      "- `publish` makes a port of the guest reachable at the host's 127.0.0.1. It needs a "
      "network of the guest's own: `loopback` or `allow_net`.\n\n"
      "```toml\n"
      "[sandbox]\n"
      "allow_net = [\"@registries\", \"10.1.0.0/16:5432\"]\n"
      "deny_net_hosts = [\"telemetry.cdn.example\"]\n\n"
      "[net_groups]\n"
      "registries = [\"registry.example\", \"*.cdn.example:443\"]\n"
      "```\n\n"
      "A project that is not trusted may name hosts where the network was full, and no others "
      "where it was less; it may not publish, nor define a group that is yours or that your "
      "command names.\n";
}

void add_session(std::string& text) {
  text +=
      "\n## Sessions\n\n"
      "`[session]` in `belljar.toml` or your own `~/.config/belljar/config.toml` says how servers "
      "run sessions, and interpreter and shell of `belljar python` and `belljar shell`. A "
      "project's "
      "own needs trust.\n\n"
      "| key | default | meaning |\n|---|---|---|\n";
  for (const SessionKey& key : session_keys()) {
    const std::string usual = default_text(key);
    text += "| " + code(key.name) + " | " + (usual.empty() ? "" : code(usual)) + " | " +
            cell(key.help) + " |\n";
  }
}

void add_permissions(std::string& text) {
  text +=
      "\n## Permissions\n\n"
      "`[permissions]` says which tools a model may use through `belljar mcp` and `belljar serve`: "
      "`auto`, `ask` (a person is asked first) or `deny`, for each tool or by patterns, of which "
      "the last that matches decides. `default` is for the tools that are not named, and is "
      "`auto`. Where a tool has patterns and none matches, it is at least `ask`.\n\n"
      "```toml\n"
      "[permissions]\n"
      "default = \"auto\"\n"
      "write = { \"*\" = \"auto\", \"*.lock\" = \"ask\" }\n"
      "shell = { \"*\" = \"ask\", \"git *\" = \"auto\", \"git push*\" = \"deny\" }\n"
      "```\n\n"
      "`*` is any text, `?` one character. For `shell` patterns are advice and no boundary: a "
      "shell can be talked into anything, and what a command can reach is the sandbox's to say. A "
      "command that is several (`;`, `&&`, `|`, `$( )`, a redirection) is allowed by no pattern "
      "but `*`, nor is a program that is given variables. Of a file tool the path counts, for one "
      "in the workdir with the workdir before it "
      "and without: where a link leads is not looked at, `grep` shows lines of all that it "
      "searches, and what must not be read is hidden with `hide`. What a person "
      "shall approve may have 256 KiB. The file of a project that is not trusted can only make "
      "things stricter, and so can agent files (`agents/NAME.md`, `--agent`).\n";
}

void add_server(std::string& text) {
  text +=
      "\n## The server\n\n"
      "`[server]` in your own `config.toml`, or in a `belljar.toml` that you trust, says how "
      "`belljar serve` runs. Flags win over it.\n\n"
      "| key | default | meaning |\n|---|---|---|\n";
  for (const ServerKey& key : server_keys())
    text += "| " + code(key.name) + " | " + code(key.fallback) + " | " + cell(key.help) + " |\n";
}

// One row of a table that has a column for each profile.
template <class F>
void add_row(std::string& text, std::string_view name, F&& value) {
  text.append("| ").append(name);
  for (const Profile& profile : profiles()) text.append(" | ").append(value(profile.policy));
  text += " |\n";
}

void add_header(std::string& text) {
  text += "| ";
  for (const Profile& profile : profiles()) text += " | " + code(profile.name);
  text += " |\n|---";
  for ([[maybe_unused]] const Profile& profile : profiles()) text += "|---";
  text += "|\n";
}

void add_profiles(std::string& text) {
  text += "\n## Profiles\n\n";
  for (const Profile& profile : profiles())
    text += "- " + code(profile.name) + ": " + std::string(profile.purpose) + "\n";
  text += "\n";
  add_header(text);
  add_row(text, "reads", [](const Policy& p) { return reads_word(p.files); });
  add_row(text, "workdir", [](const Policy& p) { return workdir_word(p.files); });
  add_row(text, "home", [](const Policy& p) { return home_word(p.files); });
  add_row(text, "`/tmp`",
          [](const Policy& p) { return p.files.private_tmp ? "private" : "yours"; });
  add_row(text, "network", [](const Policy& p) { return std::string(name(p.network)); });
  add_row(text, "variables", [](const Policy& p) { return environment_word(p.environment); });
  add_row(text, "system calls", [](const Policy& p) {
    return p.syscalls == Syscalls::allow_list ? "allow-list" : "deny-list";
  });
  add_row(text, "memory, MB", [](const Policy& p) { return limit_word(p.limits.memory_mb); });
  add_row(text, "CPU, s", [](const Policy& p) { return limit_word(p.limits.cpu_secs); });
  add_row(text, "processes", [](const Policy& p) { return limit_word(p.limits.procs); });
  add_row(text, "open files", [](const Policy& p) { return limit_word(p.limits.open_fds); });
  add_row(text, "file size, MB", [](const Policy& p) { return limit_word(p.limits.file_sz_mb); });
}

void add_promises(std::string& text) {
  text +=
      "\n## Promises\n\n"
      "*Required*: belljar refuses to start where the host cannot keep it, unless the loss is "
      "accepted by name (`--accept-degraded`). *Best effort*: it starts and warns. *As asked*: "
      "required once a flag asks for it. With `--sandbox=on` every promise is required, with "
      "`--sandbox=full` every layer behind it as well.\n\n";
  add_header(text);
  for (std::size_t i = 0; i < kPromiseCount; ++i) {
    const auto promise = static_cast<Promise>(i);
    add_row(text, name(promise), [&](const Policy& p) { return need_word(p.need(promise)); });
  }
}

std::string policy_page() {
  std::string text =
      "<!-- Made by `belljar docs policy`; do not edit. -->\n"
      "# Policy reference\n\n"
      "What can be asked for. What a host makes of it is what `belljar explain` prints; why it was "
      "made so is in [architecture.md](architecture.md).\n\n";
  add_keys(text);
  add_hosts(text);
  add_session(text);
  add_permissions(text);
  add_server(text);
  add_profiles(text);
  add_promises(text);
  return text;
}

Result<int> print_document(const Arguments& arguments) {
  const std::string page = arguments.size() == 1 ? arguments[0] : "";
  std::string text = page == "policy" ? policy_page() : page == "hosts" ? ladder_table() : "";
  if (page == "limits") text = limits_table();
  if (text.empty()) return fail("docs needs the name of a page: policy, hosts or limits");
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

int docs(const Arguments& arguments) { return report(print_document(arguments)); }

}  // namespace belljar::cli
