"""The library beside this file, and how its functions are called.

ctypes gives the interpreter's lock away during every call. Nothing in the library calls back.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import threading
from typing import Any, Dict, Optional, Tuple

_library = ctypes.CDLL(str(pathlib.Path(__file__).parent / "_lib/libbelljar.so"))

_size = ctypes.c_size_t
_sizes = ctypes.POINTER(ctypes.c_size_t)
_handle = ctypes.c_void_p
_handles = ctypes.POINTER(ctypes.c_void_p)


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(_library, "belljar_py_" + name)
    function.restype = result
    function.argtypes = arguments
    return function


_free = _function("free", None, _handle)
_ask = _function("ask", _handle, ctypes.c_char_p, _size, _sizes)
_run_start = _function("run_start", _handle, ctypes.c_char_p, _size, ctypes.c_char_p, _size, _handles, _sizes)
_run_wait = _function("run_wait", ctypes.c_int, _handle, ctypes.c_int)
_run_outcome = _function("run_outcome", _handle, _handle, _sizes, _handles, _sizes, _handles, _sizes)
_run_end = _function("run_end", None, _handle)
_engine_start = _function("engine_start", _handle, ctypes.c_char_p, _size, _handles, _sizes)
_engine_end = _function("engine_end", None, _handle)
_call_begin = _function("call_begin", None, _handle, ctypes.c_char_p, _size, ctypes.c_char_p, _size, _handles)
_call_fd = _function("call_fd", ctypes.c_int, _handle)
_call_next = _function("call_next", _handle, _handle, ctypes.POINTER(ctypes.c_int), _sizes)
_call_decide = _function("call_decide", None, _handle, ctypes.c_char_p, _size)
_call_cancel = _function("call_cancel", None, _handle)
_call_end = _function("call_end", None, _handle)


def _taken(memory: int, size: int) -> bytes:
    try:
        return ctypes.string_at(memory, size)
    finally:
        _free(memory)


def _object(memory: int, size: int) -> Dict[str, Any]:
    answer: Dict[str, Any] = json.loads(_taken(memory, size))
    return answer


def caller() -> Dict[str, Any]:
    """What of this process a sandbox depends on. Names and values that are no UTF-8 stay outside."""
    environment = {}
    for name, value in os.environ.items():
        if not (name.isascii() and value.isascii()):
            try:
                (name + value).encode()
            except UnicodeEncodeError:
                continue
        environment[name] = value
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        cwd = ""
    return {"home": os.path.expanduser("~"), "cwd": cwd, "environment": environment}


def ask(request: Dict[str, Any]) -> Dict[str, Any]:
    text = json.dumps(request).encode()
    size = _size()
    return _object(_ask(text, len(text), ctypes.byref(size)), size.value)


class Run:
    """A command that runs, or has run."""

    def __init__(self) -> None:
        self._handle = ctypes.c_void_p()

    def start(self, request: Dict[str, Any], data: bytes) -> Dict[str, Any]:
        """Empty, or {"error": ...}."""
        text = json.dumps(request).encode()
        size = _size()
        error = _run_start(text, len(text), data, len(data), ctypes.byref(self._handle), ctypes.byref(size))
        return _object(error, size.value) if error else {}

    def wait(self, milliseconds: int) -> bool:
        return bool(_run_wait(self._handle, milliseconds) != 0)

    def outcome(self) -> Tuple[Dict[str, Any], bytes, bytes]:
        size, out_size, err_size = _size(), _size(), _size()
        out, err = ctypes.c_void_p(), ctypes.c_void_p()
        answer = _run_outcome(
            self._handle, ctypes.byref(size), ctypes.byref(out), ctypes.byref(out_size),
            ctypes.byref(err), ctypes.byref(err_size),
        )  # fmt: skip
        report = _object(answer, size.value)
        return report, ctypes.string_at(out, out_size.value), ctypes.string_at(err, err_size.value)

    def end(self) -> None:
        if self._handle:
            _run_end(self._handle)
            self._handle = ctypes.c_void_p()


class Engine:
    """Sessions, on a thread of the library's. Of the process that started it, and of no fork.

    The lock keeps one thread from using what another ends at that moment. A finalizer may run in
    the very thread that holds it.
    """

    def __init__(self) -> None:
        self._handle = ctypes.c_void_p()
        self._lock = threading.RLock()
        self.pid = os.getpid()

    def start(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Empty, or {"error": ...}."""
        text = json.dumps(request).encode()
        size = _size()
        error = _engine_start(text, len(text), ctypes.byref(self._handle), ctypes.byref(size))
        return _object(error, size.value) if error else {}

    @property
    def alive(self) -> bool:
        return self.pid == os.getpid() and bool(self._handle)

    def end(self) -> None:
        if self.pid != os.getpid():
            return
        with self._lock:
            handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            _engine_end(handle)

    def begin(self, call: "Call", request: Dict[str, Any], data: bytes) -> bool:
        """False: it has ended."""
        text = json.dumps(request).encode()
        with self._lock:
            if self._handle:
                _call_begin(self._handle, text, len(text), data, len(data), ctypes.byref(call.handle))
        return bool(call.handle)

    def decide(self, call: "Call", decision: Dict[str, Any]) -> None:
        text = json.dumps(decision).encode()
        with self._lock:
            if self._handle:
                _call_decide(call.handle, text, len(text))

    def cancel(self, call: "Call") -> None:
        with self._lock:
            if self._handle and call.handle:
                _call_cancel(call.handle)


class Call:
    """A call of an engine, which tells its news one by one; the last is of kind `d`."""

    def __init__(self) -> None:
        self.handle = ctypes.c_void_p()

    def fileno(self) -> int:
        return int(_call_fd(self.handle))

    def next(self) -> Optional[Tuple[str, bytes]]:
        kind, size = ctypes.c_int(), _size()
        memory = _call_next(self.handle, ctypes.byref(kind), ctypes.byref(size))
        return (chr(kind.value), _taken(memory, size.value)) if memory else None

    def end(self) -> None:
        handle, self.handle = self.handle, ctypes.c_void_p()
        if handle:
            _call_end(handle)
