from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import warnings

import pytest

import belljar
from belljar import NetworkMode, Reason, SandboxPolicy
from conftest import PATIENCE, appears


def test_a_command_says_how_it_ended():
    out = belljar.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (out.exit_code, out.stdout, out.stderr, out.reason) == (3, "out\n", "err\n", Reason.Exited)
    assert not out.ok and out.signal is None and out.sandboxed
    assert out.wall_secs > 0 and out.peak_memory_kb > 0


def test_the_example_of_the_readme(work):
    (work / "script.py").write_text("print(6 * 7)")
    out = belljar.run(["python3", "script.py"], SandboxPolicy(network=NetworkMode.NoNetwork), timeout=PATIENCE)
    assert (out.exit_code, out.stdout) == (0, "42\n")
    assert out.enforced["network"] and isinstance(out.degraded, list)


def test_what_is_outside_is_not_there(work, tmp_path_factory):
    secret = tmp_path_factory.mktemp("outside") / "secret"
    secret.write_text("keep")
    assert belljar.run(["cat", secret]).exit_code != 0
    assert belljar.run(["cat", secret], SandboxPolicy(extra_fs_read=[secret])).stdout == "keep"
    write = ["sh", "-c", f"echo changed > {secret}"]
    assert belljar.run(write, SandboxPolicy(extra_fs_read=[secret.parent])).exit_code != 0
    assert secret.read_text() == "keep"
    assert belljar.run(write, SandboxPolicy(extra_fs_write=[secret.parent])).ok
    assert secret.read_text() == "changed\n"


def test_what_it_writes_in_its_workdir_stays(work):
    assert belljar.run(["sh", "-c", "echo made > made.txt"]).ok
    assert (work / "made.txt").read_text() == "made\n"
    other = work / "other"
    other.mkdir()
    assert belljar.run(["sh", "-c", "echo made > made.txt; pwd"], cwd=other).stdout == f"{other}\n"
    assert (other / "made.txt").exists()


def test_hide_and_protect(work):
    (work / ".env").write_text("secret")
    (work / "kept").write_text("kept")
    policy = SandboxPolicy(hide=[".env"], protect=["kept"])
    assert "secret" not in belljar.run(["cat", ".env"], policy).stdout
    assert belljar.run(["sh", "-c", "echo other > kept"], policy).exit_code != 0
    assert (work / "kept").read_text() == "kept"


def test_the_environment_is_not_passed_on(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "secret")
    show = ["sh", "-c", "echo ${MY_TOKEN-none} ${GIVEN-none} ${OTHER-none}"]
    assert belljar.run(show).stdout == "none none none\n"
    policy = SandboxPolicy(extra_env=["MY_TOKEN"], env={"GIVEN": "a=b"})
    assert belljar.run(show, policy, env={"OTHER": "c"}).stdout == "secret a=b c\n"


def test_network_modes():
    listen = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); print('listens')"
    for mode, works in ((NetworkMode.NoNetwork, False), (NetworkMode.Loopback, True), (NetworkMode.Full, True)):
        out = belljar.run(["python3", "-c", listen], SandboxPolicy(network=mode))
        assert out.ok == works, (mode, out)


def test_input_and_streams(work):
    assert belljar.run(["cat"], input="text").stdout == "text"
    assert belljar.run(["cat"], input=b"\xff\x00").stdout_bytes == b"\xff\x00"
    with open(work / "in", "w+") as given, open(work / "out", "w") as taken:
        given.write("from a file")
        given.flush()
        given.seek(0)
        taken.write("before ")
        out = belljar.run(["cat"], stdin=given, stdout=taken)
    assert out.ok and out.stdout == ""
    assert (work / "out").read_text() == "before from a file"


def test_output_is_bounded_and_that_is_said():
    out = belljar.run(["sh", "-c", "head -c 100000 /dev/zero"], max_output=1000)
    assert len(out.stdout_bytes) == 1000 and out.stdout_dropped == 99000


def test_a_timeout_ends_everything(work):
    began = time.monotonic()
    out = belljar.run(["sh", "-c", "sleep 300 & echo begun; wait"], timeout=0.5)
    assert out.reason is Reason.Timeout and out.exit_code == 124 and out.stdout == "begun\n"
    assert time.monotonic() - began < PATIENCE


def test_limits_are_named():
    eat = ["python3", "-c", "x = bytearray(600 << 20); print('had it')"]
    out = belljar.run(eat, SandboxPolicy(max_memory_mb=200))
    assert "had it" not in out.stdout and not out.ok
    assert belljar.run(eat, SandboxPolicy(max_memory_mb="unlimited")).stdout == "had it\n"


def test_a_signal_is_said():
    out = belljar.run(["sh", "-c", "kill -9 $$"])
    assert out.reason is Reason.Signaled and out.signal == 9 and out.exit_code == 137


def test_a_command_that_is_not_there():
    out = belljar.run(["no-such-command"])
    assert out.reason is Reason.NotStarted and out.exit_code == 127


def test_check_raises_with_the_outcome():
    with pytest.raises(belljar.CommandFailed) as caught:
        belljar.run(["sh", "-c", "echo why >&2; exit 4"], check=True)
    assert caught.value.outcome.stderr == "why\n"
    assert belljar.run(["true"], check=True).ok


def test_none_is_no_sandbox_and_warns(work, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "file"
    for policy in (None, SandboxPolicy(mode="off")):
        with pytest.warns(belljar.NoSandbox):
            out = belljar.run(["sh", "-c", f"echo here > {outside}; exit 5"], policy)
        assert outside.read_text() == "here\n" and out.exit_code == 5
        assert not out.sandboxed and out.enforced == {}
    with pytest.warns(belljar.NoSandbox):
        assert belljar.run(["sleep", "300"], None, timeout=0.2).reason is Reason.Timeout
    with pytest.warns(belljar.NoSandbox):
        assert belljar.run(["no-such-command"], None).exit_code == 127


def test_the_default_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert belljar.run(["true"]).ok


def test_strict_says_promise_reason_and_hint():
    # Every host lacks something: where none is lost, the strictest policy starts.
    policy = SandboxPolicy(mode="full")
    lost = belljar.plan(policy).degraded
    if not any(loss.broken for loss in lost):
        assert belljar.run(["true"], SandboxPolicy(strict=True)).ok, "every promise is kept"
    if not lost:
        assert belljar.run(["true"], policy).ok
        return
    with pytest.raises(belljar.SandboxUnavailable) as caught:
        belljar.run(["true"], policy)
    error = caught.value
    assert error.promises and error.hint and lost[0].what in error.what
    accepting = SandboxPolicy(mode="full", accept_degraded=error.promises)
    assert belljar.run(["true"], accepting).ok
    with pytest.raises(belljar.SandboxUnavailable):
        belljar.Session(policy=policy)


def test_mistakes_are_errors_with_hints():
    with pytest.raises(belljar.PolicyError, match="no \"nothing\""):
        belljar.run(["true"], SandboxPolicy(profile="nothing"))
    with pytest.raises(belljar.PolicyError):
        belljar.run(["true"], SandboxPolicy(network="sometimes"))
    with pytest.raises(belljar.PolicyError):
        belljar.run(["true"], SandboxPolicy(max_open_fds=1))
    with pytest.raises(TypeError):
        belljar.run("true")
    with pytest.raises(TypeError):
        SandboxPolicy(extra_fs_read="data")
    with pytest.raises(TypeError):
        SandboxPolicy(extra_read=["data"])
    with pytest.raises(ValueError):
        SandboxPolicy(strict=True, mode="auto")
    with pytest.raises(belljar.Error):
        belljar.run([])
    with pytest.raises(ValueError):
        belljar.run(["true"], env={"A=B": "c"})


def test_a_hint_speaks_python(work):
    error = None
    os.chdir("/")
    try:
        belljar.run(["true"])
    except belljar.Error as caught:
        error = caught
    assert error is not None and error.hint and "--" not in error.hint
    os.chdir(work)
    why = belljar.plan(why=["/nowhere/at/all"]).why["/nowhere/at/all"]
    assert "extra_fs_read=['/nowhere/at/all']" in why


def test_plan_and_doctor_are_data():
    plan = belljar.plan(SandboxPolicy(max_memory_mb=512), why=["/etc/passwd"])
    assert plan.starts and plan.data["profile"] == "restricted" and plan.enforced["files"]
    assert plan.data["limits"]["max_memory_mb"] == 512
    assert "restricted" in str(plan) and plan.why["/etc/passwd"]
    doctor = belljar.doctor()
    assert {one["name"] for one in doctor["findings"]} >= {"user namespaces", "landlock", "seccomp"}
    assert set(doctor["profiles"]) >= {"developer", "restricted"}


def test_run_async_runs_side_by_side():
    async def both():
        commands = [["sh", "-c", f"echo {i}"] for i in range(4)]
        return await asyncio.gather(*(belljar.run_async(command) for command in commands))

    assert [out.stdout for out in asyncio.run(both())] == ["0\n", "1\n", "2\n", "3\n"]


def test_a_cancelled_run_async_ends_the_command(work):
    async def main():
        task = asyncio.ensure_future(belljar.run_async(["sh", "-c", "touch begun; sleep 2; touch ended; sleep 300"]))
        while not (work / "begun").exists():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    began = time.monotonic()
    asyncio.run(main())  # waits for its threads, so the command has ended
    assert time.monotonic() - began < PATIENCE
    assert not (work / "ended").exists()


def test_a_signal_handler_of_the_program_runs_meanwhile(program, work):
    process = program(
        "import belljar, signal\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('heard', flush=True))\n"
        "print(belljar.run(['sh', '-c', 'touch begun; while ! test -e go; do sleep 0.05; done; echo ended']).stdout)\n"
    )
    assert appears(work / "begun")
    process.send_signal(signal.SIGUSR1)
    assert process.stdout.readline() == "heard\n"
    (work / "go").touch()
    assert process.communicate(timeout=PATIENCE)[0].strip() == "ended"
    assert process.returncode == 0


def test_sys_path_and_arguments_may_be_paths(work):
    path = work / "a file with spaces"
    path.write_text("found")
    assert belljar.run(["cat", path]).stdout == "found"
    assert sys.version_info >= (3, 8)


@pytest.mark.parametrize("profile", ["open", "developer", "restricted", "public-bot", "trusted-maintenance"])
def test_every_profile_runs(profile, work):
    (work / "given").write_text("given")
    # Where everything is shown as it is, who is not its owner comes to no private folder.
    for folder in (work, *work.parents):
        if os.stat(folder).st_uid == os.getuid() and folder.stat().st_mode & 0o077 == 0:
            folder.chmod(0o755)
    assert belljar.run(["cat", "given"], SandboxPolicy(profile=profile)).stdout == "given"
    with belljar.Session(profile=profile, extra_fs_read=["given"]) as s:
        assert s.python("open('given').read()").result == "'given'"
        assert s.shell("cat given").stdout == "given"
        s.write_file("in", "one")
        assert s.read_file("in") == b"one" and s.read_file("given") == b"given"


def test_decisions_about_the_network_are_in_the_outcome():
    connect = "import socket; socket.create_connection(('192.0.2.1', 443), timeout=5)"
    out = belljar.run(["python3", "-c", connect], SandboxPolicy(allow_net=["192.0.2.2:443"]))
    assert not out.ok
    event = next(event for event in out.network if event["address"] == "192.0.2.1")
    assert event["port"] == 443 and event["allowed"] is False and event["would_allow"]


def test_a_system_folder_is_started_in_and_not_written(work):
    with pytest.raises(belljar.Error, match="is the system's") as refused:
        belljar.run(["pwd"], cwd="/etc")
    assert "start_in='/etc'" in str(refused.value)
    done = belljar.run(["sh", "-c", "pwd; touch /etc/made || touch \"$1\"/made", "sh", str(work)], cwd=work, start_in="/etc")
    assert done.stdout == "/etc\n" and (work / "made").exists()
