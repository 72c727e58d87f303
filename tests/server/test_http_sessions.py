"""Sessions over HTTP: their life, their calls, and whose they are."""

import json
import socket
import threading
import time

import pytest
import serving


def test_a_session_is_made_used_and_ended(server, ann):
    made = ann.post("/v1/sessions")
    assert made.status == 201 and made.json["owner"] == "ann" and made.json["profile"] == "developer"
    session = made.json["id"]
    ann.python(session, "x = 6")
    answer = ann.python(session, "print('hi')\nx * 7")
    assert (answer["status"], answer["stdout"], answer["result"]) == ("success", "hi\n", "42")
    assert answer["session_id"] == session
    assert [each["id"] for each in ann.get("/v1/sessions").json["sessions"]] == [session]
    assert ann.delete(f"/v1/sessions/{session}").status == 204
    assert ann.get(f"/v1/sessions/{session}").status == 404
    assert ann.get("/v1/sessions").json == {"sessions": []}


def test_a_session_has_its_plan(server, ann):
    session = ann.session(id="mine", policy={"network": "none"})
    assert session == "mine"
    assert ann.get("/v1/sessions/mine").json["plan"]["network"] == "none"
    assert ann.get(f"/v1/sessions/{ann.session()}").json["plan"]["network"] == "full"


def test_shell_commands_run(server, ann):
    session = ann.session()
    answer = ann.post(f"/v1/sessions/{session}/shell", commands=["cd /", "pwd", "exit 3"])
    assert answer.status == 200
    assert answer.json["stdout"] == "/\n" and answer.json["exit_code"] == 3 and not answer.json["timed_out"]
    assert [each["exit_code"] for each in answer.json["commands"]][:2] == [0, 0]


CONNECT = "import socket\nsocket.create_connection(('192.0.2.1', 80), 5)"


def test_a_call_that_fails_for_want_of_a_network_says_so_once(server, ann):
    session = ann.session(policy={"network": "none"})
    notes = [ann.python(session, CONNECT)["notes"] for _ in range(2)]
    assert notes == [["this session has no network, so trying again will not help (network is none)"], []]
    shell = ann.session(policy={"network": "loopback"})
    command = "echo 'curl: (6) Could not resolve host: example.com' >&2; exit 6"
    assert "no network but its own loopback" in shell_notes(ann, shell, command)[0]
    # Not where it did not fail, nor where there is a network.
    quiet = ann.session(policy={"network": "none"})
    assert shell_notes(ann, quiet, command.replace("exit 6", "true")) == []
    assert shell_notes(ann, ann.session(), "(" + command + ")") == []


def shell_notes(client, session: str, command: str) -> list[str]:
    return client.post(f"/v1/sessions/{session}/shell", commands=[f"({command})"]).json["notes"]


def test_a_timeout_is_a_result_and_no_error(server, ann):
    session = ann.session()
    answer = ann.python(session, "import time\nprint('on')\ntime.sleep(60)", timeout_ms=500)
    assert answer["status"] == "timeout" and answer["stdout"] == "on\n"


@pytest.mark.parametrize("number", [3000.0, 2199163974726183.0, 2**64 - 1])
def test_whole_numbers_may_have_a_point_or_be_large(server, ann, number):
    session = ann.session()
    assert ann.python(session, "1 + 1", timeout_ms=number)["result"] == "2"
    answer = ann.post(f"/v1/sessions/{session}/tools/python", code="1 + 1", timeout_ms=number)
    assert answer.status == 200 and not answer.json["is_error"], answer.json


def test_a_call_of_its_own_leaves_no_session(server, ann):
    answer = ann.post("/v1/execute/python", code="1 + 1")
    assert answer.status == 200 and answer.json["result"] == "2"
    assert ann.post("/v1/execute/shell", commands=["echo hi"]).json["stdout"] == "hi\n"
    assert ann.get("/v1/sessions").json == {"sessions": []}


@pytest.mark.parametrize(
    "path,fields",
    [
        ("python", {}),
        ("python", {"code": 1}),
        ("python", {"code": "1", "timeout_ms": 0}),
        ("python", {"code": "1", "timeout_ms": -5}),
        ("python", {"code": "1", "timeout_ms": 1.5}),
        ("python", {"code": "1", "outputs": [1]}),
        ("python", {"code": "1", "colour": "red"}),
        ("shell", {"commands": []}),
        ("shell", {"commands": "ls"}),
        ("shell", {"commands": ["a\0b"]}),
        ("shell", {"commands": ["true"] * 101}),
        ("shell", {"commands": ["true"], "outputs": ["x"] * 101}),
    ],
)
@pytest.mark.parametrize("streamed", [{}, {"stream": True}], ids=["whole", "streamed"])
def test_a_call_that_is_none_is_a_bad_request(server, ann, path, fields, streamed):
    session = ann.session()
    refused = ann("POST", f"/v1/sessions/{session}/{path}", json.dumps({**fields, **streamed}).encode(),
                  {"Content-Type": "application/json"})  # fmt: skip
    assert refused.status == 400 and refused.error["type"] == "bad_request"


def test_interrupt_stops_a_call_and_reset_forgets(server, ann):
    session = ann.session()
    ann.python(session, "x = 1")
    answers = []
    with ann.stream("POST", f"/v1/sessions/{session}/python",
                    code="print('on', flush=True)\nimport time\ntime.sleep(60)") as events:  # fmt: skip
        events.until("output")
        assert ann.post(f"/v1/sessions/{session}/interrupt").status == 200
        answers.append(events.until("result"))
    assert answers[0]["interrupted"] and answers[0]["exception"]["type"] == "KeyboardInterrupt"
    assert ann.python(session, "x")["result"] == "1"
    assert ann.post(f"/v1/sessions/{session}/reset").json == {"id": session}
    assert ann.python(session, "x")["exception"]["type"] == "NameError"


def test_an_id_is_checked_and_used_once(server, ann):
    assert ann.post("/v1/sessions", id="../x").status == 400
    assert ann.post("/v1/sessions", id="a").status == 201
    assert ann.post("/v1/sessions", id="a").error["type"] == "conflict"


# ---------------------------------------------------------------- streams


def test_output_streams_and_the_result_ends_it(server, ann):
    session = ann.session()
    code = "import time\nfor i in range(3):\n  print('ü', i, flush=True)\n  time.sleep(0.2)\nopen('f', 'w').write('x')\n5"
    with ann.stream("POST", f"/v1/sessions/{session}/python", code=code) as events:
        seen = [(time.monotonic(), event, data) for event, data in events]
    output = [(when, data) for when, event, data in seen if event == "output"]
    assert "".join(data["text"] for _, data in output) == "ü 0\nü 1\nü 2\n"
    assert output[-1][0] - output[0][0] > 0.3, "it came all at once"
    assert [data["name"] for _, event, data in seen if event == "file"] == ["f"]
    assert seen[-1][1] == "result" and seen[-1][2]["result"] == "5"


def test_streamed_images_come_as_events(server, ann):
    session = ann.session()
    code = "import base64\nclass P:\n  def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n'\nP()"
    with ann.stream("POST", f"/v1/sessions/{session}/python", code=code) as events:
        names = [event for event, _ in events]
    assert names[-1] == "result"


def test_a_reader_that_goes_away_does_not_stop_the_call(server, ann):
    session = ann.session()
    with ann.stream("POST", f"/v1/sessions/{session}/python",
                    code="print('on', flush=True)\nimport time\ntime.sleep(1)\ny = 9") as events:  # fmt: skip
        events.until("output")
    assert ann.python(session, "y")["result"] == "9"


def test_a_flood_that_nobody_reads_costs_little_and_its_result_arrives(server, ann):
    session = ann.session()
    with ann.stream("POST", f"/v1/sessions/{session}/python",
                    code="for i in range(3000): print('x' * 20000)") as events:  # fmt: skip
        time.sleep(2)
        assert ann.get("/v1/health").status == 200
        with open(f"/proc/{server.process.pid}/status") as status:
            resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        assert resident < 200_000, "kB"
        result = events.until("result")
    assert result["stdout_cut_bytes"] > 0


def test_events_tell_what_happens(server, ann):
    session = ann.session()
    with ann.stream("GET", f"/v1/events?session={session}&types=call_started,call_finished,output") as events:
        events.until("hello")
        ann.python(session, "print('hi')")
        assert events.until("call_started")["tool"] == "python"
        assert events.until("output")["text"] == "hi\n"
        assert events.until("call_finished") == {
            "tool": "python", "status": "success", "session_id": session, "number": 3,
        }  # fmt: skip


# ---------------------------------------------------------- two tokens


def test_two_tokens_do_not_see_each_others_sessions(server, ann, bob):
    session = ann.session(id="secret")
    assert bob.get("/v1/sessions").json == {"sessions": []}
    for method, path in (
        ("GET", ""), ("DELETE", ""), ("POST", "/reset"), ("POST", "/interrupt"), ("POST", "/dispatch"),
    ):  # fmt: skip
        assert bob(method, f"/v1/sessions/{session}{path}").status == 404, (method, path)
    for path, fields in (("python", {"code": "1"}), ("shell", {"commands": ["id"]})):
        assert bob.post(f"/v1/sessions/{session}/{path}", **fields).status == 404
    assert ann.python(session, "1")["result"] == "1"  # the control: it is there


def test_two_tokens_do_not_hear_each_others_events(server, ann, bob):
    mine, his = ann.session(), bob.session()
    with bob.stream("GET", "/v1/events") as events:
        events.until("hello")
        ann.python(mine, "print('secret')")
        bob.python(his, "print('own')")
        heard = []
        for event, data in events:
            heard.append(data)
            if event == "call_finished":
                break
    assert {data["session_id"] for data in heard} == {his}


def test_a_shared_session_can_be_used_and_not_ended(server, ann, bob):
    session = ann.session(shared=True)
    ann.python(session, "x = 5")
    assert bob.python(f"{session}@ann", "x")["result"] == "5"
    assert bob.delete(f"/v1/sessions/{session}@ann").status == 403
    assert bob.get(f"/v1/sessions/{session}").status == 404, "it is no session of his own"


def test_an_admin_sees_all(server, ann):
    session = ann.session()
    boss = server.client("boss")
    assert [each["id"] for each in boss.get("/v1/sessions").json["sessions"]] == [f"{session}@ann"]
    assert boss.delete(f"/v1/sessions/{session}@ann").status == 204


# ------------------------------------------------------------- policies


def test_a_policy_can_be_narrower(server, ann):
    session = ann.session(policy={"network": "none", "max_procs": 20})
    answer = ann.python(session, "import socket\nsocket.socket(socket.AF_INET)")
    assert answer["exception"]["type"] in ("OSError", "PermissionError")
    control = ann.python(ann.session(), "import socket\nsocket.socket(socket.AF_INET) and 1")
    assert control["exception"] is None


@pytest.mark.parametrize(
    "fields",
    [
        {"profile": "open"},
        {"profile": "trusted-maintenance"},
        {"policy": {"network": "full"}},
        {"policy": {"max_memory_mb": 1_000_000}},
        {"policy": {"max_procs": "unlimited"}},
        {"policy": {"allow_read": ["/root"]}},
        {"policy": {"allow_write": ["/etc"]}},
        {"policy": {"allow_read": ["."]}},  # where the server was started, which sessions do not see
        {"policy": {"allow_write": ["~/.ssh"]}},
    ],
)
def test_a_policy_cannot_be_wider(start, fields):
    ann = start(profile="restricted").client("ann")
    refused = ann.post("/v1/sessions", **fields)
    assert refused.status == 403 and refused.error["type"] == "wider_policy", refused


def test_a_policy_can_ask_for_what_the_operator_gives(start):
    ann = start("--extra-read=.", profile="restricted").client("ann")
    assert ann.post("/v1/sessions", policy={"allow_read": ["."]}).status == 201


@pytest.mark.parametrize(
    "fields",
    [
        {"policy": {"network": "none"}},
        {"policy": {"network": "loopback"}},
        {"policy": {"deny_net": True}},
        {"policy": {"deny_all": True}},
        {"policy": {"allow_net": []}},
        {"policy": {"allow_net": ["192.0.2.9:9"]}},
        {"profile": "public-bot"},
        {"profile": "restricted"},
    ],
)
def test_a_policy_denies_hosts_that_the_operator_allows(start, fields):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        allowed = f"--allow-net=localhost:{port}", "--allow-net=192.0.2.9:9"
        ann = start(*allowed, profile="developer").client("ann")
        connect = f"import socket\nsocket.create_connection(('localhost', {port}), 20) and 1"
        denied = ann.python(ann.session(**fields), connect)
        assert denied["exception"] is not None, denied
        control = ann.python(ann.session(), connect)
        assert control["exception"] is None and control["result"] == "1", control


@pytest.mark.parametrize("fields", [{"policy": {"deny_all": True}}, {"policy": {"deny_read": True}}, {"profile": "restricted"}])
def test_a_policy_denies_places_that_the_operator_adds(start, scene, fields):
    kept = scene.file(scene.base / "kept.txt", "kept", mode=0o644)
    ann = start(f"--extra-read={kept}", profile="developer").client("ann")
    look = f"open({str(kept)!r}).read()"
    assert ann.python(ann.session(**fields), look)["exception"] is not None
    assert ann.python(ann.session(), look)["result"] == "'kept'", "the control"


def test_a_policy_can_say_how_long_calls_take(server, ann):
    session = ann.session(policy={"timeout": "1s"})
    began = time.monotonic()
    answer = ann.python(session, "import time\ntime.sleep(20)", timeout_ms=15_000)
    assert answer["status"] == "timeout" and time.monotonic() - began < 12, answer
    assert "the time was limited to 1 s" in str(answer["notes"]), answer


def test_patterns_of_a_policy_are_few(server, ann):
    hide = [f"/usr/share/**/x{n}*" for n in range(17)]
    assert ann.post("/v1/sessions", policy={"hide": hide}).status == 400
    assert ann.post("/v1/sessions", policy={"hide": hide[:16]}).status == 201, "the control"


@pytest.mark.parametrize("key", ["workdir", "home", "tmp", "credential", "env", "publish", "mode", "accept_degraded"])
def test_places_of_the_host_cannot_be_asked_for(server, ann, key):
    refused = ann.post("/v1/sessions", policy={key: "/tmp"})
    assert refused.status == 400 and key in refused.error["message"]


def test_a_session_that_was_idle_comes_back_under_its_own_policy(start):
    server = start(session='idle = "300ms"\nreap_every = "100ms"')
    ann = server.client("ann")
    session = ann.session(policy={"network": "none"})
    ann.python(session, "x = 1")
    assert serving.wait_until(lambda: "belljar_sessions 0" in ann.get("/metrics").body.decode())
    answer = ann.python(session, "import socket\nsocket.socket(socket.AF_INET)")
    assert answer["exception"]["type"] in ("OSError", "PermissionError")
    assert any("idle" in note for note in answer["notes"]), "the control: it had been ended"


# --------------------------------------------------------------- limits


def test_a_token_has_so_many_sessions(start):
    server = start(config="max_sessions_per_token = 2")
    ann = server.client("ann")
    sessions = [ann.session(), ann.session()]
    refused = ann.post("/v1/sessions")
    assert refused.status == 429 and refused.headers["Retry-After"]
    assert server.client("bob").post("/v1/sessions").status == 201
    ann.delete(f"/v1/sessions/{sessions[0]}")
    assert ann.post("/v1/sessions").status == 201


def test_a_token_has_so_many_requests_at_once(start):
    server = start(config="max_requests = 2")
    ann = server.client("ann")
    sessions = [ann.session(), ann.session()]
    streams = [
        ann.stream("POST", f"/v1/sessions/{each}/python", code="print(1, flush=True)\nimport time\ntime.sleep(20)")
        for each in sessions
    ]
    for stream in streams:
        stream.until("output")
    refused = ann.get("/v1/sessions")
    assert refused.status == 429 and refused.error["type"] == "too_many_requests" and refused.headers["Retry-After"]
    assert server.client("bob").get("/v1/sessions").status == 200
    assert ann.get("/v1/health").status == 200
    for stream in streams:
        stream.connection.close()


def test_calls_of_many_sessions_run_side_by_side(server, ann):
    sessions = [ann.session() for _ in range(4)]
    began = time.monotonic()
    threads = [threading.Thread(target=ann.python, args=(each, "import time\ntime.sleep(2)")) for each in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - began < 7
