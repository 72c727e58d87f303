"""--home, --tmp and -C: a folder of the person's own where the guest's would be."""

from __future__ import annotations

import os

import jar as jars
import pytest


@pytest.fixture
def plain(scene):
    return jars.Jar(scene)


def test_a_home_of_ones_own_shows_the_workdir_and_toolchains_in_it(plain, scene):
    """The workdir lies in the home, so it must be mounted on something in the folder."""
    scene.file("here", "found\n")
    scene.file(scene.home / ".cargo/env", "cargo\n")
    scene.file(scene.home / ".gitconfig", "name\n")
    mine = scene.folder(scene.base / "mine")
    for _ in range(2):  # the second time the mount points are there
        run = plain.run(
            ["sh", "-c", "cat here ~/.cargo/env ~/.gitconfig; cat ~/notes.txt; echo kept > ~/made; cat ~/.ssh/id_rsa"],
            policy=[f"--home={mine}", f"--extra-read={scene.home}/.gitconfig"],
        )  # fmt: skip
        assert run.stdout == "found\ncargo\nname\n", run
    assert (mine / "made").read_text() == "kept\n"
    assert (mine / "project/work").is_dir() and os.listdir(mine / "project/work") == []
    assert (mine / ".gitconfig").read_text() == ""


def test_a_tmp_of_ones_own_shows_a_workdir_under_tmp(plain, scene):
    mine = scene.folder(scene.base / "mine")
    with jars.tempfile.TemporaryDirectory(dir="/tmp") as work:
        scene.identity.own(work)
        run = plain.run(["sh", "-c", "pwd; echo x > made; echo y > /tmp/other"], policy=[f"--tmp={mine}"], cwd=work)
        assert run.stdout == f"{work}\n", run
        assert (jars.pathlib.Path(work) / "made").read_text() == "x\n"
    assert (mine / "other").read_text() == "y\n"


def test_a_symlink_left_in_the_home_makes_nothing_elsewhere(plain, scene):
    mine = scene.folder(scene.base / "mine")
    (mine / "project").symlink_to(scene.outside)
    run = plain.run(["true"], policy=[f"--home={mine}"])
    assert run.exit == jars.OWN_FAILURE and "is no folder to mount it on" in run.stderr, run
    assert os.listdir(scene.outside) == []


def test_workdir_and_home_cannot_be_at_one_path(plain, scene):
    mine = scene.folder(scene.base / "mine")
    run = plain.run(["true"], policy=[f"--home={mine}", "-C", os.fspath(scene.home)])
    assert run.exit == jars.OWN_FAILURE and "would both be at" in run.stderr, run


@pytest.mark.parametrize("flags", [["-C", "/"], ["--extra-read=/"], ["--extra-write=/"], ["--hide=/"],
                                   ["--protect=/"], ["--home=/"], ["--tmp=/"], ["--cache=/"]])  # fmt: skip
def test_all_of_the_root_is_refused_in_words(plain, flags):
    run = plain.run(["true"], policy=flags)
    assert run.exit == jars.OWN_FAILURE and "/ is the whole file system" in run.stderr, run
    assert "view:" not in run.stderr, run


@pytest.mark.parametrize("profile", ["open", "developer", "restricted"])
def test_proc_is_the_guests_own(plain, profile):
    for flag in ("--hide=/proc/cpuinfo", "--protect=/proc/sys/vm"):
        run = plain.run(["true"], policy=[f"--profile={profile}", flag])
        assert run.exit == jars.OWN_FAILURE and "/proc is the guest's own" in run.stderr, run
    for flag in ("--extra-read=/proc", "--extra-write=/proc/sys"):
        run = plain.run(["cat", "/proc/1/comm"], policy=[f"--profile={profile}", flag])
        assert run.exit == 0 and "the guest has a /proc of its own" in run.stderr, run
        assert run.stdout == "memfd:belljar-i\n", run


def test_the_root_is_a_workdir_where_all_is_shown(plain):
    run = plain.run(["pwd"], policy=["--profile=open", "--deny-write", "-C", "/"])
    assert (run.exit, run.stdout, run.stderr) == (0, "/\n", ""), run


def test_of_a_go_folder_the_persons_sources_are_not_shown(plain, scene):
    for name in ("bin/tool", "pkg/mod/x", "src/mine"):
        scene.file(scene.home / "go" / name, f"{name}\n")
        scene.file(scene.base / "path" / name, f"{name}\n")
    run = plain.run(["sh", "-c", "cat ~/go/bin/tool ~/go/pkg/mod/x; cat ~/go/src/mine"])
    assert run.stdout == "bin/tool\npkg/mod/x\n", run
    run = plain.run(["sh", "-c", "cat $GOPATH/pkg/mod/x $GOPATH/src/mine"], env={"GOPATH": f"{scene.base}/path"})
    assert run.stdout == "pkg/mod/x\n", run
