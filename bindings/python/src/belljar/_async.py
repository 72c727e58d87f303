"""Sessions for asyncio. A task that is cancelled interrupts the guest, and does not wait for it."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterator,
    Callable,
    Dict,
    Generic,
    List,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from . import _engines, _native
from ._config import Approval
from ._errors import Error, SessionClosed
from ._results import Chunk, PythonResult, ShellResult, python_result, shell_result
from ._session import (
    NOBODY,
    Base,
    Decoder,
    Path,
    Result,
    _checked,
    decision_json,
    failed_callback,
    python_request,
    shell_request,
    whole_answer,
)

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Type


class AsyncStream(Generic[Result]):
    """Output while it comes (`async for`), and then `result`."""

    def __init__(self, news: "AsyncIterator[Tuple[str, bytes]]", make: Callable[[Dict[str, Any]], Result]) -> None:
        self._news = news
        self._make: Callable[[Dict[str, Any]], Result] = make
        self._decoder = Decoder()
        self._result: Optional[Result] = None

    def __aiter__(self) -> "AsyncStream[Result]":
        return self

    async def __anext__(self) -> Chunk:
        async for kind, data in self._news:
            if kind == "d":
                self._result = self._make(whole_answer(_checked(json.loads(data))))
                continue
            chunk = self._decoder.chunk(kind, data)
            if chunk is not None:
                return chunk
        raise StopAsyncIteration

    async def result(self) -> Result:
        async for _ in self:
            pass
        if self._result is None:
            raise Error("the call was stopped before its end")
        return self._result

    async def aclose(self) -> None:
        close = getattr(self._news, "aclose", None)
        if close is not None:
            await close()

    async def __aenter__(self) -> "AsyncStream[Result]":
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.aclose()


class AsyncSession(Base):
    """`Session`, for asyncio. It is opened by `async with`, or by `open`.

    >>> import asyncio
    >>> from belljar import AsyncSession
    >>> async def main():
    ...     async with AsyncSession() as s:
    ...         results = await asyncio.gather(s.python("6 * 7"), s.shell("echo hello"))
    ...         return results[0].result, results[1].stdout
    >>> asyncio.run(main())
    ('42', 'hello\\n')
    """

    async def open(self) -> "AsyncSession":
        if self._engine is not None:
            return self
        self._engine = _engines.borrow(self._setup.session, self._setup.sandbox)
        try:
            answer = await self._ask(self._setup.open)
            self._opened(answer["session"])
        except BaseException:
            self._release()
            raise
        return self

    # ---- calls

    async def python(self, code: str, *, timeout: Optional[float] = None, outputs: Sequence[str] = ()) -> PythonResult:
        return python_result(whole_answer(await self._ask(python_request(code, timeout, outputs))))

    async def shell(
        self,
        commands: Union[str, Sequence[str]],
        *,
        timeout: Optional[float] = None,
        outputs: Sequence[str] = (),
        one_shot: bool = False,
    ) -> ShellResult:
        return shell_result(whole_answer(await self._ask(shell_request(commands, timeout, outputs, one_shot))))

    def python_stream(
        self, code: str, *, timeout: Optional[float] = None, outputs: Sequence[str] = ()
    ) -> AsyncStream[PythonResult]:
        request = {**python_request(code, timeout, outputs), "stream": True}
        return AsyncStream(self._news(request), python_result)

    def shell_stream(
        self,
        commands: Union[str, Sequence[str]],
        *,
        timeout: Optional[float] = None,
        outputs: Sequence[str] = (),
        one_shot: bool = False,
    ) -> AsyncStream[ShellResult]:
        request = {**shell_request(commands, timeout, outputs, one_shot), "stream": True}
        return AsyncStream(self._news(request), shell_result)

    async def tool(self, name: str, arguments: Dict[str, Any]) -> Dict[str, Any]:
        return await self._ask({"op": "tool", "tool": name, "arguments": arguments})

    # ---- files

    async def read_file(self, path: Path) -> bytes:
        data = b""
        async for kind, piece in self._news({"op": "read", "path": os.fspath(path)}):
            if kind == "d":
                _checked(json.loads(piece))
            else:
                data = piece
        return data

    async def write_file(self, path: Path, data: Union[str, bytes]) -> None:
        await self._ask({"op": "write", "path": os.fspath(path)}, data.encode() if isinstance(data, str) else data)

    async def list_files(self, path: Path = ".") -> List[Dict[str, Any]]:
        files: List[Dict[str, Any]] = (await self._ask({"op": "list", "path": os.fspath(path)}))["files"]
        return files

    # ---- the session itself

    async def describe(self) -> Dict[str, Any]:
        return await self._ask({"op": "describe"})

    async def reset(self) -> None:
        await self._ask({"op": "reset"})

    async def interrupt(self) -> None:
        await self._ask({"op": "interrupt"})

    async def close(self) -> None:
        if self._engine is None:
            return
        try:
            if not self.closed:
                await self._ask({"op": "close"})
        except SessionClosed:
            pass
        finally:
            self._release()

    async def __aenter__(self) -> "AsyncSession":
        return await self.open()

    async def __aexit__(
        self,
        kind: "Optional[Type[BaseException]]",
        value: Optional[BaseException],
        traceback: "Optional[TracebackType]",
    ) -> None:
        await self.close()

    # ---- below

    async def _ask(self, request: Dict[str, Any], data: bytes = b"") -> Dict[str, Any]:
        answer: Dict[str, Any] = {}
        news = self._news(request, data)
        try:
            async for kind, piece in news:
                if kind == "d":
                    answer = _checked(json.loads(piece))
        finally:
            await news.aclose()
        return answer

    async def _news(self, request: Dict[str, Any], data: bytes = b"") -> Any:
        engine = self._running()
        loop = asyncio.get_running_loop()
        call = _native.Call()
        there = asyncio.Event()
        done = False
        try:
            if not engine.begin(call, {"session": self.id, **request}, data):
                raise SessionClosed("the session has ended")
            descriptor = call.fileno()
            loop.add_reader(descriptor, there.set)
            try:
                while not done:
                    there.clear()
                    news = call.next()
                    if news is None:
                        await there.wait()
                    elif news[0] == "a":
                        approval = json.loads(news[1])
                        engine.decide(call, decision_json(approval, await self._asked(approval)))
                    else:
                        done = news[0] == "d"
                        yield news
            finally:
                loop.remove_reader(descriptor)
        finally:
            if not done:
                engine.cancel(call)
            call.end()

    async def _asked(self, approval: Approval) -> object:
        callback = self._setup.callback_for(approval["tool"]["kind"])
        if callback is None:
            return NOBODY
        try:
            said: object = callback(approval)
            if inspect.isawaitable(said):
                said = await said
            return said
        except Exception:
            return failed_callback()
