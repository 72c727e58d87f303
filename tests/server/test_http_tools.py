"""Tools by name, approvals, and the dispatch of mistral.rs."""

import json
import signal
import threading
import time

import pytest
import serving

CONTINUATIONS = 16  # of one session


def test_tools_are_listed_with_what_the_session_may_do(server, ann):
    session = ann.session(policy={"network": "none"})
    tools = {each["name"]: each for each in ann.get(f"/v1/sessions/{session}/tools").json["tools"]}
    assert {"python", "shell"} <= set(tools)
    assert tools["python"]["input_schema"]["type"] == "object"
    general = {each["name"]: each for each in ann.get("/v1/tools").json["tools"]}
    assert tools["shell"]["description"] != general["shell"]["description"], "the network differs"


def test_a_tool_is_called_by_its_name(server, ann):
    session = ann.session()
    answer = ann.post(f"/v1/sessions/{session}/tools/python", code="6 * 7")
    assert answer.status == 200 and answer.json["text"] == "42\n" and not answer.json["is_error"]
    failed = ann.post(f"/v1/sessions/{session}/tools/python", code="1 / 0")
    assert failed.status == 200 and failed.json["is_error"] and failed.json["error_type"] == "exception"
    assert ann.post(f"/v1/sessions/{session}/tools/nothing").status == 404
    assert ann.post(f"/v1/sessions/{session}/tools/python").json["error_type"] == "invalid_arguments"


def test_a_tool_call_reaches_no_other_session(server, ann, bob):
    mine, his = ann.session(), bob.session()
    bob.python(his, "secret = 7")
    answer = ann.post(f"/v1/sessions/{mine}/tools/python", code="secret", session=his)
    assert answer.json["error_type"] == "exception" and "NameError" in answer.json["text"]
    shared = ann.session(shared=True)
    for tool in ("session_list", "session_close"):
        assert bob.post(f"/v1/sessions/{shared}@ann/tools/{tool}").status == 403


def test_closing_by_tool_is_closing(server, ann):
    session = ann.session()
    ann.python(session, "1")
    assert not ann.post(f"/v1/sessions/{session}/tools/session_close").json["is_error"]
    assert ann.get(f"/v1/sessions/{session}").status == 404


# ------------------------------------------------------------- approvals


@pytest.fixture
def asking(start):
    return start("--permission=ask")


def begin_call(client, session: str):
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(client.post(f"/v1/sessions/{session}/python", code="6 * 7"))
    )
    thread.start()
    assert serving.wait_until(lambda: client.get("/v1/approvals").json["approvals"])
    return thread, answers, client.get("/v1/approvals").json["approvals"][0]


@pytest.mark.parametrize("how", ["closed", "interrupted"])
def test_a_call_that_waits_ends_with_what_it_is_for(asking, how):
    ann = asking.client("ann")
    session = ann.session()
    thread, answers, approval = begin_call(ann, session)
    if how == "closed":
        assert ann.delete(f"/v1/sessions/{session}").status == 204
    else:
        assert ann.post(f"/v1/sessions/{session}/interrupt").status == 200
    thread.join(60)
    assert answers and answers[0].status == 403, answers
    assert answers[0].error["message"] == f"nobody has approved this call: the session was {how}"
    assert ann.get("/v1/approvals").json == {"approvals": []}
    assert ann.post(f"/v1/approvals/{approval['approval_id']}", decision="approve").status == 404


def test_a_call_that_waits_ends_with_its_token(asking):
    ann = asking.client("ann")
    thread, answers, approval = begin_call(ann, ann.session())
    asking.write_tokens({name: each for name, each in serving.TOKENS.items() if name != "ann"})
    asking.signal(signal.SIGHUP)
    thread.join(60)
    assert answers and "the token is no longer valid" in answers[0].error["message"], answers
    late = asking.client("boss").post(f"/v1/approvals/{approval['approval_id']}", decision="approve")
    assert late.status == 404, late


def test_a_call_in_a_shared_session_ends_with_its_callers_token(asking):
    ann, bob = asking.client("ann"), asking.client("bob")
    session = ann.session(shared=True)
    thread, answers, approval = begin_call(bob, f"{session}@ann")
    asking.write_tokens({name: each for name, each in serving.TOKENS.items() if name != "bob"})
    asking.signal(signal.SIGHUP)
    thread.join(60)
    assert answers and "the token is no longer valid" in answers[0].error["message"], answers
    assert ann.post(f"/v1/approvals/{approval['approval_id']}", decision="approve").status == 404
    # The control: the session's owner goes on.
    thread, answers, approval = begin_call(ann, session)
    assert ann.post(f"/v1/approvals/{approval['approval_id']}", decision="approve").status == 200
    thread.join(60)
    assert answers and answers[0].status == 200, answers


def test_what_nobody_can_look_at_is_not_asked_about(asking):
    ann = asking.client("ann")
    session = ann.session()
    for much in ("#" * 300_000, "\1" * 50_000):  # the second is as long when people are shown it
        refused = ann.post(f"/v1/sessions/{session}/python", code=much)
        assert refused.status == 403 and "make it shorter than 256 KiB" in refused.error["message"], refused
    assert ann.get("/v1/approvals").json == {"approvals": []}


def test_an_approved_call_runs(asking):
    ann = asking.client("ann")
    session = ann.session()
    thread, answers, approval = begin_call(ann, session)
    assert approval["session_id"] == session and approval["arguments"] == {"code": "6 * 7"}
    assert set(approval["tool"]) >= {"source", "kind", "label"} and "round" in approval
    assert ann.get(f"/v1/approvals/{approval['approval_id']}").json == approval
    decided = ann.post(f"/v1/approvals/{approval['approval_id']}", decision="approve")
    assert decided.status == 200
    thread.join()
    assert answers[0].json["result"] == "42"
    assert ann.get("/v1/approvals").json == {"approvals": []}
    assert ann.post(f"/v1/approvals/{approval['approval_id']}", decision="approve").status == 404


def test_a_denied_call_does_not_run_and_the_model_hears_why(asking):
    ann = asking.client("ann")
    thread, answers, approval = begin_call(ann, ann.session())
    ann.post(f"/v1/approvals/{approval['approval_id']}", decision="deny", message="not today")
    thread.join()
    assert answers[0].status == 403 and answers[0].error["type"] == "not_approved"
    assert "not today" in answers[0].error["message"]


def test_what_is_remembered_is_asked_once(asking):
    ann = asking.client("ann")
    session = ann.session()
    thread, answers, approval = begin_call(ann, session)
    ann.post(f"/v1/approvals/{approval['approval_id']}", decision="approve", remember_for_session=True)
    thread.join()
    assert ann.python(session, "1 + 1")["result"] == "2"


def test_another_token_neither_sees_nor_decides(asking):
    ann, bob = asking.client("ann"), asking.client("bob")
    thread, answers, approval = begin_call(ann, ann.session())
    assert bob.get("/v1/approvals").json == {"approvals": []}
    assert bob.get(f"/v1/approvals/{approval['approval_id']}").status == 404
    assert bob.post(f"/v1/approvals/{approval['approval_id']}", decision="approve").status == 404
    assert asking.client("eye").get("/v1/approvals").status == 403
    ann.post(f"/v1/approvals/{approval['approval_id']}", decision="deny")
    thread.join()


@pytest.mark.parametrize("fields", [{}, {"decision": "yes"}, {"decision": "approve", "scope": "all"}])
def test_a_decision_that_is_none_is_refused(asking, fields):
    ann = asking.client("ann")
    thread, answers, approval = begin_call(ann, ann.session())
    path = f"/v1/approvals/{approval['approval_id']}"
    body = json.dumps(fields).encode()
    assert ann("POST", path, body, {"Content-Type": "application/json"}).status == 400
    ann.post(path, decision="deny")
    thread.join()


def test_a_stream_says_that_it_waits(asking):
    ann = asking.client("ann")
    session = ann.session()
    with ann.stream("POST", f"/v1/sessions/{session}/python", code="1") as events:
        approval = events.until("agentic_tool_approval_required")
        ann.post(f"/v1/approvals/{approval['approval_id']}", decision="approve")
        assert events.until("result")["result"] == "1"


def test_denied_by_permission_is_said(start):
    ann = start("--permission=deny").client("ann")
    session = ann.session()
    refused = ann.post(f"/v1/sessions/{session}/python", code="1")
    assert refused.status == 403 and refused.error["type"] == "denied"
    assert ann.post("/v1/execute/shell", commands=["id"]).status == 403


# -------------------------------------------------------------- dispatch


def dispatch(server, path: str, body) -> str:
    """As mistral.rs does: no header but the type, any 2xx, a text in `content`."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = server.client(None)("POST", path, data, {"Content-Type": "application/json"})
    assert answer.status == 200, answer
    assert isinstance(answer.json["content"], str)
    return answer.json["content"]


@pytest.fixture
def address(server, ann):
    session = ann.session()
    made = ann.post(f"/v1/sessions/{session}/dispatch")
    assert made.status == 201
    return made.json["path"]


def test_dispatch_runs_python_and_shell(server, address):
    assert dispatch(server, address, {"name": "mistralrs_execute_python", "arguments": {"code": "6 * 7"}}) == "42\n"
    said = dispatch(server, address, {"name": "mistralrs_shell", "arguments": {"commands": ["echo hi"]}})
    assert said == "hi\n"


@pytest.mark.parametrize(
    "body",
    [
        b"nonsense", b"[]", b"", {"name": 1}, {}, {"name": "python", "arguments": "{broken"},
        {"name": "python", "arguments": 5}, {"name": "python", "arguments": {"code": 5}},
        {"name": "no_such_tool", "arguments": {}}, {"name": "python", "arguments": {"code": "#continue c99"}},
    ],
)  # fmt: skip
def test_dispatch_answers_200_whatever_comes(server, address, body):
    assert dispatch(server, address, body).startswith("error")


@pytest.mark.parametrize("inside", [False, True], ids=["values", "values in a text"])
def test_dispatch_takes_no_more_values_than_others(server, address, inside):
    def body(values: int) -> bytes:
        arguments: object = {"code": "1", "x": [0] * values}
        return json.dumps({"name": "python", "arguments": json.dumps(arguments) if inside else arguments}).encode()

    assert "too many values" in dispatch(server, address, body(100_001))
    said = dispatch(server, address, body(1000))
    assert "too many values" not in said and "x" in said, "the control: the tool has no such argument"


def test_two_that_wait_for_one_call_cost_nothing(start):
    """Neither wakes the other."""
    server = start(config='dispatch_wait = "3s"')
    ann = server.client("ann")
    session = ann.session()
    path = ann.post(f"/v1/sessions/{session}/dispatch").json["path"]
    wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)\n'done'"
    said = dispatch(server, path, {"name": "python", "arguments": {"code": wait}})
    again = {"name": "python", "arguments": {"code": "#continue " + said.split("#continue ")[1].split('"')[0]}}
    answers: list[str] = []
    before = serving.cpu_seconds(server.process.pid)
    threads = [threading.Thread(target=lambda: answers.append(dispatch(server, path, again))) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert serving.cpu_seconds(server.process.pid) - before < 1, "of three that they wait"
    assert all(each.startswith("still running") for each in answers), answers
    assert ann("PUT", f"/v1/sessions/{session}/files/go", b"").status == 201
    while (said := dispatch(server, path, again)).startswith("still running"):
        pass
    assert said.startswith("'done'\n"), said


def test_answers_that_nobody_fetched_make_room(start):
    server = start(config='dispatch_wait = "100ms"')
    ann = server.client("ann")
    session = ann.session()
    path = ann.post(f"/v1/sessions/{session}/dispatch").json["path"]
    wait = {"name": "shell", "arguments": {"commands": ["until test -e go; do sleep 0.05; done; echo done"]}}
    said = [dispatch(server, path, wait) for _ in range(CONTINUATIONS)]
    assert all("still running" in each for each in said), said
    assert "too many calls" in dispatch(server, path, wait)
    assert ann("PUT", f"/v1/sessions/{session}/files/go", b"").status == 201
    quick = {"name": "python", "arguments": {"code": "6 * 7"}}
    assert serving.wait_until(lambda: "too many" not in dispatch(server, path, quick))
    oldest, newest = (each.split('["#continue ')[1].split('"')[0] for each in (said[0], said[-1]))
    fetch = {"name": "shell", "arguments": {"commands": [f"#continue {oldest}"]}}
    assert dispatch(server, path, fetch).startswith("error: there is no call"), "it made room"
    fetch["arguments"]["commands"] = [f"#continue {newest}"]
    assert serving.wait_until(lambda: "done" in dispatch(server, path, fetch))


def test_dispatch_reads_arguments_that_are_text(server, address):
    assert dispatch(server, address, {"name": "python", "arguments": '{"code": "1 + 1"}'}) == "2\n"


def test_dispatch_says_what_an_exception_was(server, address):
    said = dispatch(server, address, {"name": "python", "arguments": {"code": "1 / 0"}})
    assert said.startswith("error (exception)") and "ZeroDivisionError" in said


def test_dispatch_says_that_it_shows_no_images(server, address):
    plot = "import matplotlib.pyplot as plt\nfor _ in range(%d): plt.figure(); plt.plot([1, 2])"
    for count, words in ((1, "an image cannot be shown"), (2, "2 images cannot be shown")):
        said = dispatch(server, address, {"name": "python", "arguments": {"code": plot % count}})
        assert f"note: {words} here" in said and "save" in said, said
    assert "image" not in dispatch(server, address, {"name": "python", "arguments": {"code": "1"}})


def test_dispatch_of_long_work_answers_in_time_and_can_be_continued(start):
    server = start(config='dispatch_wait = "1s"')
    ann = server.client("ann")
    path = ann.post(f"/v1/sessions/{ann.session()}/dispatch").json["path"]
    began = time.monotonic()
    code = "print('begun', flush=True)\nimport time\ntime.sleep(4)\n'slept'"
    said = dispatch(server, path, {"name": "mistralrs_execute_python", "arguments": {"code": code}})
    assert time.monotonic() - began < 3 and "still running" in said and "begun" in said
    token = said.split("#continue ")[1].split('"')[0]
    while "still running" in said:
        said = dispatch(server, path, {"name": "python", "arguments": {"code": f"#continue {token}"}})
    assert "slept" in said and 3 < time.monotonic() - began < 12
    again = dispatch(server, path, {"name": "python", "arguments": {"code": f"#continue {token}"}})
    assert again.startswith("error"), "it is given out once"


def test_dispatch_says_when_it_is_a_person_that_is_awaited(start):
    server = start("--permission=ask", config='dispatch_wait = "1s"')
    ann = server.client("ann")
    path = ann.post(f"/v1/sessions/{ann.session()}/dispatch").json["path"]
    code = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)\n'done'"
    said = dispatch(server, path, {"name": "python", "arguments": {"code": code}})
    (waiting,) = ann.get("/v1/approvals").json["approvals"]
    assert said.startswith("waiting for a person to approve this call") and waiting["approval_id"] in said, said
    assert "`belljar approvals`" in said and "POST /v1/approvals/{id}" in said and "still running" not in said
    number = said.split('code "#continue ')[1].split('"')[0]
    again = {"name": "python", "arguments": {"code": f"#continue {number}"}}
    assert dispatch(server, path, again) == said
    assert ann.post(f"/v1/approvals/{waiting['approval_id']}", decision="approve").status == 200
    assert dispatch(server, path, again).startswith("still running"), "nobody is awaited any more"
    session = waiting["session_id"]
    assert ann("PUT", f"/v1/sessions/{session}/files/go", b"").status == 201
    while (said := dispatch(server, path, again)).startswith("still running"):
        pass
    assert said.startswith("'done'\n"), said


def test_an_address_is_for_one_session_and_ends_with_it(server, ann):
    one, other = ann.session(), ann.session()
    path = ann.post(f"/v1/sessions/{one}/dispatch").json["path"]
    token = path.split("token=")[1]
    call = {"name": "python", "arguments": {"code": "1"}}
    assert dispatch(server, path, call) == "1\n"
    assert dispatch(server, f"/v1/dispatch/{other}?token={token}", call).startswith("error")
    assert dispatch(server, f"/v1/dispatch/fresh?token={token}", call).startswith("error")
    nobody = server.client(None)
    assert nobody.get(f"/v1/sessions?token={token}").status == 401
    ann.delete(f"/v1/sessions/{one}")
    assert nobody.post(path, **call).status == 401


def test_dispatch_ends_and_resets_a_session_for_its_owner_only(server, ann, bob):
    shared = ann.session(shared=True)
    paths = {each: each.post(f"/v1/sessions/{shared}@ann/dispatch").json["path"] for each in (ann, bob)}
    run = {"name": "python", "arguments": {"code": "1"}}
    assert dispatch(server, paths[bob], run) == "1\n", "it is shared"
    for name in ("session_close", "session_reset", "session_list"):
        said = dispatch(server, paths[bob], {"name": name, "arguments": {}})
        assert said == "error: the session belongs to another token", said
    assert not dispatch(server, paths[ann], {"name": "session_reset", "arguments": {}}).startswith("error")
    assert dispatch(server, paths[ann], {"name": "session_close", "arguments": {}}) == "closed"


def test_no_other_token_may_be_in_an_address(server, ann):
    session = ann.session()
    refused = server.client(None).post(f"/v1/dispatch/{session}?token={ann.token}", name="python")
    assert refused.status == 401


def test_a_dispatch_token_of_the_file_makes_its_sessions(server, ann):
    token = serving.TOKENS["tool"][1]
    call = {"name": "python", "arguments": {"code": "x = 5\nx"}}
    assert dispatch(server, f"/v1/dispatch/agent-1?token={token}", call) == "5\n"
    assert ann.get("/v1/sessions").json == {"sessions": []}
    mine = ann.session()
    ann.python(mine, "x = 'of ann'")
    assert dispatch(server, f"/v1/dispatch/{mine}@ann?token={token}", call).startswith("error")
    assert dispatch(server, f"/v1/dispatch/{mine}?token={token}", call) == "5\n", "it is one of its own"
    assert ann.python(mine, "x")["result"] == "'of ann'"
