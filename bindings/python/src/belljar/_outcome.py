"""How a guest ended."""

from __future__ import annotations

import dataclasses
import enum
import html
from typing import Any, Dict, List, Optional


class Reason(str, enum.Enum):
    """Why a command ended."""

    Exited = "exited"
    Signaled = "signaled"
    Timeout = "timeout"
    OutOfMemory = "out_of_memory"
    CpuLimit = "cpu_limit"
    FileSizeLimit = "file_size_limit"
    NotStarted = "not_started"

    def __str__(self) -> str:
        return self.value


@dataclasses.dataclass(frozen=True)
class Loss:
    """Something of the policy that this host cannot do."""

    promise: str
    broken: bool  # nothing keeps the promise; else one layer of several is missing
    what: str
    hint: str

    @classmethod
    def of(cls, data: Dict[str, Any]) -> "Loss":
        return cls(data["promise"], data["broken"], data["what"], data["hint"])


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a command ended, what it wrote, and what was enforced meanwhile.

    >>> import belljar
    >>> out = belljar.run(["sh", "-c", "echo hello; exit 3"])
    >>> out.exit_code, out.stdout, str(out.reason)
    (3, 'hello\\n', 'exited')
    >>> "network" in out.enforced
    True
    """

    exit_code: int  # as a shell counts: 124 at the timeout, 128 + signal, 127 if it is not there
    reason: Reason
    stdout_bytes: bytes
    stderr_bytes: bytes
    signal: Optional[int]
    enforced: Dict[str, List[str]]  # by promise: the layers that keep it
    degraded: List[Loss]
    limits_hit: List[str]
    wall_secs: float
    cpu_secs: float
    peak_memory_kb: int
    stdout_dropped: int  # bytes beyond max_output
    stderr_dropped: int
    network: List[Dict[str, Any]]  # with allow_net: each decision
    sandboxed: bool = True

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode(errors="replace")

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def _repr_html_(self) -> str:
        parts = [f"<b>{html.escape(str(self.reason))}</b> {self.exit_code}"]
        parts += [f"<pre>{html.escape(text)}</pre>" for text in (self.stdout, self.stderr) if text]
        parts += [f"<small>{html.escape(loss.promise)}: {html.escape(loss.what)}</small>" for loss in self.degraded]
        return "<br>".join(parts)


def outcome_of(report: Dict[str, Any], out: bytes, err: bytes) -> Outcome:
    return Outcome(
        exit_code=report["exit_code"],
        reason=Reason(report["reason"].replace(" ", "_")),
        stdout_bytes=out,
        stderr_bytes=err,
        signal=report.get("signal"),
        enforced={promise: list(layers) for promise, layers in report["enforced"].items()},
        degraded=[Loss.of(loss) for loss in report["losses"]],
        limits_hit=report["limits_hit"],
        wall_secs=report["wall_ms"] / 1000,
        cpu_secs=(report["user_cpu_ms"] + report["system_cpu_ms"]) / 1000,
        peak_memory_kb=report["peak_memory_kb"],
        stdout_dropped=report["stdout_dropped"],
        stderr_dropped=report["stderr_dropped"],
        network=report.get("network", []),
    )
