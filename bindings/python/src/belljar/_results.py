"""What calls of a session answer."""

from __future__ import annotations

import base64
import dataclasses
import html
import os
import secrets
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

Path = Union[str, "os.PathLike[str]"]


# What a guest wrote is shown, but nothing is fetched for it, or it could call home by the person's browser.
_QUIET = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\""
    "default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'\">"
)


def _save(path: Path, data: bytes) -> None:
    """A new file, moved over the name: where a guest can write, that may be a link to anywhere."""
    folder, name = os.path.split(os.fspath(path))
    new = os.path.join(folder, f".{name}.{secrets.token_hex(8)}")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(fd, "wb") as file:
            file.write(data)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise


@dataclasses.dataclass(frozen=True)
class Image:
    """A picture that code has drawn. Shows itself in a notebook."""

    data: bytes = dataclasses.field(repr=False)
    mime: str = "image/png"

    def save(self, path: Path) -> None:
        """Replaces what has that name; a link is not followed."""
        _save(path, self.data)

    def _repr_png_(self) -> Optional[bytes]:
        return self.data if self.mime == "image/png" else None


@dataclasses.dataclass(frozen=True)
class File:
    """A file of the workdir that a call has made or changed. Large ones come without `content`."""

    name: str
    size: int
    mime: str
    content: Optional[bytes] = dataclasses.field(repr=False)

    @property
    def text(self) -> str:
        return (self.content or b"").decode(errors="replace")

    def save(self, path: Path) -> None:
        """Replaces what has that name; a link is not followed."""
        if self.content is None:
            raise ValueError(f"{self.name} came without its content: Session.read_file has it")
        _save(path, self.content)


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
            page = html.escape(_QUIET + self.result_data["text/html"])
            parts.append(f'<iframe sandbox srcdoc="{page}"></iframe>')
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


_SIGNATURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8"}


def images_of(pairs: Sequence[Tuple[str, str]]) -> Tuple[List[Image], List[str]]:
    """Pairs of MIME type and base64. A guest says what is an image: what is none is left out, with a note."""
    images = []
    for mime, text in pairs:
        try:
            data = base64.b64decode(text, validate=True)
        except ValueError:
            continue
        if data.startswith(_SIGNATURES.get(mime, b"")):
            images.append(Image(data, mime))
    lost = len(pairs) - len(images)
    return images, [f"{lost} of the images cannot be read, and are left out"] if lost else []


def python_result(whole: Dict[str, Any]) -> PythonResult:
    exception = whole["exception"]
    images, notes = images_of([("image/png", one) for one in whole["images"]])
    frames, frame_notes = images_of([("image/png", one) for one in whole["video_frames"]])
    whole = {**whole, "notes": [*whole["notes"], *notes, *frame_notes]}
    return PythonResult(
        **_common(whole),
        result=whole["result"],
        result_type=whole["result_type"],
        result_data=whole["result_data"],
        displays=whole["displays"],
        images=images,
        video_frames=frames,
        exception=GuestException(**exception) if exception else None,
        started=whole["started"],
    )


def shell_result(whole: Dict[str, Any]) -> ShellResult:
    return ShellResult(**_common(whole), commands=[Command(**one) for one in whole["commands"]])
