#include "layers/seatbelt_startup.h"

namespace belljar::seatbelt {
namespace {

using Kind = Filter::Kind;
using enum Verdict;

// Of /System not /System/Volumes, where all files of the machine are a second time.
constexpr const char* kSystem[] = {
    "/System/Library", "/System/Applications", "/System/Cryptexes", "/System/iOSSupport",
    "/System/Volumes/Preboot/Cryptexes", "/usr", "/bin", "/sbin", "/etc", "/opt", "/nix",
    // Of /Library what is programs: the rest is settings and data of the machine's owner.
    "/Library/Apple", "/Library/Developer", "/Library/Frameworks", "/Library/Java", "/Library/Perl",
    "/Library/Python", "/Library/Ruby", "/Library/Fonts",
    // The loader's caches, time zones, which shell is sh, which Xcode is in use.
    "/var/db/dyld", "/var/db/timezone", "/var/select", "/var/db/xcode_select_link",
    "/Applications/Xcode.app/Contents/Developer"};

constexpr const char* kRuntime[] = {
    "/System/Library", "/System/Cryptexes", "/System/Volumes/Preboot/Cryptexes", "/usr/bin",
    "/usr/sbin", "/usr/lib", "/usr/libexec", "/usr/share", "/usr/local/bin", "/usr/local/sbin",
    "/usr/local/lib", "/bin", "/sbin", "/nix/store", "/nix/var/nix/profiles/default",
    // Where the git, make and python3 of /usr/bin really are.
    "/Library/Developer/CommandLineTools", "/var/db/xcode_select_link", "/var/db/dyld",
    "/var/db/timezone", "/var/select",
    // Of /etc only what has no say about people.
    "/etc/ssl", "/etc/localtime"};

// Homebrew and MacPorts run services as the person who installed them, so their data is readable
// to a guest of that person's.
constexpr const char* kSecrets[] = {"/opt/homebrew/var", "/opt/local/var", "/usr/local/var",
                                    "/etc/master.passwd"};

constexpr const char* kPersonal[] = {"/dev",
                                     "/System/Volumes/Data",
                                     "/Library/Keychains",
                                     "/etc/master.passwd",
                                     "/var/db/dslocal",
                                     "/var/root"};

Filter literal(const char* path) { return {Kind::literal, path}; }
Filter service(const char* name) { return {Kind::global_name, name}; }

// How many processors there are, which system this is, what uname says: nothing about processes
// (kern.proc, kern.procargs2).
Rule sysctls() {
  Rule rule{
      allow, {"sysctl-read"}, {}, "what the machine and its system are; no lists of processes"};
  for (const char* prefix : {"hw.", "machdep.cpu.", "kern.osvariant_", "sysctl.proc_"})
    rule.filters.push_back({Kind::sysctl_prefix, prefix});
  for (const char* name :
       {"kern.argmax", "kern.hostname", "kern.iossupportversion", "kern.maxfilesperproc",
        "kern.maxproc", "kern.ngroups", "kern.osproductversion", "kern.osrelease", "kern.ostype",
        "kern.osversion", "kern.secure_kernel", "kern.tcsm_available", "kern.usrstack64",
        "kern.version", "vm.loadavg"})
    rule.filters.push_back({Kind::sysctl, name});
  return rule;
}

}  // namespace

std::vector<Rule> startup_rules() {
  return {
      {deny,
       {"process-info*", "nvram*", "iokit-get-properties", "file-map-executable"},
       {},
       "not all of these are denied by default in every version"},
      {allow,
       {"process-fork"},
       {},
       "programs start programs; what they may start is a file's rule"},
      {allow,
       {"signal", "process-info*"},
       {{Kind::target, "same-sandbox"}},
       "its own processes, and no others"},
      sysctls(),
      {allow,
       {"mach-lookup"},
       {service("com.apple.system.opendirectoryd.libinfo"),
        service("com.apple.system.opendirectoryd.membership"),
        service("com.apple.system.notification_center")},
       "names of users and groups; the C library's word that the time zone has changed"},
      {allow,
       {"ipc-posix-shm-read-data"},
       {{Kind::ipc_regex, "^apple[.]shm[.]notification_center$"}},
       "the same, which is memory to read"},
      {allow,
       {"ipc-posix-sem*", "ipc-posix-shm*"},
       {{Kind::ipc_regex, "^/?(mp|psm)[-_]"}},
       "semaphores and shared memory by the names that Python's multiprocessing gives them"},
      {allow, {"pseudo-tty"}, {}, "terminals of its own"},
      {allow,
       {"file-read-data", "file-read-metadata"},
       {literal("/")},
       "the loader looks at it; the names in it can be seen"},
      {allow,
       {"file-read-metadata"},
       {literal("/tmp"), literal("/var"), literal("/etc"), literal("/private"),
        literal("/private/tmp"), literal("/private/var"), literal("/private/etc"), literal("/dev")},
       "links that every path begins with, and where they lead"},
  };
}

std::vector<Rule> device_rules() {
  const std::string terminals = "^/dev/ttys[0-9]+$";
  return {
      {allow,
       {"file-read*", "file-write-data"},
       {literal("/dev/null"),
        literal("/dev/zero"),
        literal("/dev/random"),
        literal("/dev/urandom"),
        literal("/dev/stdin"),
        literal("/dev/stdout"),
        literal("/dev/stderr"),
        {Kind::subpath, "/dev/fd"}},
       "devices"},
      {allow,
       {"file-read*", "file-write-data", "file-ioctl"},
       {literal("/dev/tty"), literal("/dev/ptmx"), {Kind::own_terminal, terminals}},
       "its terminal and those it makes; the person's other windows are none of its business"},
      {allow,
       {"file-ioctl"},
       {{Kind::regex, terminals}},
       "the size and mode of the terminal it was given, which is open already"},
      {deny,
       {"file-write-setugid"},
       {},
       "no set-id programs, which would run with more rights than the guest outside"},
  };
}

std::vector<Rule> network_rules(const Policy& policy) {
  std::vector<Rule> rules;
  if (policy.network == Network::loopback) {
    rules.push_back({allow,
                     {"network-outbound"},
                     {{Kind::remote_ip, "localhost:*"}},
                     "by where it leads: by its own address every connection would pass"});
    rules.push_back({allow,
                     {"network-bind", "network-inbound"},
                     {{Kind::local_ip, "localhost:*"}},
                     "servers of the guest's, for this machine only"});
  }
  if (policy.network != Network::full) return rules;
  rules.push_back({allow,
                   {"network-outbound"},
                   {{Kind::remote_ip, "*:*"}},
                   "any host; Unix sockets are files, and go by the rules about files"});
  rules.push_back({allow, {"network-bind", "network-inbound"}, {{Kind::local_ip, "*:*"}}, ""});
  rules.push_back(
      {allow, {"network-outbound"}, {literal("/private/var/run/mDNSResponder")}, "names of hosts"});
  rules.push_back({allow,
                   {"mach-lookup"},
                   {service("com.apple.SystemConfiguration.DNSConfiguration"),
                    service("com.apple.SystemConfiguration.configd"), service("com.apple.networkd"),
                    service("com.apple.trustd"), service("com.apple.trustd.agent")},
                   "which resolvers and proxies there are; whether a certificate is good"});
  rules.push_back({allow,
                   {"sysctl-read"},
                   {{Kind::sysctl_prefix, "net.routetable"}},
                   "the list of interfaces"});
  return rules;
}

std::span<const char* const> system_folders(Reads reads) {
  if (reads == Reads::system) return kSystem;
  if (reads == Reads::runtime) return kRuntime;
  return {};
}

std::span<const char* const> system_secrets() { return kSecrets; }

std::span<const char* const> personal_folders() { return kPersonal; }

}  // namespace belljar::seatbelt
