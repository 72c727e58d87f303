"""One thread serves everybody, so nobody may hold it for long: whatever a client or a guest sends within its
limits, no turn of the loop takes more than 50 ms of its own running time. The server measures that itself."""

from __future__ import annotations

import contextlib
import json
import pathlib
import threading

import jar as jars
import pytest

import serving

LONGEST = 0.05 * jars.SLOWER
MIB = 1 << 20
JSON = {"Content-Type": "application/json"}
SECRETS = "password=" + "x" * 15_000  # the audit masks it whole

FORGE = """
import json, os
def forge(**message):
    payload = json.dumps(message).encode()
    data = len(payload).to_bytes(4, "little") + payload
    while data:
        data = data[os.write(CONTROL, data[:1 << 20]):]
"""
# The worker answers on a descriptor that the guest's code can find.
FIND = """
import fcntl, os
CONTROL = next(int(fd) for fd in sorted(os.listdir("/proc/self/fd"), key=int)
               if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}")
               and os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:")
               and fcntl.fcntl(int(fd), fcntl.F_GETFL) & 3 == os.O_WRONLY)
"""


def longest_turn(server) -> float:
    return server.gauge("belljar_loop_longest_turn_seconds")


def lengthy(server) -> list[str]:
    return [line for line in server.errors().splitlines() if "everybody has waited" in line]


def check(server) -> None:
    longest = longest_turn(server)
    assert longest < LONGEST, (longest, lengthy(server)[:20])


def peak_kb(server) -> int:
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def call(client, session: str, name: str, **arguments) -> serving.Answer:
    body = json.dumps(arguments).encode()
    return client("POST", f"/v1/sessions/{session}/tools/{name}", body, JSON)


# ---- what clients and guests do, each within its limits --------------------------------------------------------------


def unknown_arguments(server, client, session) -> None:
    answer = call(client, session, "python", code="1", **{f"a{i}": [SECRETS] * 24 for i in range(50)})
    assert answer.status == 400 or answer.json["error_type"] == "invalid_arguments", answer


def long_names(server, client, session) -> None:
    answer = call(client, session, "python", **{SECRETS + str(i): SECRETS for i in range(600)})
    assert answer.status == 400 or answer.json["error_type"] == "invalid_arguments", answer


def many_values(server, client, session) -> None:
    answer = call(client, session, "python", code="1", a=[[1]] * 45_000)
    assert answer.status == 400 or answer.json["error_type"] == "invalid_arguments", answer


def long_code(server, client, session) -> None:
    answer = client.python(session, "x = 1 #" + "y" * (15 * MIB))
    assert answer["status"] == "success", answer


def long_code_by_tool(server, client, session) -> None:
    answer = call(client, session, "python", code="x = '''" + "\n" * (8 * MIB) + "'''")
    assert answer.status == 200 and not answer.json["is_error"], answer


def long_command(server, client, session) -> None:
    answer = client.post(f"/v1/sessions/{session}/shell", commands=["true #" + "password=aa " * (MIB // 12 * 15)])
    assert answer.status == 200, answer


def long_content(server, client, session) -> None:
    answer = call(client, session, "write", path="long", content="x\n" * (4 * MIB))
    assert answer.status == 200, answer


def upload(server, client, session) -> None:
    assert client("PUT", f"/v1/sessions/{session}/files/up", b"x" * (15 * MIB)).status == 201


def dispatched(server, client, session) -> None:
    body = json.dumps({"name": "python", "arguments": json.dumps({"code": "1", "a": ["\x01" * MIB] * 2})}).encode()
    assert server.client("tool")("POST", "/v1/dispatch/d", body, JSON).status == 200


def forged_displays(server, client, session) -> None:
    answer = client.python(session, FIND + FORGE + (
        "for n in range(12): forge(op='display', id=1, data={'text/plain': '\\x01' * 2_600_000})\n"))  # fmt: skip
    assert answer["status"] in ("success", "error"), answer


IMAGES = FIND + FORGE + "for n in range(3): forge(op='display', id=1, data={'image/png': 'A' * 15_000_000})"


def large_images(server, client, session) -> None:
    client.python(session, IMAGES)


def forged_answer(server, client, session) -> None:
    client.python(session, FIND + FORGE + (
        "forge(op='done', id=1, status='success', result={'repr': '\\x01' * 400_000,"
        " 'type': 'str', 'data': {'image/png': 'A' * 10_000_000, 'text/plain': '\\x01' * 300_000}})"))  # fmt: skip


def streamed_displays(server, client, session) -> None:
    path = f"/v1/sessions/{session}/python"
    with client.stream("POST", path, code=IMAGES, stream=True) as events:
        events.until("result")


def much_output(server, client, session) -> None:
    client.python(
        session, "import os\nfor _ in range(200): os.write(1, b'\\x01' * 65536), os.write(2, b'\\xff' * 65536)"
    )


def heard_output(server, client, session) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(client.stream("GET", "/v1/events"))
        client.python(session, "import os\nfor _ in range(20): os.write(1, b'\\x01' * 65536)")


def many_files(server, client, session) -> None:
    client.python(
        session,
        "for i in range(40): open(f'{i}.bin', 'wb').write(bytes(range(256)) * 4096)",
        outputs=[f"{i}.bin" for i in range(40)],
    )


def dying_jars(server, client, session) -> None:
    for _ in range(3):
        mine = client.session()
        client.python(mine, "import subprocess\nfor _ in range(30): subprocess.Popen(['sleep', '1000'])")
        assert client.delete(f"/v1/sessions/{mine}").status == 204


def listing(server, client, session) -> None:
    for _ in range(200):
        client.session()
    for _ in range(5):
        assert len(client.get("/v1/sessions").json["sessions"]) > 200


def half_sent_heads(server, client, session) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            connection = stack.enter_context(server.connect())
            connection.sendall(b"GET /v1/health HTTP/1.1\r\nX-A: " + b"a" * 12_000)
        assert client.get("/v1/health").status == 200


def mcp(client, method: str, **params) -> serving.Answer:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **params}}).encode()
    headers = {**JSON, "Accept": "application/json, text/event-stream", "Mcp-Method": method}
    headers["MCP-Protocol-Version"] = meta["io.modelcontextprotocol/protocolVersion"]
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return client("POST", "/mcp", body, headers)


def long_mcp_call(server, client, session) -> None:
    arguments = {"session": session, "code": "x = 1 #" + "y" * (15 * MIB)}
    answer = mcp(client, "tools/call", name="python", arguments=arguments)
    assert answer.status == 200, answer


def unknown_to_mcp(server, client, session) -> None:
    arguments = {"session": session, "code": "1", **{f"a{i}": [SECRETS] * 24 for i in range(50)}}
    answer = mcp(client, "tools/call", name="python", arguments=arguments)
    assert answer.status in (200, 400), answer


def images_over_mcp(server, client, session) -> None:
    answer = mcp(client, "tools/call", name="python", arguments={"session": session, "code": IMAGES})
    assert answer.status == 200, answer


ATTACKS = [
    unknown_arguments, long_names, many_values, long_code, long_code_by_tool, long_command, long_content, upload,
    dispatched, forged_displays, large_images, forged_answer, streamed_displays, much_output, heard_output,
    many_files, dying_jars,
    listing, half_sent_heads, long_mcp_call, unknown_to_mcp, images_over_mcp,
]  # fmt: skip


@pytest.fixture
def watched(start, scene):
    return start(audit=f"{scene.home}/audit.jsonl", session="max_sessions = 600", config="max_sessions_per_token = 300")


# The CPU time of a jar's processes is still summed up on the loop. Beside busy processes one of these
# reads can take 15 ms.
CPU_TIME_ON_THE_LOOP = pytest.mark.xfail(strict=False, reason="the loop sums up CPU time")


@pytest.mark.parametrize(
    "attack",
    [pytest.param(one, marks=[CPU_TIME_ON_THE_LOOP] if one is dying_jars else [], id=one.__name__) for one in ATTACKS],
)
def test_nothing_holds_the_loop(watched, attack):
    ann = watched.client("ann")
    attack(watched, ann, ann.session())
    check(watched)


@CPU_TIME_ON_THE_LOOP
def test_nothing_holds_the_loop_when_everything_comes_at_once(watched):
    """Two tokens, each with every attack. Some are refused, since a token has its limits."""

    def run(attack, name):
        client = watched.client(name)
        with contextlib.suppress(AssertionError, OSError, KeyError):  # refused, or hung up on
            attack(watched, client, client.session())

    threads = [threading.Thread(target=run, args=(attack, name)) for attack in ATTACKS for name in ("ann", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert watched.client("ann").python(watched.client("ann").session(), "1 + 1")["result"] == "2"
    check(watched)


def test_a_call_shows_so_much_and_the_rest_is_noted(watched):
    """A control character is six bytes of JSON, so 31 MiB of them would be 186 MiB."""
    ann = watched.client("ann")
    answer = ann.post(f"/v1/sessions/{ann.session()}/python", code=FIND + FORGE + (
        "for n in range(12): forge(op='display', id=1, data={'text/plain': '\\x01' * 2_600_000})\n"))  # fmt: skip
    assert len(answer.body) < 40 * MIB
    assert len(answer.json["displays"]) == 2 and "10 displays were dropped: too many" in answer.json["notes"]


def test_what_is_shown_as_usual_arrives(watched):
    ann = watched.client("ann")
    answer = ann.python(ann.session(), FIND + FORGE + (
        "for n in range(10): forge(op='display', id=1, data={'image/png': 'A' * 1_000_000})\n'x' * 1000"))  # fmt: skip
    assert len(answer["displays"]) == 10 and len(answer["images"]) == 10 and answer["notes"] == []


def test_calls_of_one_token_show_so_much_together(watched):
    """Twelve calls that each keep 30 MiB, and do not end."""
    ann = watched.client("ann")
    before = peak_kb(watched)
    show = "forge(op='display', id=1, data={'a/b': 'A' * 15_000_000})\n" * 2
    code = FIND + FORGE + show + "import time; time.sleep(3)"
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(ann.python(ann.session(), code)["notes"])) for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    dropped = [notes for notes in answers if any("dropped" in note for note in notes)]
    assert len(answers) == 12 and len(dropped) >= 3
    assert peak_kb(watched) - before < 900 << 10
