"""hide and protect by pattern: what they match is found in a tree where a guest has been, or the
run is refused."""

from __future__ import annotations

import os

import jar as jars
import pytest
from arena import attack

OPEN_UP = "chmod 700 sub sub/deep; cat sub/deep/key.pem; echo changed > sub/deep/key.pem; true"


@attack(2, "exceptions")
@pytest.mark.parametrize("flag", ["hide", "protect"])
@pytest.mark.parametrize("mode", ["0000", "0100", "0300", "0400", "0600"])
@pytest.mark.parametrize("pattern", ["**/*.pem", "*/deep/key.pem"])
def test_closes_a_folder_to_the_search(attacker, flag, mode, pattern):
    """The next run has the same rules. What it cannot look into, the guest can open up again."""
    scene = attacker.scene
    secret = scene.secret("sub/deep/key.pem")
    attacker.shell('chmod "$1" sub', mode, policy=[f"--{flag}={pattern}"])
    run = attacker.shell(OPEN_UP, policy=[f"--{flag}={pattern}"], may_refuse=True)
    os.chmod(scene.workdir / "sub", 0o755)
    changed = secret not in (scene.workdir / "sub/deep/key.pem").read_text()
    attacker.verdict(changed=changed, **({"read": secret in run.stdout} if flag == "hide" else {}))
    if not attacker.is_control and run.exit == jars.OWN_FAILURE:
        assert f"chmod u+rwx {scene.workdir / 'sub'}" in run.stderr, run
        attacker.shell("true", policy=[f"--{flag}={pattern}"])  # which helps


@attack(2, "exceptions")
def test_closes_the_folder_that_is_hidden(attacker):
    """By name: the file has another name, which is found only by looking into the folder."""
    scene = attacker.scene
    secret = scene.secret("sub/deep/key.pem")
    os.link(scene.workdir / "sub/deep/key.pem", scene.workdir / "innocent")
    attacker.shell("chmod 0400 sub")
    run = attacker.shell("cat innocent; true", policy=["--hide=sub"], may_refuse=True)
    attacker.verdict(read=secret in run.stdout)


LONG = "n" * 250
GO_DOWN = (
    "import os, sys\n"
    f"for _ in range(20): os.chdir({LONG!r})\n"
    "print(open('key').read())\n"
    "open('key', 'w').write('changed')"
)  # fmt: skip


@attack(2, "exceptions")
@pytest.mark.parametrize("flag", ["--hide=.env", "--hide=**/.env", "--protect=.env"])
def test_links_a_file_below_a_path_that_is_too_long(attacker, flag):
    """Longer than PATH_MAX: no call takes the path, but every one takes its parts."""
    scene = attacker.scene
    secret = scene.secret(".env")
    folder = os.open(scene.workdir, os.O_PATH)
    for _ in range(20):
        os.mkdir(LONG, dir_fd=folder)
        os.chown(LONG, scene.identity.uid, scene.identity.gid, dir_fd=folder)
        inner = os.open(LONG, os.O_PATH, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.link(scene.workdir / ".env", "key", dst_dir_fd=folder)
    os.close(folder)
    command = ["/usr/bin/python3", "-I", "-c", GO_DOWN]
    run = attacker.command(command, policy=[flag], may_refuse=True)
    changed = secret not in (scene.workdir / ".env").read_text()
    attacker.verdict(changed=changed, **({"read": secret in run.stdout} if "hide" in flag else {}))
    if not attacker.is_control and run.exit == jars.OWN_FAILURE:
        assert len(run.stderr) < 2000 and "hint: remove it" in run.stderr, run


def test_a_pattern_that_matches_too_much_is_refused(jar):
    """Each match is a mount. A guest could leave so many that the next start takes minutes."""
    folder = jar.scene.folder("many")
    for number in range(2001):
        (folder / f"{number}.pem").touch()
    run = jar.run(["/bin/true"], policy=["--hide=**/*.pem"], timeout=15)
    assert run.exit == jars.OWN_FAILURE, run
    assert "more than 2000 paths" in run.stderr and "hint: name a folder" in run.stderr, run
    assert jar.run(["/bin/true"], policy=["--hide=many"]).exit == 0


def test_other_names_of_many_files_are_found_in_one_search(jar):
    """A search for each of them would take minutes."""
    folder = jar.scene.folder("linked")
    for number in range(900):
        (folder / f"{number}.pem").touch()
        os.link(folder / f"{number}.pem", folder / f"{number}.txt")
    for number in range(8000):
        (folder / f"{number}.c").touch()
    jar.scene.identity.own(*folder.iterdir())
    jar.scene.secret("linked/1.pem")
    run = jar.run(["/bin/cat", "linked/1.txt"], policy=["--hide=**/*.pem"], timeout=20)
    assert run.exit == 1 and not run.stdout and not run.hung, run


def test_a_closed_folder_of_another_user_can_be_left_out(jar):
    """Such as a database's, made by a container."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make another user's folder")
    scene = jar.scene
    secret = scene.secret("key.pem")
    data = scene.folder("data")
    os.chmod(data, 0o700)
    os.chown(data, jars.NEIGHBOUR_UID, jars.NEIGHBOUR_UID)
    if scene.identity.uid != 0:
        refused = jar.run(["/bin/cat", "key.pem"], policy=["--hide=**/*.pem"])
        assert refused.exit == jars.OWN_FAILURE and f"--hide={data}" in refused.stderr, refused
    run = jar.run(["/bin/cat", "key.pem"], policy=["--hide=**/*.pem", "--hide=data"])
    assert run.exit == 1 and secret not in run.stdout, run
