"""What a person is shown before a yes: nothing in it is unseen, out of order, or taken for something else."""

from __future__ import annotations

import unicodedata

import mcp_client
import pytest
from test_cli_approvals import Call, asking, cli  # noqa: F401
from test_mcp_stdio import STATELESS

# One of each kind, and those at the ends of ranges.
UNSEEN = [
    0x7F, 0x80, 0x9B, 0x9F, 0xA0, 0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x1680, 0x17B4, 0x180B, 0x180E, 0x180F,
    0x2000, 0x2009, 0x200A, 0x200B, 0x200D, 0x200E, 0x200F, 0x2028, 0x2029, 0x202A, 0x202E, 0x202F, 0x205F, 0x2060,
    0x2064, 0x2066, 0x2069, 0x206F, 0x2800, 0x3000, 0x3164, 0xE000, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0xFFFB,
    0x1D159, 0x1D173, 0x1D17A, 0xE0001, 0xE0020, 0xE007F, 0xE0100, 0xE01EF, 0xF0000, 0x10FFFD, 0xFFFE, 0x1FFFF,
]  # fmt: skip
SEEN = "é e\u0301 中文 עברית العربية 🙂 → ½"


def hidden_in(text: str) -> list[str]:
    """Also what is not in the list above: by what Python knows of Unicode."""
    return [
        f"U+{ord(c):04X}" for c in text
        if ord(c) in UNSEEN or (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Co", "Zs") and c not in " \n")
    ]  # fmt: skip


COMMAND = "echo " + "".join(f"{chr(code)}x" for code in UNSEEN) + SEEN


def test_the_control_would_be_found():
    assert len(hidden_in(COMMAND)) == len(UNSEEN) and hidden_in(SEEN) == []


@pytest.mark.parametrize("era", ["with a connection", "stateless"])
def test_an_elicitation_shows_all_that_is_asked(scene, era):
    stateless = era == "stateless"
    with mcp_client.Client(
        scene, "--permission=ask", capabilities={"elicitation": {}}, initialize=not stateless
    ) as client:
        params = {"name": "shell", "arguments": {"commands": [COMMAND]}}
        if stateless:
            meta = {**STATELESS, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
            answer = client.call("tools/call", **params, _meta=meta)
            shown = answer["result"]["inputRequests"]["approval"]["params"]["message"]
        else:
            client.send("tools/call", **params)
            shown = client.requests.get(timeout=mcp_client.PATIENCE)["params"]["message"]
    assert hidden_in(shown) == [], shown
    assert SEEN in shown, "the control"


def test_the_command_shows_all_that_is_asked(asking, cli):  # noqa: F811
    ann = asking.client("ann")
    call = Call(ann, ann.session(), COMMAND)
    shown = cli("list").stdout
    assert hidden_in(shown) == [], shown
    assert SEEN in shown, "the control"
    cli("deny", call.approval["approval_id"])
    assert call.wait().status == 403


def test_a_long_call_is_shown_whole(asking, cli):  # noqa: F811
    ann = asking.client("ann")
    command = "echo " + "".join(f"<{number}>" for number in range(5000)) + "\necho second"
    call = Call(ann, ann.session(), command)
    shown = cli("list").stdout
    assert command.split("\n")[0] in shown and "echo second" in shown
    cli("deny", call.approval["approval_id"])
    call.wait()
