"""What calls of a session answer."""

from __future__ import annotations

import base64
import dataclasses
import html
import os
import pathlib
from typing import Any, Dict, List, Optional, Union

Path = Union[str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class Image:
    """A picture that code has drawn. Shows itself in a notebook."""

    data: bytes
    mime: str = "image/png"

    def save(self, path: Path) -> None:
        pathlib.Path(path).write_bytes(self.data)

    def _repr_png_(self) -> Optional[bytes]:
        return self.data if self.mime == "image/png" else None


@dataclasses.dataclass(frozen=True)
class File:
    """A file of the workdir that a call has made or changed. Large ones come without `content`."""

    name: str
    size: int
    mime: str
    content: Optional[bytes]

    @property
    def text(self) -> str:
        return (self.content or b"").decode(errors="replace")

    def save(self, path: Path) -> None:
        if self.content is None:
            raise ValueError(f"{self.name} came without its content: Session.read_file has it")
        pathlib.Path(path).write_bytes(self.content)


@dataclasses.dataclass(frozen=True)
class GuestException:
    """An exception of the guest's code."""

    type: str
    message: str
    traceback: str


@dataclasses.dataclass(frozen=True)
class Command:
    command: str
    exit_code: Optional[int]  # None: it was not run to its end


@dataclasses.dataclass(frozen=True)
class Chunk:
    """A piece of output while it comes. A character that is cut in two comes whole, later."""

    stream: str  # stdout or stderr
    text: str


@dataclasses.dataclass(frozen=True)
class CallResult:
    """What every call says about how it went."""

    status: str  # success, error or timeout
    stdout: str  # head and tail where it was too much
    stderr: str
    stdout_cut_bytes: int
    stderr_cut_bytes: int
    files: List[File]
    more_files: bool  # than are listed
    working_directory: str
    execution_time_ms: float
    interrupted: bool  # it was asked to stop
    killed: bool  # it did not, and was made to
    state_lost: bool  # the next call finds a fresh interpreter or shell
    limits_hit: List[str]
    notes: List[str]
    exit_code: Optional[int]

    @property
    def ok(self) -> bool:
        return self.status == "success"

    def _html_parts(self) -> List[str]:
        parts = [f"<pre>{html.escape(text)}</pre>" for text in (self.stdout, self.stderr) if text]
        return parts + [f"<small>{html.escape(note)}</small>" for note in self.notes]

    def _repr_html_(self) -> str:
        return "".join(self._html_parts()) or f"<small>{html.escape(self.status)}</small>"


@dataclasses.dataclass(frozen=True)
class PythonResult(CallResult):
    """What code printed, drew and came to.

    >>> from belljar import Session
    >>> with Session() as s:
    ...     r = s.python("print('hi')\\n6 * 7")
    >>> r.stdout, r.result, r.ok
    ('hi\\n', '42', True)
    """

    result: Optional[str]  # repr of the last expression
    result_type: str
    result_data: Dict[str, str]  # by MIME type; images are base64
    displays: List[Dict[str, str]]
    images: List[Image]
    video_frames: List[Image]
    exception: Optional[GuestException]
    started: Optional[str]  # warm or cold, if an interpreter was started for it

    def _html_parts(self) -> List[str]:
        parts = super()._html_parts()
        if "text/html" in self.result_data:
            # What a guest wrote must not run in the page that shows it.
            parts.append(f'<iframe sandbox srcdoc="{html.escape(self.result_data["text/html"])}"></iframe>')
        elif self.result is not None:
            parts.append(f"<pre>{html.escape(self.result)}</pre>")
        if self.exception:
            parts.append(f"<pre>{html.escape(self.exception.traceback)}</pre>")
        for image in self.images:
            parts.append(f'<img src="data:image/png;base64,{base64.b64encode(image.data).decode()}">')
        return parts

    def _repr_png_(self) -> Optional[bytes]:
        return self.images[-1].data if self.images else None


@dataclasses.dataclass(frozen=True)
class ShellResult(CallResult):
    """What commands printed, and how each ended.

    >>> from belljar import Session
    >>> with Session() as s:
    ...     s.shell("cd /tmp && export WHO=you").ok
    ...     s.shell(["pwd", "echo $WHO", "false"]).commands[-1].exit_code
    True
    1
    """

    commands: List[Command]

    @property
    def timed_out(self) -> bool:
        return self.status == "timeout"


def _common(whole: Dict[str, Any]) -> Dict[str, Any]:
    names = {field.name for field in dataclasses.fields(CallResult)}
    found = {name: value for name, value in whole.items() if name in names}
    found["files"] = [_file(one) for one in whole["files"]]
    return found


def _file(one: Dict[str, Any]) -> File:
    content: Optional[bytes] = None
    if "text" in one:
        content = one["text"].encode()
    elif "base64" in one:
        content = base64.b64decode(one["base64"])
    return File(one["name"], one["size"], one["mime"], content)


def _images(list_: List[str]) -> List[Image]:
    return [Image(base64.b64decode(one)) for one in list_]


def python_result(whole: Dict[str, Any]) -> PythonResult:
    exception = whole["exception"]
    return PythonResult(
        **_common(whole),
        result=whole["result"],
        result_type=whole["result_type"],
        result_data=whole["result_data"],
        displays=whole["displays"],
        images=_images(whole["images"]),
        video_frames=_images(whole["video_frames"]),
        exception=GuestException(**exception) if exception else None,
        started=whole["started"],
    )


def shell_result(whole: Dict[str, Any]) -> ShellResult:
    return ShellResult(**_common(whole), commands=[Command(**one) for one in whole["commands"]])
