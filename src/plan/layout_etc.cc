#include "plan/layout_etc.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"

namespace belljar {
namespace {

void set_text(Layout& layout, Reads reads, const char* path, std::string text) {
  // A link there (systemd-resolved's) may lead to where the guest sees nothing.
  char* real = ::realpath(path, nullptr);
  const std::string inside = reads == Reads::runtime || real == nullptr ? path : real;
  std::free(real);
  auto known = std::ranges::find(layout.texts, inside, &Text::inside);
  if (known != layout.texts.end())
    known->content = std::move(text);
  else
    layout.texts.push_back({inside, std::move(text)});
}

}  // namespace

void add_minimal_etc(Layout& layout, bool is_root) {
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  std::string users = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
  std::string groups = "nogroup:x:65534:\n";
  if (!is_root) {
    users += "sandbox:x:" + uid + ":" + gid + ":sandbox:" + layout.home + ":/bin/sh\n";
    groups += "sandbox:x:" + gid + ":\n";
  }
  layout.texts.push_back({"/etc/passwd", users});
  layout.texts.push_back({"/etc/group", groups});
  layout.texts.push_back({"/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"});
  layout.texts.push_back({"/etc/resolv.conf", ""});
  layout.texts.push_back({"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"});
}

// Names are the broker's. Those of the host's own file would lead to addresses that it
// has not given out, and other sources of names are not reached.
void lead_names_to_broker(Layout& layout, Reads reads) {
  set_text(layout, reads, "/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n");
  set_text(layout, reads, "/etc/resolv.conf",
           "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n");
  std::string sources;
  std::string_view rest;
  const std::string hosts_own = read_text("/etc/nsswitch.conf").value_or("");
  for (rest = hosts_own; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (!line.starts_with("hosts:")) sources.append(line).append("\n");
  }
  set_text(layout, reads, "/etc/nsswitch.conf", sources + "hosts: files dns\n");
}

// The jar's uid has a name inside, as every user has.
void add_jar_user(Layout& layout) {
  for (auto [path, append] : {std::pair{"/etc/passwd", Text::Append::user},
                              std::pair{"/etc/group", Text::Append::group}}) {
    auto text = std::ranges::find(layout.texts, path, &Text::inside);
    if (text == layout.texts.end()) {
      std::optional<std::string> hosts_own = read_text(path);
      if (!hosts_own) continue;
      if (!hosts_own->ends_with('\n')) hosts_own->push_back('\n');
      text = layout.texts.insert(text, {path, *hosts_own});
    }
    text->append = append;
  }
}

}  // namespace belljar
