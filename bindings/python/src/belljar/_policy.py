"""Policies: what a guest may do."""

from __future__ import annotations

import dataclasses
import enum
import os
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Mapping, Optional, Sequence, TypedDict, Union

from . import _native
from ._errors import error_from, in_python
from ._outcome import Loss

if TYPE_CHECKING:
    from typing_extensions import Unpack

Count = Union[int, Literal["unlimited"]]
Path = Union[str, "os.PathLike[str]"]


class NetworkMode(str, enum.Enum):
    """What a guest reaches. With `allow_net` it is the hosts named there, whatever the mode."""

    NoNetwork = "none"
    Loopback = "loopback"
    Full = "full"


class SandboxMode(str, enum.Enum):
    """`Auto` uses every layer the host has, and refuses where a required promise would be broken.

    `On` refuses where any promise would be broken, `Full` as soon as a layer is missing, `Off` is no
    sandbox.
    """

    Auto = "auto"
    On = "on"
    Full = "full"
    Off = "off"


class PolicyFields(TypedDict, total=False):
    """The fields of `SandboxPolicy`, for functions that take them by name."""

    max_memory_mb: Optional[Count]
    max_cpu_secs: Optional[Count]
    max_procs: Optional[Count]
    max_open_fds: Optional[Count]
    max_file_sz_mb: Optional[Count]
    network: Optional[Union[NetworkMode, str]]
    extra_fs_read: Sequence[Path]
    extra_fs_write: Sequence[Path]
    extra_env: Sequence[str]
    strict: bool
    mode: Optional[Union[SandboxMode, str]]
    profile: str
    allow_net: Sequence[str]
    hide: Sequence[Path]
    protect: Sequence[Path]
    env: Mapping[str, str]
    timeout: Optional[float]
    deny_all: bool
    deny_read: bool
    deny_write: bool
    deny_net: bool
    deny_env: bool
    allow_read: Sequence[Path]
    allow_write: Sequence[Path]
    allow_env: Sequence[str]
    deny_net_hosts: Sequence[str]
    publish: Sequence[str]
    workdir: Optional[Path]
    start_in: Optional[Path]
    home: Optional[Path]
    cache: Optional[Path]
    tmp: Optional[Path]
    credential: Sequence[str]
    accept_degraded: Sequence[str]


@dataclasses.dataclass(frozen=True)
class SandboxPolicy:
    """What a guest may do: a profile, and what differs from it.

    A limit of None is the profile's; `"unlimited"` takes it away. `strict` is mode `on`: a promise
    that this host cannot keep raises `SandboxUnavailable`. Relative paths start where this process is.
    Every field is a key of `belljar.toml` and a flag of `belljar exec` too.

    >>> from belljar import SandboxPolicy, NetworkMode
    >>> policy = SandboxPolicy(network=NetworkMode.NoNetwork, max_memory_mb=512)
    >>> policy.profile, policy.max_memory_mb
    ('restricted', 512)
    """

    max_memory_mb: Optional[Count] = None
    max_cpu_secs: Optional[Count] = None
    max_procs: Optional[Count] = None
    max_open_fds: Optional[Count] = None
    max_file_sz_mb: Optional[Count] = None
    network: Optional[Union[NetworkMode, str]] = None
    extra_fs_read: Sequence[Path] = ()
    extra_fs_write: Sequence[Path] = ()
    extra_env: Sequence[str] = ()
    strict: bool = False
    mode: Optional[Union[SandboxMode, str]] = None
    profile: str = "restricted"
    allow_net: Sequence[str] = ()
    hide: Sequence[Path] = ()
    protect: Sequence[Path] = ()
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    timeout: Optional[float] = None  # seconds
    deny_all: bool = False
    deny_read: bool = False
    deny_write: bool = False
    deny_net: bool = False
    deny_env: bool = False
    allow_read: Sequence[Path] = ()
    allow_write: Sequence[Path] = ()
    allow_env: Sequence[str] = ()
    deny_net_hosts: Sequence[str] = ()
    publish: Sequence[str] = ()
    workdir: Optional[Path] = None
    start_in: Optional[Path] = None
    home: Optional[Path] = None
    cache: Optional[Path] = None
    tmp: Optional[Path] = None
    credential: Sequence[str] = ()
    accept_degraded: Sequence[str] = ()

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if field.type.startswith("Sequence") and isinstance(getattr(self, field.name), (str, bytes)):
                raise TypeError(f"{field.name} is a list, and a text is none")
        for name in ("workdir", "start_in", "home", "cache", "tmp"):
            if getattr(self, name) == "":
                raise ValueError(f"{name} is empty: the current folder is '.'")
        for name in (*self.env, *self.extra_env, *self.allow_env):
            if not name or "=" in name:
                raise ValueError(f"{name!r} cannot be the name of a variable; env={{'NAME': 'value'}} sets one")
        if self.strict and self.mode not in (None, "on", "full", SandboxMode.On, SandboxMode.Full):
            raise ValueError("strict is mode on; it cannot be a weaker one as well")

    @property
    def is_off(self) -> bool:
        return self.mode in ("off", SandboxMode.Off)

    def settings(self) -> Dict[str, Any]:
        """As the one table of keys has it; what is left to the profile is left out."""
        found: Dict[str, Any] = {}
        for name in _NAMES:
            value = getattr(self, name)
            if value is None or value is False or (name != "profile" and not value and value != 0):
                continue
            found[name] = _as_setting(name, value)
        if found.pop("strict", False):
            found.setdefault("mode", "on")
        return found


_NAMES = [field.name for field in dataclasses.fields(SandboxPolicy)]


def _as_setting(name: str, value: Any) -> Any:
    if name == "timeout":
        return seconds(value)
    if name == "env":
        return [f"{key}={text}" for key, text in value.items()]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    try:
        return [os.fspath(item) for item in value]
    except TypeError:
        raise TypeError(f"{name} cannot be {value!r}") from None


_LONGEST = 1e9  # seconds; beyond it is no limit


def milliseconds(value: float) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"a time is a number of seconds, and {value!r} is none")
    if not value > 0:
        raise ValueError(f"a time must be more than 0 seconds, not {value}")
    return max(1, round(min(value, _LONGEST) * 1000))


def seconds(value: float) -> str:
    found = milliseconds(value)
    return f"{found}ms" if value < _LONGEST else "unlimited"


def a_list(name: str, values: Sequence[str]) -> List[str]:
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name} is a list, and a text is none")
    return list(values)


def check_policy(policy: object) -> None:
    if policy is not None and not isinstance(policy, SandboxPolicy):
        raise TypeError(f"a policy is a SandboxPolicy, as SandboxPolicy(profile='restricted'), not {policy!r}")


def policy_of(policy: Optional[SandboxPolicy], fields: "PolicyFields") -> SandboxPolicy:
    """A policy, or fields of one, or fields over one."""
    check_policy(policy)
    if policy is None:
        return SandboxPolicy(**fields)
    return dataclasses.replace(policy, **fields) if fields else policy


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a policy comes to on this host. `str(plan)` is what `belljar explain` prints."""

    data: Dict[str, Any]  # as `belljar explain --json` has it
    text: str
    starts: bool  # else why_not and hint say what is missing
    why_not: str
    hint: str
    why: Dict[str, str]  # of each path or host that was asked about

    def __str__(self) -> str:
        return self.text

    @property
    def enforced(self) -> Dict[str, List[str]]:
        """By promise: the layers that keep it."""
        return {one["promise"]: one["kept_by"] for one in self.data["promises"] if one["kept_by"]}

    @property
    def degraded(self) -> List[Loss]:
        return [Loss.of(loss) for loss in self.data["losses"]]


def plan(
    policy: Optional[SandboxPolicy] = None, *, why: Sequence[Union[str, "os.PathLike[str]"]] = (),
    **fields: "Unpack[PolicyFields]",
) -> Plan:  # fmt: skip
    """What would be enforced here, without running anything. `why` asks about paths and hosts.

    >>> import belljar
    >>> there = belljar.plan(profile="restricted", why=["/etc/shadow", "example.com:443"])
    >>> there.starts
    True
    >>> sorted(there.why)
    ['/etc/shadow', 'example.com:443']
    """
    return make_plan(policy_of(policy, fields).settings(), why)


def make_plan(
    sandbox: Dict[str, Any], why: Sequence[Union[str, "os.PathLike[str]"]], workdir: Optional[str] = None
) -> Plan:
    """`workdir` is a session's: empty if it is a fresh one."""
    questions = [os.fspath(question) for question in why]
    request = {"about": "plan", "sandbox": sandbox, "caller": _native.caller(), "why": questions}
    if workdir is not None:
        request["workdir"] = workdir
    answer = _native.ask(request)
    if "error" in answer:
        raise error_from(answer)
    reasons = {question: in_python(text).strip() for question, text in answer["why"].items()}
    return Plan(
        answer["plan"], answer["text"], answer["starts"], answer["why_not"], in_python(answer["hint"]), reasons
    )


def doctor() -> Dict[str, Any]:
    """What this host can enforce, found by trying it: `findings` and `profiles`.

    >>> import belljar
    >>> sorted(belljar.doctor()["profiles"])
    ['developer', 'open', 'public-bot', 'restricted', 'trusted-maintenance']
    """
    return _native.ask({"about": "doctor", "caller": _native.caller()})
