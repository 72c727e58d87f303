"""What one token does with answers, skills and memory leaves the others their share."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import signal
import socket
import threading

import pytest
import serving
from test_http_attacks import tool
from test_http_mcp import BOTH, begin, message
from test_http_skills import upload, zipped

LARGE = 64 << 20  # more than the kernel keeps for a connection
SKILLS = 250  # of one token
SKILL_BYTES = 1 << 30  # the same


def ask(server, client, request: str, body: bytes = b"") -> socket.socket:
    """With little room for the answer, which nobody reads yet."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(serving.PATIENCE)
    connection.connect(("127.0.0.1", server.port))
    head = f"{request} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.token}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    connection.sendall(head.encode() + b"\r\n" + body)
    return connection


def ask_and_do_not_read(server, client, request: str, body: bytes = b"") -> socket.socket:
    """No more of the answer than that it is a good one."""
    connection = ask(server, client, request, body)
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection


def sparse_file(client) -> str:
    session = client.session()
    client.python(session, f"import os\nos.truncate(os.open('large', os.O_CREAT | os.O_WRONLY), {LARGE})")
    return f"GET /v1/sessions/{session}/files/large"


# ------------------------------------------------- answers that nobody reads


def test_a_download_counts_until_it_has_gone(start):
    server = start(config="max_requests = 3")
    ann, bob = server.client("ann"), server.client("bob")
    request = sparse_file(ann)
    downloads = [ask_and_do_not_read(server, ann, request) for _ in range(3)]
    refused = ann.get("/v1/sessions")
    assert refused.status == 429 and refused.headers["Retry-After"] and "too many requests" in refused.error["message"]
    assert bob.get("/v1/sessions").status == 200, "another's are not fewer"
    downloads.pop().close()
    assert serving.wait_until(lambda: ann.get("/v1/sessions").status == 200)
    with contextlib.closing(downloads.pop()) as slow:
        slow.settimeout(serving.PATIENCE)
        read = 0
        while read < LARGE:
            read += len(slow.recv(1 << 20))
    downloads.pop().close()


LONG_TEXT = b'{"commands": ["head -c 12000000 /dev/zero | tr \'\\\\0\' x"], "max_output_length": 16000000}'


@pytest.mark.parametrize("what", ["file", "text"])
def test_an_answer_that_nobody_reads_is_given_up(start, what):
    """However long it is: more time is only for who reads."""
    server = start(config='max_requests = 1\nwrite_timeout = "1s"', session="max_output_kb = 16000")
    ann = server.client("ann")
    request = sparse_file(ann)
    body = b""
    if what == "text":
        request, body = request.replace("GET", "POST").replace("files/large", "shell"), LONG_TEXT
    with ask_and_do_not_read(server, ann, request, body):
        assert ann.get("/v1/sessions").status == 429
        assert serving.wait_until(lambda: ann.get("/v1/sessions").status == 200)


# ------------------------------------------------------------------- skills


def skill_of(name: str, files: int = 0) -> bytes:
    main = f"---\nname: {name}\ndescription: d\n---\n"
    return zipped({"SKILL.md": main, **{"/".join([f"d{n}", *"abcdefg", "f"]): "" for n in range(files)}})


def test_uploads_of_skills_keep_no_other_token_waiting(server, ann, bob):
    many = 16
    body = skill_of("deep", 499)
    threads = [threading.Thread(target=upload, args=(ann, body)) for _ in range(many)]
    for each in threads:
        each.start()
    assert serving.wait_until(lambda: uploaded(ann) > 0)
    assert upload(bob, skill_of("small")).status == 201
    before = uploaded(ann)
    for each in threads:
        each.join()
    assert before <= many // 2, "he waited for hers"
    assert uploaded(ann) == many, "and each of hers has a number of its own"


def uploaded(client) -> int:
    answer = client.get("/v1/skills/deep/versions")
    return len(answer.json["data"]) if answer.status == 200 else 0


def kept_skills(scene, count: int, **more) -> str:
    """Of ann, from before the server began."""
    kept = scene.home / "kept"
    kept.mkdir()
    for n in range(count):
        about = {"id": f"skill_{n}", "object": "skill", "created_at": 1, "name": f"s{n}", "description": "d",
                 "latest_version": "1", "owner": "ann", "shared": False, "versions": [1], **more}  # fmt: skip
        (kept / f"skill_{n}").mkdir()
        (kept / f"skill_{n}/about.json").write_text(json.dumps(about))
    for folder in (kept, *kept.iterdir()):
        scene.identity.own(folder)
    return str(kept)


def test_a_token_has_so_many_skills(start, scene):
    server = start(skills=kept_skills(scene, SKILLS))
    ann = server.client("ann")
    assert len(ann.get("/v1/skills").json["data"]) == SKILLS
    refused = upload(ann, skill_of("new"))
    assert refused.status == 429 and f"{SKILLS} skills" in refused.error["message"], refused
    assert upload(ann, skill_of("s7")).json["latest_version"] == "2", "what is there may get another version"
    assert upload(server.client("bob"), skill_of("new")).status == 201
    assert ann.delete("/v1/skills/s9").status == 204
    assert upload(ann, skill_of("new")).status == 201


def test_the_skills_of_a_token_take_so_much_of_the_disk(start, scene):
    """Versions count as skills do, and names as contents do, or what is empty would cost nothing."""
    pages = 1 + 9  # SKILL.md, and a file with eight folders above it
    kept = kept_skills(scene, 2, bytes=(SKILL_BYTES - pages * 4096) // 2)
    server = start(skills=kept)
    ann = server.client("ann")
    assert upload(ann, skill_of("s1", files=1)).status == 201
    refused = upload(ann, skill_of("s1"))
    assert refused.status == 429 and "1024 MiB" in refused.error["message"], refused
    assert upload(ann, skill_of("new")).status == 429
    assert sorted(os.listdir(pathlib.Path(kept, "skill_1"))) == ["2", "about.json"], "nothing of it was written"
    assert upload(server.client("bob"), skill_of("s1")).status == 201
    assert upload(server.client("boss"), skill_of("s1")).status == 201, "an administrator's is not counted"
    assert ann.delete("/v1/skills/s0").status == 204
    assert upload(ann, skill_of("new")).status == 201


# ------------------------------------------------- what guests leave behind


def fill(client, folders: int) -> pathlib.Path:
    """A session's guest makes so many. The server's own folder, of which they are a part."""
    session = client.session()
    code = f"import os\nfor n in range({folders}):\n  os.mkdir(f'd{{n}}')\nos.getcwd()"
    work = pathlib.Path(client.python(session, code, timeout_ms=120_000)["working_directory"])
    folder = next(each for each in work.parents if each.parent == pathlib.Path("/tmp"))
    assert folder.name.startswith("belljar-") and len(os.listdir(work)) >= folders
    return folder


def test_a_start_does_not_wait_until_what_another_left_is_removed(start):
    """Others of its user may be removing the same, and be faster; so more than one try."""
    for folders in (20_000, 20_000, 40_000):
        killed = start()
        folder = fill(killed.client("ann"), folders)
        killed.kill()
        server = start()
        was_there = folder.exists()
        assert server.client("ann").get("/v1/sessions").status == 200
        assert serving.wait_until(lambda: not folder.exists(), 2 * serving.PATIENCE), "it is removed beside its work"
        if was_there:
            return
    raise AssertionError("it was ready when all was removed, and not before")


def test_the_end_takes_so_long_and_the_next_start_removes_the_rest(start):
    server = start(config='removal_timeout = "1ms"')
    folder = fill(server.client("ann"), 5000)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert server.errors().count(f"the next start removes {folder}\n") == 1, server.errors()
    last = start()
    assert serving.wait_until(lambda: not folder.exists())
    # The control: with time enough nothing is left, and nothing is said.
    folder = fill(last.client("ann"), 100)
    last.signal(signal.SIGTERM)
    assert last.wait() == 0
    assert not folder.exists() and "the next start" not in last.errors()


# ------------------------------------------------------------------- memory


def begin_upload(server, client, megabytes: int) -> socket.socket:
    connection = server.connect()
    connection.sendall(
        f"POST /v1/skills HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.token}\r\n"
        f"Content-Type: application/zip\r\nContent-Length: {50 << 20}\r\n\r\n".encode()
    )
    piece = bytes(1 << 20)
    for _ in range(megabytes):
        connection.sendall(piece)
    return connection


def test_bodies_that_do_not_end_are_held_up_to_a_sum(start):
    server = start(config='body_timeout = "10m"')
    ann, bob = server.client("ann"), server.client("bob")
    held = [begin_upload(server, ann, 48) for _ in range(5)]
    last = begin_upload(server, ann, 20)
    answer = serving.read_all(last)
    assert answer.startswith(b"HTTP/1.1 429") and b"256 MiB" in answer and b"Retry-After" in answer
    assert upload(bob, skill_of("small")).status == 201
    assert ann.get("/v1/sessions").status == 200, "what takes nothing goes on"
    for each in held:
        each.close()
    assert serving.wait_until(lambda: upload(ann, skill_of("small") + bytes(20 << 20)).status != 429)


def test_answers_that_nobody_reads_are_held_up_to_a_sum(start):
    server = start(config='write_timeout = "10m"', session="max_output_kb = 4000")
    ann, bob = server.client("ann"), server.client("bob")
    command = {"commands": ["head -c 4000000 /dev/zero | tr '\\0' '\\1'"], "max_output_length": 4_000_000}
    body = json.dumps(command).encode()  # and each such byte is six in JSON
    unread = []
    request = f"POST /v1/sessions/{ann.session()}/shell"
    with contextlib.ExitStack() as held:
        while not unread or unread[-1] == b"HTTP/1.1 200":
            assert len(unread) < 20, "there is no end to it"
            connection = held.enter_context(ask(server, ann, request, body))
            unread.append(connection.recv(12))
        assert unread[-1] == b"HTTP/1.1 429" and len(unread) > 3, unread
        assert bob.post(f"/v1/sessions/{bob.session()}/shell", **command).status == 200
    assert serving.wait_until(lambda: ann.post(request.split()[1], **command).status == 200)


def test_what_programs_do_not_read_is_held_up_to_a_sum(server, ann, bob):
    def write_to_a_new_one(client, session: str) -> dict:
        made = tool(client, session, "process_start", arguments=["sleep", "300"])
        return tool(client, session, "process_write", process=made["structured"]["process"], text="x" * (15 << 20))

    sessions = [ann.session(), ann.session()]
    for n in range(4):
        assert not write_to_a_new_one(ann, sessions[n % 2])["is_error"]
    refused = write_to_a_new_one(ann, sessions[0])
    assert refused["error_type"] == "limit" and "64 MiB" in refused["text"], refused["text"][:200]
    assert not write_to_a_new_one(bob, bob.session())["is_error"]
    assert ann.delete(f"/v1/sessions/{sessions[1]}").status == 204
    assert not write_to_a_new_one(ann, sessions[0])["is_error"], "what has gone does not count"


def test_a_program_reads_all_that_it_was_sent(server, ann):
    """In parts that its pipe takes, and in order."""
    session = ann.session()
    code = "import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    started = tool(ann, session, "process_start", arguments=["python3", "-c", code])["structured"]["process"]
    text = "".join(f"{n:07}\n" for n in range(1 << 20))
    half = len(text) // 2
    tool(ann, session, "process_write", process=started, text=text[:half])
    tool(ann, session, "process_write", process=started, text=text[half:], end=True)
    said = ""

    def has_ended() -> bool:
        nonlocal said
        state = tool(ann, session, "process_poll", process=started, wait_ms=1000)["structured"]
        said += state["stdout"]
        return not state["running"]

    assert serving.wait_until(has_ended)
    assert said.strip() == hashlib.sha256(text.encode()).hexdigest()


def test_streams_that_have_ended_are_kept_up_to_a_sum(server, ann):
    headers = begin(ann)

    def events_of(number: int, size: int) -> tuple[str, int]:
        command = f"printf 'x\\n'; head -c {size} /dev/zero | tr '\\0' '\\1'"
        call = {"name": "shell", "arguments": {"commands": [command]}, "_meta": {"progressToken": number}}
        answer = message(ann, "tools/call", headers, number, **call)
        assert answer.headers["Content-Type"] == "text/event-stream", answer
        return answer.body.decode().split("id: ", 1)[1].split("\n")[0], len(answer.body)

    def comes_back(event: str) -> int:
        return ann("GET", "/mcp", headers={**BOTH, **headers, "Last-Event-ID": event}).status

    first, _ = events_of(1, 10)
    assert comes_back(first) == 200
    large = [events_of(number, 1_000_000) for number in range(2, 8)]
    assert sum(size for _, size in large) > 40 << 20, large
    assert comes_back(first) == 404, "it was the oldest"
    assert comes_back(large[-1][0]) == 200


def test_streams_that_were_forgotten_cost_no_memory(server, ann):
    """Also while their connection is kept: it is one for all of them."""
    headers = {**BOTH, **begin(ann), "Authorization": f"Bearer {ann.token}"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=serving.PATIENCE)
    connection.connect()
    kept = connection.sock
    numbers = iter(range(1, 1000))

    def send(method: str, **params) -> int:
        number = next(numbers)
        params |= {"_meta": {"progressToken": number}}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        connection.request("POST", "/mcp", body, headers)
        answer = connection.getresponse()
        size = len(answer.read())
        assert answer.status == 200 and connection.sock is kept, answer.status
        return size

    def round_of_streams() -> int:
        """As much as is kept of them, and then as many as push them out."""
        command = "printf 'x\\n'; head -c 1000000 /dev/zero | tr '\\0' '\\1'"
        large = sum(send("tools/call", name="shell", arguments={"commands": [command]}) for _ in range(4))
        for _ in range(29):
            send("ping")
        return large

    def resident() -> int:
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) << 10

    round_of_streams()
    before = resident()
    assert sum(round_of_streams() for _ in range(6)) > 160 << 20, "the control: so much could be left"
    assert resident() < before + (50 << 20)
    connection.close()
