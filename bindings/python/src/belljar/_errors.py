"""Errors: all are `belljar.Error`, and all say what can be done about them."""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Tuple, Type

from . import _native
from ._outcome import Loss

if TYPE_CHECKING:
    from ._outcome import Outcome


def _again(kind: "Type[Error]", arguments: Tuple[Any, ...], parts: Dict[str, Any]) -> "Error":
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(parts)
    return error


class Error(Exception):
    """belljar could not do what it was asked for. What a guest does is never an `Error` by itself.

    >>> import belljar
    >>> try:
    ...     belljar.plan(profile="restrictd")
    ... except belljar.Error as error:
    ...     print(error.what)
    profile: there is no "restrictd"
    """

    def __init__(self, what: str, hint: str = "", errno: int = 0) -> None:
        super().__init__(what, hint, errno)
        self.what = what
        self.hint = hint
        self.errno = errno

    def __str__(self) -> str:
        what = f"{self.what}: {os.strerror(self.errno)}" if self.errno else self.what
        return f"{what} (hint: {self.hint})" if self.hint else what

    def __reduce__(self) -> Any:  # by its parts: constructors differ
        return _again, (type(self), self.args, self.__dict__)


class PolicyError(Error):
    """The policy makes no sense: an unknown key, a value that cannot be."""


class SandboxUnavailable(Error):
    """This host cannot keep what the policy promises. `losses` says which promises, and why."""

    def __init__(self, what: str, hint: str = "", errno: int = 0, losses: Sequence[Loss] = ()) -> None:
        super().__init__(what, hint, errno)
        self.losses: List[Loss] = list(losses)

    @property
    def promises(self) -> List[str]:
        """The promises that would be broken or have less depth, each once."""
        return list(dict.fromkeys(loss.promise for loss in self.losses))


class SessionClosed(Error):
    """The session has ended, or belongs to another process."""


class Denied(Error):
    """Permissions, or a person, said no to a call."""


class ToolError(Error):
    """A tool could not do what it was asked for. `kind` is for programs: `not_found`, `outside`, …"""

    def __init__(self, what: str, kind: str = "failed") -> None:
        super().__init__(what)
        self.kind = kind


class CommandFailed(Error):
    """With `check=True`: the command ended by something else than exit code 0."""

    def __init__(self, what: str, outcome: "Outcome") -> None:
        super().__init__(what)
        self.outcome = outcome


@functools.lru_cache(maxsize=None)
def _keys_by_flag() -> Dict[str, Dict[str, Any]]:
    return {key["flag"]: key for key in _native.ask({"about": "keys"})["keys"]}


def in_python(text: str) -> str:
    """A hint names flags of the command line; here they are arguments."""

    def argument(match: "re.Match[str]") -> str:
        key = _keys_by_flag().get(match[1])
        if key is None:
            return match[0]
        if not match[2]:
            return str(key["name"])
        return f"{key['name']}={[match[2]] if key['is_list'] else match[2]!r}"

    return re.sub(r"--([a-z][a-z-]*)(?:=([^\s,;()]+))?", argument, text).replace("-C ", "workdir ")


def error_from(answer: Dict[str, Any]) -> Error:
    error = answer["error"]
    what, hint = in_python(error["what"]), in_python(error["hint"])
    if error["kind"] == "policy":
        return PolicyError(what, hint, error["errno"])
    if error["kind"] == "unavailable":
        return SandboxUnavailable(what, hint, error["errno"], [Loss.of(loss) for loss in error["losses"]])
    if error["kind"] == "closed":
        return SessionClosed(what, hint, error["errno"])
    return Error(what, hint, error["errno"])
