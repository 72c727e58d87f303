"""Resources and life: what a guest uses, and what is left of it."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import pathlib
import pty
import secrets
import signal
import subprocess
import termios
import time

import jar as jars
import poor
import pytest
from arena import attack, findings

# --------------------------------- 24 and 37: nothing survives, however it was left behind


def beats(scene) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in scene.workdir.glob("beat-*")}


def survivors(scene, mark: str) -> dict[str, bool]:
    """Which of 24_linger's processes are still there, a second after the end."""
    time.sleep(0.7)
    before = beats(scene)
    time.sleep(0.5)
    alive = {name: size > before[name] for name, size in beats(scene).items()}
    alive["process"] = bool(jars.processes_with(mark))
    return alive


def end_all(mark: str) -> None:
    for pid in jars.processes_with(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def linger(attacker, **how):
    mark = "mark-" + secrets.token_hex(8)
    attacker.scene.on_exit(end_all, mark)
    process = attacker.start("24_linger", mark, **how)
    attacker.scene.on_exit(process.stdout.close)
    attacker.scene.on_exit(process.stderr.close)
    assert process.stdout.readline() == b"ready\n", process.stderr.read()
    return process, mark


@attack(24, "processes")
@pytest.mark.parametrize("by", ["SIGKILL", "SIGTERM", "SIGHUP"])
def test_survives_the_supervisor(attacker, by):
    process, mark = linger(attacker)
    assert len(beats(attacker.scene)) == 4
    process.send_signal(signal.Signals[by])
    process.wait(timeout=10 * jars.SLOWER)
    attacker.verdict(**survivors(attacker.scene, mark))


@attack(24, "processes")
def test_survives_a_stopped_and_killed_supervisor(attacker):
    process, mark = linger(attacker)
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10 * jars.SLOWER)
    attacker.verdict(**survivors(attacker.scene, mark))


@attack(37, "processes")
def test_survives_the_timeout(attacker):
    attacker.runner.prefix = ("/usr/bin/timeout", "--foreground", "2")
    process, mark = linger(attacker, policy=["--timeout=2"])
    begin = time.monotonic()
    process.wait(timeout=10 * jars.SLOWER)
    assert process.returncode == jars.TIMED_OUT
    assert time.monotonic() - begin < 5 * jars.SLOWER
    attacker.verdict(**survivors(attacker.scene, mark))


@attack(37, "processes")
def test_survives_the_end_of_the_command(attacker):
    """The command ends by itself; what it left behind ends with it."""
    mark = "mark-" + secrets.token_hex(8)
    attacker.scene.on_exit(end_all, mark)
    program = attacker.bring("24_linger")
    run = attacker.shell(
        f"setsid {program} {mark} > /dev/null 2>&1 & while ! ls beat-* > /dev/null 2>&1; do sleep 0.1; done",
        timeout=15,
    )
    assert run.exit == 0, run
    attacker.verdict(process=survivors(attacker.scene, mark)["process"])


@attack(24, "processes", control="", profiles=("developer",))
def test_survives_a_supervisor_killed_while_it_starts(attacker):
    """No control: without belljar nothing is being set up. Its helpers are those of a root
    caller, and have its rights."""
    mark = "mark-" + secrets.token_hex(8)
    attacker.scene.on_exit(end_all, mark)
    for moment in range(100):
        process = attacker.runner.start(["/bin/sleep", "20", mark])
        time.sleep(0.0005 + moment * 0.0001)
        process.kill()
        process.communicate()
    end = time.monotonic() + 3
    while jars.processes_with(mark) and time.monotonic() < end:
        time.sleep(0.1)
    assert not jars.processes_with(mark)


# For want of what the other promises need; "processes" is the one that is tried.
POOR = ["--network=none", "--timeout=2", *(f"--accept-degraded={loss}" for loss in ("limits", "exceptions"))]


@pytest.mark.parametrize("identity", ["user"], indirect=True)
@pytest.mark.parametrize("setting", ["control", "developer", "restricted"])
def test_kills_init_to_survive_without_a_pid_namespace(identity, scene, setting, programs):
    """Whatever the plan says of processes there: the timeout ends all."""
    mark = "mark-" + secrets.token_hex(8)
    scene.on_exit(end_all, mark)
    program = scene.file("37_kill_init", programs.path("37_kill_init").read_bytes(), mode=0o755)
    if setting == "control":
        runner = jars.Outside(scene)
        runner.prefix = ("/usr/bin/timeout", "--foreground", "2")
    else:
        runner = poor.PoorJar(scene, setting)
    run = runner.run([program, mark], policy=POOR)
    # On a poorer host still, where that is accepted: who may kill its init ends with it.
    assert run.exit == jars.TIMED_OUT or (jars.ACCEPTS and run.exit == 128 + signal.SIGKILL), run
    left = bool(jars.processes_with(mark))
    assert left == (setting == "control"), run
    if setting == "restricted" and not jars.ACCEPTS:  # where it can be kept without one
        losses = run.report["losses"]
        assert not any(loss["broken"] for loss in losses if loss["promise"] == "processes"), run
        assert "ESCAPED" not in run.stdout, run


@attack(37, "processes", control="")
@pytest.mark.parametrize("signal_name", ["STOP", "TSTP"])
@pytest.mark.parametrize("terminal", ["none", "whole"])
def test_stops_itself_to_survive_the_timeout(attacker, signal_name, terminal):
    """No control: the timeout is belljar's. With a terminal and no shell to continue it."""
    master, slave = pty.openpty()
    attacker.scene.on_exit(os.close, master)
    attacker.scene.on_exit(os.close, slave)
    attacker.scene.identity.own(os.ttyname(slave))

    def session():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    stdio = dict.fromkeys(("stdin", "stdout", "stderr"), slave) if terminal == "whole" else {}
    process = attacker.runner.start(
        ["/bin/sh", "-c", f"kill -{signal_name} $$; exec sleep 20"], policy=["--timeout=1"],
        start_new_session=False, preexec_fn=session, **stdio,
    )  # fmt: skip
    attacker.scene.on_exit(process.kill)
    process.communicate(timeout=8)
    assert process.returncode == jars.TIMED_OUT


@attack(24, "files", control="")
def test_leaves_nothing_on_the_host(attacker):
    """No control: this is about what belljar itself makes. No files, mounts or cgroups remain."""
    scene = attacker.scene
    scene.file(".env", "x")
    # Belljar's are beside the caller's; other places may belong to another run of these tests.
    cgroups = pathlib.Path("/sys/fs/cgroup")
    own = pathlib.Path("/proc/self/cgroup").read_text().splitlines()[-1].removeprefix("0::/")
    if own and not own[0].isdigit():
        cgroups = (cgroups / own).parent

    def seen():
        names = sorted(str(path) for path in scene.base.rglob("*") if "report" not in path.name)
        mounts = pathlib.Path("/proc/self/mountinfo").read_text()
        groups = sorted(path for path, _, _ in os.walk(cgroups) if "belljar" in path)
        return names, mounts, groups

    attacker.shell("true")  # what other tests' killed ones left goes
    before = seen()
    policy = ["--hide=.env", "--hide=missing", "--protect=.git/hooks", "--protect=also/missing"]
    attacker.shell("true", policy=policy)
    assert seen() == before
    process = attacker.runner.start(["/bin/sleep", "20"], policy=policy)
    time.sleep(0.5)
    process.kill()
    process.communicate()
    time.sleep(0.5)
    # Nobody was left to remove its cgroup: the next one does.
    attacker.shell("true", policy=policy)
    assert seen() == before


# ------------------------------------------------------------------- 36: bombs

CAPS = ["--max-memory-mb=200", "--max-procs=32"]


@attack(36, "limits")
@pytest.mark.parametrize("kind", ["processes", "threads"])
def test_has_more_processes_than_the_limit(attacker, kind):
    """Wants 100 at once with a limit of 32."""
    run = attacker.run("36_processes", kind, "100", "40", policy=CAPS, may_end_early=True)
    attacker.verdict(findings(run) or {"bomb": "killed"})


@attack(36, "limits")
def test_fork_bomb(attacker):
    """As shells write it, but for a depth at which it ends by itself, should nothing else end it."""
    seconds = 3 * jars.SLOWER
    bomb = "bomb() { if [ $1 -gt 6 ]; then sleep $2; else bomb $(($1+1)) $2 | bomb $(($1+1)) $2 & fi; }; bomb 0 $1; sleep $1"
    mark = "mark-" + secrets.token_hex(8)
    attacker.scene.on_exit(end_all, mark)
    process = attacker.runner.start(
        ["/bin/bash", "-c", bomb, mark, str(seconds)], policy=[*CAPS, f"--timeout={seconds + 2}"]
    )
    most = 0
    end = time.monotonic() + seconds - 0.5
    while time.monotonic() < end:
        # The supervisor and init have the mark too.
        most = max(most, len(jars.processes_with(mark)))
        time.sleep(0.1)
    process.communicate(timeout=15 * jars.SLOWER)
    attacker.verdict(more_than_the_limit=most > 34)
    assert not jars.processes_with(mark)


MEMORY = [
    "heap", "private", "shared", "sysv", "sysv_detached", "memfd", "/tmp", "/dev/shm", "family",
    "family_without_leaders",
    "shared_dropped", "shared_shrunk", "zero_shrunk", "sysv_dropped", "page_tables", "queues",
    "semaphores",
]  # fmt: skip


@attack(36, "limits", lost=["limited for each process, but not for all"])
@pytest.mark.parametrize("how", MEMORY)
def test_has_more_memory_than_the_limit(attacker, how):
    """Wants 400 MB for a second with a limit of 200."""
    run = attacker.run("36_memory", how, "400", policy=CAPS, may_end_early=True)
    if attacker.is_control:
        for line in run.stdout.splitlines():
            if line.startswith("segment "):
                remove_segment(int(line.split()[1]))
    # Only a cgroup counts these, and only where limits are required are they refused.
    loss = "memfds, or in shared mappings" if how in ("memfd", "shared_shrunk", "zero_shrunk") else ""
    attacker.verdict(findings(run) or {"memory": "killed"}, loss=loss)


def remove_segment(identifier: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmctl(identifier, 0, None)  # IPC_RMID


@attack(36, "limits")
def test_has_more_descriptors_than_the_limit(attacker):
    run = attacker.run("36_descriptors", "128", policy=["--max-open-fds=64"])
    attacker.verdict(findings(run))


@attack(36, "limits")
@pytest.mark.parametrize("how", ["alone", "children", "children_left"])
def test_uses_more_processor_time_than_the_limit(attacker, how):
    run = attacker.run("36_cpu", "4", how, policy=["--max-cpu-secs=1"], may_end_early=True)
    loss = "" if how == "alone" else "limited for each process, but not for all"
    attacker.verdict(findings(run) or {"cpu": "killed"}, loss=loss)


@attack(36, "limits", control="")
@pytest.mark.parametrize("how", ["private", "/dev/shm"])
def test_reason_for_being_out_of_memory_is_clear(attacker, how):
    """Not an attack: who was killed for memory must be told so, not just `137`."""
    run = attacker.run("36_memory", how, "400", policy=CAPS, may_end_early=True)
    if "done" not in run.stdout:
        assert "memory" in run.stderr.lower() or "memory" in str(run.report).lower(), run


@pytest.mark.parametrize("identity", ["user"], indirect=True)
@pytest.mark.parametrize("setting", ["control", "developer", "public-bot"])
def test_uses_up_the_callers_inotify_instances(identity, scene, setting, programs):
    """An ordinary user's alone: a guest of root's has a uid, and an account, of its own."""
    scene.file("36_watches", programs.path("36_watches").read_bytes(), mode=0o755)
    runner = jars.Outside(scene) if setting == "control" else jars.Jar(scene, setting)
    run = runner.run(["./36_watches", "40"])
    assert "done" in run.stdout, run
    shared = setting != "control" and any("together with the caller's own" in loss for loss in runner.losses())
    assert ("ESCAPED watches" in run.stdout) == (setting == "control" or shared), run


# ----------------------------------------------------------------- 39: orphans


@attack(39, "processes", control="")
def test_orphans_are_reaped(attacker):
    """Not an attack that can succeed outside: there the host's init does what ours must do."""
    many = 5000 // jars.SLOWER
    run = attacker.run("39_orphans", str(many), timeout=120)
    assert run.exit == 0, run
    assert f"orphans {many} zombies 0" in run.stdout, run
