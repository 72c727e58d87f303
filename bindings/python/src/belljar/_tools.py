"""The table of tools, for programs that let a model call them."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Union

from ._results import Image, images_of
from ._session import Session

# A program has its sessions itself: a model need not list or close them.
_NOT_OFFERED = ("session_list", "session_close")
_DEEPEST = 24  # levels of a model's arguments; the engine reads a few more


@dataclasses.dataclass(frozen=True)
class ToolAnswer:
    """What a tool answered. `str(answer)` is the text for the model."""

    text: str
    is_error: bool
    error_type: str
    structured: Dict[str, Any]
    images: List[Image]
    files: List[Dict[str, Any]]

    def __str__(self) -> str:
        return self.text


class Tool:
    """A tool of a session, as a function of its arguments by name."""

    def __init__(self, session: Session, data: Mapping[str, Any], notes: str) -> None:
        self._session = session
        self.name: str = data["name"]
        self.__name__ = self.name
        self.title: str = data["title"]
        self.description: str = data["description"] + notes
        self.__doc__ = self.description
        self.read_only: bool = data["read_only"]
        self.destructive: bool = data["destructive"]
        self.parameters: Dict[str, Any] = copy.deepcopy(data["input_schema"])
        self.parameters.get("properties", {}).pop("session", None)

    def __call__(self, **arguments: Any) -> ToolAnswer:
        return self.call(arguments)

    def call(self, arguments: Dict[str, Any]) -> ToolAnswer:
        answer = self._session.tool(self.name, arguments)
        images, notes = images_of([(one["mime"], one["base64"]) for one in answer["images"]])
        return ToolAnswer(
            text="\n".join([answer["text"], *notes]),
            is_error=answer["is_error"],
            error_type=answer["error_type"],
            structured=answer["structured"],
            images=images,
            files=answer["files"],
        )

    def __repr__(self) -> str:
        return f"<belljar tool {self.name}>"

    def openai(self) -> Dict[str, Any]:
        """As the `tools` of OpenAI's chat completions have it."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    def anthropic(self) -> Dict[str, Any]:
        """As the `tools` of Anthropic's messages have it."""
        return {"name": self.name, "description": self.description, "input_schema": self.parameters}


class Tools(Sequence[Tool]):
    """All tools of a session.

    >>> import belljar
    >>> with belljar.Session() as s:
    ...     tools = belljar.tools(s)
    ...     str(tools["python"](code="6 * 7"))
    ...     str(tools.call("shell", '{"commands": ["echo hello"]}'))
    '42\\n'
    'hello\\n'
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = list(tools)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            for tool in self._tools:
                if tool.name == key:
                    return tool
            raise KeyError(key)
        return self._tools[key]

    def __contains__(self, key: object) -> bool:
        return any(key in (tool, tool.name) for tool in self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def openai(self) -> List[Dict[str, Any]]:
        return [tool.openai() for tool in self._tools]

    def anthropic(self) -> List[Dict[str, Any]]:
        return [tool.anthropic() for tool in self._tools]

    def call(self, name: str, arguments: Union[str, Mapping[str, Any]]) -> ToolAnswer:
        """Calls a tool as a model asked for it. Whatever is wrong with that is an answer, too."""
        try:
            named = json.loads(arguments) if isinstance(arguments, str) else arguments
            if not isinstance(named, Mapping):
                return _refused("invalid_arguments", "the arguments must be an object")
            named = {str(key): value for key, value in named.items()}
            json.dumps(named, allow_nan=False, ensure_ascii=False).encode()
            if _depth(named) > _DEEPEST:
                raise ValueError("they are nested too deeply")
        except (ValueError, TypeError, RecursionError) as error:
            return _refused("invalid_arguments", f"the arguments are no JSON: {error}")
        try:
            tool: Tool = self[name]
        except KeyError:
            return _refused("unknown_tool", f"there is no tool {name}")
        return tool.call(named)


def _depth(value: Any) -> int:
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return 1 + max((_depth(part) for part in parts), default=0)


def _refused(kind: str, text: str) -> ToolAnswer:
    return ToolAnswer(text, True, kind, {"error_type": kind}, [], [])


def tools(session: Session) -> Tools:
    """The tools of a session, as functions with JSON schemas; descriptions say what its plan enforces."""
    if not isinstance(session, Session):
        raise TypeError("tools are of a Session; an AsyncSession has none")
    notes = "".join(
        f"\nskills/{skill.name}: {skill.description} (read skills/{skill.name}/SKILL.md first)"
        for skill in session.skills
    )
    return Tools(
        [
            Tool(session, data, notes if data["name"] in ("python", "shell") else "")
            for data in session.describe()["tools"]
            if data["name"] not in _NOT_OFFERED
        ]
    )
