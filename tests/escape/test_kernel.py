"""The kernel's surface, other processes, and what steers the machine."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import time

import jar as jars
import pytest
from arena import attack, findings

# ------------------------------------------------------------ 16: kernel files


@attack(16, "files", control="root")
def test_opens_what_steers_the_machine(attacker):
    run = attacker.run("16_kernel_files")
    # What this kernel was built without is not there for root either.
    attacker.verdict(findings(run), absent=["ENOENT", "EIO", "EINVAL", "ENODEV"])


# -------------------------------------------------------- 17: other processes

BY_NUMBER = ["by_kill", "by_tgkill", "by_tkill", "by_pidfd", "by_queue", "by_group", "by_async_io"]


@attack(17, "processes")
@pytest.mark.parametrize("way", BY_NUMBER)
def test_signals_a_process_outside(attacker, way):
    bystander = jars.Bystander(attacker.scene)
    attacker.run("17_signal", way, str(bystander.pid), str(bystander.group))
    attacker.verdict(harmed=bystander.harmed())


@attack(17, "processes")
@pytest.mark.parametrize("way", ["own_group", "own_group_kill"])
def test_signals_the_callers_process_group(attacker, way):
    """kill(0) crosses pid namespaces: only a group of its own stops it."""
    bystander = jars.Bystander(attacker.scene)
    attacker.run(
        "17_signal", way, "0", "0", may_end_early=True,
        start_new_session=False, process_group=bystander.group,
    )  # fmt: skip
    attacker.verdict(harmed=bystander.harmed())


@attack(17, "processes", control="user")
def test_signals_everyone(attacker):
    """The control is an ordinary user's: root's would reach the whole machine."""
    bystander = jars.Bystander(attacker.scene)
    attacker.run("17_signal", "everyone", "0", "0")
    attacker.verdict(harmed=bystander.harmed())


@attack(17, "processes")
def test_kills_the_supervisor(attacker):
    script = (
        "while [ ! -s supervisor ]; do sleep 0.05; done; read pid < supervisor;"
        "kill -9 $pid; kill -9 $PPID; kill -9 -$pid; kill -9 1; sleep 0.5; exit 42"
    )
    if attacker.is_control:
        script = "while [ ! -s supervisor ]; do sleep 0.05; done; read pid < supervisor; kill -9 $pid; exit 42"
        attacker.runner.prefix = ("/bin/sh", "-c", '"$@"; exit $?', "sh")
    process = attacker.runner.start(["/bin/sh", "-c", script])
    attacker.scene.on_exit(process.kill)
    attacker.scene.file("pid", f"{process.pid}\n").rename(attacker.scene.workdir / "supervisor")
    try:
        process.communicate(timeout=15 * jars.SLOWER)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail("the supervisor does not end")
    killed = process.returncode == -9
    attacker.verdict(killed=killed)
    assert killed or process.returncode in (42, 137), process.returncode


@attack(17, "processes")
def test_reads_and_bends_a_process_outside(attacker):
    bystander = jars.Bystander(attacker.scene)
    run = attacker.run("17_peek", str(bystander.pid), bystander.address, str(bystander.length))
    attacker.verdict(
        findings(run),
        root_only=["process_madvise"],
        absent=["ENOSYS"],
        secret=bystander.secret in run.stdout,
        excused={
            "limits, priority and CPUs": ["pidfd_open", "prlimit", "setpriority", "sched_setaffinity"]
        },
    )


@attack(17, "processes")
def test_kills_a_process_of_another_jar(attacker):
    mark = "mark-" + secrets.token_hex(8)
    other = attacker.runner.start(["/bin/sh", "-c", "echo ready; sleep 60; true", mark])
    attacker.scene.on_exit(stop, other)
    assert other.stdout.readline() == b"ready\n", other.stderr.read()
    # The mark comes by standard input, so that the attacker does not find itself.
    attacker.command(
        ["/usr/bin/python3", "-I", "-c", KILL_BY_MARK], input=mark.encode(), may_end_early=True
    )
    time.sleep(0.2)
    attacker.verdict(killed=other.poll() is not None)


KILL_BY_MARK = """
import os, sys
mark = sys.stdin.read().encode()
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if mark in open(f"/proc/{pid}/cmdline", "rb").read():
            os.kill(int(pid), 9)
    except OSError as error:
        print(error)
"""


def stop(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()


# ----------------------------------------------- 18 to 22: calls nobody needs here


@attack(18, "syscalls")
def test_sets_up_io_uring(attacker):
    attacker.verdict(findings(attacker.run("18_io_uring")), absent=["ENOSYS"])


@attack(19, "syscalls")
def test_calls_through_a_foreign_abi(attacker):
    attacker.verdict(findings(attacker.run("19_foreign_abi")), absent=["ENOSYS", "SEGV"])


@attack(20, "syscalls")
def test_makes_and_enters_namespaces(attacker):
    found = findings(attacker.run("20_namespaces"))
    ordinary = {"unshare_user", "clone_user", "clone3_user"}
    attacker.verdict(found, root_only=set(found) - ordinary, absent=["ENOSYS"])


@attack(21, "syscalls", control="root")
def test_makes_administrative_calls(attacker):
    attacker.verdict(findings(attacker.run("21_kernel_calls")), absent=["ENOSYS"])


@attack(21, "processes")
@pytest.mark.parametrize("writer", ["host", "jar"])
def test_reads_a_key_of_another(attacker, writer):
    """A text left in the user's keyring, outside or in another jar."""
    secret = "belljar-secret-" + secrets.token_hex(8)
    outside = jars.Outside(attacker.scene)
    program = attacker.bring("21_keyring")
    if writer == "host":
        outside.run([program, "put", secret])
    else:
        attacker.run("21_keyring", "put", secret)
    run = attacker.run("21_keyring", "get", "x")
    outside.run([program, "drop", "x"])
    attacker.verdict(read=secret in run.stdout)


@attack(22, "syscalls")
def test_weakens_the_personality(attacker):
    attacker.verdict(findings(attacker.run("22_personality")), root_only=["iopl"], absent=["ENOSYS"])


# ----------------------------------------------------------- 23: more than given


@attack(23, "limits", control="root")
def test_takes_more_than_given(attacker):
    """A root without CAP_SYS_RESOURCE, as in some containers, can raise no limit either."""
    limits = ["nofile", "nproc", "data", "cpu", "fsize", "core", "oom_score_adj"]
    beyond = [] if jars.has_capability(24) else limits
    attacker.verdict(findings(attacker.run("23_raise")), beyond=beyond)
