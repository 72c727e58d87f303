"""Whose home it is that a guest's own stands for, and that nobody hands over by mistake."""

from __future__ import annotations

import os
import pwd
import subprocess

import jar as jars
import pytest

NOBODYS = 1_234_567  # no account has this uid


def belljar(identity, *words, cwd, home: str | None = None, **variables) -> subprocess.CompletedProcess:
    environment = {"PATH": jars.SYSTEM_PATH, **variables}
    if home is not None:
        environment["HOME"] = home
    return subprocess.run(
        identity.command([jars.binary(), *words]), cwd=cwd, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60 * jars.SLOWER,
    )  # fmt: skip


class Stranger(jars.Identity):
    def command(self, argv: list[str]) -> list[str]:
        return ["/usr/bin/setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups", "--", *argv]


def account_home(identity) -> str:
    return pwd.getpwuid(identity.uid).pw_dir


# ---------------------------------------------------------------- without HOME


@pytest.mark.parametrize("home", [None, "", "relative", "/"])
def test_without_a_home_it_is_that_of_the_account(scene, home):
    told = belljar(scene.identity, "exec", "--profile=restricted", "--", "sh", "-c", "echo $HOME; cd && touch x",
                   cwd=scene.workdir, home=home)  # fmt: skip
    assert (told.returncode, told.stdout) == (0, account_home(scene.identity) + "\n"), told
    said = belljar(scene.identity, "exec", "--profile=restricted", "--", "sh", "-c", "echo $HOME",
                   cwd=scene.workdir, home=str(scene.home))  # fmt: skip
    assert said.stdout == f"{scene.home}\n", said


def test_without_a_home_python_and_mcp_start(scene):
    done = belljar(scene.identity, "python", "-c", "1 + 1", cwd=scene.workdir)
    assert (done.returncode, done.stdout) == (0, "2\n"), done
    runtime = {"XDG_RUNTIME_DIR": str(scene.home)}
    done = belljar(scene.identity, "mcp", "--audit=none", cwd=scene.workdir, **runtime)
    assert (done.returncode, done.stderr) == (0, ""), done


@pytest.mark.parametrize("words", [["exec", "--", "true"], ["explain"], ["python", "-c", "1"], ["mcp", "--audit=none"],
                                   ["serve", "--listen=127.0.0.1:0"],
                                   ["serve", "--listen=127.0.0.1:0", "--profile=public-bot"]])  # fmt: skip
def test_without_home_and_account_home_is_named(everyone, words):
    if "root" not in everyone:
        pytest.skip("needs root, to be somebody without an account")
    stranger = Stranger("stranger", NOBODYS, NOBODYS, "", everyone["root"].folder)
    with jars.Scene(everyone["root"]) as scene:
        stranger.own(scene.workdir)
        runtime = {"XDG_RUNTIME_DIR": str(scene.workdir)}
        done = belljar(stranger, *words, cwd=scene.workdir, **runtime)
        assert done.returncode == 125 and "HOME names no folder" in done.stderr, done
        assert "hint: set HOME to a folder of yours" in done.stderr, done
        control = belljar(stranger, "exec", "--", "true", cwd=scene.workdir, home=str(scene.base))
        assert control.returncode == 0, control


# ---------------------------------------------------------------- the guard of homes


def refusal(identity, cwd, *words, **how) -> str:
    done = belljar(identity, *(words or ("explain",)), cwd=cwd, **how)
    assert done.returncode == 125 and "the program could read" in done.stderr, done
    return done.stderr


def test_the_home_of_the_account_is_guarded_wherever_HOME_is(scene):
    home = account_home(scene.identity)
    assert f"the current folder {home} is your home" in refusal(scene.identity, home, home=str(scene.home))
    runtime = {"XDG_RUNTIME_DIR": str(scene.home)}
    flag = f"--workspace={home}"
    assert f"{home} is your home" in refusal(scene.identity, scene.workdir, "mcp", flag, home=str(scene.home), **runtime)
    assert belljar(scene.identity, "explain", cwd=scene.workdir, home=str(scene.home)).returncode == 0


@pytest.fixture
def root_and_user(everyone):
    if "root" not in everyone:
        pytest.skip("needs root")
    return everyone["root"], everyone["user"]


def test_under_sudo_the_home_of_who_called_it_is_guarded(root_and_user):
    root, user = root_and_user
    above = os.path.dirname(account_home(user))
    assert f"{above} holds your home" in refusal(root, above, home="/root", SUDO_UID=str(user.uid))
    for strange in ("", "x", "-1", "99999999999999999999"):
        assert belljar(root, "explain", cwd=root.folder, home="/root", SUDO_UID=strange).returncode == 0, strange


def test_root_does_not_hand_over_the_home_of_its_owner(root_and_user):
    root, user = root_and_user
    home = account_home(user)
    assert f"{home} is the home of {user.account}: the program could read the keys" in refusal(root, home, home="/root")
    assert belljar(root, "explain", cwd=user.folder, home="/root").returncode == 0
