"""Configuration: what is not understood is refused, and a guest cannot loosen anything."""

from __future__ import annotations

import os
import pathlib
import shutil

import jar as jars
import pytest
from arena import attack

# ------------------------------------------------------------ 42: refuse, and say where

BAD_FLAGS = {
    "unknown_flag": (["--no-such-flag"], "no-such-flag"),
    "unknown_flag_with_value": (["--no-such-flag=1"], "no-such-flag"),
    "abbreviated_flag": (["--prof=public-bot"], "prof"),
    "unknown_profile": (["--profile=nope"], "nope"),
    "empty_profile": (["--profile="], "profile"),
    "unknown_network": (["--network=maybe"], "maybe"),
    "empty_network": (["--network="], "network"),
    "unknown_mode": (["--sandbox=perhaps"], "perhaps"),
    "memory_negative": (["--max-memory-mb=-1"], "max-memory-mb"),
    "memory_word": (["--max-memory-mb=lots"], "max-memory-mb"),
    "memory_fraction": (["--max-memory-mb=1.5"], "max-memory-mb"),
    "memory_empty": (["--max-memory-mb="], "max-memory-mb"),
    "memory_tail": (["--max-memory-mb=64x"], "max-memory-mb"),
    "memory_overflow": (["--max-memory-mb=18446744073709551616"], "max-memory-mb"),
    "memory_overflow_in_bytes": (["--max-memory-mb=18446744073709551615"], "max-memory-mb"),
    "procs_word": (["--max-procs=many"], "max-procs"),
    "procs_negative": (["--max-procs=-5"], "max-procs"),
    "cpu_word": (["--max-cpu-secs=x"], "max-cpu-secs"),
    "fds_word": (["--max-open-fds=x"], "max-open-fds"),
    "file_size_word": (["--max-file-sz-mb=x"], "max-file-sz-mb"),
    "timeout_negative": (["--timeout=-1"], "timeout"),
    "timeout_word": (["--timeout=soon"], "timeout"),
    "timeout_nan": (["--timeout=nan"], "timeout"),
    "timeout_infinite": (["--timeout=inf"], "timeout"),
    "hide_empty": (["--hide="], "hide"),
    "protect_empty": (["--protect="], "protect"),
    "workdir_missing": (["-C", "/nonexistent-belljar"], "nonexistent-belljar"),
    "workdir_is_a_file": (["-C", "/etc/passwd"], "/etc/passwd"),
    "report_in_no_folder": (["--report=/nonexistent-belljar/report"], "nonexistent-belljar"),
    "accepts_an_unknown_loss": (["--accept-degraded=everything"], "everything"),
}


def refused(jar, policy, says: str, env=None) -> None:
    scene = jar.scene
    argv = [jars.binary(), "exec", *policy, "--", "/usr/bin/touch", "ran"]
    run = jars.Outside(scene).run(argv, env=env, timeout=15)
    assert run.exit == jars.OWN_FAILURE, f"not refused:\n{run}"
    assert not (scene.workdir / "ran").exists(), f"refused, but ran:\n{run}"
    # By the flag's name or by the key's.
    assert says in run.stderr.replace("_", "-"), f"does not say what was wrong:\n{run}"


@pytest.fixture
def plain(scene):
    """No profile flag of its own: the test gives all."""
    return jars.Jar(scene)


def test_a_good_command_is_not_refused(plain):
    """The control of those below."""
    run = plain.run(["/usr/bin/touch", "ran"])
    assert run.exit == 0, run
    assert (plain.scene.workdir / "ran").exists(), run


@pytest.mark.parametrize(("policy", "says"), BAD_FLAGS.values(), ids=BAD_FLAGS.keys())
def test_bad_flag_is_refused(plain, policy, says):
    refused(plain, policy, says)


@pytest.mark.parametrize("rest", [[], ["--"]], ids=["nothing", "only_dashes"])
def test_no_command_is_refused(plain, rest):
    run = jars.Outside(plain.scene).run([jars.binary(), "exec", *rest], timeout=15)
    assert run.exit == jars.OWN_FAILURE and run.stderr, run


def test_bad_mode_in_the_environment_is_refused(plain):
    refused(plain, [], "BELLJAR-SANDBOX", env={"BELLJAR_SANDBOX": "of"})


BAD_FILES = {
    "not_toml": "this is [not toml",
    "unknown_key": "no_such_key = 1\n",
    "unknown_section": "[no_such_section]\nx = 1\n",
    "wrong_type": "[sandbox]\nmode = 7\n",
    "nul": "[sandbox]\n\0\n",
}


@pytest.mark.parametrize("text", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_configuration_file_is_refused(plain, text):
    plain.scene.file("belljar.toml", text)
    refused(plain, [], "belljar.toml")


@pytest.mark.parametrize("flag", ["--allow-read=", "--allow-write=", "--allow-net=", "--allow-env="])
def test_an_empty_list_means_none(plain, flag):
    """Not `no filter`: an allow of nothing denies the whole dimension, or is refused."""
    scene = plain.scene
    secret = scene.secret(scene.home / "plain.txt")
    listener = jars.Listener(jars.socket.AF_INET, jars.socket.SOCK_STREAM, ("127.0.0.1", 0))
    scene.on_exit(listener.close)
    script = {
        "--allow-read=": 'cat "$1"',
        "--allow-write=": 'echo x > "$2"',
        "--allow-net=": 'exec 3<>/dev/tcp/127.0.0.1/"$3"',
        "--allow-env=": "env",
    }[flag]
    target = scene.outside / "made"
    command = ["/bin/bash", "-c", script, "bash", scene.home / "plain.txt", target, str(listener.port)]
    env = {"TOKEN": "belljar-secret-token"}
    run = plain.run(command, policy=[flag], env=env)
    assert secret not in run.stdout, run
    assert not target.exists(), run
    assert not listener.called(), run
    assert "belljar-secret-token" not in run.stdout, run


# ------------------------------------------------- 43: the guest turns the sandbox off


@attack(43, "files")
@pytest.mark.parametrize("name", ["BELLJAR_SANDBOX", "BELLJAR_PROFILE", "BELLJAR_MODE"])
def test_an_explicit_mode_beats_the_environment(attacker, name):
    value = "open" if name == "BELLJAR_PROFILE" else "off"
    run = attacker.run(
        "01_read", attacker.scene.home / ".ssh/id_rsa", env={name: value}, policy=["--sandbox=auto"]
    )
    attacker.verdict(key=attacker.scene.ssh_key in run.stdout)


NESTED = """
export BELLJAR_SANDBOX=off
for belljar in "$1" ./belljar; do
  "$belljar" exec --sandbox=off -- cat "$2"
  "$belljar" exec --profile=open -- cat "$2"
done
cat "$2"
"""


@attack(43, "files")
def test_runs_belljar_inside_to_get_out(attacker):
    """A sandbox in the sandbox, asked for nothing, is still in the first."""
    scene = attacker.scene
    shutil.copy(jars.binary(), scene.workdir / "belljar")
    run = attacker.shell(NESTED, jars.binary(), scene.home / ".ssh/id_rsa", may_end_early=True)
    attacker.verdict(key=scene.ssh_key in run.stdout)


LOOSE = """
[sandbox]
mode = "off"
profile = "open"
extra_read = ["/"]
allow_read = ["/"]
accept_degraded = ["files"]
"""


@attack(43, "files")
@pytest.mark.parametrize("where", ["belljar.toml", ".belljar.toml", ".config/belljar/belljar.toml"])
def test_loosens_the_next_run_by_a_configuration_file(attacker, where):
    """The guest writes it; the next run may refuse to start, or not believe it."""
    scene = attacker.scene
    attacker.shell(
        'mkdir -p "$(dirname "$1")" "$HOME/.config/belljar";'
        'echo "$2" > "$1"; echo "$2" > "$HOME/.config/belljar/belljar.toml";'
        'echo "$2" > "$HOME/.config/belljar/config.toml"; echo "$2" > "$HOME/belljar.toml"; true',
        where,
        LOOSE,
    )
    # As a person would: no flag at all, in the folder where the guest has been.
    if attacker.is_control:
        run = attacker.run("01_read", scene.home / ".ssh/id_rsa")
    else:
        attacker.runner.profile = None
        run = attacker.run("01_read", scene.home / ".ssh/id_rsa", may_refuse=True)
    attacker.verdict(key=scene.ssh_key in run.stdout)


@attack(43, "files")
def test_writes_the_callers_own_configuration(attacker):
    scene = attacker.scene
    config = scene.folder(scene.home / ".config/belljar")
    before = jars.snapshot(config)
    attacker.shell(
        'for f in belljar.toml config.toml trust trusted.json; do echo x > "$1/$f"; done; true', config
    )
    attacker.verdict(changed=before != jars.snapshot(config))


@attack(43, "files")
def test_replaces_the_belljar_binary(attacker):
    scene = attacker.scene
    binary = scene.folder(scene.home / "bin") / "belljar"
    shutil.copy(jars.binary(), binary)
    os.chmod(binary, 0o777)
    scene.identity.own(binary)
    before = jars.snapshot(binary)
    real = os.environ["BELLJAR"]
    os.environ["BELLJAR"] = str(binary)
    try:
        attacker.shell(
            'echo x > "$1"; rm -f "$1"; cp /bin/true ./mine; mv -f mine "$1"; ln -sf /bin/true "$1"; true',
            binary,
            env={"PATH": f"{binary.parent}:{jars.SYSTEM_PATH}"},
        )
    finally:
        os.environ["BELLJAR"] = real
    attacker.verdict(changed=before != jars.snapshot(binary))


@attack(43, "files")
def test_writes_the_running_binary_through_proc(attacker):
    """/proc/<pid>/exe of init is belljar itself, as runc once learned."""
    scene = attacker.scene
    binary = scene.folder(scene.home / "bin") / "belljar"
    shutil.copy(jars.binary(), binary)
    os.chmod(binary, 0o777)
    scene.identity.own(binary)
    before = pathlib.Path(binary).read_bytes()
    real = os.environ["BELLJAR"]
    os.environ["BELLJAR"] = str(binary)
    script = 'for p in /proc/[0-9]*; do (echo x >> "$p/exe"); done 2>/dev/null; true'
    if attacker.is_control:
        script = 'echo x >> "$1"'
    try:
        attacker.shell(script, binary)
    finally:
        os.environ["BELLJAR"] = real
    attacker.verdict(changed=before != pathlib.Path(binary).read_bytes())
