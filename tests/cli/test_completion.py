"""The bash completion, by pressing Tab in a real bash; those of zsh and fish where they are installed."""

from __future__ import annotations

import shutil
import subprocess

import jar as jars
import pytest
from bash_session import Bash

PROFILES = ["developer", "mine", "open", "public-bot", "restricted", "trusted-maintenance"]


CONFIG = """
[profiles.mine]
extends = "public-bot"
[tasks.build]
run = "true"
[tasks.test]
run = "true"
[tasks."$(touch evil)"]
run = "true"
"""


@pytest.fixture(scope="module")
def bash(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    (folder / "folder").mkdir()
    (folder / "file.txt").touch()
    (folder / "belljar.toml").write_text(CONFIG)
    programs = tmp_path_factory.mktemp("programs")
    (programs / "belljar").symlink_to(jars.binary())
    shell = Bash(str(folder), f"{programs}:/usr/bin:/bin")
    shell.run("source <(belljar completion bash)")
    yield shell
    shell.close()


CASES = {
    "belljar ex": ["exec", "explain"],
    "belljar --co": ["--color="],
    "belljar --color=": ["always", "auto", "never"],
    "belljar exec --prof": ["--profile="],
    "belljar exec --profile=": PROFILES,
    "belljar exec --profile ": PROFILES,
    "belljar exec --profile=pub": ["--profile=public-bot"],
    "belljar exec --network=": ["full", "loopback", "none"],
    "belljar x --deny-w": ["--deny-write"],
    "belljar exec --timeout 3 --deny-w": ["--deny-write"],
    "belljar --quiet exec --deny-w": ["--deny-write"],
    "belljar exec --allow-read=fi": ["--allow-read=file.txt"],
    "belljar exec -C ": ["folder/"],
    "belljar exec tou": ["touch"],
    "belljar exec ./fil": ["./file.txt"],
    "belljar exec -- ls f": ["file.txt", "folder/"],
    "belljar exec --network=none ls f": ["file.txt", "folder/"],
    "belljar exec ls --deny-w": ["--deny-w"],
    "belljar explain --jso": ["--json"],
    "belljar doctor --verify ": PROFILES,
    "belljar doctor --deny-w": ["--deny-w"],
    "belljar help d": ["doctor"],
    "belljar run ": ["build", "test"],
    "belljar run --network=none te": ["test"],
    "belljar exec --profile=mi": ["--profile=mine"],
    "belljar completion ": ["bash", "fish", "zsh"],
}


@pytest.mark.parametrize(("typed", "offered"), CASES.items(), ids=CASES.keys())
def test_bash_offers(bash, typed, offered):
    assert bash.tab(typed) == offered


def test_a_name_in_a_file_is_not_run(bash):
    bash.tab("belljar run ")
    assert "evil" not in bash.run("ls")


def test_bash_that_does_not_split_at_equals(bash):
    bash.run("old=$COMP_WORDBREAKS; COMP_WORDBREAKS=${COMP_WORDBREAKS//=}")
    try:
        assert bash.tab("belljar exec --profile=pub") == ["--profile=public-bot"]
        assert bash.tab("belljar exec --allow-read=fi") == ["--allow-read=file.txt"]
        assert bash.tab("belljar exec --profile=open --deny-w") == ["--deny-write"]
    finally:
        bash.run("COMP_WORDBREAKS=$old")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_has_no_syntax_error(shell, tmp_path):
    script = subprocess.run([jars.binary(), "completion", shell], capture_output=True, check=True).stdout
    assert b"--max-memory-mb" in script or b"max-memory-mb" in script
    if shutil.which(shell) is None:
        return  # not everyone has all three; bash is always there
    (tmp_path / "script").write_bytes(script)
    subprocess.run([shell, "-n", tmp_path / "script"], check=True, timeout=20)
