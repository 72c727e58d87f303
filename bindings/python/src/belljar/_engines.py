"""The engines of this process. Sessions that are set up alike share one, and so its warm interpreters.

An engine that nobody uses is kept for the next session, until one of another kind is started.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from typing import Any, Dict, List

from . import _native
from ._errors import error_from


class Shared:
    def __init__(self, key: str) -> None:
        self.key = key
        self.native = _native.Engine()
        self.users = 0


_lock = threading.RLock()  # a session's finalizer may run while we hold it
_all: Dict[str, Shared] = {}


def borrow(session: Dict[str, Any], sandbox: Dict[str, Any]) -> Shared:
    caller = _native.caller()
    key = json.dumps([session, caller], sort_keys=True)
    idle: List[Shared] = []
    try:
        with _lock:
            found = _all.get(key)
            if found is None:
                idle = [_all.pop(other.key) for other in list(_all.values()) if other.users == 0]
                found = Shared(key)
                error = found.native.start({"session": session, "sandbox": sandbox, "caller": caller})
                if error:
                    raise error_from(error)
                _all[key] = found
            found.users += 1
            return found
    finally:
        for other in idle:
            _end_aside(other)


def _end_aside(engine: Shared) -> None:
    """It may have large trees to remove, and who wants a session now need not wait for that."""
    try:
        threading.Thread(target=engine.native.end, name="belljar-end").start()
    except RuntimeError:  # the interpreter is about to end
        engine.native.end()


def give_back(engine: Shared) -> None:
    if engine.native.pid != os.getpid():
        return
    with _lock:
        engine.users -= 1


def shutdown() -> None:
    """Ends every session, and what was kept for the next one: threads, warm interpreters.

    Happens by itself when Python ends. A session that is made afterwards starts anew.
    """
    with _lock:
        ended = list(_all.values())
        _all.clear()
    for engine in ended:
        engine.native.end()


def _after_fork() -> None:
    # The child has no thread of them; their sessions are the parent's.
    global _lock
    _lock = threading.RLock()
    _all.clear()


atexit.register(shutdown)
os.register_at_fork(after_in_child=_after_fork)
