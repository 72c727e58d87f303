"""belljar.toml on the command line: run, tasks, init, trust, config, profile.

Everything here runs as whoever starts the tests; what a jar holds back is proved
elsewhere. BELLJAR names the binary.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

import jar as jars

OWN_FAILURE = jars.OWN_FAILURE


class Place:
    """A home with a project in it."""

    def __init__(self, root: pathlib.Path):
        self.home = root / "home"
        self.project = self.home / "project"
        self.project.mkdir(parents=True)
        self.file = self.project / "belljar.toml"
        self.variables = {"HOME": str(self.home), "PATH": jars.SYSTEM_PATH}

    def write(self, text: str) -> None:
        self.file.write_text(text)

    def write_user(self, text: str) -> None:
        folder = self.home / ".config/belljar"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(text)

    def run(self, *arguments: str, cwd: pathlib.Path | None = None, **variables: str):
        return subprocess.run(
            ["timeout", "-s", "KILL", "20", jars.binary(), *arguments],
            cwd=cwd or self.project,
            env={**self.variables, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def ok(self, *arguments: str, **options) -> str:
        done = self.run(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *arguments: str) -> dict:
        value = json.loads(self.ok(*arguments))
        assert value["schema_version"] == 1
        return value

    def refused(self, *arguments: str, code: int = OWN_FAILURE, **options) -> str:
        done = self.run(*arguments, **options)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stderr


@pytest.fixture
def place():
    # Not pytest's tmp_path: its folders are closed to the jar's own user.
    root = pathlib.Path(tempfile.mkdtemp(prefix="belljar-config-"))
    root.chmod(0o755)
    yield Place(root)
    shutil.rmtree(root)


# ---- run ----


def test_a_task_runs_in_the_folder_of_the_file(place):
    place.write('[tasks.where]\nrun = "pwd"\n[tasks.below]\nrun = "pwd"\ndir = "sub"\n')
    (place.project / "sub").mkdir()
    below = place.project / "sub"
    assert place.ok("run", "where", cwd=below).strip() == str(place.project)
    assert place.ok("run", "below").strip() == str(below)


def test_dependencies_run_first_and_once(place):
    place.write(
        '[tasks.all]\nrun = "echo all"\ndepends = ["a", "b"]\n'
        '[tasks.a]\nrun = ["echo a", "echo aa"]\ndepends = ["b"]\n'
        '[tasks.b]\nrun = "echo b"\n'
    )
    assert place.ok("run", "all").split() == ["b", "a", "aa", "all"]


def test_arguments_go_to_the_last_command_unread_by_the_shell(place):
    place.write(
        '[tasks.t]\nrun = ["echo first", "printf \'<%s>\'"]\ndepends = ["d"]\n[tasks.d]\nrun = "echo d"\n'
    )
    assert place.ok("run", "t", "--", "a b", "$HOME", ";") == "d\nfirst\n<a b><$HOME><;>"


def test_a_failure_ends_the_run_with_its_code(place):
    place.write('[tasks.t]\nrun = "echo t"\ndepends = ["d"]\n[tasks.d]\nrun = ["exit 7", "echo no"]\n')
    done = place.run("run", "t")
    assert (done.returncode, done.stdout) == (7, "")
    assert "task d failed with exit code 7; not run: t" in done.stderr
    assert "task d" not in place.run("run", "d").stderr  # it was asked for itself


def test_the_policy_of_a_task_is_enforced(place):
    touch = "touch new; test -e new"
    place.write(f'[tasks.free]\nrun = "{touch}"\n[tasks.kept]\nrun = "{touch}"\ndeny_write = true\n')
    assert place.run("run", "kept").returncode != 0
    assert place.run("run", "free").returncode == 0


def test_flags_are_stronger_than_a_task(place):
    place.write('[tasks.t]\nrun = "ulimit -n"\nmax_open_fds = 100\n')
    assert place.ok("run", "t").strip() == "100"
    assert place.ok("run", "--max-open-fds=50", "t").strip() == "50"


def test_a_trusted_task_has_its_environment(place):
    place.write('[tasks.t]\nrun = "echo $GREETING"\nenv = { GREETING = "hello" }\n')
    assert "env would widen" in place.refused("run", "t")
    place.ok("trust")
    assert place.ok("run", "t").strip() == "hello"


def test_without_a_sandbox_every_command_still_runs(place):
    place.write('[tasks.t]\nrun = ["echo one", "pwd"]\ndir = "sub"\n')
    (place.project / "sub").mkdir()
    assert place.ok("run", "--sandbox=off", "t").split() == ["one", str(place.project / "sub")]


def test_mistakes_are_said(place):
    assert "no belljar.toml" in place.refused("run", "t")
    place.write('[tasks.build]\nrun = "true"\n')
    assert "did you mean build?" in place.refused("run", "biuld")
    assert "belljar run" in place.refused("run")
    assert "belljar run" in place.refused("run", "build", "stray")


# ---- exec ----


def test_exec_obeys_the_project_from_below(place):
    place.write("[sandbox]\nmax_open_fds = 77\n")
    (place.project / "sub").mkdir()
    assert place.ok("exec", "--", "sh", "-c", "ulimit -n", cwd=place.project / "sub").strip() == "77"


def test_a_project_that_widens_is_refused_before_anything_runs(place):
    place.write('[sandbox]\nmode = "off"\n')
    done = place.run("exec", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (OWN_FAILURE, "")
    assert "belljar.toml:2:1: mode would widen" in done.stderr


def test_a_bad_file_is_refused(place):
    for text in ("nonsense", "[sandbox]\nmoed = 1\n", "[sandbox]\nmode = " + "[" * 100_000):
        place.write(text)
        assert "belljar.toml:" in place.refused("exec", "true")
    place.file.unlink()
    os.mkfifo(place.file)
    assert "not a regular file" in place.refused("exec", "true")


def test_the_persons_own_profile_has_a_name(place):
    place.write_user('[profiles.mine]\nextends = "restricted"\nmax_open_fds = 33\n')
    assert place.ok("exec", "--profile=mine", "--", "sh", "-c", "ulimit -n").strip() == "33"
    report = place.project / "report.json"
    place.ok("exec", "--profile=mine", f"--report={report}", "true")
    assert json.loads(report.read_text())["profile"] == "mine"


def test_explain_reads_the_same_files(place):
    place.write_user('[profiles.mine]\nextends = "restricted"\n')
    place.write('[sandbox]\nprofile = "mine"\nnetwork = "none"\n')
    done = place.run("explain", "--json")
    assert json.loads(done.stdout)["profile"] == "mine", done.stderr
    assert json.loads(done.stdout)["network"] == "none"
    place.write('[sandbox]\nmode = "off"\n')
    assert "mode would widen" in place.refused("explain")


# ---- tasks ----


def test_tasks_are_listed_with_their_policies(place):
    place.write(
        '[tasks.build]\nrun = "make"\ndescription = "makes it"\ndeny_net = true\n'
        '[tasks.wide]\nrun = "x"\nallow_write = ["/etc"]\n'
    )
    text = place.ok("tasks")
    assert "build  makes it" in text and "network none" in text
    assert "refused: belljar.toml:7:1: allow_write would widen" in text
    listed = place.json("tasks", "--json")
    assert [task["name"] for task in listed["tasks"]] == ["build", "wide"]
    assert listed["tasks"][0]["policy"]["network"] == "none"
    assert "refused" in listed["tasks"][1]


def test_no_tasks_are_said_to_be_none(place):
    place.write("")
    assert place.ok("tasks") == "belljar.toml has no tasks.\n"
    assert place.json("tasks", "--json")["tasks"] == []


@pytest.mark.parametrize(("key", "meant"), [("cmd", "run"), ("command", "run"), ("deps", "depends"), ("cwd", "dir")])
def test_the_names_of_other_tools_are_understood_as_mistakes(place, key, meant):
    place.write(f'[tasks.t]\n{key} = "x"\n')
    assert f"did you mean {meant}?" in place.refused("tasks")


# ---- init ----


def test_init_makes_a_file_that_means_the_defaults(place):
    before = place.json("profile", "show", "developer", "--json")
    place.ok("init")
    assert "0 keys in [sandbox], 0 profiles, 0 tasks" in place.ok("config", "check")
    assert place.json("profile", "show", "developer", "--json") == before


def test_every_line_that_init_comments_out_is_valid(place):
    place.ok("init")
    lines = place.file.read_text().splitlines()
    tables = {"[sandbox]": []}
    for line in (line[2:] for line in lines if line.startswith("# [") or " = " in line):
        if line.startswith("["):
            tables[line] = []
        else:
            tables[list(tables)[-1]].append(line)
    assert list(tables)[1:] == [
        "[profiles.careful]", "[tasks.test]", "[net_groups]", "[permissions]", "[session]", "[server]",
    ]  # fmt: skip
    assert all(tables.values())
    for line in tables.pop("[sandbox]"):  # together they would contradict each other
        place.write("[sandbox]\n" + line)
        place.ok("config", "check")
    place.write("\n".join(line for table, keys in tables.items() for line in (table, *keys)))
    assert "1 profile, 1 task," in place.ok("config", "check")


def test_init_names_every_key_of_sessions_and_servers(place):
    place.ok("init")
    text = place.file.read_text()
    schema = json.loads(place.ok("config", "schema"))["properties"]
    for table in ("session", "server"):
        below = text[text.index(f"# [{table}]"):]
        for key in schema[table]["properties"]:
            assert f"\n# {key} = " in below, key


def test_init_overwrites_nothing(place):
    place.write("# mine\n")
    assert "File exists" in place.refused("init")
    assert place.file.read_text() == "# mine\n"
    place.file.unlink()
    target = place.home / "target"
    place.file.symlink_to(target)
    place.refused("init")
    assert not target.exists()


# ---- trust ----


def test_trust_lasts_until_the_file_changes(place):
    place.write('[sandbox]\nallow_read = ["/srv"]\n')
    assert "belljar trust" in place.refused("exec", "true")
    assert "line 2: allow_read: reads /srv" in place.ok("trust")
    place.ok("exec", "true")
    assert place.ok("trust", "--list").split() == ["trusted", str(place.file)]
    place.write('[sandbox]\nallow_read = ["/srv"]\n#')
    assert place.ok("trust", "--list").split() == ["changed", str(place.file)]
    place.refused("exec", "true")


def test_what_is_widened_is_said_in_plain_words(place):
    place.write('[sandbox]\nprofile = "open"\n')
    assert "profile would widen the policy (reads and writes all your files)" in place.refused("exec", "true")
    (place.home / "data").mkdir()
    place.write('[sandbox]\nextra_fs_read = ["../data"]\n')
    assert f"(reads {place.home}/data)" in place.refused("exec", "true")
    assert f"line 2: extra_fs_read: reads {place.home}/data\n" in place.ok("trust")


def test_trust_can_be_revoked(place):
    place.write('[sandbox]\nallow_read = ["/srv"]\n')
    place.ok("trust", str(place.project))
    place.ok("trust", "--revoke", str(place.file))
    place.refused("exec", "true")
    assert "was not trusted" in place.refused("trust", "--revoke")
    assert place.ok("trust", "--list") == "No file is trusted.\n"


def test_trust_is_kept_outside_the_project_for_the_person_alone(place):
    place.write("")
    place.ok("trust")
    kept = place.home / ".local/state/belljar/trusted"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert subprocess.run(["sha256sum", "--check", "--status", kept]).returncode == 0
    state = place.home / "elsewhere"
    place.ok("trust", XDG_STATE_HOME=str(state))
    assert (state / "belljar/trusted").exists()


def test_a_guest_cannot_trust_for_the_person(place):
    place.write("")
    binary = place.project / "belljar"
    binary.write_bytes(pathlib.Path(jars.binary()).read_bytes())
    binary.chmod(0o755)
    assert "trusted:" in place.ok("exec", "--", "./belljar", "trust")  # in its own home
    assert place.ok("trust", "--list") == "No file is trusted.\n"
    place.ok("trust")  # the control
    assert str(place.file) in place.ok("trust", "--list")


def test_a_file_that_is_wrong_cannot_be_trusted(place):
    place.write("[sandbox]\nmoed = 1\n")
    assert "did you mean mode?" in place.refused("trust")


# ---- config ----


def test_config_check_says_where_and_what(place):
    assert "defaults apply" in place.ok("config", "check")
    place.write("[sandbox]\n  moed = 1\n")
    assert "belljar.toml:2:3: unknown key" in place.refused("config", "check", code=1)
    place.write("[sandbox]\nmax_procs = 1000\n")
    text = place.ok("config", "check")
    assert "not trusted" in text and "belljar.toml:2:1: max_procs widens" in text
    other = place.home / "other.toml"
    other.write_text("[sandbox]\n")
    assert "other.toml: ok" in place.ok("config", "check", str(other))
    place.refused("config", "check", "/nowhere", code=1)


def test_config_check_of_the_persons_own_file_is_not_held_against_itself(place):
    groups = '[sandbox]\nprofile = "mine"\nallow_net = ["@registries"]\n[net_groups]\nregistries = ["pypi.org"]\n'
    place.write_user(groups + '[profiles.mine]\nextends = "developer"\n')
    own = place.home / ".config/belljar/config.toml"
    (place.home / "link.toml").symlink_to(own)
    for name in (str(own), "../link.toml"):
        assert place.ok("config", "check", name) == f"{own}: ok\n"
    place.write("[net_groups]\nregistries = []\n")
    assert 'group "registries" is already your own' in place.refused("config", "check", code=1)
    place.write_user("[sandbox]\nnetwork = 1\n")
    assert "network: must be a string" in place.refused("config", "check", str(own), code=1)


def test_the_commonest_mistakes_get_a_hint(place):
    place.write("[sandbox]\nnetwork = none\n")
    text = place.refused("config", "check", code=1)
    assert "belljar.toml:2:" in text and 'hint: text needs quotes: network = "none"' in text, text
    place.write('network = "none"\n')
    text = place.refused("exec", "--", "true")
    assert 'belljar.toml:1:1: "network" stands above the tables' in text and "it belongs in [sandbox]" in text, text


def test_config_check_reads_the_persons_file_too(place):
    place.write_user("[sandbox]\nmode = 1\n")
    assert "config.toml:2:8: mode: must be a string" in place.refused("config", "check", code=1)


def test_rules_about_hosts_are_checked_where_they_stand(place):
    place.write('[sandbox]\nallow_net = ["a.test", "127.0.0.1:80"]\n')
    assert "belljar.toml:2:24: allow_net: " in (message := place.refused("config", "check", code=1))
    assert "say localhost:PORT" in message
    for wrong in ("localhost", "user@a.test", "127.1", "a.test:0", "*", "http://a.test"):
        assert "--allow-net: " in place.refused("exec", "--allow-net=" + wrong, "--", "true"), wrong


def test_groups_of_hosts_are_the_persons(place):
    place.write_user('[net_groups]\nregistries = ["registry.test"]\n')
    place.write('[net_groups]\nown = ["@registries", "b.test"]\n[sandbox]\nallow_net = ["@own"]\n')
    assert "widens" not in place.ok("config", "check")  # the network was full
    assert "did you mean @registries?" in place.refused("explain", "--allow-net=@registry")
    assert "group @own would widen" in place.refused("explain", "--allow-net=@own")
    place.write('[net_groups]\nregistries = ["evil.test"]\n')
    assert "already your own" in place.refused("explain")


def test_a_project_publishes_nothing_untrusted(place):
    place.write('[sandbox]\nnetwork = "loopback"\npublish = ["8080:80"]\n')
    assert "publish would widen" in place.refused("exec", "true")


def test_the_schema_knows_every_key(place):
    schema = json.loads(place.ok("config", "schema"))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    sandbox = schema["properties"]["sandbox"]["properties"]
    assert sandbox["mode"]["enum"] == ["auto", "on", "full", "off"]
    assert schema["properties"]["sandbox"]["additionalProperties"] is False
    for name, key in sandbox.items():
        assert key["description"], name
    assert "additionalProperties" in schema["properties"]["net_groups"]
    assert "run" in schema["properties"]["tasks"]["additionalProperties"]["properties"]
    for name in sandbox:  # each is a key that the reader knows
        place.write(f"[sandbox]\n{name} = 1.5\n")
        assert "must be" in place.refused("config", "check", code=1), name


# ---- profile ----


def test_profiles_are_listed_built_in_and_own(place):
    place.write_user('[profiles.mine]\nextends = "public-bot"\n')
    names = [profile["name"] for profile in place.json("profile", "list", "--json")["profiles"]]
    assert names == ["open", "developer", "restricted", "public-bot", "trusted-maintenance", "mine"]
    assert "extends public-bot" in place.ok("profile", "list")


def test_a_profile_is_shown_without_what_the_files_add(place):
    place.write_user('[sandbox]\nmax_procs = 1\n[profiles.mine]\nextends = "public-bot"\nmax_open_fds = 19\n')
    shown = place.json("profile", "show", "mine", "--json")
    assert (shown["profile"], shown["network"]) == ("mine", "none")
    assert (shown["limits"]["max_open_fds"], shown["limits"]["max_procs"]) == (19, 64)
    assert "there is no" in place.refused("profile", "show", "nope")


# -------------------------------------------------- the caller's own flags, beside a project's file


@pytest.mark.parametrize("text", ["", "[sandbox]\nmax_procs = 50\n"])
@pytest.mark.parametrize(
    "flags", [["--allow-read=."], ["--allow-read=.", "--allow-write=."], ["--deny-read", "--allow-read=file"], ["--extra-read=../other"]]
)
def test_flags_are_never_charged_to_a_project_that_is_not_trusted(place, text, flags):
    (place.project / "file").write_text("mine\n")
    (place.home / "other").mkdir()
    assert place.ok("exec", *flags, "--", "cat", "file") == "mine\n"  # the control: without one
    place.write(text)
    assert place.ok("exec", *flags, "--", "cat", "file") == "mine\n"


# ----------------------------------------------------------------- how much must be there


@pytest.mark.parametrize("profile", ["developer", "restricted", "public-bot"])
def test_on_needs_every_promise_and_full_every_layer(place, profile):
    plan = place.json("explain", "--json", f"--profile={profile}")
    broken = [loss["what"] for loss in plan["losses"] if loss["broken"]]
    shallow = [loss["what"] for loss in plan["losses"] if not loss["broken"]]
    on = place.run("exec", f"--profile={profile}", "--sandbox=on", "--", "true")
    assert (on.returncode == 0) == (not broken), (plan["losses"], on)
    full = place.run("exec", f"--profile={profile}", "--sandbox=full", "--", "true")
    assert (full.returncode == 0) == (not broken and not shallow), (plan["losses"], full)
    if shallow and not broken:
        assert full.returncode == OWN_FAILURE and "in full depth, as mode \"full\" requires" in full.stderr, full


def test_a_project_may_ask_for_full_and_not_for_less(place):
    place.write('[sandbox]\nmode = "full"\n')
    assert "would widen" not in place.run("exec", "--", "true").stderr
    place.write_user('[sandbox]\nmode = "full"\n')
    place.write('[sandbox]\nmode = "on"\n')
    assert "mode on instead of full" in place.refused("exec", "--", "true")
