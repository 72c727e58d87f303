"""The examples of docs/server.md with curl run as they stand, in their order, against one server.

A ```console block has commands after `$ `, which go on after `> `, and what each prints. `...` stands for
anything, within a line or, alone on a line, for any lines.
"""

from __future__ import annotations

import pathlib
import re

import jar as jars

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs/server.md").read_text()
MARK = "=-=-= command ="


def commands() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in "".join(re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif line.startswith("> "):
            found[-1] = (found[-1][0] + "\n" + line[2:], "")
        else:
            found[-1] = (found[-1][0], found[-1][1] + line + "\n")
    return found


def pattern_of(expected: str) -> str:
    pattern = ""
    for line in expected.splitlines(keepends=True):
        pattern += r"(?:.*\n)*?" if line == "...\n" else ".*".join(map(re.escape, line.split("...")))
    return pattern


def test_the_examples_with_curl_work(start, scene):
    config = '[permissions]\nwrite = "ask"\n'
    server = start(tokens={}, profile="restricted", config=config)
    state = scene.folder(scene.home / ".local/state/belljar", 0o700)
    (state / "tokens").symlink_to(server.token_file)
    script = "".join(f"\necho '{MARK}'\n{command}" for command, _ in commands())
    script = script.replace("127.0.0.1:8077", f"127.0.0.1:{server.port}")
    outside = jars.Outside(scene)
    run = outside.run(
        ["/bin/bash", "-c", f"exec 2>&1\n{script}\necho '{MARK}'"],
        env={"PATH": jars.SYSTEM_PATH, "HOME": str(scene.home)}, timeout=240.0,
    )  # fmt: skip
    assert not run.hung, run
    outputs = [part.lstrip("\n") for part in run.stdout.split(MARK + "\n")[1:]]
    assert len(outputs) == len(commands()) + 1 > 20, run
    for (command, expected), output in zip(commands(), outputs, strict=False):
        # curl leaves a body that is not JSON's without a line end, and jq does not.
        assert re.fullmatch(pattern_of(expected), output), f"$ {command}\nexpected:\n{expected}\ngot:\n{output}\n{run}"


def test_the_first_token_is_the_administrators(start):
    server = start(tokens={})
    assert server.token_file.read_text().split()[:2] == ["default", "admin"]
    assert "The first token of the file is the administrator's" in PAGE


def test_dispatch_with_a_wrong_token_answers_401(server, ann):
    session = ann.session()
    address = f"/v1/dispatch/{session}?token=wrong-token-0123456789"
    assert server.client(None)("POST", address, b"{}").status == 401
    path = ann.post(f"/v1/sessions/{session}/dispatch").json["path"]
    assert server.client(None)("POST", path, b"{}").status == 200, "the control"
