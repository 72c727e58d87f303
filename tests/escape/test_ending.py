"""The end of a jar, which depends on nothing inside it."""

from __future__ import annotations

import os
import pathlib
import secrets
import time

import jar as jars
import poor
import pytest
from arena import CONTROL, attack, findings
from test_life import POOR, end_all

BUSY = 50


def new_mark(scene) -> str:
    mark = "mark-" + secrets.token_hex(8)
    scene.on_exit(end_all, mark)
    return mark


def whom(attacker) -> str:
    """Only a user made for the tests can be slowed down as a whole."""
    return "init" if not attacker.is_control else "own" if os.geteuid() == 0 else "own_alone"


def start_busy(attacker, mark: str, **how):
    """The process, once everything was tried and all busy processes run."""
    process = attacker.start("24_starve", mark, whom(attacker), str(BUSY), **how)
    for stream in (process.stdout, process.stderr):
        attacker.scene.on_exit(stream.close)
    said = b""
    while b"done\n" not in said:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        said += line
    return process, said.decode()


def gone_within(mark: str, seconds: float) -> bool:
    end = time.monotonic() + seconds * jars.SLOWER
    while jars.processes_with(mark) and time.monotonic() < end:
        time.sleep(0.05)
    return not jars.processes_with(mark)


@attack(24, "processes")
def test_touches_the_scheduling_of_init(attacker):
    mark = new_mark(attacker.scene)
    run = attacker.run("24_starve", mark, whom(attacker), "0")
    attacker.verdict(findings(run))


@attack(37, "processes")
def test_starves_init_to_survive_the_timeout(attacker):
    """A jar has ended when belljar says so, and not some time later."""
    attacker.runner.prefix = ("/usr/bin/timeout", "--foreground", "2")
    mark = new_mark(attacker.scene)
    process, _ = start_busy(attacker, mark, policy=["--timeout=2"])
    begin = time.monotonic()
    process.wait(timeout=30 * jars.SLOWER)
    left, seconds = len(jars.processes_with(mark)), time.monotonic() - begin
    print(f"{left} processes left after {seconds:.1f} s")
    assert process.returncode == jars.TIMED_OUT
    assert seconds < 5 * jars.SLOWER, f"took {seconds:.1f} s with {left} processes left"
    attacker.verdict(process=left > 0)


@attack(24, "processes", control="")
def test_starves_init_to_survive_a_killed_supervisor(attacker):
    """No control: without belljar there is no init. Nobody outside is left to help here."""
    mark = new_mark(attacker.scene)
    process, _ = start_busy(attacker, mark)
    process.kill()
    process.wait()
    attacker.verdict(process=not gone_within(mark, 3))


def children_of(pid: int) -> list[int]:
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def init_of(belljar: int) -> int:
    """Of what runs below it, the first called so: setpriv is belljar's own process by then."""
    todo = [belljar]
    while todo:
        pid = todo.pop()
        if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"belljar-init"):
            return pid
        todo += children_of(pid)
    raise AssertionError("no init")


def start_with_an_init_that_cannot_run(runner, programs, busy: int, policy):
    """Init is idled from outside, where nothing forbids it."""
    scene = runner.scene
    scene.file("24_starve", programs.path("24_starve").read_bytes(), mode=0o755)
    mark = new_mark(scene)
    process = runner.start(["./24_starve", mark, "own", str(busy)], policy=policy)
    scene.on_exit(process.stdout.close)
    scene.on_exit(process.stderr.close)
    while (line := process.stdout.readline()) != b"done\n":
        assert line, process.stderr.read()
    init = init_of(process.pid)
    os.sched_setaffinity(init, {0})
    os.sched_setscheduler(init, os.SCHED_IDLE, os.sched_param(0))
    return process, mark


@pytest.mark.parametrize("identity", ["root", "user"], indirect=True)
@pytest.mark.parametrize("setting", [CONTROL, *jars.PROFILES])
def test_a_jar_ends_though_its_init_cannot_run(identity, scene, setting, programs):
    """The control shows that init does not run: its supervisor is gone, nobody else ends the
    rest, and it does not come to its end."""
    runner = jars.Jar(scene, "developer" if setting == CONTROL else setting)
    process, mark = start_with_an_init_that_cannot_run(runner, programs, BUSY, ["--timeout=3"])
    if setting == CONTROL:
        process.kill()
        process.wait()
        assert not gone_within(mark, 0.5)
        return
    process.wait(timeout=30 * jars.SLOWER)
    assert (process.returncode, len(jars.processes_with(mark))) == (jars.TIMED_OUT, 0)


class CrowdedJar(jars.Jar):
    """Of a caller who may have only so many processes, and lets the guest have more."""

    def brought(self, argv):
        return ["/usr/bin/prlimit", f"--nproc={BUSY}", *argv]


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_jar_that_has_used_up_the_callers_processes_ends(identity, scene, programs):
    """What ends it from outside is a process of the caller's too."""
    runner = CrowdedJar(scene, "developer")
    policy = ["--timeout=3", "--max-procs=1000"]
    process, mark = start_with_an_init_that_cannot_run(runner, programs, 2 * BUSY, policy)
    process.wait(timeout=30 * jars.SLOWER)
    assert (process.returncode, len(jars.processes_with(mark))) == (jars.TIMED_OUT, 0)


@pytest.mark.parametrize("identity", ["user"], indirect=True)
@pytest.mark.parametrize("setting", ["developer", "restricted"])
def test_touches_the_scheduling_of_init_without_a_pid_namespace(identity, scene, setting, programs):
    """Its control is that of the same attack with one."""
    scene.file("24_starve", programs.path("24_starve").read_bytes(), mode=0o755)
    run = poor.PoorJar(scene, setting).run(["./24_starve", new_mark(scene), "init", "0"], policy=POOR)
    found = findings(run)
    assert "done" in run.stdout and len(found) > 10, run
    # Its own group is no longer init's to be named by it.
    assert [what for what, why in found.items() if why == "ESCAPED"] == [], run
