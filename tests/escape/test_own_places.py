"""Belljar's own places: its settings, what it trusts, its tokens, its audit trail and its sockets.

No guest sees them, in any profile, whatever is granted, and they are not granted by name.
"""

from __future__ import annotations

import os
import pathlib
import subprocess

import jar as jars
import pytest
from arena import attack

EVERY_PROFILE = (*jars.PROFILES, "trusted-maintenance", "open")
CONFIG = ".config/belljar"
STATE = ".local/state/belljar"
GRANTS = {
    "read": lambda home: [f"--extra-read={home}"],
    "write": lambda home: [f"--extra-write={home}"],
    "workdir": lambda home: [f"-C{home}"],
    "base": lambda home: [f"--extra-read={home / '.local'}", f"--extra-write={home / '.config'}"],
}


def planted(scene) -> dict[str, str]:
    """A secret in each of them, by name."""
    return {
        "config": scene.secret(scene.home / CONFIG / "config.toml", 0o600),
        "tokens": scene.secret(scene.home / STATE / "tokens", 0o600),
        "audit": scene.secret(scene.home / STATE / "audit.jsonl", 0o600),
        "socket": scene.secret(scene.home / "run/belljar/serve.sock", 0o600),
    }


@attack(43, "exceptions", profiles=EVERY_PROFILE)
@pytest.mark.parametrize("grant", GRANTS)
def test_reads_belljars_own_files(attacker, grant):
    scene = attacker.scene
    # The configuration would be read, and is none.
    secrets = planted(scene)
    (scene.home / CONFIG / "config.toml").rename(scene.home / CONFIG / "old.toml")
    homes = [scene.home, "/workspace", "."]
    run = attacker.shell(
        'for h in "$@"; do find "$h/.config" "$h/.local" "$h/run" -type f -exec cat {} +; done;'
        ' for h in "$@"; do cat "$h/.local/state/belljar/tokens"; done; true',
        *homes,
        policy=GRANTS[grant](scene.home),
        env={"XDG_RUNTIME_DIR": str(scene.home / "run")},
    )
    if grant == "base":
        del secrets["socket"]
    attacker.verdict(**{name: secret in run.stdout for name, secret in secrets.items()})


TAMPER = """
for h in "$@"; do
  cd "$h" 2>/dev/null || continue
  mkdir -p .config/belljar .local/state/belljar
  echo admin > .local/state/belljar/tokens
  echo '[sandbox]' > .config/belljar/config.toml
  mv .config moved-config; mv .local moved-local; mv .local/state moved-state
  mkdir -p .config/belljar .local/state/belljar
  echo admin > .local/state/belljar/tokens
  echo '[sandbox]' > .config/belljar/config.toml
done
true
"""


@attack(43, "exceptions", profiles=EVERY_PROFILE)
@pytest.mark.parametrize("there", ["all", "above", "nothing"])
def test_makes_or_changes_belljars_own_files(attacker, there):
    """Also those that are not there yet. Nothing that was made for this stays behind."""
    scene = attacker.scene
    if there == "all":
        scene.file(scene.home / CONFIG / "config.toml", "")
        scene.file(scene.home / STATE / "tokens", "")
    if there == "above":
        scene.folder(scene.home / ".config/other")
        scene.folder(scene.home / ".local")
    before = jars.snapshot(scene.home)
    attacker.shell(TAMPER, scene.home, "/workspace", policy=[f"-C{scene.home}"])
    tokens, config = scene.home / STATE / "tokens", scene.home / CONFIG / "config.toml"
    attacker.verdict(
        tokens=tokens.exists() and tokens.read_text() != "",
        config=config.exists() and config.read_text() != "",
    )
    if not attacker.is_control and not attacker.runner.losses():
        # What cannot be moved mv copies, as far as it can.
        left = [path for path in jars.snapshot(scene.home) if path not in before and not path.startswith("moved-")]
        assert not left, "something was left behind"


@attack(43, "exceptions", profiles=EVERY_PROFILE)
def test_reads_settings_that_a_symlink_leads_to(attacker):
    """As those who keep their settings in a repository have it."""
    scene = attacker.scene
    kept = scene.file(scene.home / "dotfiles/belljar.toml", "# belljar-secret-in-a-comment\n")
    config = scene.folder(scene.home / CONFIG)
    (config / "config.toml").symlink_to(kept)
    run = attacker.shell(
        'cat "$1"; echo "[sandbox]" > "$1"; true', kept, policy=[f"--extra-write={scene.home}"]
    )
    attacker.verdict(
        read="belljar-secret-in-a-comment" in run.stdout, changed="[sandbox]" in kept.read_text()
    )


BY_NAME = {
    "extra-read": "--extra-read={}",
    "extra-write": "--extra-write={}",
    "below": "--extra-read={}/tokens",
    "missing": "--extra-write={}/new/folder",
    "workdir": "-C{}",
    "home": "--home={}",
    "cache": "--cache={}",
    "tmp": "--tmp={}",
    "credential": "--credential={}/tokens:~/tokens",
    "by_symlink": "--extra-read=../../link",
}


@pytest.mark.parametrize("how", BY_NAME)
def test_granting_them_by_name_is_refused(jar, how):
    scene = jar.scene
    planted(scene)
    (scene.home / CONFIG / "config.toml").unlink()
    (scene.home / "link").symlink_to(STATE)
    run = jar.run(["/bin/true"], policy=[BY_NAME[how].format(scene.home / STATE)])
    assert run.exit == jars.OWN_FAILURE, run
    if how != "credential" or jar.profile != "public-bot":  # which takes no credentials at all
        assert "is belljar's own" in run.stderr and "hint: " in run.stderr, run
    assert not (scene.home / STATE / "new").exists()


def test_a_folder_beside_them_can_be_granted(jar):
    """The control of the one above."""
    text = jar.scene.secret(jar.scene.home / ".local/state/other/file")
    run = jar.run(
        ["/bin/cat", jar.scene.home / ".local/state/other/file"],
        policy=[f"--extra-read={jar.scene.home / '.local/state/other'}"],
    )
    assert run.exit == 0 and text in run.stdout, run


@pytest.mark.parametrize("there", [False, True])
def test_many_at_the_same_time_with_the_home_in_the_workdir(scene, there):
    """They make and remove the same folders under one another."""
    jar = jars.Jar(scene, "developer")
    jar.refused_if_expected()
    if there:
        scene.folder(scene.home / ".config")
    before = jars.snapshot(scene.home)
    argv = scene.identity.command(jar.argv(["/bin/true"], [f"-C{scene.home}"], None))
    waiting, failed = 150, []
    running: list[subprocess.Popen] = []
    while waiting or running:
        while waiting and len(running) < 12:
            waiting -= 1
            running.append(subprocess.Popen(
                argv, cwd=scene.home, env=jar.environment(), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            ))  # fmt: skip
        done = running.pop(0)
        said, _ = done.communicate(timeout=60 * jars.SLOWER)
        if done.returncode != 0:
            failed.append(said)
    assert not failed, f"{len(failed)} of 150: {failed[:3]}"
    assert set(before) == set(jars.snapshot(scene.home)), "something was left behind"


def test_a_folder_that_a_killed_run_left_is_removed_by_the_next(scene):
    jar = jars.Jar(scene, "developer")
    jar.refused_if_expected()
    process = jar.start(["/bin/sleep", "60"], policy=[f"-C{scene.home}"], cwd=scene.home)
    config = scene.home / CONFIG
    while process.poll() is None and not (config.exists() and list(config.iterdir())):
        pass
    process.kill()
    process.communicate()
    if not any("mounts" in loss for loss in jar.losses()):
        assert config.exists(), "it was killed too late to leave anything"
    assert jar.run(["/bin/true"], policy=[f"-C{scene.home}"], cwd=scene.home).exit == 0
    assert not (scene.home / ".config").exists() and not (scene.home / ".local").exists()


def test_an_open_guest_still_sees_all_else(scene):
    """`open` denies nothing but belljar's own."""
    text = scene.secret(scene.home / ".config/other/settings")
    scene.file(scene.home / CONFIG / "config.toml", "")
    run = jars.Jar(scene, "open").run(
        ["/bin/sh", "-c", 'cat "$1/other/settings" && touch "$1/new" && ls "$1/belljar"', "sh", scene.home / ".config"]
    )
    assert text in run.stdout and "config.toml" not in run.stdout, run
    assert (scene.home / ".config/new").exists(), run
