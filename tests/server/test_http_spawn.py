"""Programs as calls: started without a shell, heard, ended in time."""

import threading

import pytest
import serving


def spawn(client, session: str, *arguments: str, **fields):
    return client.post(f"/v1/sessions/{session}/spawn", arguments=list(arguments), **fields)


def test_a_program_runs_without_a_shell(server, ann):
    session = ann.session()
    answer = spawn(ann, session, "/bin/echo", "$HOME", "; id").json
    assert answer["status"] == "success" and answer["exit_code"] == 0 and answer["session_id"] == session
    assert answer["stdout"] == "$HOME ; id\n" and answer["stderr"] == ""
    # The control: a shell reads both.
    shell = ann.post(f"/v1/sessions/{session}/shell", commands=["/bin/echo $HOME ; id"]).json
    assert "$HOME" not in shell["stdout"] and "uid=" in shell["stdout"]


def test_it_is_in_the_session_with_its_folder_and_variables(server, ann):
    session = ann.session()
    ann.python(session, "import os\nos.mkdir('sub')\nopen('sub/name', 'w').write('found')")
    answer = spawn(ann, session, "sh", "-c", "cat name; echo $WORD; echo bad >&2; exit 3",
                   folder=ann.python(session, "os.path.abspath('sub')")["result"].strip("'"),
                   environment={"WORD": "given"}).json  # fmt: skip
    assert answer["stdout"] == "foundgiven\n" and answer["stderr"] == "bad\n"
    assert answer["status"] == "error" and answer["exit_code"] == 3


def test_it_reads_the_end_at_once(server, ann):
    assert spawn(ann, ann.session(), "cat").json["status"] == "success"


def test_it_is_confined_as_the_session_is(server, ann, scene):
    secret = scene.home / "secret-of-spawn"
    secret.write_text("host")
    scene.identity.own(secret)
    session = ann.session()
    answer = spawn(ann, session, "cat", str(secret)).json
    assert answer["status"] == "error" and "host" not in answer["stdout"]
    assert secret.read_text() == "host"  # the control: it is there


def test_its_time_ends_it(server, ann):
    session = ann.session()
    answer = spawn(ann, session, "sh", "-c", "echo before; sleep 100", timeout_ms=500).json
    assert answer["status"] == "timeout" and answer["timed_out"] and answer["stdout"] == "before\n"
    stubborn = spawn(ann, session, "sh", "-c", "trap '' TERM; while :; do sleep 1; done", timeout_ms=500).json
    assert stubborn["status"] == "timeout" and stubborn["exit_code"] == 128 + 9
    assert ann.python(session, "1+1")["result"] == "2"


def test_interrupt_reaches_it(server, ann):
    session = ann.session()
    answers = []
    with ann.stream("GET", f"/v1/events?session={session}") as events:
        call = threading.Thread(target=lambda: answers.append(spawn(ann, session, "sh", "-c", "echo up; sleep 100")))
        call.start()
        while events.until("output")["text"] != "up\n":
            pass
        assert ann.post(f"/v1/sessions/{session}/interrupt").status == 200
    call.join(serving.PATIENCE)
    assert answers and answers[0].json["interrupted"] and answers[0].json["status"] == "error"


def test_output_streams_and_the_result_ends_it(server, ann):
    session = ann.session()
    command = ["sh", "-c", "echo one; read x; echo two >&2"]
    with ann.stream("POST", f"/v1/sessions/{session}/spawn", arguments=command, stream=True) as events:
        heard = list(events)
    assert ("output", {"stream": "stdout", "text": "one\n"}) in heard
    assert ("output", {"stream": "stderr", "text": "two\n"}) in heard
    assert heard[-1][0] == "result" and heard[-1][1]["stdout"] == "one\n"


def test_one_of_its_own_leaves_no_session(server, ann):
    answer = ann.post("/v1/execute/spawn", arguments=["pwd"])
    assert answer.status == 200 and answer.json["status"] == "success"
    assert ann.get("/v1/sessions").json["sessions"] == []


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"arguments": []}, {"arguments": "ls"}, {"arguments": [""]}, {"arguments": ["ls\0"]}, {"arguments": [1]},
        {"arguments": ["ls"], "environment": {"A": 1}}, {"arguments": ["ls"], "terminal": True},
        {"arguments": ["ls"], "timeout_ms": 0},
        {"arguments": ["ls"], "folder": "/\0"}, {"arguments": ["ls"], "commands": ["ls"]},
        {"arguments": ["ls"], "environment": {"A=B": ""}}, {"arguments": ["ls"], "environment": {"A": "\0B=C"}},
    ],
)  # fmt: skip
@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_what_is_no_command_is_a_bad_request(server, ann, fields):
    answer = ann.post(f"/v1/sessions/{ann.session()}/spawn", **fields) if fields else ann.post(
        f"/v1/sessions/{ann.session()}/spawn", agent=None
    )
    assert answer.status == 400 and answer.error["type"] == "bad_request", answer


def test_what_cannot_be_started_is_told_as_a_shell_does(server, ann):
    session = ann.session()
    missing = spawn(ann, session, "/nowhere/at/all").json
    assert missing["status"] == "error" and missing["exit_code"] == 127 and "/nowhere" in missing["stderr"]
    assert spawn(ann, session, "/etc/passwd").json["exit_code"] == 126
    assert spawn(ann, session, "ls", folder="/nowhere/at/all").json["exit_code"] in (126, 127)


@pytest.mark.parametrize(
    "arguments, folder, what, hint",
    [
        (["nosuch"], None, "start nosuch: No such file", "PATH"),
        (["ls -l"], None, "start ls -l: No such file", "every word is an argument of its own"),
        (["./nosuch"], None, "start ./nosuch: No such file", "the session sees no such file"),
        (["./plain"], None, "start ./plain: Permission denied", "is it executable?"),
        (["ls"], "/no/such", "enter the folder /no/such: No such file", "make it first, or leave it out"),
        (["ls"], "plain", "/plain: Not a directory", "it is no folder"),
        (["ls"], "sub", "/sub: No such file", "make it first, or leave it out"),
        (["nosuch"], "/", "start nosuch: No such file", "PATH"),
    ],
)  # fmt: skip
def test_what_cannot_be_started_is_named_with_what_to_do(server, ann, arguments, folder, what, hint):
    """The folder where it is the folder, and else the program."""
    session = ann.session()
    assert ann("PUT", f"/v1/sessions/{session}/files/plain", b"plain").status == 201
    fields = {"arguments": arguments} | ({"folder": folder} if folder else {})
    spawned = ann.post(f"/v1/sessions/{session}/spawn", **fields).json
    assert spawned["exit_code"] in (126, 127), spawned
    tool = ann.post(f"/v1/sessions/{session}/tools/process_start", **fields).json
    assert tool["is_error"] is True
    for said in (spawned["stderr"], tool["text"]):
        assert what in said and f"(hint: " in said and hint in said, said


def test_a_folder_is_seen_from_the_workdir(server, ann):
    session = ann.session()
    ann.post(f"/v1/sessions/{session}/shell", commands=["mkdir -p sub/deep"])
    workdir = ann.python(session, "import os; os.getcwd()")["result"].strip("'")
    answer = ann.post(f"/v1/sessions/{session}/spawn", arguments=["pwd"], folder="sub/deep").json
    assert answer["stdout"] == f"{workdir}/sub/deep\n", answer


def test_permissions_of_process_start_count(start):
    server = start(config='[permissions]\nprocess_start = "deny"')
    ann = server.client("ann")
    session = ann.session()
    answer = spawn(ann, session, "ls")
    assert answer.status == 403 and answer.error["type"] == "denied"
    # The control: what is not denied runs.
    assert ann.python(session, "1+1")["result"] == "2"


def test_another_tokens_session_is_not_there(server, ann, bob):
    session = ann.session()
    assert spawn(bob, session, "ls").status == 404
    assert spawn(ann, session, "ls").status == 200


def test_what_does_not_heed_an_interrupt_is_killed(server, ann):
    session = ann.session()
    answers = []
    with ann.stream("GET", f"/v1/events?session={session}") as events:
        words = ("bash", "-c", "trap '' INT; echo up; sleep 100")
        call = threading.Thread(target=lambda: answers.append(spawn(ann, session, *words)))
        call.start()
        while events.until("output")["text"] != "up\n":
            pass
        assert ann.post(f"/v1/sessions/{session}/interrupt").status == 200
    call.join(serving.PATIENCE)
    assert answers and answers[0].json["interrupted"] and answers[0].json["exit_code"] == 137, answers


@pytest.mark.parametrize("words", [[], [""], ["a\0b"], ["true", "a\0b"]])
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_no_command_is_refused_before_a_stream_begins(ann, words, stream):
    answer = ann.post(f"/v1/sessions/{ann.session()}/spawn", arguments=words, stream=stream)
    assert (answer.status, answer.json["error"]["type"]) == (400, "bad_request"), answer
