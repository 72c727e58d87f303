"""belljar: run code that you do not trust.

>>> import belljar
>>> from belljar import SandboxPolicy, NetworkMode
>>> out = belljar.run(["python3", "-c", "print(6 * 7)"], SandboxPolicy(network=NetworkMode.NoNetwork), timeout=30)
>>> out.exit_code, out.stdout
(0, '42\\n')
"""

from ._async import AsyncSession, AsyncStream
from ._config import AgentPermission, CodeExecutionConfig, CodeExecutionPermission, Decision, ShellConfig, Skill
from ._engines import shutdown
from ._errors import CommandFailed, Denied, Error, PolicyError, SandboxUnavailable, SessionClosed, ToolError
from ._outcome import Loss, Outcome, Reason
from ._policy import NetworkMode, Plan, SandboxMode, SandboxPolicy, doctor, plan
from ._results import Chunk, Command, File, GuestException, Image, PythonResult, ShellResult
from ._run import NoSandbox, run, run_async
from ._session import Session, Stream
from ._tools import Tool, ToolAnswer, Tools, tools

__all__ = [
    "AgentPermission", "AsyncSession", "AsyncStream", "Chunk", "CodeExecutionConfig", "CodeExecutionPermission",
    "Command", "CommandFailed", "Decision", "Denied", "Error", "File", "GuestException", "Image", "Loss",
    "NetworkMode", "NoSandbox", "Outcome", "Plan", "PolicyError", "PythonResult", "Reason", "SandboxMode",
    "SandboxPolicy", "SandboxUnavailable", "Session", "SessionClosed", "ShellConfig", "ShellResult", "Skill",
    "Stream", "Tool", "ToolAnswer", "ToolError", "Tools",
    "doctor", "plan", "run", "run_async", "shutdown", "tools",
]  # fmt: skip

__version__ = "0.1.0"
