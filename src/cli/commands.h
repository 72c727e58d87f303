// The commands: one table, from which come the dispatch, the help, the shell
// completions and the man pages. The flags of a policy are not here: they come
// from the table of keys (policy/keys.h).
#pragma once

#include <span>
#include <string_view>

#include "cli/cli.h"

namespace belljar::cli {

// What a shell offers for a value.
enum class Offer { nothing, file, folder, profile, task, command };

struct FlagHelp {
  std::string_view name;
  char letter;             // a short form, or 0
  std::string_view value;  // what the help calls its value; empty: it takes none
  std::string_view help;   // one sentence
  Offer offer = Offer::nothing;
  std::span<const std::string_view> choices = {};
};

enum class Accepts {
  own_flags,  // and no others
  policy,     // the flags of a policy too
  program,    // the same, and then a program with arguments of its own
};

struct Subcommand {
  std::string_view name;
  std::string_view alias;
  std::string_view usage;    // what follows the name
  std::string_view purpose;  // one line
  int (*run)(const Arguments&);
  Accepts accepts = Accepts::own_flags;
  std::span<const FlagHelp> flags = {};
  std::string_view more = {};                      // examples and what else must be said
  std::span<const std::string_view> choices = {};  // of its first argument
  Offer offer = Offer::nothing;                    // the same, where it is no fixed list
  bool hidden = false;                             // for our own scripts
};

inline constexpr std::string_view kColors[] = {"auto", "always", "never"};
inline constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};
inline constexpr std::string_view kManPages[] = {"belljar", "belljar-exec", "belljar.toml"};
inline constexpr std::string_view kDocuments[] = {"policy", "hosts", "limits"};

// Every command has these.
inline constexpr FlagHelp kGlobalFlags[] = {
    {"help", 'h', "", "say how it is used, and end"},
    {"version", 'V', "", "say which version this is, and end"},
    {"quiet", 'q', "", "print no warnings; errors are always printed"},
    {"verbose", 'v', "", "print losses of depth too, and how long each step of a launch took"},
    {"color", 0, "WHEN", "auto, always or never; auto is: on a terminal, without NO_COLOR",
     Offer::nothing, kColors},
};

inline constexpr FlagHelp kExecFlags[] = {
    {"report", 0, "FILE", "write how the program ended and what was enforced as JSON", Offer::file},
};
inline constexpr FlagHelp kExplainFlags[] = {
    {"why", 0, "PATH|HOST[:PORT]|'$NAME'",
     "which rule decides about this one, and which flag would change it", Offer::file},
    {"platform", 0, "linux|macos", "as it would be on macOS, on any host"},
    {"json", 0, "", "print JSON"},
};
inline constexpr FlagHelp kDoctorFlags[] = {
    {"verify", 0, "PROFILE", "try to break the profile here, and say what held", Offer::profile},
    {"json", 0, "", "print JSON"},
};

inline constexpr FlagHelp kPythonFlags[] = {
    {"code", 'c', "CODE", "run this"},
    {"python", 0, "PATH", "the interpreter: a name in the guest's PATH, or a path"},
    {"json", 0, "", "print the whole answer as JSON, at the end"},
};

inline constexpr FlagHelp kShellFlags[] = {
    {"command", 'c', "COMMAND", "run this, and end"},
    {"json", 0, "", "print the whole answer as JSON, at the end"},
};

inline constexpr std::string_view kPermissions[] = {"auto", "ask", "deny"};
inline constexpr FlagHelp kServeFlags[] = {
    {"listen", 0, "ADDRESS:PORT|unix:PATH", "listen here instead of 127.0.0.1:8077 (repeatable)"},
    {"allow-remote", 0, "", "the address may be one that others can reach"},
    {"no-tenant-isolation", 0, "",
     "serve although the policy lets a session reach the files of all others, as --profile=open "
     "does"},
    {"config", 0, "FILE", "read this file instead of yours and the project's", Offer::file},
    {"token-file", 0, "FILE", "the tokens; made with one in it if it is not there", Offer::file},
    {"skills-dir", 0, "DIR", "where skills are kept", Offer::folder},
    {"permission", 0, "WHAT", "auto, ask or deny: what a tool may do at most", Offer::nothing,
     kPermissions},
    {"agent", 0, "NAME", "also keep to the permissions of this agent file"},
    {"agents", 0, "DIR",
     "where agent files are, of which a request may name one; without it in agents/ of the "
     "workspace and of your settings",
     Offer::folder},
    {"audit", 0, "FILE", "write what was asked, decided and done there; `none`: nowhere",
     Offer::file},
};

inline constexpr FlagHelp kMcpFlags[] = {
    {"workspace", 0, "DIR", "the folder that all sessions work in; without it each has a fresh one",
     Offer::folder},
    {"permission", 0, "WHAT",
     "auto, ask or deny: what a tool may do at most, whatever other settings say", Offer::nothing,
     kPermissions},
    {"agent", 0, "NAME", "also keep to the permissions of this agent file"},
    {"agents", 0, "DIR",
     "where agent files are; without it in agents/ of the workspace and of your settings",
     Offer::folder},
    {"audit", 0, "FILE",
     "write what was asked, decided and done there; `none`: nowhere (default: in your state "
     "folder)",
     Offer::file},
};

inline constexpr std::string_view kScopes[] = {"once", "tool", "pattern", "same"};
inline constexpr std::string_view kApprovalsWords[] = {"list", "approve", "deny"};
inline constexpr FlagHelp kApprovalsFlags[] = {
    {"json", 0, "", "with list: print JSON"},
    {"scope", 0, "SCOPE",
     "with approve: what the yes is for, see below; once unless a pattern is given", Offer::nothing,
     kScopes},
    {"pattern", 0, "PATTERN",
     "with approve: commands of this tool that match it, until the session ends"},
    {"message", 0, "TEXT", "a word to the model"},
};

inline constexpr std::string_view kSessionsWords[] = {"list", "attach", "kill"};
inline constexpr FlagHelp kSessionsFlags[] = {
    {"socket", 0, "PATH", "the server's local socket, where it is not in its usual place",
     Offer::file},
    {"shell", 0, "", "with attach: its shell, and not its Python"},
    {"json", 0, "", "with list: print JSON"},
};

inline constexpr FlagHelp kJsonFlag[] = {{"json", 0, "", "print JSON"}};
inline constexpr FlagHelp kTrustFlags[] = {
    {"list", 0, "", "list the files that are trusted"},
    {"revoke", 0, "", "trust the file no longer"},
};
inline constexpr std::string_view kConfigWords[] = {"check", "schema"};
inline constexpr std::string_view kProfileWords[] = {"list", "show"};

inline constexpr Subcommand kSubcommands[] = {
    {.name = "exec",
     .alias = "x",
     .usage = "[FLAGS] [--] PROGRAM [ARGUMENTS]",
     .purpose = "run a program in a jar",
     .run = exec,
     .accepts = Accepts::program,
     .flags = kExecFlags,
     .more = "Without flags the profile is developer. With --deny-* or --allow-* and no\n"
             "--profile it is open: only what is denied is denied, all your other files can\n"
             "be read and changed, and an allow denies the rest of its kind.\n"
             "\n"
             "Exit codes\n"
             "  the program's own, or\n"
             "  124    it was ended at its timeout\n"
             "  125    belljar failed: a wrong flag, or a sandbox that this host cannot build\n"
             "  126    the program cannot be executed\n"
             "  127    the program was not found\n"
             "  128+N  signal N ended it\n"
             "\n"
             "Examples\n"
             "  belljar exec -- python3 unknown.py\n"
             "  belljar exec --network=none --extra-read=/data -- ./analyse /data/in.csv\n"
             "  belljar exec --hide=.env --protect=.git -- npm install\n"
             "  belljar exec --profile=developer --deny-write --allow-write=build -- make\n"
             "  belljar exec --allow-net=registry.example --allow-net=localhost:5432 -- ./app\n"},
    {.name = "explain",
     .alias = "",
     .usage = "[FLAGS]",
     .purpose = "say what would be enforced here, and what not and why",
     .run = explain,
     .accepts = Accepts::policy,
     .flags = kExplainFlags,
     .more = "Takes the flags of exec, starts nothing and changes nothing.\n"
             "\n"
             "Examples\n"
             "  belljar explain --profile=public-bot\n"
             "  belljar explain --why ~/.ssh/id_rsa\n"
             "  belljar explain --allow-net='*.example.com' --why example.com:443\n"
             "  belljar explain --platform=macos --profile=restricted\n"},
    {.name = "doctor",
     .alias = "",
     .usage = "[FLAGS]",
     .purpose = "say what this host can enforce, found by trying it",
     .run = doctor,
     .flags = kDoctorFlags,
     .more = "Examples\n"
             "  belljar doctor\n"
             "  belljar doctor --verify public-bot\n"},
    {.name = "run",
     .alias = "",
     .usage = "[FLAGS] TASK [-- ARGUMENTS]",
     .purpose = "run a task of belljar.toml, after the tasks it depends on",
     .run = run,
     .accepts = Accepts::policy,
     .flags = kExecFlags,
     .more = "Flags add to what the task says: denies and allows add up, other values win.\n"
             "\n"
             "Examples\n"
             "  belljar run build\n"
             "  belljar run --network=none test -- --verbose\n",
     .offer = Offer::task},
    {.name = "python",
     .alias = "",
     .usage = "[FLAGS] [-c CODE | FILE [ARGUMENTS] | -]",
     .purpose = "run Python in a session",
     .run = python,
     .accepts = Accepts::policy,
     .flags = kPythonFlags,
     .more =
         "The value of a last expression is shown, as in a notebook; a FILE is run as a script.\n"
         "Without code it asks for it, statement by statement; ^C stops one, ^D ends. Figures\n"
         "become files in /tmp whose paths are shown. The code has no standard input: for a\n"
         "program that reads some, belljar exec -- python3 FILE.\n"
         "\n"
         "Examples\n"
         "  belljar python -c '2 ** 100'\n"
         "  belljar python --profile=restricted --json analysis.py data.csv\n",
     .offer = Offer::file},
    {.name = "shell",
     .alias = "",
     .usage = "[FLAGS] [-c COMMAND]",
     .purpose = "a shell in a jar",
     .run = shell,
     .accepts = Accepts::policy,
     .flags = kShellFlags,
     .more = "Examples\n"
             "  belljar shell\n"
             "  belljar shell --profile=restricted -c 'make test'\n"},
    {.name = "serve",
     .alias = "",
     .usage = "[FLAGS]",
     .purpose = "serve sessions over HTTP",
     .run = serve,
     .accepts = Accepts::policy,
     .flags = kServeFlags,
     .more = "Listens on 127.0.0.1:8077 and on a socket in your runtime folder, by which belljar\n"
             "sessions and approvals find it; with --listen there and on that socket. Requests\n"
             "carry a token of the token file, on the socket too; those two commands use a key\n"
             "that the server leaves for its owner. / describes the requests.\n"
             "\n"
             "Examples\n"
             "  belljar serve --profile=restricted\n"
             "  belljar serve --listen=unix:/run/user/1000/agents.sock --network=none\n"},
    {.name = "mcp",
     .alias = "",
     .usage = "[FLAGS]",
     .purpose = "offer sessions as tools to an MCP client, on standard input and output",
     .run = mcp,
     .accepts = Accepts::policy,
     .flags = kMcpFlags,
     .more = "An MCP client starts it. Each connection has a session of its own.\n"
             "\n"
             "Examples\n"
             "  belljar mcp --profile=restricted\n"
             "  belljar mcp --workspace=. --network=none --permission=ask\n"},
    {.name = "approvals",
     .alias = "",
     .usage = "[list | approve ID | deny ID]",
     .purpose = "decide about the calls that wait for a person",
     .run = approvals,
     .flags = kApprovalsFlags,
     .more =
         "Without a word it shows each call as it comes, and asks. list says who asks: the name\n"
         "of a token, and the agent if one was named. It exits with 1 when a server could not\n"
         "be asked.\n"
         "\n"
         "Scopes of a yes\n"
         "  once     this call\n"
         "  tool     every call of this tool, until the session ends\n"
         "  pattern  commands of this tool that all match --pattern, until the session ends\n"
         "  same     the very same commands of this tool, until the session ends\n"
         "\n"
         "Examples\n"
         "  belljar approvals\n"
         "  belljar approvals approve a_0123\n"
         "  belljar approvals approve a_0123 --scope=tool\n"
         "  belljar approvals approve a_0123 --scope=same\n"
         "  belljar approvals approve a_0123 --pattern='git *'\n"
         "  belljar approvals deny a_0123 --message='use the test database'\n",
     .choices = kApprovalsWords},
    {.name = "sessions",
     .alias = "",
     .usage = "list | attach ID | kill ID",
     .purpose = "list the sessions of a running `belljar serve`, use one, or end one",
     .run = sessions,
     .flags = kSessionsFlags,
     .more = "A session of a token is NAME@TOKEN, as list shows it.\n"
             "\n"
             "attach is a prompt of the session's Python or shell. ^C stops what you began there\n"
             "and nothing of others, whose calls yours wait for. ^D or exit leaves; the session\n"
             "goes on.\n"
             "\n"
             "Examples\n"
             "  belljar sessions list\n"
             "  belljar sessions attach s_0123@ann --shell\n",
     .choices = kSessionsWords},
    {.name = "tasks",
     .alias = "",
     .usage = "[FLAGS]",
     .purpose = "list the tasks of belljar.toml with their policies",
     .run = tasks,
     .flags = kJsonFlag},
    {.name = "init",
     .alias = "",
     .usage = "",
     .purpose = "write a commented belljar.toml here",
     .run = init},
    {.name = "trust",
     .alias = "",
     .usage = "[FLAGS] [FILE]",
     .purpose = "accept what a project's belljar.toml asks for, as it is now",
     .run = trust,
     .flags = kTrustFlags,
     .more = "Until then a project can only narrow what you allow. Changing a byte of the\n"
             "file ends the trust.\n",
     .offer = Offer::file},
    {.name = "config",
     .alias = "",
     .usage = "check [FILE] | schema",
     .purpose = "check a belljar.toml, or print the JSON Schema of one",
     .run = config,
     .choices = kConfigWords},
    {.name = "profile",
     .alias = "",
     .usage = "list | show NAME",
     .purpose = "list the profiles, or show one",
     .run = profile,
     .flags = kJsonFlag,
     .choices = kProfileWords},
    {.name = "help",
     .alias = "",
     .usage = "[COMMAND]",
     .purpose = "say how a command is used",
     .run = help,
     .offer = Offer::command},
    {.name = "completion",
     .alias = "",
     .usage = "bash|zsh|fish",
     .purpose = "print a script that teaches a shell to complete belljar's words",
     .run = completion,
     .more = "Examples\n"
             "  source <(belljar completion bash)\n"
             "  belljar completion zsh > ~/.zfunc/_belljar    # a folder of your fpath\n"
             "  belljar completion fish > ~/.config/fish/completions/belljar.fish\n",
     .choices = kShells},
    {.name = "man",
     .alias = "",
     .usage = "[PAGE]",
     .purpose = "print a man page, as roff",
     .run = man,
     .choices = kManPages,
     .hidden = true},
    {.name = "docs",
     .alias = "",
     .usage = "policy|hosts|limits",
     .purpose = "print a page of docs/ that is made from the tables",
     .run = docs,
     .choices = kDocuments,
     .hidden = true},
};

const Subcommand* find_subcommand(std::string_view name);

// Whether a flag as it was written, without a `=value` in it, is followed by one.
bool takes_value(std::string_view flag, const Subcommand* command);

}  // namespace belljar::cli
