"""What a hostile guest or client tries on the server's own hands: each with the control that would have worked."""

import concurrent.futures
import json
import os
import socket
import subprocess
import threading
import time

import pytest
import serving

FLIPS = 100_000 // serving.jars.SLOWER
PROGRAMS = 64  # of one session


def tool(client, of: str, name: str, **arguments) -> dict:
    answer = client(
        "POST", f"/v1/sessions/{of}/tools/{name}", json.dumps(arguments).encode(),
        {"Content-Type": "application/json"},
    )  # fmt: skip
    assert answer.status == 200, answer
    return answer.json


@pytest.fixture
def outside(scene):
    """A folder of the host's with a file that nobody inside may read or change."""
    folder = scene.home / "outside"
    folder.mkdir()
    (folder / "file").write_text("SECRET\n")
    scene.identity.own(folder, folder / "file")
    yield folder
    assert (folder / "file").read_text() == "SECRET\n" and os.listdir(folder) == ["file"]


# ------------------------------------------------------------------ links


def test_tools_that_read_and_write_while_a_part_of_the_path_flips(server, ann, outside):
    session = ann.session()
    ann.python(session, "import os\nos.mkdir('d'); open('d/file', 'w').write('inside\\n')")
    code = (
        f"import ctypes, os\nos.symlink({str(outside)!r}, 'l')\nlibc = ctypes.CDLL(None)\n"
        f"for i in range({FLIPS}):\n  assert libc.renameat2(-100, b'd', -100, b'l', 2) == 0\nopen('over', 'w')\n"
        "while not os.path.exists('stop'): pass\ni + 1"
    )
    flips = []
    thread = threading.Thread(target=lambda: flips.append(ann.python(session, code, timeout_ms=120_000)))
    thread.start()
    seen, rounds = set(), 0
    files = f"/v1/sessions/{session}/files"
    while rounds < 10 or ann.get(f"{files}/over").status != 200:
        seen.add(tool(ann, session, "read", path="d/file")["text"])
        seen.add(tool(ann, session, "grep", pattern="SECRET|inside", path="d")["text"])
        seen.add(tool(ann, session, "glob", pattern="d/*")["text"])
        tool(ann, session, "write", path="d/new", content="x")
        tool(ann, session, "edit", path="d/file", old_string="SECRET", new_string="gone")
        answer = ann.get(f"{files}/d/file")
        seen.add(answer.body.decode() if answer.status == 200 else "")
        ann("PUT", f"{files}/d/up", b"x")
        ann.delete(f"{files}/d/file2")
        rounds += 1
    assert ann("PUT", f"{files}/stop", b"").status == 201
    thread.join(serving.PATIENCE * 4)
    assert flips and flips[0]["result"] == str(FLIPS), flips
    assert not any("SECRET" in each for each in seen)
    assert any("inside" in each for each in seen)  # the control: the tools did read what is inside


def test_results_show_no_file_that_a_link_leads_to(server, ann, outside):
    session = ann.session()
    code = f"import os\nos.symlink({str(outside / 'file')!r}, 'leak')\nos.symlink({str(outside)!r}, 'all')\nopen('own', 'w').write('OWN')"
    answer = ann.python(session, code, outputs=["leak", "all/file", "../../../../" + str(outside / "file"), "own"])
    assert "SECRET" not in json.dumps(answer)
    assert any(each["name"] == "own" and each["text"] == "OWN" for each in answer["files"])  # the control
    # Nor does what is written for it follow one.
    ann.python(session, f"os.symlink({str(outside / 'made')!r}, 'log')")
    refused = ann.post(f"/v1/sessions/{session}/python", code="print(1)", output_file="log")
    assert refused.status == 409, refused
    assert ann.python(session, "print(1)", output_file="log2")["status"] == "success"


def test_ending_a_session_removes_nothing_through_links(server, ann, outside):
    session = ann.session()
    workdir = ann.python(session, "import os\nos.getcwd()")["result"].strip("'")
    ann.python(
        session,
        f"os.makedirs('a/b/c'); os.symlink({str(outside)!r}, 'a/b/c/out'); os.symlink({str(outside)!r}, 'top')\n"
        "os.chmod('a/b/c', 0o500); os.chmod('a', 0)",
    )
    assert ann.delete(f"/v1/sessions/{session}").status == 204
    # The control: its own files are removed.
    assert serving.wait_until(lambda: not os.path.exists(workdir))


# ----------------------------------------------------- no ordinary files


def test_nothing_waits_for_a_fifo_a_socket_or_a_device(server, ann):
    session = ann.session()
    ann.python(
        session,
        "import os, socket\nos.mkfifo('fifo')\nsocket.socket(socket.AF_UNIX).bind('sock')\n"
        "os.symlink('/dev/zero', 'zero'); os.symlink('/dev/full', 'full'); open('own', 'w').write('word')",
    )
    began = time.monotonic()
    for name in ("fifo", "sock", "zero", "full"):
        assert tool(ann, session, "read", path=name)["is_error"], name
        assert tool(ann, session, "edit", path=name, old_string="a", new_string="b")["is_error"], name
        assert tool(ann, session, "write", path=f"{name}/x", content="x")["is_error"], name
        assert ann.get(f"/v1/sessions/{session}/files/{name}").status in (400, 403, 404), name
    found = tool(ann, session, "grep", pattern="word")
    assert "own" in found["text"] and not found["is_error"]  # the control
    answer = ann.python(session, "1", outputs=["fifo", "sock", "zero", "own"])
    assert [each["name"] for each in answer["files"]] == ["own"], answer["files"]
    assert time.monotonic() - began < serving.PATIENCE


# ------------------------------------------------------- other people's


@pytest.mark.parametrize("name", ["..", "../x", "a/b", "/etc", "%2e%2e", "..%2f..%2fetc", "a\0b", "a" * 129, "a b", "ü"])
@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_an_id_is_no_path(server, ann, name):
    assert ann.post("/v1/sessions", id=name).status == 400
    address = name.replace("\0", "%00").replace(" ", "%20").replace("ü", "%C3%BC")
    for path in (f"/v1/sessions/{address}", f"/v1/sessions/{address}/files", f"/v1/dispatch/{address}", f"/v1/skills/{address}"):
        assert ann.get(path).status in (400, 404, 405), path
    assert ann.post("/v1/sessions", id="a.b:c-d_1").status == 201  # the control


def test_another_tokens_processes_are_not_there(server, ann, bob):
    mine, theirs = ann.session(), bob.session()
    process = tool(ann, mine, "process_start", arguments=["sleep", "100"])["structured"]["process"]
    for name, more in {"process_poll": {}, "process_signal": {"signal": "KILL"}, "process_write": {"text": "x"}}.items():
        answer = tool(bob, theirs, name, process=process, **more)
        assert answer["is_error"] and answer["error_type"] == "not_found", answer
        by_name = tool(bob, theirs, name, process=process, session=mine, **more)
        assert by_name["is_error"] and by_name["session_id"] == theirs
    # The control: it runs, and its own token finds it.
    assert tool(ann, mine, "process_poll", process=process)["structured"]["running"] is True


def test_processes_are_bounded_however_many_start_at_once(server, ann, bob):
    sessions = [ann.session() for _ in range(3)]

    def start(client, session: str) -> bool:
        answer = tool(client, session, "process_start", arguments=["sleep", "100"])
        assert answer["error_type"] in ("", "limit"), answer
        return not answer["is_error"]

    def many(session: str) -> int:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            return sum(pool.map(lambda _: start(ann, session), range(PROGRAMS + 6)))

    assert [many(session) for session in sessions[:2]] == [PROGRAMS, PROGRAMS]
    assert not start(ann, sessions[2]), "all of hers are 128"
    assert start(bob, bob.session()), "another's are not fewer"
    # What has ended makes room, and can be asked about until that is needed.
    assert tool(ann, sessions[0], "process_signal", process="p1", signal="KILL")["is_error"] is False
    poll = tool(ann, sessions[0], "process_poll", process="p1", wait_ms=20_000)
    assert poll["structured"]["running"] is False
    assert start(ann, sessions[2])
    assert tool(ann, sessions[0], "process_poll", process="p1")["error_type"] == "not_found"


def test_what_ends_late_is_not_told_of_the_next_session_of_its_name(server, ann, bob):
    """Work beside the loop outlives the session that it was for."""
    ann.session(id="desk")
    tree = "import os\nfor d in range(40):\n  os.mkdir(f'd{d}')\n  for i in range(250): open(f'd{d}/{i}', 'w').write('x' * 20000)"
    ann.python("desk", tree)
    with bob.stream("GET", "/v1/events") as events:
        events.until("hello")
        search = threading.Thread(target=tool, args=(ann, "desk", "grep"), kwargs={"pattern": "nothing.*here"})
        with ann.stream("GET", "/v1/events?session=desk") as own:
            search.start()
            own.until("call_started")
        assert ann.delete("/v1/sessions/desk").status == 204
        assert bob.post("/v1/sessions", id="desk").status == 201
        search.join()
        bob.python("desk", "1")
        heard = []
        for event, data in events:
            heard.append((event, data.get("tool")))
            if heard[-1] == ("call_finished", "python"):
                break
    assert ("call_finished", "grep") not in heard and ("call_started", "python") in heard, heard


def test_a_call_that_waited_does_not_bring_a_closed_session_back(server, ann):
    """It would come back under the operator's policy, and not under its own narrower one."""
    session = ann.session(policy={"network": "none"})
    answers = {}

    def call(name: str, code: str) -> None:
        answers[name] = ann.post(f"/v1/sessions/{session}/python", code=code)

    assert ann.python(session, "1+1")["result"] == "2"  # the control
    with ann.stream("GET", f"/v1/events?session={session}") as events:
        first = threading.Thread(target=call, args=("first", "print('up', flush=True)\nwhile True: pass"))
        first.start()
        events.until("output")
        waiting = threading.Thread(target=call, args=("waiting", "open('x', 'w')"))
        waiting.start()
        events.until("call_started")
        assert ann.delete(f"/v1/sessions/{session}").status == 204
    for thread in (first, waiting):
        thread.join(serving.PATIENCE)
    assert answers["waiting"].status == 409 and answers["waiting"].error["type"] == "session_closed", answers
    assert "belljar_sessions 0\n" in ann.get("/metrics").body.decode()


# ------------------------------------------------------------ web pages


@pytest.mark.parametrize("name,content", [
    ("a.html", "<script>alert(1)</script>"), ("a.svg", "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"),
    ("a.xhtml", "<html xmlns='http://www.w3.org/1999/xhtml'/>"), ("a.pdf", "%PDF-1.4"),
])  # fmt: skip
@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_no_page_of_a_guest_runs_in_our_origin(server, ann, name, content):
    session = ann.session()
    ann.python(session, f"open({name!r}, 'w').write({content!r})")
    answer = ann.get(f"/v1/sessions/{session}/files/{name}")
    assert answer.status == 200 and answer.body.decode() == content
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    # The control: our own page is one.
    assert ann.get("/").headers["Content-Type"].startswith("text/html")


# --------------------------------------------------------------- floods


@pytest.mark.parametrize("line", [b"X: y\r\n", b"X" * 1000, b": \r\n", b"Cookie: " + b"a" * 5000 + b"\r\n"])
@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_flood_of_headers_is_cut_off(server, ann, line):
    flood = line * (1 + (1 << 20) // len(line))
    answers = []
    for _ in range(20):
        with server.connect() as connection:
            try:
                connection.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n" + flood)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has been cut off
            answers.append(serving.read_all(connection))
    assert all(each[:12] in (b"", b"HTTP/1.1 431", b"HTTP/1.1 400") for each in answers), answers
    assert any(each for each in answers)
    status = open(f"/proc/{server.process.pid}/status").read()
    assert int(status.split("VmRSS:")[1].split()[0]) < 200_000, "kB"
    # The control: many headers that are not too large are taken.
    fine = b"".join(b"X-%d: y\r\n" % i for i in range(200))
    request = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + fine + b"\r\n"
    assert server.raw(request).startswith(b"HTTP/1.1 200")


# --------------------------------------------------------------- the door

ASK = """
import socket
def ask(path, key):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.sendall(b"GET /v1/sessions HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n")
    s.sendall(key and b"Authorization: Bearer " + key.encode() + b"\\r\\n")
    s.sendall(b"\\r\\n")
    return s.recv(100).split(b" ")[1].decode()
try: answer = ask(%r, %r)
except OSError as error: answer = "refused"
answer
"""


@pytest.mark.parametrize("has_key", [True, False], ids=["key", "no-key"])
def test_a_guest_at_the_local_socket_is_not_its_owner(start, scene, has_key):
    """With the key neither: the kernel says where it comes from."""
    door = scene.home / "door"
    door.mkdir()
    door.chmod(0o755)
    scene.identity.own(door)
    path = str(door / "s.sock")
    server = start(f"--listen=unix:{path}", f"--extra-read={door}", profile="developer")
    key = server.owner_key(path)
    code = ASK % (path, key if has_key else b"")
    outside = scene.identity.command(["/usr/bin/python3", "-c", code + "\nprint(answer)"])
    assert subprocess.run(outside, capture_output=True, text=True).stdout.strip() == ("200" if has_key else "401"), "the control"
    connection = serving.UnixConnection(path)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    connection.request("POST", "/v1/execute/python", json.dumps({"code": code}), headers)
    said = json.loads(connection.getresponse().read())
    assert said.get("result") in ("'401'", "'refused'"), said
    assert server.process.poll() is None


@pytest.mark.parametrize("begin", ["1;a=", "0\r\nx: "], ids=["an-extension", "a-trailer"])
def test_chunks_without_end_cost_no_memory(server, begin):
    def resident() -> int:
        with open(f"/proc/{server.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    before = resident()
    head = "GET /v1/health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + begin
    with socket.create_connection(("127.0.0.1", server.port), serving.PATIENCE) as client:
        try:
            client.sendall(head.encode())
            for _ in range(64):
                client.sendall(b"a" * (1 << 20))
        except OSError:
            pass  # it has hung up; it need not, if it keeps nothing
    assert resident() < before + 8 * 1024
    assert server.client("ann").get("/v1/sessions").status == 200, "the control"
