"""What the kernel counts for a user or for the whole machine: one jar cannot take it all. And what
it can keep others from."""

from __future__ import annotations

import os
import resource

import jar as jars
import pytest
from arena import attack, findings

# More than a jar may have of it, and no more than anybody may have outside.
TOO_MUCH = {
    "terminals": 70,
    "aio": 8,
    "signals": 5000,
    "timers": 5000,
    "queues": 300_000,
    "connection": 1 << 20,
}


@attack(36, "limits")
@pytest.mark.parametrize("what", TOO_MUCH)
def test_takes_what_is_counted_for_all(attacker, what):
    policy = ["--network=loopback"] if what == "connection" else []
    run = attacker.run("36_counted", what, str(TOO_MUCH[what]), policy=policy)
    attacker.verdict(findings(run))


@attack(36, "files")
def test_holds_back_who_writes_a_file(attacker):
    """By a lease, which who may only read a file can take."""
    path = attacker.scene.file("shared.txt", "text")
    process = attacker.start("36_counted", "lease", attacker.inside(path), text=True)
    attacker.scene.on_exit(process.communicate)
    attacker.scene.on_exit(process.kill)
    said = [process.stdout.readline(), process.stdout.readline()]
    assert said[1] == "done\n", said
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        held = False
    except BlockingIOError:
        held = True
    attacker.verdict(lease=said[0].startswith("ESCAPED"), held=held)


PRIORITIES = ("sched_fifo", "sched_rr", "negative_nice")


def have_priority() -> bool:
    """As users of sound programs do. It takes a capability that root may not have."""
    try:
        resource.setrlimit(resource.RLIMIT_RTPRIO, (10, 10))
        resource.setrlimit(resource.RLIMIT_NICE, (30, 30))
    except (ValueError, PermissionError):
        return False
    return True


def priority_can_be_had() -> bool:
    pid = os.fork()
    if pid == 0:
        os._exit(0 if have_priority() else 1)
    return os.waitpid(pid, 0)[1] == 0


@attack(23, "limits")
def test_has_a_priority_that_its_caller_may_have(attacker):
    """A guest that runs before everybody else runs before its own init too."""
    found = findings(attacker.run("23_raise", preexec_fn=have_priority))
    beyond = () if priority_can_be_had() else PRIORITIES
    attacker.verdict({what: found[what] for what in PRIORITIES}, beyond=beyond)


@pytest.mark.parametrize("identity", ["user"], indirect=True)
@pytest.mark.parametrize("setting", ["developer", "public-bot"])
def test_a_jar_has_a_share_of_the_callers_watches(identity, scene, setting):
    """Not by taking them all, which takes minutes: what the kernel says that it may have."""
    runner = jars.Jar(scene, setting)
    run = runner.run(["/bin/cat", "/proc/sys/user/max_inotify_watches"])
    shared = any("together with the caller's own" in loss for loss in runner.losses())
    assert shared or int(run.stdout) == 65536, run


CORE_LIMIT = """
import resource
core = resource.RLIMIT_CORE
print(resource.getrlimit(core))
for limits in ((0, 0), (0, 1), (-1, -1)):
    try: resource.setrlimit(core, limits)
    except ValueError: pass
    print(resource.getrlimit(core))
try: resource.prlimit(0, core, (0, 0))
except OSError: pass
print(resource.getrlimit(core), resource.prlimit(0, core))
"""


@attack(23, "processes", control="")
def test_changes_the_limit_that_keeps_a_crash_inside(attacker):
    """At exactly 1 the kernel runs no program of the host's for a core dump. What a crash does is
    tried in tests/vm, where it has a control."""
    run = attacker.command(["/usr/bin/python3", "-c", CORE_LIMIT])
    assert run.stdout.split("\n") == ["(1, 1)"] * 4 + ["(1, 1) (1, 1)", ""], run


def test_lowering_the_limit_on_core_dumps_succeeds(scene):
    """gpg and ssh-agent do so, and end when they cannot."""
    run = jars.Jar(scene, "developer").run(["/bin/sh", "-c", "ulimit -c 0 && ulimit -H -c 0 && echo fine"])
    assert (run.exit, run.stdout) == (0, "fine\n"), run
