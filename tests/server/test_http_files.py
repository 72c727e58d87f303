"""Files of a session over HTTP."""

import http.client
import os
import threading
import time

import pytest
import serving


@pytest.fixture
def session(ann):
    return ann.session()


def url(session: str, path: str = "") -> str:
    return f"/v1/sessions/{session}/files" + (f"/{path}" if path else "")


def put(client, session: str, path: str, content: bytes):
    return client("PUT", url(session, path), content, {"Content-Type": "application/octet-stream"})


def test_a_file_goes_up_is_seen_inside_and_comes_down(server, ann, session):
    made = put(ann, session, "a/b.txt", b"hello")
    assert made.status == 201 and made.json["bytes"] == 5 and made.json["created"]
    assert ann.python(session, "open('a/b.txt').read()")["result"] == "'hello'"
    ann.python(session, "open('a/b.txt', 'w').write('changed')")
    assert ann.get(url(session, "a/b.txt")).body == b"changed"
    listed = ann.get(url(session) + "?path=a").json
    assert [(each["name"], each["kind"], each["size"]) for each in listed["files"]] == [("b.txt", "file", 7)]
    assert put(ann, session, "a/b.txt", b"x").json["created"] is False
    assert ann.delete(url(session, "a/b.txt")).status == 204
    assert ann.get(url(session, "a/b.txt")).status == 404
    assert ann.delete(url(session, "a")).status == 204


def test_a_session_that_never_ran_has_files_too(server, ann, session):
    assert put(ann, session, "in.csv", b"1,2").status == 201
    assert ann.get(url(session)).json["files"][0]["name"] == "in.csv"


def test_what_a_guest_made_is_saved_and_not_run(server, ann, session):
    assert put(ann, session, "evil%20%C3%BC.html", b"<script>alert(1)</script>").status == 201
    answer = ann.get(url(session, "evil%20%C3%BC.html"))
    assert answer.status == 200
    assert answer.headers["Content-Disposition"] == "attachment; filename*=UTF-8''evil%20%C3%BC.html"
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Security-Policy"].startswith("sandbox")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "header,status,body,content_range",
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=8-", 206, b"89", "bytes 8-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=5-99", 206, b"56789", "bytes 5-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
        ("bytes=3-1", 200, b"0123456789", None),
        ("bytes=0-1,4-5", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
        ("bytes=99999999999999999999-", 200, b"0123456789", None),
    ],
)
def test_ranges(server, ann, session, header, status, body, content_range):
    put(ann, session, "f", b"0123456789")
    answer = ann("GET", url(session, "f"), headers={"Range": header})
    assert answer.status == status and answer.headers["Content-Range"] == content_range
    assert body is None or answer.body == body


@pytest.mark.parametrize(
    "path",
    ["../x", "..%2fx", "%2e%2e/x", "a/../../x", "/etc/passwd", "%2fetc/passwd", "a%00b", "./../x", "a//b", "%ff%zz"],
)
def test_no_path_leads_out(server, ann, session, path):
    # Browsers and libraries tidy paths up; an attacker does not.
    for method in ("GET", "PUT", "DELETE"):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=serving.PATIENCE)
        connection.putrequest(method, url(session, path), skip_host=True)
        connection.putheader("Host", "localhost")
        connection.putheader("Authorization", f"Bearer {ann.token}")
        connection.putheader("Content-Length", "1" if method == "PUT" else "0")
        connection.endheaders(b"x" if method == "PUT" else None)
        answer = connection.getresponse()
        assert answer.status in (400, 403, 404), (method, answer.status, answer.read())


def test_links_a_guest_makes_lead_nowhere(server, ann, session):
    code = (
        "import os\nos.symlink('/etc/passwd', 'p')\nos.symlink('/', 'root')\nos.symlink('../..', 'up')\n"
        "os.mkfifo('fifo')\nos.symlink('f', 'inside')\nopen('f', 'w').write('in')"
    )
    ann.python(session, code)
    for path in ("p", "root/etc/passwd", "up/x", "fifo", "root"):
        assert ann.get(url(session, path)).status in (400, 403, 404), path
    assert put(ann, session, "root/tmp/x", b"x").status in (400, 403, 404)
    assert ann.get(url(session, "inside")).body == b"in"
    kinds = {each["name"]: each["kind"] for each in ann.get(url(session)).json["files"]}
    assert kinds["p"] == "link" and kinds["fifo"] == "other" and kinds["f"] == "file"


def test_a_component_that_flips_never_leads_out(server, ann, session, scene):
    """A guest swaps a folder for a link out of it, as fast as it can."""
    secret = os.path.join(str(scene.home), "secret-of-the-host")
    with open(secret, "w") as file:
        file.write("SECRET")
    os.chmod(secret, 0o644)
    ann.python(session, "import os\nos.mkdir('d'); open('d/secret-of-the-host', 'w').write('own')")
    code = (
        f"import ctypes, os, time\nos.symlink({str(scene.home)!r}, 'l')\nlibc = ctypes.CDLL(None)\n"
        "end = time.time() + 5\nn = 0\nwhile time.time() < end:\n"
        "  assert libc.renameat2(-100, b'd', -100, b'l', 2) == 0\n  n += 1\nn"
    )
    flips = []
    thread = threading.Thread(target=lambda: flips.append(ann.python(session, code)))
    thread.start()
    seen = set()
    while thread.is_alive():
        answer = ann.get(url(session, "d/secret-of-the-host"))
        seen.add((answer.status, answer.body if answer.status == 200 else b""))
        put(ann, session, "d/written", b"x")
    thread.join()
    assert int(flips[0]["result"]) > 1000, flips
    assert (200, b"SECRET") not in seen and (200, b"own") in seen
    assert not os.path.exists(os.path.join(str(scene.home), "written"))


def test_too_large_a_file_is_refused(server, ann, session):
    refused = put(ann, session, "big", b"x" * ((16 << 20) + 1))
    assert refused.status == 413 and refused.error["type"] == "too_large"


def test_a_large_file_comes_down_whole(server, ann, session):
    ann.python(session, "open('big', 'wb').write(bytes(range(256)) * 200_000)")
    body = ann.get(url(session, "big")).body
    assert len(body) == 51_200_000 and body[:256] == bytes(range(256)) and body[-256:] == body[:256]


def test_a_folder_that_is_not_empty_stays(server, ann, session):
    put(ann, session, "a/b", b"x")
    assert ann.delete(url(session, "a")).status in (400, 409)
    assert ann.get(url(session, "a/b")).body == b"x"


def test_another_tokens_files_are_not_there(server, ann, bob, session):
    put(ann, session, "f", b"secret")
    for method in ("GET", "PUT", "DELETE"):
        assert bob(method, url(session, "f"), b"x" if method == "PUT" else None).status == 404
    assert bob.get(url(session)).status == 404
    assert server.client("eye").get(url(session, "f")).status == 404


def test_a_folder_of_many_names_holds_nobody_up(server, ann, session):
    ann.python(session, "import os\nfor i in range(12_000): open(str(i), 'w').close()")
    worst = []

    def ask():
        while not done:
            began = time.monotonic()
            ann.get("/v1/health")
            worst.append(time.monotonic() - began)

    done = False
    thread = threading.Thread(target=ask)
    thread.start()
    listed = ann.get(url(session)).json
    done = True
    thread.join()
    assert listed["more"] and len(listed["files"]) == 10_000
    assert sorted(worst)[len(worst) // 2] < 0.2
