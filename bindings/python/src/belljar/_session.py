"""Sessions: Python and a shell that keep their state from call to call, in one jar."""

from __future__ import annotations

import codecs
import json
import logging
import os
import select
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

from . import _engines, _native
from ._config import (
    AgentPermission,
    Approval,
    ApprovalCallback,
    CodeExecutionConfig,
    Decision,
    Setup,
    ShellConfig,
    Skill,
)
from ._errors import Denied, Error, SessionClosed, ToolError, error_from, in_python
from ._policy import PolicyFields, SandboxPolicy, a_list, make_plan, milliseconds
from ._results import Chunk, PythonResult, ShellResult, python_result, shell_result

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Type

    from typing_extensions import Unpack

Path = Union[str, "os.PathLike[str]"]
Result = TypeVar("Result", PythonResult, ShellResult)
_SLICE_MS = 100  # a signal wakes who waits; this is for one that another thread got
_log = logging.getLogger("belljar")


def _options(timeout: Optional[float], outputs: Sequence[str]) -> Dict[str, Any]:
    options: Dict[str, Any] = {}
    if timeout is not None:
        options["timeout_ms"] = milliseconds(timeout)
    if outputs:
        options["outputs"] = a_list("outputs", outputs)
    return options


def python_request(code: str, timeout: Optional[float], outputs: Sequence[str]) -> Dict[str, Any]:
    return {"op": "tool", "tool": "python", "arguments": {"code": code, **_options(timeout, outputs)}}


def shell_request(
    commands: Union[str, Sequence[str]], timeout: Optional[float], outputs: Sequence[str], one_shot: bool
) -> Dict[str, Any]:
    arguments: Dict[str, Any] = {"commands": [commands] if isinstance(commands, str) else list(commands)}
    arguments.update(_options(timeout, outputs))
    if one_shot:
        arguments["one_shot"] = True
    return {"op": "tool", "tool": "shell", "arguments": arguments}


def whole_answer(answer: Dict[str, Any]) -> Dict[str, Any]:
    """Of a call of python or shell. What the guest did is an answer; what we did not do is an error."""
    if answer["whole"]:
        whole: Dict[str, Any] = answer["whole"]
        return whole
    if answer["error_type"] in ("denied", "not_approved"):
        raise Denied(answer["text"])
    raise ToolError(in_python(answer["text"]), answer["error_type"])


def decision_json(approval: Approval, said: object) -> Dict[str, Any]:
    if isinstance(said, Decision):
        decision = said
    elif isinstance(said, bool):
        decision = Decision(said)
    else:
        decision = Decision(False, "the approval callback gave no decision")
    return {
        "approval_id": approval["approval_id"],
        "session_id": approval["session_id"],
        # All but True is a no: a coroutine that nobody awaited is true, too.
        "decision": "approve" if decision.approved is True else "deny",
        "message": str(decision.message),
        "remember_for_session": decision.remember_for_session is True,
    }


def failed_callback() -> Decision:
    _log.exception("an approval callback failed, so the call is denied")
    return Decision(False, "the approval callback failed")


NOBODY = Decision(False, "there is nobody to ask: no approval callback was given")


class Decoder:
    """Bytes of two streams to text: a character that is cut in two waits for its rest."""

    def __init__(self) -> None:
        make = codecs.getincrementaldecoder("utf-8")
        self._streams = {"o": ("stdout", make("replace")), "e": ("stderr", make("replace"))}

    def chunk(self, kind: str, data: bytes) -> Optional[Chunk]:
        name, decoder = self._streams[kind]
        text = decoder.decode(data)
        return Chunk(name, text) if text else None


class Base:
    """What both faces of a session have in common."""

    def __init__(
        self,
        policy: Optional[SandboxPolicy] = None,
        *,
        code_execution_config: Optional[CodeExecutionConfig] = None,
        shell_config: Optional[ShellConfig] = None,
        skills: Sequence[Skill] = (),
        agent_permission: Optional[AgentPermission] = None,
        agent_approval_callback: Optional[ApprovalCallback] = None,
        approval_patience: float = 300.0,
        max_timeout: Optional[float] = None,
        preload: Sequence[str] = (),
        **fields: "Unpack[PolicyFields]",
    ) -> None:
        self._engine: Optional[_engines.Shared] = None
        self.id: str = ""
        self._setup = Setup(
            policy, code_execution_config, shell_config, skills, agent_permission, agent_approval_callback,
            approval_patience, max_timeout, preload, fields,
        )  # fmt: skip
        self._give_back: "Optional[weakref.finalize[[_engines.Shared, str], Any]]" = None
        self._begin()

    def _begin(self) -> None:
        """What is to be done at once."""

    @property
    def policy(self) -> SandboxPolicy:
        return self._setup.policy

    @property
    def skills(self) -> List[Skill]:
        return list(self._setup.skills)

    @property
    def closed(self) -> bool:
        return self._engine is None or not self._engine.native.alive

    def why(self, path_or_host: Path) -> str:
        """Which rule decides about a path or HOST:PORT, and what would change it.

        A path is one that begins with `/`, `.` or `~`, or a `pathlib.Path`; else it is a host. Relative ones
        begin in the session's workdir.
        """
        name = os.fspath(path_or_host)
        workdir = self._setup.session.get("workdir", "")
        if isinstance(path_or_host, os.PathLike) or name.startswith("."):
            inside = os.path.normpath(name)
            if workdir:
                name = os.path.join(workdir, inside)
            elif not os.path.isabs(inside) and inside.split(os.sep)[0] != "..":
                return f"{name} is in the session's own workdir: it can be read and written."
        return make_plan(self._setup.sandbox, [name], workdir).why[name]

    def _running(self) -> _native.Engine:
        engine = self._engine
        if engine is None:
            raise SessionClosed("the session is closed")
        if engine.native.pid != os.getpid():
            raise SessionClosed("the session belongs to the process that this one was forked from")
        if not engine.native.alive:
            raise SessionClosed("the session has ended")
        return engine.native

    def _opened(self, session: str) -> None:
        self.id = session
        engine = self._engine
        assert engine is not None
        # For one that is never closed.
        self._give_back = weakref.finalize(self, _abandon, engine, session)
        self._give_back.atexit = False  # the engines end then, with all that is in them

    def _release(self) -> None:
        engine, self._engine = self._engine, None
        if self._give_back is not None:
            self._give_back.detach()
        if engine is not None:
            _engines.give_back(engine)


def _abandon(engine: _engines.Shared, session: str) -> None:
    if engine.native.alive:
        call = _native.Call()
        engine.native.begin(call, {"op": "close", "session": session}, b"")
        call.end()
    _engines.give_back(engine)


class Stream(Generic[Result], Iterator[Chunk]):
    """Output while it comes, and the result when there is no more.

    Who stops listening before the end (`close`, or a `with` that is left) stops the call.
    """

    def __init__(self, news: Iterator[Tuple[str, bytes]], make: Callable[[Dict[str, Any]], Result]) -> None:
        self._news = news
        self._make: Callable[[Dict[str, Any]], Result] = make
        self._decoder = Decoder()
        self._result: Optional[Result] = None

    def __next__(self) -> Chunk:
        for kind, data in self._news:
            if kind == "d":
                self._result = self._make(whole_answer(_checked(json.loads(data))))
                continue
            chunk = self._decoder.chunk(kind, data)
            if chunk is not None:
                return chunk
        raise StopIteration

    @property
    def result(self) -> Result:
        """Waits for it; output that nobody took meanwhile is in it."""
        for _ in self:
            pass
        if self._result is None:
            raise Error("the call was stopped before its end")
        return self._result

    def close(self) -> None:
        close = getattr(self._news, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> "Stream[Result]":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def _checked(answer: Dict[str, Any]) -> Dict[str, Any]:
    error = answer.get("error")
    if error is None:
        return answer
    if error["kind"] == "tool":
        raise ToolError(in_python(error["what"]), error["tool_kind"])
    raise error_from(answer)


class Session(Base):
    """Python and a shell that keep their state, in one jar with one workdir.

    The sandbox is `restricted` unless a policy, or its fields by name, say otherwise. The workdir is a
    fresh one, removed at the end, unless one is named. What `extra_fs_read` names by a relative path is
    found under the same path inside. `preload` names modules that an interpreter has imported already,
    of which those of all sessions with the same policy are forked, from the second on.

    >>> from belljar import Session
    >>> with Session() as s:
    ...     _ = s.python("x = 20")
    ...     s.python("x + 1").result
    '21'

    Ctrl-C in a call asks the guest to stop, and the session can be used again. Calls may come from
    several threads; those of one kind wait for one another.
    """

    def _begin(self) -> None:
        self._engine = _engines.borrow(self._setup.session, self._setup.sandbox)
        try:
            self._opened(self._ask(self._setup.open)["session"])
        except BaseException:
            self._release()
            raise

    # ---- calls

    def python(self, code: str, *, timeout: Optional[float] = None, outputs: Sequence[str] = ()) -> PythonResult:
        """Runs code, and gives what it printed, drew and came to. `outputs` names files to give as well."""
        return python_result(whole_answer(self._ask(python_request(code, timeout, outputs))))

    def shell(
        self,
        commands: Union[str, Sequence[str]],
        *,
        timeout: Optional[float] = None,
        outputs: Sequence[str] = (),
        one_shot: bool = False,
    ) -> ShellResult:
        """Runs commands one after another; `one_shot` in a shell of their own, of which nothing stays."""
        return shell_result(whole_answer(self._ask(shell_request(commands, timeout, outputs, one_shot))))

    def python_stream(
        self, code: str, *, timeout: Optional[float] = None, outputs: Sequence[str] = ()
    ) -> Stream[PythonResult]:
        """The same, with its output while it comes.

        >>> from belljar import Session
        >>> with Session() as s:
        ...     stream = s.python_stream("print('hello'); 7")
        ...     print("".join(chunk.text for chunk in stream), end="")
        ...     stream.result.result
        hello
        '7'
        """
        request = {**python_request(code, timeout, outputs), "stream": True}
        return Stream(self._news(request), python_result)

    def shell_stream(
        self,
        commands: Union[str, Sequence[str]],
        *,
        timeout: Optional[float] = None,
        outputs: Sequence[str] = (),
        one_shot: bool = False,
    ) -> Stream[ShellResult]:
        request = {**shell_request(commands, timeout, outputs, one_shot), "stream": True}
        return Stream(self._news(request), shell_result)

    def tool(self, name: str, arguments: Dict[str, Any]) -> Dict[str, Any]:
        """Calls a tool of the table: `is_error`, `error_type`, `text`, `structured`, `images`, `files`."""
        return self._ask({"op": "tool", "tool": name, "arguments": arguments})

    # ---- files, by the paths that the guest sees

    def read_file(self, path: Path) -> bytes:
        """A file of the session's. No link that a guest makes leads anywhere else.

        >>> from belljar import Session
        >>> with Session() as s:
        ...     s.write_file("in.txt", "one")
        ...     _ = s.shell("tr o O < in.txt > out.txt")
        ...     s.read_file("out.txt")
        b'One'
        """
        data = b""
        for kind, piece in self._news({"op": "read", "path": os.fspath(path)}):
            if kind == "d":
                _checked(json.loads(piece))
            else:
                data = piece
        return data

    def write_file(self, path: Path, data: Union[str, bytes]) -> None:
        """Up to 16 MiB; what is larger is better shown to the session by `extra_fs_read`."""
        self._ask({"op": "write", "path": os.fspath(path)}, data.encode() if isinstance(data, str) else bytes(data))

    def list_files(self, path: Path = ".") -> List[Dict[str, Any]]:
        files: List[Dict[str, Any]] = self._ask({"op": "list", "path": os.fspath(path)})["files"]
        return files

    # ---- the session itself

    def describe(self) -> Dict[str, Any]:
        """`plan`, `tools`, `workdir` inside and `folder`, where that lies on the host."""
        return self._ask({"op": "describe"})

    def reset(self) -> None:
        """A fresh interpreter; files, shell and what else runs stay."""
        self._ask({"op": "reset"})

    def interrupt(self) -> None:
        """Asks the calls that run (in other threads) to stop."""
        self._ask({"op": "interrupt"})

    def close(self) -> None:
        """Ends everything inside. Closing twice is nothing."""
        if self._engine is None:
            return
        try:
            if not self.closed:
                self._ask({"op": "close"})
        except SessionClosed:
            pass
        finally:
            self._release()

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self,
        kind: "Optional[Type[BaseException]]",
        value: Optional[BaseException],
        traceback: "Optional[TracebackType]",
    ) -> None:
        self.close()

    # ---- below

    def _ask(self, request: Dict[str, Any], data: bytes = b"") -> Dict[str, Any]:
        answer: Dict[str, Any] = {}
        for kind, piece in self._news(request, data):
            if kind == "d":
                answer = _checked(json.loads(piece))
        return answer

    def _news(self, request: Dict[str, Any], data: bytes = b"") -> Iterator[Tuple[str, bytes]]:
        """What the call tells, approvals answered. Who leaves before its end stops it."""
        engine = self._running()
        call = _native.Call()
        done = False
        try:
            if not engine.begin(call, {"session": self.id, **request}, data):
                raise SessionClosed("the session has ended")
            poll = select.poll()
            poll.register(call.fileno(), select.POLLIN)
            while not done:
                news = call.next()
                if news is None:
                    poll.poll(_SLICE_MS)
                elif news[0] == "a":
                    approval = json.loads(news[1])
                    engine.decide(call, decision_json(approval, self._asked(approval)))
                else:
                    done = news[0] == "d"
                    yield news
        finally:
            if not done:
                engine.cancel(call)
            call.end()

    def _asked(self, approval: Approval) -> object:
        callback = self._setup.callback_for(approval["tool"]["kind"])
        if callback is None:
            return NOBODY
        try:
            return callback(approval)
        except Exception:
            return failed_callback()
