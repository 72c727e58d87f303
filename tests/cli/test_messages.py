"""What is said when a command cannot start, or did not end as one would think."""

from __future__ import annotations

import json
import os
import shutil

import jar as jars
import pytest


@pytest.fixture
def plain(scene):
    return jars.Jar(scene)


# ---- a command that does not start ----


def test_a_missing_interpreter_is_named(plain, scene):
    scene.file("crlf", "#!/bin/bash\r\necho x\r\n", 0o755)
    scene.file("gone", "#! /opt/none/python -u\n", 0o755)
    run = plain.run(["./crlf"])
    assert run.exit == 127, run
    assert 'belljar: ./crlf: its interpreter "/bin/bash\\r" was not found (Windows line ends?)\n' in run.stderr
    assert './gone: its interpreter "/opt/none/python" was not found\n' in plain.run(["./gone"]).stderr


def test_an_interpreter_that_is_not_shown_is_named(plain, scene):
    shutil.copy("/bin/sh", scene.outside / "sh")
    scene.file("script", f"#!{scene.outside}/sh\n", 0o755)
    assert f"--extra-read={scene.outside}/sh" in plain.run(["./script"]).stderr


def test_a_command_that_is_not_shown_gets_a_hint(plain, scene):
    tool = scene.file(scene.outside / "tool", "#!/bin/sh\n", 0o755)
    run = plain.run([tool])
    assert run.exit == 127 and f"{tool} exists, but the policy does not show it: --extra-read={tool}" in run.stderr
    assert plain.run([tool], policy=[f"--extra-read={tool}"]).exit == 0
    run = plain.run(["../../../outside/tool"])
    assert "exists, but the policy does not show it" in run.stderr, run


def test_the_guests_path_is_searched(plain, scene):
    scene.file(scene.outside / "tool", "#!/bin/sh\n", 0o755)
    run = plain.run(["tool"], policy=[f"--env=PATH={scene.outside}"])
    assert f"--extra-read={scene.outside}\n" in run.stderr, run
    assert "ls: command not found" in plain.run(["ls"], policy=["--env=PATH=/x"]).stderr
    assert "hint" not in plain.run(["ls"], policy=["--env=PATH=/x"]).stderr


def test_a_jar_in_a_jar_is_refused_in_words(plain, scene):
    shutil.copy(jars.binary(), scene.workdir / "belljar")
    os.chmod(scene.workdir / "belljar", 0o755)
    run = plain.run(["./belljar", "exec", "--", "true"])
    assert run.exit == jars.OWN_FAILURE and "belljar cannot run inside a jar" in run.stderr, run


# ---- the report ----


def test_a_link_left_for_the_report_is_replaced(plain, scene):
    victim = scene.file(scene.outside / "victim", "mine\n")
    report = scene.workdir / "report.json"
    run = plain.run(["ln", "-s", os.fspath(victim), "report.json"], report=report)
    assert run.exit == 0, run
    assert victim.read_text() == "mine\n"
    assert not report.is_symlink() and json.loads(report.read_text())["exit_code"] == 0
    assert sorted(os.listdir(scene.workdir)) == ["report.json"]


def test_a_report_that_cannot_be_written_does_not_change_the_exit_code(plain, scene):
    report = scene.workdir / "report.json"
    run = plain.run(["sh", "-c", "mkdir report.json; exit 3"], report=report)
    assert run.exit == 3 and "write the report" in run.stderr, run
    assert os.listdir(scene.workdir) == ["report.json"]


# ---- limits ----


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_limit_that_ended_a_child_is_said(plain):
    write = "dd if=/dev/zero of=big bs=1M count=3 2>/dev/null"
    run = plain.run(["sh", "-c", f"{write}; exit $?"], policy=["--max-file-sz-mb=1"])
    assert run.exit == 153 and run.report["limits_hit"] == ["max_file_sz_mb"], run
    assert "it met a limit: a file larger than 1 MB (--max-file-sz-mb changes it)" in run.stderr
    assert run.report["reason"] == "exited"
    run = plain.run(["sh", "-c", f"{write}; exit 0"], policy=["--max-file-sz-mb=1"])
    assert (run.exit, run.stderr, run.report["limits_hit"]) == (0, "", []), run
    run = plain.run(["sh", "-c", "exit 153"], policy=["--max-file-sz-mb=unlimited"])
    assert (run.exit, run.stderr) == (153, ""), run


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_sigsys_is_not_put_down_to_the_filter_for_certain(plain):
    run = plain.run(["sh", "-c", "kill -SYS $$"])
    assert run.exit == 159 and "most likely" in run.stderr, run


@pytest.fixture
def venv(scene):
    folder = scene.home / "venv"
    scene.file(folder / "pyvenv.cfg", "home = /usr/bin\n")
    scene.folder(folder / "bin")
    (folder / "bin/python").symlink_to("/usr/bin/python3")
    return folder


def test_a_program_of_a_venv_is_said_to_need_all_of_it(scene, venv):
    """What the link leads to is shown: that is not enough."""
    jar = jars.Jar(scene, "restricted")
    python = f"{venv}/bin/python"
    hint = f"{python} exists, but the policy does not show it: --extra-read={venv}\n"
    script = scene.file("script", f"#!{python}\nimport sys; print(sys.prefix)\n", 0o755)
    by_path = {"PATH": f"{venv}/bin:{jars.SYSTEM_PATH}"}
    for command, env in (([python, "-V"], None), (["python", "-V"], by_path), ([os.fspath(script)], None)):
        run = jar.run(command, env=env)
        assert run.exit == 127 and run.stderr.endswith(hint), run
        assert jar.run(command, env=env, policy=[f"--extra-read={venv}"]).exit == 0
    assert jar.run([os.fspath(script)], policy=[f"--extra-read={venv}"]).stdout == f"{venv}\n"
