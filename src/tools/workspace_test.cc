#include "tools/workspace.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/workspace.h"
#include "tools/beneath.h"
#include "tools/glob.h"
#include "tools/write.h"

namespace belljar::tools {
namespace {

namespace fs = std::filesystem;
using belljar::testing::set_mode;

class WorkspaceTest : public ::testing::Test {
 protected:
  // The content, or the name of the failure.
  static std::string get(const Workspace& workspace, std::string_view path) {
    Result<OpenFile> file = workspace.open_file("read", path);
    if (!file) {
      EXPECT_FALSE(file.error().message().empty());
      return std::string(name(file.error().kind));
    }
    char buffer[100];
    const ssize_t n = ::read(file->fd.get(), buffer, sizeof buffer);
    return {buffer, static_cast<std::size_t>(n < 0 ? 0 : n)};
  }
  std::string get(std::string_view path) const { return get(folders_.open(), path); }

  belljar::testing::WorkspaceFolders folders_;
};

TEST_F(WorkspaceTest, paths_are_those_of_the_guest) {
  folders_.folder("a/b");
  folders_.inside.write("a/b/file", "x");
  for (const char* path :
       {"a/b/file", "/workspace/a/b/file", "./a//b/./file", "a/../a/b/file", "a/b/../b/file",
        "/workspace/../workspace/a/b/file", "../workspace/a/b/file"})
    EXPECT_EQ(get(path), "x") << path;
  EXPECT_EQ(get((folders_ / "a/b/file").string()), "outside");  // the host's
}

TEST_F(WorkspaceTest, what_is_outside_is_refused) {
  for (const std::string& path :
       {std::string("/etc/passwd"), std::string("../etc/passwd"), std::string(".."),
        std::string("/"), std::string("a/../../../../etc/passwd"), folders_.outside.path(),
        std::string("/workspace2"), std::string("/proc/self/environ")})
    EXPECT_TRUE(get(path) == "outside" || get(path) == "not_found") << path << " " << get(path);
  EXPECT_EQ(get("/etc/passwd"), "outside");
  EXPECT_EQ(get("../etc/passwd"), "outside");
}

TEST_F(WorkspaceTest, the_message_says_where_one_may_go) {
  const Result<OpenFile> file = folders_.open().open_file("read", "/etc/passwd");
  EXPECT_NE(file.error().message().find("/workspace"), std::string::npos);
}

TEST_F(WorkspaceTest, arguments_that_are_no_path_are_refused) {
  EXPECT_EQ(get(""), "bad_argument");
  EXPECT_EQ(get(std::string_view("a\0b", 3)), "bad_argument");
  EXPECT_EQ(get(std::string(5000, 'a')), "bad_argument");
  EXPECT_EQ(get(std::string(300, 'a')), "bad_argument");
  EXPECT_EQ(get("missing"), "not_found");
  folders_.inside.write("file", "x");
  EXPECT_EQ(get("file/below"), "not_a_folder");
  EXPECT_EQ(get("."), "not_a_file");
  EXPECT_EQ(get("/workspace"), "not_a_file");
}

TEST_F(WorkspaceTest, symlinks_lead_where_the_guest_would_get) {
  folders_.folder("a");
  folders_.inside.write("a/file", "x");
  folders_.link("relative", "a/file");
  folders_.link("absolute", "/workspace/a/file");
  folders_.link("folder", "a");
  folders_.link("a/up", "../a/../a/file");
  folders_.link("twice", "relative");
  for (const char* path : {"relative", "absolute", "folder/file", "a/up", "twice", "folder/up"})
    EXPECT_EQ(get(path), "x") << path;
  // `..` after a symlink is that of the folder it leads to, as with the kernel.
  folders_.folder("deep/er");
  folders_.inside.write("deep/here", "y");
  folders_.link("short", "deep/er");
  EXPECT_EQ(get("short/../here"), "y");
}

TEST_F(WorkspaceTest, symlinks_that_lead_out_are_refused) {
  folders_.link("file", folders_.outside.path() + "/secret");
  folders_.link("folder", folders_.outside.path());
  folders_.link("up", "../" + fs::path(folders_.outside.path()).filename().string());
  folders_.link("root", "/");
  folders_.link("hop", "folder");
  for (const char* path : {"file", "folder/secret", "up/secret", "root/etc/passwd", "hop/secret"}) {
    EXPECT_EQ(get(path), "outside") << path;
  }
  // The control: an ordinary open goes there.
  EXPECT_EQ(folders_.inside.read("file"), "the secret\n");
}

TEST_F(WorkspaceTest, magic_links_are_refused) {
  const Fd secret(::open((folders_.outside.path() + "/secret").c_str(), O_RDONLY | O_CLOEXEC));
  folders_.link("fd", "/proc/self/fd/" + std::to_string(secret.get()));
  folders_.link("cwd", "/proc/self/cwd");
  EXPECT_EQ(folders_.inside.read("fd"), "the secret\n");  // the control
  EXPECT_EQ(get("fd"), "outside");
  EXPECT_EQ(get("cwd/x"), "outside");
  // Even where /proc itself is shown.
  const Workspace with_proc = folders_.open({{.inside = "/proc", .outside = "/proc"}});
  EXPECT_NE(get(with_proc, "fd"), "the secret\n");
  EXPECT_NE(get(with_proc, "/proc/self/root/etc/passwd").substr(0, 5), "root:");
}

TEST_F(WorkspaceTest, loops_of_symlinks_end) {
  folders_.link("self", "self");
  folders_.link("a", "b");
  folders_.link("b", "a");
  folders_.link("grow", "grow/grow");
  for (const char* path : {"self", "a", "grow", "a/x"}) EXPECT_EQ(get(path), "bad_argument");
}

TEST_F(WorkspaceTest, what_is_no_file_is_refused_and_does_not_hang) {
  ASSERT_EQ(::mkfifo((folders_ / "fifo").c_str(), 0600), 0);
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = folders_ / "socket";
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(get("fifo"), "not_a_file");
  EXPECT_EQ(get("socket"), "not_a_file");
  EXPECT_EQ(get(folders_.open({{.inside = "/dev", .outside = "/dev"}}), "/dev/zero"), "not_a_file");
}

TEST_F(WorkspaceTest, names_may_hold_any_bytes) {
  for (const std::string name : {"new\nline", "\xff\xfe", " ", "-rf", "\x1b[31m", "a\\b", "..."}) {
    folders_.inside.write(name, "x");
    EXPECT_EQ(get(name), "x");
  }
  const Result<OpenFile> missing = folders_.open().open_file("read", "no\n\x1b[31m");
  EXPECT_EQ(missing.error().message().find('\x1b'), std::string::npos);
}

TEST_F(WorkspaceTest, deep_paths_work_and_end) {
  std::string deep;
  for (int i = 0; i < 500; ++i) deep += "d/";
  folders_.folder(deep);
  folders_.inside.write(deep + "file", "x");
  EXPECT_EQ(get(deep + "file"), "x");
  std::string wandering;
  for (int i = 0; i < 900; ++i) wandering += "d/..";
  EXPECT_NE(get(wandering + "/x"), "x");
}

TEST_F(WorkspaceTest, the_longest_root_wins) {
  belljar::testing::Folder skills;
  skills.write("file", "of the skills");
  folders_.folder("skills");
  folders_.inside.write("skills/file", "beneath");
  folders_.link("link", "skills/file");
  const Workspace workspace =
      folders_.open({{.inside = "/workspace/skills", .outside = skills.path()}});
  for (const char* path : {"skills/file", "link", "skills/../skills/file"})
    EXPECT_EQ(get(workspace, path), "of the skills") << path;
  EXPECT_EQ(get("skills/file"), "beneath");  // without that root
  const Result<Place> place = workspace.find("read", "link");
  EXPECT_EQ(place->inside, "/workspace/skills/file");
  EXPECT_FALSE(place->root->root.writable);
}

TEST_F(WorkspaceTest, a_protected_folder_stays_so_by_any_way) {
  folders_.folder("a/.git");
  folders_.inside.write("a/.git/config", "x");
  folders_.inside.write("a/.env", "y");
  const Workspace workspace =
      folders_.open({{.inside = "/workspace/a/.git", .outside = folders_ / "a/.git"},
                     {.inside = "/workspace/a/.env", .outside = folders_ / "a/.env"}});
  EXPECT_TRUE(workspace.find("read", "a/../a")->root->root.writable);
  EXPECT_FALSE(workspace.find("read", "a/.git/config")->root->root.writable);
  EXPECT_FALSE(workspace.find("read", "a/.env")->root->root.writable);
  // A guest cannot rename a mount point, but the folder that it is in.
  fs::rename(folders_ / "a", folders_ / "b");
  folders_.link("link", "b/.git");
  EXPECT_EQ(get(workspace, "b/.git/config"), "x");
  EXPECT_FALSE(workspace.find("read", "b/.git/config")->root->root.writable);
  EXPECT_FALSE(workspace.find("read", "link/config")->root->root.writable);
  EXPECT_FALSE(workspace.find("read", "b/.env")->root->root.writable);
}

TEST_F(WorkspaceTest, a_hidden_place_is_hidden_by_any_way) {
  folders_.folder("a/keys");
  folders_.inside.write("a/keys/key", "x");
  const Workspace workspace = folders_.open(
      {{.inside = "/workspace/a/keys", .outside = folders_ / "a/keys", .hidden = true}});
  EXPECT_EQ(get(workspace, "a/keys/key"), "denied_by_rule");
  fs::rename(folders_ / "a", folders_ / "b");
  EXPECT_EQ(get(workspace, "b/keys/key"), "denied_by_rule");
  EXPECT_EQ(get("b/keys/key"), "x");  // the control
}

TEST_F(WorkspaceTest, rules_bind_where_a_path_leads) {
  folders_.inside.write("key.pem", "x");
  folders_.inside.write("other", "y");
  folders_.link("link", "key.pem");
  const Workspace workspace =
      folders_.open({}, *PathRules::make({{PathRule::Says::deny, "*.pem"}}));
  EXPECT_EQ(get(workspace, "key.pem"), "denied_by_rule");
  EXPECT_EQ(get(workspace, "link"), "denied_by_rule");
  EXPECT_EQ(get(workspace, "missing.pem"), "denied_by_rule");  // nothing is learnt
  EXPECT_EQ(get(workspace, "other"), "y");
}

TEST_F(WorkspaceTest, roots_must_be_there_and_absolute) {
  EXPECT_FALSE(Workspace::open({{.inside = "w", .outside = "/tmp"}}, "/"));
  EXPECT_FALSE(Workspace::open({{.inside = "/w", .outside = "tmp"}}, "/"));
  EXPECT_FALSE(Workspace::open({{.inside = "/w", .outside = "/not/there"}}, "/"));
  EXPECT_FALSE(Workspace::open({{.inside = "/w", .outside = "/tmp"}}, "w"));
}

TEST_F(WorkspaceTest, root_reads_as_others_what_the_guest_sees_as_others) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can read what is not its own";
  folders_.inside.write("mine", "x");
  folders_.inside.write("everybodys", "y");
  folders_.folder("closed");
  folders_.inside.write("closed/file", "z");
  set_mode(folders_.inside.path(), 0755);
  set_mode(folders_ / "mine", 0640);
  set_mode(folders_ / "everybodys", 0644);
  set_mode(folders_ / "closed", 0700);
  const Workspace workspace = *Workspace::open(
      {{.inside = "/w", .outside = folders_.inside.path(), .rights = Rights::everybodys}}, "/w");
  EXPECT_EQ(get(workspace, "everybodys"), "y");
  EXPECT_EQ(get(workspace, "mine"), "no_permission");
  EXPECT_EQ(get(workspace, "closed/file"), "no_permission");
  EXPECT_EQ(get("mine"), "x");  // the control, and root is root again
  EXPECT_EQ(get("closed/file"), "z");
}

// A guest whose folder is root's own is not root for that.
TEST_F(WorkspaceTest, root_uses_a_folder_with_the_rights_of_its_owner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can use what is not its own";
  for (const uid_t owner : {0U, 12345U}) {
    const belljar::testing::Folder folder;
    auto own = [&](const std::string& name, uid_t uid, unsigned mode) {
      const std::string path = folder.path() + "/" + name;
      ASSERT_EQ(::chown(path.c_str(), uid, uid), 0);
      set_mode(path, mode);
    };
    fs::create_directory(folder.path() + "/closed");
    fs::create_directory(folder.path() + "/open");
    for (const char* name : {"own", "shut", "others", "closed/file", "open/file"})
      folder.write(name, "x");
    own("", owner, 0755);
    own("own", owner, 0600);
    own("shut", owner, 0000);
    own("others", 54321, 0640);
    own("closed", 54321, 0700);
    own("open", 54321, 0755);
    const Workspace workspace = *Workspace::open(
        {{.inside = "/w", .outside = folder.path(), .writable = true, .rights = Rights::owners}},
        "/w");
    EXPECT_EQ(get(workspace, "own"), "x");
    for (const char* path : {"shut", "others", "closed/file"})
      EXPECT_EQ(get(workspace, path), "no_permission") << path;
    auto put = [&](const std::string& path) {
      const Result<WriteResult> done = write(workspace, {.path = path, .content = "y"});
      return done ? "done" : std::string(name(done.error().kind));
    };
    EXPECT_EQ(put("new/file"), "done");
    EXPECT_EQ(put("others"), "done");  // in its own folder it may replace it, as by rename
    for (const char* path : {"open/file", "open/new", "open/deep/new", "closed/new"})
      EXPECT_EQ(put(path), "no_permission") << path;
    struct stat st{};
    for (const char* path : {"new", "new/file", "others"}) {
      ASSERT_EQ(::stat((folder.path() + "/" + path).c_str(), &st), 0);
      EXPECT_EQ(st.st_uid, owner) << path;
    }
    // The control, and root is root again.
    const Workspace as_root = *Workspace::open({{.inside = "/w", .outside = folder.path()}}, "/w");
    for (const char* path : {"shut", "closed/file"}) EXPECT_EQ(get(as_root, path), "x") << path;
  }
}

TEST_F(WorkspaceTest, a_tilde_is_the_home_where_there_is_one) {
  belljar::testing::Folder home;
  home.write("file", "at home");
  const Workspace workspace = *Workspace::open(
      {{.inside = "/workspace", .outside = folders_.inside.path(), .writable = true},
       {.inside = "/home/me", .outside = home.path(), .writable = true}},
      "/workspace", {}, {.home = "/home/me", .unreached = {}});
  EXPECT_EQ(get(workspace, "~/file"), "at home");
  EXPECT_EQ(get(workspace, "~/../me/file"), "at home");
  EXPECT_EQ(get(workspace, "~"), "not_a_file");
  ASSERT_TRUE(write(workspace, {.path = "~/sub/new", .content = "x"}));
  EXPECT_EQ(home.read("sub/new"), "x");
  const Result<GlobResult> found = glob(workspace, {.pattern = "~/s*/*"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->paths, std::vector<std::string>{"/home/me/sub/new"});
  EXPECT_EQ(glob(workspace, {.pattern = "file", .path = "~"})->total, 1U);
  // Other names that begin so are names, and without a home all are.
  ASSERT_TRUE(write(workspace, {.path = "~backup", .content = "y"}));
  EXPECT_EQ(get("~backup"), "y");
  ASSERT_TRUE(write(folders_.open(), {.path = "~/x", .content = "z"}));
  EXPECT_EQ(folders_.inside.read("~/x"), "z");
}

TEST_F(WorkspaceTest, a_refusal_says_whether_the_shell_could_do_it) {
  const Workspace workspace = *Workspace::open(
      {{.inside = "/workspace", .outside = folders_.inside.path(), .writable = true},
       {.inside = "/etc", .outside = folders_.outside.path(), .rights = Rights::everybodys}},
      "/workspace", {}, {.home = {}, .unreached = {"/tmp", "/proc"}});
  auto message = [&](std::string_view path) {
    return workspace.open_file("read", path).error().message();
  };
  for (const char* path : {"/tmp/x", "/proc/self/status", "/tmp"})
    EXPECT_NE(message(path).find("use shell or python"), std::string::npos) << message(path);
  for (const char* path : {"/root/x", "/tmpfile"})
    EXPECT_NE(message(path).find("the shell does not see it either"), std::string::npos)
        << message(path);
  set_mode(folders_.outside.path() + "/secret", 0000);
  folders_.inside.write("mine", "x");
  set_mode(folders_ / "mine", 0000);
  set_mode(folders_.outside.path(), 0755);
  EXPECT_NE(message("/etc/secret").find("with the shell neither"), std::string::npos)
      << message("/etc/secret");
  if (::geteuid() == 0) return;  // who is let in everywhere
  EXPECT_NE(message("mine").find("change its mode"), std::string::npos) << message("mine");
}

}  // namespace
}  // namespace belljar::tools
