"""How a session is set up: the shapes that agents' programs know, and what they come to."""

from __future__ import annotations

import dataclasses
import enum
import os
import re
import warnings
from typing import Any, Awaitable, Callable, Dict, List, Optional, Sequence, Union

from ._policy import PolicyFields, SandboxPolicy, a_list, policy_of, seconds
from ._run import NoSandbox

Path = Union[str, "os.PathLike[str]"]


class AgentPermission(str, enum.Enum):
    """Whether a call runs by itself, after somebody said yes, or not at all."""

    Auto = "auto"
    Ask = "ask"
    Deny = "deny"


CodeExecutionPermission = AgentPermission


@dataclasses.dataclass(frozen=True)
class Decision:
    """What an approval callback may answer, where True or False say too little."""

    approved: bool
    message: str = ""  # for the model
    remember_for_session: bool = False  # this tool need not be asked about again


Approval = Dict[str, Any]  # as the server's event `agentic_tool_approval_required` has it
Answer = Union[bool, Decision]
ApprovalCallback = Callable[[Approval], Union[Answer, Awaitable[Answer]]]

_DEFAULT = SandboxPolicy()


@dataclasses.dataclass(frozen=True)
class CodeExecutionConfig:
    """How Python code is run. `sandbox_policy=None` is no sandbox, and warns."""

    python_path: Optional[Path] = None
    timeout_secs: Optional[float] = None
    working_directory: Optional[Path] = None
    sandbox_policy: Optional[SandboxPolicy] = _DEFAULT
    permission: Optional[AgentPermission] = None
    approval_callback: Optional[ApprovalCallback] = None


@dataclasses.dataclass(frozen=True)
class ShellConfig:
    """How commands are run. `sandbox_policy=None` is no sandbox, and warns."""

    shell_path: Optional[Path] = None
    timeout_secs: Optional[float] = None
    working_directory: Optional[Path] = None
    sandbox_policy: Optional[SandboxPolicy] = _DEFAULT
    permission: Optional[AgentPermission] = None
    approval_callback: Optional[ApprovalCallback] = None


@dataclasses.dataclass(frozen=True)
class Skill:
    """A folder with instructions and programs, read-only at `skills/NAME` of the workdir."""

    name: str
    description: str
    source_path: Path

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", self.name):
            raise ValueError(f"{self.name!r} is no name of a skill: letters, digits and . _ -")


class Setup:
    """What the arguments of a session come to."""

    def __init__(
        self,
        policy: Optional[SandboxPolicy],
        code: Optional[CodeExecutionConfig],
        shell: Optional[ShellConfig],
        skills: Sequence[Skill],
        permission: Optional[AgentPermission],
        callback: Optional[ApprovalCallback],
        approval_patience: float,
        max_timeout: Optional[float],
        preload: Sequence[str],
        fields: PolicyFields,
    ) -> None:
        code, shell = code or CodeExecutionConfig(), shell or ShellConfig()
        self.policy = _one_policy(policy, fields, code, shell)
        self.skills = _checked_skills(skills)
        self.callback = callback
        self.callbacks = {"python": code.approval_callback, "shell": shell.approval_callback}
        workdir = _one_workdir(self.policy, code, shell)

        # An object says itself when it is no longer needed.
        self.session: Dict[str, Any] = {"idle": f"{24 * 3650}h", "reap_every": "1h", "max_sessions": 4096}
        if code.python_path is not None:
            self.session["python"] = os.fspath(code.python_path)
        if shell.shell_path is not None:
            self.session["shell"] = os.fspath(shell.shell_path)
        times = [600.0]
        for key, own in (("python_timeout", code.timeout_secs), ("shell_timeout", shell.timeout_secs)):
            time = own if own is not None else self.policy.timeout
            if time is not None:
                self.session[key] = seconds(time)
                times.append(time)
        self.session["max_timeout"] = seconds(max_timeout if max_timeout is not None else max(times))
        self.session["preload"] = a_list("preload", preload)
        if workdir is not None:
            self.session["workdir"] = os.path.abspath(workdir)

        sandbox = self.policy.settings()
        for name in ("workdir", "timeout"):  # of a session, and of a call
            sandbox.pop(name, None)
        self.sandbox = sandbox
        self.open: Dict[str, Any] = {
            "op": "open",
            "sandbox": sandbox,
            "permissions": _permissions(permission, callback, code, shell),
            "approval_patience_ms": round(approval_patience * 1000),
            "skills": [os.path.abspath(skill.source_path) for skill in self.skills],
            "links": _links(self.policy, self.skills, shared=workdir is not None),
        }

    def callback_for(self, tool: str) -> Optional[ApprovalCallback]:
        return self.callbacks.get(tool) or self.callback


def _one_policy(
    policy: Optional[SandboxPolicy], fields: PolicyFields, code: CodeExecutionConfig, shell: ShellConfig
) -> SandboxPolicy:
    """Python and shell live in one jar, so there is one policy."""
    given: List[Optional[SandboxPolicy]] = []
    if policy is not None or fields:
        given.append(policy_of(policy, fields))
    given += [one.sandbox_policy for one in (code, shell) if one.sandbox_policy is not _DEFAULT]
    if not given:
        return _DEFAULT
    if any(one != given[0] for one in given):
        raise ValueError("a session has one policy, and two that differ were given")
    found = given[0]
    if found is not None and not found.is_off:
        return found
    warnings.warn(
        "no sandbox: code in this session may do almost all that you may (the profile open)", NoSandbox, stacklevel=4
    )
    return SandboxPolicy(profile="open")


def _one_workdir(policy: SandboxPolicy, code: CodeExecutionConfig, shell: ShellConfig) -> Optional[Path]:
    named = (policy.workdir, code.working_directory, shell.working_directory)
    given = list(dict.fromkeys(os.path.abspath(one) for one in named if one is not None))
    if len(given) > 1:
        raise ValueError("a session has one workdir, and two that differ were given")
    return given[0] if given else None


def _checked_skills(skills: Sequence[Skill]) -> List[Skill]:
    found: Dict[str, Skill] = {}
    for skill in skills:
        if skill.name in found:
            raise ValueError(f"two skills are called {skill.name}")
        if not os.path.isdir(skill.source_path):
            raise NotADirectoryError(f"the skill {skill.name} is not there: {os.fspath(skill.source_path)} is no folder")
        found[skill.name] = skill
    return list(found.values())


def _permissions(
    agent: Optional[AgentPermission],
    callback: Optional[ApprovalCallback],
    code: CodeExecutionConfig,
    shell: ShellConfig,
) -> List[Dict[str, Any]]:
    """The strictest of these counts. Who gives a callback and no permission wants to be asked."""
    found: List[Dict[str, Any]] = []
    asked = AgentPermission.Ask
    if callback is not None and agent is None and code.permission is None and shell.permission is None:
        agent = asked
    if agent is not None:
        found.append({"otherwise": AgentPermission(agent).value})
    for_code = code.permission or (asked if code.approval_callback and agent is None else None)
    if for_code is not None:
        found.append({"tools": {"python": AgentPermission(for_code).value}})
    for_shell = shell.permission or (asked if shell.approval_callback and agent is None else None)
    if for_shell is not None:
        value = AgentPermission(for_shell).value
        tools = ("shell", "process_start", "process_write", "process_signal")
        found.append({"tools": {tool: value for tool in tools}})
    return found


def _links(policy: SandboxPolicy, skills: Sequence[Skill], *, shared: bool) -> Dict[str, str]:
    """What was named by a relative path is found under it in a workdir that is the session's own."""
    links = {f"skills/{skill.name}": os.path.abspath(skill.source_path) for skill in skills}
    if shared:
        return links
    for path in (*policy.extra_fs_read, *policy.extra_fs_write):
        name = os.path.normpath(os.fspath(path))
        if not os.path.isabs(name) and name != "." and not name.startswith(("..", "~")):
            links[name] = os.path.abspath(name)
    return links
