"""Help, version and the flags that every command has."""

from __future__ import annotations

import os
import pty
import re
import subprocess

import jar as jars
import pytest

COMMANDS = re.findall(r"^  (\w+)", subprocess.run(
    [jars.binary(), "--help"], capture_output=True, text=True, check=True,
).stdout.split("Commands\n")[1].split("\n\n")[0], re.MULTILINE)  # fmt: skip


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def belljar(*words: str, **how) -> subprocess.CompletedProcess:
    how = {"timeout": 20, "capture_output": True, "text": True, **how}
    return subprocess.run([jars.binary(), *words], **how)


def flags_in(help_text: str) -> list[str]:
    return re.findall(r"^  (?:-\w, )?--([a-z-]+)", help_text, re.MULTILINE)


def test_help_is_the_same_by_all_ways():
    assert belljar("--help").stdout == belljar("-h").stdout == belljar("help").stdout
    assert belljar("help", "exec").stdout == belljar("exec", "--help").stdout == belljar("x", "-h").stdout
    assert belljar("--help", "exec").stdout == belljar("help", "exec").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    run = belljar("help", command)
    assert run.returncode == 0 and f"Usage: belljar {command}" in run.stdout
    assert run.stderr == ""


def test_flags_of_a_policy_are_grouped_and_none_is_left_out():
    text = belljar("help", "exec").stdout
    groups = ["Policy", "Files", "Network", "Variables", "Limits", "Places", "Flags of every command"]
    places = [text.index(f"\n{group}\n") for group in groups]
    assert places == sorted(places)
    limits = flags_in(text[places[4] : places[5]])
    assert limits[0] == "max-memory-mb" and limits[-1] == "timeout"
    assert len(flags_in(text)) == len(set(flags_in(text)))
    assert "unlimited" in text and "** match" in text


def test_hidden_commands_are_not_listed():
    assert "man" not in COMMANDS and "docs" not in COMMANDS
    assert belljar("man").returncode == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_in_the_help_is_known(command):
    if command in ("help", "completion"):
        return
    for flag in flags_in(belljar("help", command).stdout):
        # Twice: what takes a value has the first for it, and a server must not begin to serve.
        run = belljar(command, f"--{flag}", "--no-such-flag", "--no-such-flag")
        assert f"unknown flag --{flag}" not in run.stderr, f"{command} --{flag}: {run.stderr}"


def test_flags_after_the_program_are_the_programs():
    for words in (["--", "ls", "--help"], ["ls", "--help"], ["ls", "--version"]):
        run = belljar("exec", *words)
        assert "ls" in run.stdout and "belljar" not in run.stdout, run


def test_value_of_a_flag_is_no_flag():
    run = belljar("exec", "--timeout", "--help", "--", "true")
    assert run.returncode == jars.OWN_FAILURE and "--timeout" in run.stderr


def test_version():
    run = belljar("--version")
    assert run.returncode == 0 and re.fullmatch(r"belljar \d+\.\d+\.\d+\n", run.stdout)
    assert belljar("exec", "-V").stdout == run.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "no command"),
        (["exce"], "did you mean belljar exec?"),
        (["node", "x.js"], "belljar exec -- node"),
        (["--nope", "exec"], "--nope"),
        (["exec", "--quite", "--", "true"], "did you mean --quiet?"),
        (["exec", "-t", "--", "true"], "unknown flag -t"),
        (["exec", "-C"], "-C needs a value"),
        (["exec", "--report", "--", "true"], "--report needs a value"),
        (["exec", "--report=-", "--", "true"], "name a file"),
        (["exec", "--report=/dev/stdout", "--", "true"], "not a regular file"),
        (["exec", "--max-open-fds=5", "--", "true"], "--max-open-fds: must be between 16 and"),
        (["version"], "belljar --version"),
        (["--color=blue", "help"], "blue"),
        (["--color"], "color"),
        (["--quiet=yes", "help"], "takes no value"),
        (["help", "nope"], "nope"),
        (["help", "exec", "doctor"], "one command"),
        (["completion"], "bash, zsh, fish"),
        (["completion", "csh"], "bash, zsh, fish"),
        (["man", "ls"], "belljar-exec"),
        (["docs"], "policy"),
        (["doctor", "--profile=open"], "belljar explain"),
    ],
)
def test_what_is_not_understood_is_refused(words, says):
    run = belljar(*words)
    assert run.returncode == jars.OWN_FAILURE
    assert says in run.stderr and run.stdout == ""


def test_quiet_hides_warnings():
    words = ["exec", "--sandbox=off", "--", "true"]
    assert "warning: no sandbox" in belljar(*words).stderr
    assert belljar("--quiet", *words).stderr == ""
    assert belljar("exec", "-q", *words[1:]).stderr == ""


def test_quiet_does_not_hide_errors():
    assert "nope" in belljar("-q", "exec", "--profile=nope", "--", "true").stderr
    assert "command not found" in belljar("-q", "exec", "--", "no-such-program").stderr


def test_verbose_shows_the_steps_of_a_launch():
    words = ["--", "true"]
    assert "launch:" not in belljar("exec", *words).stderr
    steps = re.findall(r"launch: (\w+) \d+ µs", belljar("exec", "--verbose", *words).stderr)
    assert steps[-1] == "init" and steps.index("landlock") < steps.index("seccomp")


def on_a_terminal(words: list[str], env: dict[str, str]) -> str:
    """What belljar prints to a terminal."""
    main, terminal = pty.openpty()
    process = subprocess.Popen([jars.binary(), *words], stdin=terminal, stdout=terminal, stderr=terminal, env=env)
    os.close(terminal)
    seen = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # EIO: the other side is closed
            break
        if not part:
            break
        seen += part
    os.close(main)
    process.wait(timeout=20)
    return seen.decode()


def test_colour_only_on_a_terminal():
    escape = "\x1b["
    assert escape not in belljar("--help").stdout and escape not in belljar("exec").stderr
    assert escape in on_a_terminal(["--help"], {"TERM": "xterm"})
    assert escape not in on_a_terminal(["--help"], {"TERM": "dumb"})
    assert escape not in on_a_terminal(["--help"], {"TERM": "xterm", "NO_COLOR": "1"})
    assert escape not in on_a_terminal(["--color=never", "--help"], {"TERM": "xterm"})
    assert escape in belljar("--color=always", "--help", env={"NO_COLOR": "1"}).stdout
    assert escape in belljar("--color=always", "exec").stderr
