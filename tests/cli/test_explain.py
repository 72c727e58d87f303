"""explain: what it says about one path, host or variable, and which files it read."""

from __future__ import annotations

import json
import os
import subprocess

import jar as jars
import pytest


@pytest.fixture
def explain(scene):
    def run(*words, code=0):
        done = subprocess.run(
            scene.identity.command([jars.binary(), "explain", *words]), cwd=scene.workdir, stdin=subprocess.DEVNULL,
            env=jars.Outside(scene).environment({"SECRET_TOKEN": "abc"}), capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        assert done.returncode == code, done
        return done.stdout if code == 0 else done.stderr

    return run


HOSTS = ["localhost", "localhost:8080", "example.com", "example.com:443", "db:5432", "10.0.0.1", "::1", "[::1]:80"]


@pytest.mark.parametrize("what", HOSTS)
@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_host_is_taken_for_one(explain, what):
    assert explain("--network=none", "--why", what).startswith(f"{what}: cannot be reached")
    assert explain("--network=full", "--why", what).startswith(f"{what}: can be reached")


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_variable_is_asked_about_as_a_shell_writes_it(explain, scene):
    narrow = "--profile=restricted"
    assert "not passed on, kept by env scrub; --extra-env=SECRET_TOKEN" in explain(narrow, "--why", "$SECRET_TOKEN")
    assert "passed on, as it is among" in explain(narrow, "--extra-env=SECRET_TOKEN", "--why", "$SECRET_TOKEN")
    assert "passed on, as all variables are; --deny-env" in explain("--profile=open", "--why", "$SECRET_TOKEN")
    assert "value of its own inside: 7" in explain(narrow, "--env", "SECRET_TOKEN=7", "--why", "$SECRET_TOKEN")
    assert "set neither here nor inside; --env NO_SUCH=VALUE" in explain(narrow, "--why", "$NO_SUCH")
    (scene.workdir / "$SECRET_TOKEN").touch()
    assert "can be read and written" in explain("--why", "$SECRET_TOKEN"), "what exists is a path"


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_of_a_url_the_host_counts(explain):
    assert explain("--why", "http://user@example.com:80/a.html?x").startswith("example.com:80: can be reached")


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_what_exists_is_a_path(explain, scene):
    scene.file("example.com")
    assert explain("--why", "example.com").startswith(f"{scene.workdir}/example.com: can be read and written")
    assert "(does not exist)" in explain("--why", "nothing")


@pytest.mark.parametrize("identity", ["user"], indirect=True)
@pytest.mark.parametrize(
    ("flags", "what", "says"),
    [
        ([], "/proc/1", "/proc/1: the guest's own /proc"),
        (["--profile=public-bot"], "/proc/1", "/proc/1: the guest's own /proc"),
        (["--profile=public-bot"], "/tmp/x", "/tmp is a private folder inside, empty at the start and writable"),
        ([], "/proc/self/status", "the guest's own /proc"),
        ([], "/dev/mem", "a /dev of its own"),
        ([], "/dev/null", "can be read and written"),
    ],
)
def test_what_the_jar_has_of_its_own(explain, flags, what, says):
    assert says in explain(*flags, "--why", what)


def test_a_path_of_the_guests_means_what_is_shown_there(explain, scene):
    scene.file("x")
    said = explain("--profile=public-bot", "--why", "/workspace/x")
    assert said.startswith(f"/workspace/x, which is {scene.workdir}/x: can be read and written"), said
    mine = scene.folder(scene.base / "mine")
    said = explain(f"--home={mine}", "--why", "~/new")
    assert said.startswith(f"{scene.home}/new, which is {mine}/new (does not exist): can be read and written"), said


def test_what_is_shown_elsewhere_is_told_by_its_name_inside(explain, scene):
    scene.file("x")
    said = explain("--profile=public-bot", "--why", "x")
    assert said.startswith(f"{scene.workdir}/x, inside /workspace/x: can be read and written"), said
    assert explain("--why", "x").startswith(f"{scene.workdir}/x: can be read and written")


def test_a_grant_is_not_more_than_the_files_own_permissions(explain, scene):
    assert "can be read as far as its own permissions allow and not written" in explain("--why", "/etc/shadow")
    said = explain("--why", "/etc/passwd")
    assert "/etc/passwd: can be read and not written" in said, said
    ordinary = scene.identity.uid != 0
    assert ("would allow writing as far as its own permissions allow," in said) == ordinary, said
    mine = scene.file("mine", mode=0o600)
    assert "as far as" not in explain("--why", "mine")
    if os.geteuid() == 0:  # the file of somebody else in one's own folder
        os.chown(mine, 54321, 54321)
        assert "can be read and written as far as its own permissions allow" in explain("--why", "mine")


# ---- symlinks ----


def test_a_link_that_is_not_shown_leads_nowhere(explain, scene):
    link = scene.home / "alink"
    link.symlink_to("/etc/hostname")
    said = explain("--why", os.fspath(link))
    assert said.startswith(f"{link}: not shown (it leads to /etc/hostname, which is). "), said
    assert f"--extra-read={link} would" in said, said
    said = explain(f"--extra-read={link}", "--why", os.fspath(link))
    assert said.startswith(f"{link}, which leads to /etc/hostname: can be read"), said


def test_a_folder_on_the_way_may_be_the_link(explain, scene):
    (scene.home / "docs").symlink_to("/usr/share")
    said = explain("--why", os.fspath(scene.home / "docs/doc"))
    assert said.startswith(f"{scene.home}/docs/doc: not shown ({scene.home}/docs leads to /usr/share/doc, which is)"), said


def test_of_a_link_that_is_shown_its_target_is_told(explain, scene):
    (scene.workdir / "out").symlink_to(scene.outside)
    said = explain("--why", "out")
    assert said.startswith(f"{scene.workdir}/out, which leads to {scene.outside}: not shown"), said
    assert "can be read" in explain("--why", "/bin/sh"), "a link that the system has"


def test_all_of_a_venv_is_offered(explain, scene):
    venv = scene.home / "venv"
    scene.file(venv / "pyvenv.cfg")
    scene.folder(venv / "bin")
    (venv / "bin/python").symlink_to("/usr/bin/python3")
    said = explain("--why", os.fspath(venv / "bin/python"))
    assert said.startswith(f"{venv}/bin/python: not shown") and f"--extra-read={venv} would" in said, said
    assert "can be read" in explain(f"--extra-read={venv}", "--why", os.fspath(venv / "bin/python"))


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_the_file_and_line_of_a_rule_are_said(explain, scene):
    scene.file("belljar.toml", '[sandbox]\n\nhide = [".env"]\nprotect = ["kept"]\n')
    scene.file(".env")
    scene.file("kept")
    assert "(hide in belljar.toml:3)" in explain("--why", ".env")
    assert "(protect in belljar.toml:4)" in explain("--why", "kept")
    assert "(--extra-read)" in explain(f"--extra-read={scene.outside}", "--why", os.fspath(scene.outside))
    said = explain()
    assert f"Configuration\n  {scene.workdir}/belljar.toml  (not trusted: it can only narrow)" in said
    assert json.loads(explain("--json"))["configuration"] == [
        {"file": f"{scene.workdir}/belljar.toml", "trusted": False}
    ]


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_message_names_the_flag_that_was_typed(scene):
    run = jars.Jar(scene).run(["true"], policy=["--extra-read=gone"])
    assert f"--extra-read: {scene.workdir}/gone cannot be opened" in run.stderr, run
    run = jars.Jar(scene).run(["true"], policy=["--protect=gone"])
    assert f"--protect: {scene.workdir}/gone does not exist" in run.stderr, run


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_an_answer_is_json_when_asked(explain):
    said = json.loads(explain("--json", "--why", "/proc"))
    assert said["schema_version"] == 1 and said["why"] == "/proc" and "own /proc" in said["answer"]


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_path_alone_is_not_passed_over(explain):
    assert "belljar explain --why file" in explain("file", code=jars.OWN_FAILURE)
    explain("--", "ls")


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_mac_is_explained_on_any_host(explain, scene):
    said = explain("--platform=macos", "--profile=restricted", "--hide=.env")
    assert "What a Mac lacks" in said and "  /usr/bin/sandbox-exec -p PROFILE /bin/sh -c ulimit" in said
    assert f'(subpath "{scene.workdir}")' in said and f'(subpath "{scene.workdir}/.env")' in said
    assert "loopback: this machine's" in said
    plan = json.loads(explain("--platform=macos", "--json"))
    assert plan["platform"] == "macos" and plan["seatbelt"]["profile"].startswith("(version 1)\n(deny default)\n")
    assert plan["seatbelt"]["arguments"][:3] == ["/usr/bin/sandbox-exec", "-p", plan["seatbelt"]["profile"]]
    assert "platform" not in json.loads(explain("--json"))


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_what_a_mac_cannot_keep_is_refused(explain):
    assert 'the promise "network"' in explain("--platform=macos", "--allow-net=example.com", code=jars.OWN_FAILURE)
    assert 'the promise "limits"' in explain("--platform=macos", "--profile=public-bot", code=jars.OWN_FAILURE)
    explain("--platform=macos", "--profile=public-bot", "--accept-degraded=limits")
    assert "no sandbox for windows" in explain("--platform=windows", code=jars.OWN_FAILURE)
    assert "--why is about this host" in explain("--platform=macos", "--why", "/", code=jars.OWN_FAILURE)
