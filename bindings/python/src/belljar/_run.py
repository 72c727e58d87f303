"""One command in a jar of its own."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import subprocess
import threading
import time
import warnings
from typing import IO, Any, Dict, Mapping, Optional, Sequence, Union

from . import _native
from ._errors import CommandFailed, Error, error_from
from ._outcome import Outcome, Reason, outcome_of
from ._policy import SandboxPolicy, check_policy

_SLICE_MS = 50  # after which this thread looks for signals
_DEFAULT = SandboxPolicy()

Argument = Union[str, "os.PathLike[str]"]
Stream = Union[int, IO[Any]]


class NoSandbox(UserWarning):
    """Something runs with all the rights of this process, because it was asked for."""


def run(
    command: Sequence[Argument],
    policy: Optional[SandboxPolicy] = _DEFAULT,
    *,
    timeout: Optional[float] = None,
    input: Union[str, bytes, None] = None,
    cwd: Optional[Argument] = None,
    start_in: Optional[Argument] = None,
    env: Optional[Mapping[str, str]] = None,
    stdin: Optional[Stream] = None,
    stdout: Optional[Stream] = None,
    stderr: Optional[Stream] = None,
    max_output: int = 1 << 20,
    check: bool = False,
) -> Outcome:
    """Runs a command in a sandbox, waits for it, and says how it ended.

    The sandbox is `restricted` unless a policy says otherwise: the command may write in `cwd` (this
    process's current folder), read the system, and talk to nobody outside. It starts in `cwd`, or in
    `start_in`, which it need not be able to write: `start_in="/etc"`. `policy=None` is no sandbox at
    all. `env` adds variables. What it writes is kept up to `max_output` bytes a stream, or
    goes to `stdout` and `stderr`, which are files or descriptors.

    An `Error` means that nothing has run. Ctrl-C ends the command and everything it has started.

    >>> import belljar
    >>> belljar.run(["sh", "-c", "cat; id -u > /etc/passwd"], input="hi").stdout
    'hi'
    """
    return _run(command, policy, timeout, input, cwd, start_in, env, stdin, stdout, stderr, max_output, check, None)


async def run_async(
    command: Sequence[Argument],
    policy: Optional[SandboxPolicy] = _DEFAULT,
    *,
    timeout: Optional[float] = None,
    input: Union[str, bytes, None] = None,
    cwd: Optional[Argument] = None,
    start_in: Optional[Argument] = None,
    env: Optional[Mapping[str, str]] = None,
    stdin: Optional[Stream] = None,
    stdout: Optional[Stream] = None,
    stderr: Optional[Stream] = None,
    max_output: int = 1 << 20,
    check: bool = False,
) -> Outcome:
    """`run`, for asyncio. A task that is cancelled ends the command.

    >>> import asyncio, belljar
    >>> asyncio.run(belljar.run_async(["echo", "hello"])).stdout
    'hello\\n'
    """
    stop = threading.Event()
    work = asyncio.get_running_loop().run_in_executor(
        None, _run, command, policy, timeout, input, cwd, start_in, env, stdin, stdout, stderr, max_output, check, stop
    )
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise


def _run(
    command: Sequence[Argument],
    policy: Optional[SandboxPolicy],
    timeout: Optional[float],
    input: Union[str, bytes, None],
    cwd: Optional[Argument],
    start_in: Optional[Argument],
    env: Optional[Mapping[str, str]],
    stdin: Optional[Stream],
    stdout: Optional[Stream],
    stderr: Optional[Stream],
    max_output: int,
    check: bool,
    stop: Optional[threading.Event],
) -> Outcome:
    if isinstance(command, (str, bytes)):
        raise TypeError('a command is a list: run(["sh", "-c", command]) is a shell\'s')
    if input is not None and stdin is not None:
        raise ValueError("input and stdin cannot both be given")
    check_policy(policy)
    arguments = [os.fspath(argument) for argument in command]
    data = input.encode() if isinstance(input, str) else bytes(input or b"")
    if policy is None or policy.is_off:
        warnings.warn("no sandbox: this command has all your rights", NoSandbox, stacklevel=3)
        outcome = _without_sandbox(
            arguments, data, timeout, start_in or cwd, env, stdin, stdout, stderr, max_output
        )
    else:
        changes: Dict[str, Any] = {}
        if timeout is not None:
            changes["timeout"] = timeout
        if cwd is not None:
            changes["workdir"] = cwd
        if start_in is not None:
            changes["start_in"] = start_in
        if env:
            changes["env"] = {**policy.env, **env}
        if changes:
            policy = dataclasses.replace(policy, **changes)
        request = {"arguments": arguments, "max_output": max_output}
        with contextlib.ExitStack() as opened:
            for name, stream in (("in_fd", stdin), ("out_fd", stdout), ("err_fd", stderr)):
                if stream is not None and stream != subprocess.PIPE:
                    request[name] = _descriptor(stream, opened)
            about = {"sandbox": policy.settings(), "caller": _native.caller(), "command": request}
            outcome = _in_jar(about, data, stop)
    if check and not outcome.ok:
        said = f"{outcome.reason} with {outcome.exit_code}"
        if outcome.reason is Reason.NotStarted:
            said = "it is not there" if outcome.exit_code == 127 else "it cannot be executed"
        raise CommandFailed(f"{arguments[0]}: {said}", outcome)
    return outcome


def _descriptor(stream: Stream, opened: contextlib.ExitStack) -> int:
    if stream == subprocess.DEVNULL:
        stream = opened.enter_context(open(os.devnull, "r+b", buffering=0))
    if isinstance(stream, int):
        if stream < 0:
            raise ValueError("a stream is a file, a descriptor, subprocess.PIPE or subprocess.DEVNULL")
        return stream
    if stream.writable():
        stream.flush()  # what was written before comes before
    return stream.fileno()


def _in_jar(request: Dict[str, Any], data: bytes, stop: Optional[threading.Event]) -> Outcome:
    one = _native.Run()
    try:
        error = one.start(request, data)
        if error:
            raise error_from(error)
        while not one.wait(_SLICE_MS):
            if stop is not None and stop.is_set():
                raise Error("it was cancelled")  # nobody hears it
        report, out, err = one.outcome()
    finally:
        one.end()
    if "error" in report:
        raise error_from(report)
    return outcome_of(report, out, err)


def _without_sandbox(
    arguments: Sequence[str],
    data: bytes,
    timeout: Optional[float],
    cwd: Optional[Argument],
    env: Optional[Mapping[str, str]],
    stdin: Optional[Stream],
    stdout: Optional[Stream],
    stderr: Optional[Stream],
    max_output: int,
) -> Outcome:
    began = time.monotonic()
    reason, code = Reason.Exited, 0
    out, err = b"", b""
    variables = {**os.environ, **env} if env else None
    given: Dict[str, Any] = {"stdin": stdin} if stdin is not None else {"input": data}
    try:
        done = subprocess.run(
            arguments, timeout=timeout, cwd=cwd, env=variables,
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.PIPE if stderr is None else stderr, **given,
        )  # fmt: skip
        out, err, code = done.stdout or b"", done.stderr or b"", done.returncode
        if code < 0:
            reason = Reason.Signaled
    except subprocess.TimeoutExpired as expired:
        reason, out, err = Reason.Timeout, expired.stdout or b"", expired.stderr or b""
    except FileNotFoundError:
        reason, code = Reason.NotStarted, 127
    except PermissionError:
        reason, code = Reason.NotStarted, 126
    exit_code = 124 if reason is Reason.Timeout else 128 - code if code < 0 else code
    return Outcome(
        exit_code=exit_code, reason=reason, stdout_bytes=out[:max_output], stderr_bytes=err[:max_output],
        signal=-code if code < 0 else None, enforced={}, degraded=[], limits_hit=[],
        wall_secs=time.monotonic() - began, cpu_secs=0.0, peak_memory_kb=0,
        stdout_dropped=max(0, len(out) - max_output), stderr_dropped=max(0, len(err) - max_output),
        network=[], sandboxed=False,
    )  # fmt: skip
