"""Every example of the README works as it says.

A ```console block has commands after `$ ` and what each prints. `...` stands for anything, within
a line or, alone on a line, for any lines. A comment `<!-- given ... -->` before a block is run first.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil

import jar as jars
import pytest

README = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
PARTS = re.findall(r"<!-- given\n(.*?)-->|```console\n(.*?)```", README, re.DOTALL)
MARK = "=-=-= command ="


def examples():
    """(id, what is given up to there, the block)"""
    given = ""
    for setup, block in PARTS:
        given += setup
        if block:
            yield pytest.param(given, block, id=block.split("\n")[0][2:60])


def commands_of(block: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, output = found[-1]
            found[-1] = (command, output + line + "\n")
    return found


def pattern_of(expected: str) -> str:
    pattern = ""
    for line in expected.splitlines(keepends=True):
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split("..."))
    return pattern


def test_examples_are_found():
    assert len(list(examples())) >= 8
    assert README.count("```console") == len(list(examples()))


@pytest.mark.parametrize(("given", "block"), examples())
def test_example(scene, given, block):
    commands = commands_of(block)
    script = given + "".join(f"\necho '{MARK}'\n{command}" for command, _ in commands)
    programs = scene.folder(scene.base / "bin")
    # Not a symlink: the project may lie where the user cannot go, as below /root.
    try:
        os.link(jars.binary(), programs / "belljar")
    except OSError:  # another file system
        shutil.copy2(jars.binary(), programs / "belljar")
    environment = {"PATH": f"{programs}:{jars.SYSTEM_PATH}", "TOKEN": "abc"}
    outside = jars.Outside(scene)
    run = outside.run(["/bin/bash", "-c", f"exec 2>&1\n{script}"], env=environment)
    assert not run.hung, run
    outputs = [part.lstrip("\n") for part in run.stdout.split(MARK)[1:]]
    assert len(outputs) == len(commands), run
    for (command, expected), output in zip(commands, outputs, strict=True):
        assert re.fullmatch(pattern_of(expected), output), f"$ {command}\nexpected:\n{expected}\ngot:\n{output}\n{run}"


def test_program_is_static():
    """No interpreter is asked for, so no library is needed when it runs."""
    data = pathlib.Path(jars.binary()).read_bytes()
    offset = int.from_bytes(data[32:40], "little")
    size = int.from_bytes(data[54:56], "little")
    count = int.from_bytes(data[56:58], "little")
    kinds = [int.from_bytes(data[offset + i * size :][:4], "little") for i in range(count)]
    assert data[:4] == b"\x7fELF" and 1 in kinds
    assert 3 not in kinds, "it has a program interpreter (PT_INTERP)"
