"""Which folder a guest may write, and what cannot be made of it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import tempfile

import jar as jars
import pytest


def belljar(*words, cwd):
    return subprocess.run(
        [jars.binary(), *words], cwd=cwd, capture_output=True, text=True, timeout=30,
        env={**os.environ, "PWD": str(cwd)}, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("folder", ["/", "/etc", "/usr/lib", "~"])
def test_home_and_system_folders_are_refused(folder):
    done = belljar("exec", "--", "true", cwd=os.path.expanduser(folder))
    assert done.returncode == 125 and "the current folder" in done.stderr, done
    assert "hint: cd into a project folder" in done.stderr, done


def test_a_home_as_workdir_is_said_to_be_dangerous(tmp_path):
    done = subprocess.run([jars.binary(), "exec", "--", "true"], cwd=tmp_path, capture_output=True, text=True,
                          env={"HOME": str(tmp_path), "PATH": jars.SYSTEM_PATH}, timeout=30)  # fmt: skip
    assert f"{tmp_path} is your home: the program could read your keys and change everything" in done.stderr
    assert f"hint: cd into a project folder (-C {tmp_path} does it anyway)" in done.stderr


def test_a_symlink_planted_in_the_workdir_grants_nothing_outside(tmp_path):
    (tmp_path / "victim").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "dist").symlink_to("../victim")
    for flag in ("--allow-write=dist", "--extra-read=dist", f"--extra-write={tmp_path}/work/dist"):
        done = belljar("exec", "--profile=developer", flag, "--", "touch", "dist/x", cwd=tmp_path / "work")
        assert done.returncode == 125 and "leads out of the workdir" in done.stderr, (flag, done)
        assert str(tmp_path / "victim") in done.stderr, (flag, done)
    assert list((tmp_path / "victim").iterdir()) == []
    meant = belljar("exec", "--profile=developer", "--extra-write=../victim", "--", "touch", "dist/x",
                    cwd=tmp_path / "work")  # fmt: skip
    assert meant.returncode == 0, meant
    assert [path.name for path in (tmp_path / "victim").iterdir()] == ["x"]


def test_what_is_hidden_needs_no_protection(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("mine\n")
    done = belljar("exec", "--hide=a", "--protect=a/b", "--", "sh", "-c", "cat a/b; echo x > a/b; ls",
                   cwd=tmp_path)  # fmt: skip
    assert "mine" not in done.stdout and "a" in done.stdout.split(), done
    assert (tmp_path / "a" / "b").read_text() == "mine\n"


def test_below_a_folder_that_the_guest_cannot_pass():
    """Root's guest is another user, and where the whole host is shown its folders are as they are."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as above:  # mode 0700
        work = pathlib.Path(above, "work")
        work.mkdir()
        shown = belljar("exec", "--profile=developer", "--", "touch", "made", cwd=work)
        assert shown.returncode == 0 and (work / "made").exists(), shown
        done = belljar("exec", "--profile=open", "--", "true", cwd=work)
        if os.geteuid() != 0:
            assert done.returncode == 0, done
        else:
            assert done.returncode == 125 and f"{above[1:]}/work: Permission denied" in done.stderr, done
            assert "hint: the guest is another user" in done.stderr and "chmod o+x" in done.stderr, done


# ------------------------------------------------------------------ what is the system's


@pytest.mark.parametrize("folder", ["/etc", "/usr/lib", "/lib", "/proc/self/root/etc", "/dev"])
@pytest.mark.parametrize("profile", jars.PROFILES)
def test_a_system_folder_is_no_workdir_by_name_either(tmp_path, folder, profile):
    """Root's guest would write there as root can."""
    done = belljar("exec", f"--profile={profile}", "-C", folder, "--", "test", "-w", ".", cwd=tmp_path)
    assert done.returncode == 125 and "is the system's" in done.stderr, done
    assert "--start-in=" in done.stderr and "--extra-write=" in done.stderr, done


def test_a_system_folder_that_is_only_read_can_be_the_workdir(tmp_path):
    done = belljar("exec", "--deny-write", "-C", "/etc", "--", "sh", "-c", "pwd; test -r passwd; touch x", cwd=tmp_path)
    assert done.stdout == "/etc\n" and done.returncode == 1, done


@pytest.mark.parametrize("profile", ["developer", "restricted", "trusted-maintenance"])
def test_a_command_starts_elsewhere_than_in_the_workdir(tmp_path, profile):
    words = ["exec", f"--profile={profile}", "-C", str(tmp_path), "--start-in=/usr/lib", "--", "sh", "-c"]
    done = belljar(*words, 'pwd; touch "$1/made"; touch here', "sh", str(tmp_path), cwd=tmp_path)
    assert done.stdout == "/usr/lib\n", done
    assert (tmp_path / "made").exists() and "here" in done.stderr, done


def test_it_starts_where_the_guest_sees_the_folder(tmp_path):
    """public-bot's workdir is at another path; /tmp is its own."""
    (tmp_path / "sub").mkdir()
    done = belljar("exec", "--profile=public-bot", "-C", str(tmp_path), "--start-in=sub", "--", "pwd", cwd=tmp_path)
    assert done.stdout == "/workspace/sub\n", done
    done = belljar("exec", "-C", str(tmp_path), "--start-in=/tmp", "--", "pwd", cwd=tmp_path)
    assert done.stdout == "/tmp\n", done


@pytest.mark.parametrize(("folder", "says"), [("../other", "is not shown"), ("missing", "No such"), ("file", "is not a folder")])
def test_a_folder_to_start_in_must_be_one_that_is_shown(tmp_path, folder, says):
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "other").mkdir()
    (work / "file").touch()
    done = belljar("exec", "--profile=restricted", f"--start-in={folder}", "--", "pwd", cwd=work)
    assert done.returncode == 125 and says in done.stderr, done
    if folder == "../other":
        done = belljar("exec", "--profile=restricted", f"--start-in={folder}", "--extra-read=../other", "--", "pwd", cwd=work)
        assert done.stdout == f"{tmp_path / 'other'}\n", done
