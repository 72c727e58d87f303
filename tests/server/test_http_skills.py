"""Skills: what is taken, what is refused, and how a session has them."""

import io
import json
import os
import stat
import threading
import zipfile

import pytest

MAIN = "---\nname: plots\ndescription: draws plots\n---\n# Plots\n"


def zipped(files: dict, modes: dict | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (stat.S_IFREG | (modes or {}).get(name, 0o644)) << 16
            archive.writestr(info, content)
    return out.getvalue()


def form(files: list[tuple[str, str, bytes]]) -> tuple[bytes, dict]:
    body = b""
    for field, name, content in files:
        body += (
            b'--XX\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n'
            b"Content-Type: application/octet-stream\r\n\r\n%s\r\n" % (field.encode(), name.encode(), content)
        )
    return body + b"--XX--\r\n", {"Content-Type": "multipart/form-data; boundary=XX"}


def upload(client, body: bytes, headers: dict | None = None, path: str = "/v1/skills"):
    return client("POST", path, body, headers or {"Content-Type": "application/zip"})


def test_a_zip_becomes_a_skill(server, ann):
    made = upload(ann, zipped({"SKILL.md": MAIN, "lib/a.py": "x = 5"}))
    assert made.status == 201, made
    skill = made.json
    assert skill["id"].startswith("skill_") and skill["object"] == "skill" and skill["latest_version"] == "1"
    assert skill["name"] == "plots" and skill["description"] == "draws plots" and skill["created_at"] > 1e9
    assert ann.get("/v1/skills").json == {"object": "list", "data": [skill]}
    assert ann.get(f"/v1/skills/{skill['id']}").json == skill == ann.get("/v1/skills/plots").json
    assert ann.delete(f"/v1/skills/{skill['id']}").status == 204
    assert ann.get(f"/v1/skills/{skill['id']}").status == 404
    assert os.listdir(server.folder / "skills") == []


@pytest.mark.parametrize("field", ["files", "file", "files[]"])
def test_forms_as_mistral_rs_takes_them(server, ann, field):
    body, headers = form([(field, "SKILL.md", MAIN.encode()), (field, "a/b.txt", b"hi\r\n--X\r\n")])
    assert upload(ann, body, headers).status == 201
    body, headers = form([(field, "skill.zip", zipped({"top/SKILL.md": MAIN, "top/x": "y"}))])
    assert upload(ann, body, headers).status == 201


def test_a_session_has_its_skills_read_only_with_their_modes(server, ann):
    skill = upload(
        ann, zipped({"top/SKILL.md": MAIN, "top/run.sh": "#!/bin/sh\necho ran\n"}, {"top/run.sh": 0o755})
    ).json
    session = ann.session(skills=[skill["id"]])
    assert ann.get(f"/v1/sessions/{session}").json["skills"] == ["plots"]
    answer = ann.post(f"/v1/sessions/{session}/shell", commands=["skills/plots/run.sh", "cat skills/plots/SKILL.md"]).json
    assert answer["stdout"] == "ran\n" + MAIN, answer
    for code in (
        "open('skills/plots/SKILL.md', 'w')", "open('skills/plots/new', 'w')",
        "import os\nos.remove('skills/plots/run.sh')", "import os\nos.chmod('skills/plots/run.sh', 0)",
    ):  # fmt: skip
        assert ann.python(session, code)["status"] == "error", code
    other = ann.session()
    assert ann.python(other, "import os\nos.path.exists('skills')")["result"] == "False"


@pytest.mark.parametrize("profile", ["developer", "restricted", "public-bot"])
def test_a_guest_changes_no_skill_by_any_way(start, profile):
    server = start(profile=profile)
    ann = server.client("ann")
    skill = upload(ann, zipped({"SKILL.md": MAIN, "run.sh": "#!/bin/sh\necho ran\n"}, {"run.sh": 0o755})).json["id"]
    session = ann.session(skills=["plots"])
    attacks = [
        "echo x > skills/plots/SKILL.md", "echo x > skills/plots/new", "chmod 777 skills/plots/run.sh",
        "rm skills/plots/run.sh", "mv skills/plots skills/other", "rmdir skills/plots", "ln -s /etc skills/plots/etc",
        "touch -d 2001-01-01 skills/plots/SKILL.md", "mount -o remount,rw skills/plots",
    ]  # fmt: skip
    answer = ann.post(f"/v1/sessions/{session}/shell", commands=attacks).json
    assert [each["exit_code"] != 0 for each in answer["commands"]] == [True] * len(attacks), answer
    # Away with the folder above, and another in its place: only this guest's own view of it changes.
    swap = "mv skills gone && mkdir -p skills/plots && echo mine > skills/plots/SKILL.md"
    ann.post(f"/v1/sessions/{session}/shell", commands=[swap])
    kept = server.folder / "skills" / skill / "1"
    assert (kept / "SKILL.md").read_text() == MAIN and sorted(os.listdir(kept)) == ["SKILL.md", "run.sh"]
    other = ann.session(skills=["plots"])
    # The control: what the shell cannot do there it can do beside it, and the skill works.
    answer = ann.post(f"/v1/sessions/{other}/shell", commands=["skills/plots/run.sh", "echo x > beside && rm beside"]).json
    assert answer["stdout"] == "ran\n" and answer["status"] == "success", answer


def call(client, path: str, arguments: dict) -> dict:
    return client("POST", path, json.dumps(arguments).encode(), {"Content-Type": "application/json"}).json


def test_file_tools_and_uploads_change_no_skill(server, ann):
    skill = upload(ann, zipped({"SKILL.md": MAIN, "sub/x": "y"})).json["id"]
    session = ann.session(skills=["plots"])
    tools = f"/v1/sessions/{session}/tools"
    for _ in ("before the first call", "after it"):
        assert MAIN.splitlines()[1] in call(ann, f"{tools}/read", {"path": "skills/plots/SKILL.md"})["text"]
        for tool, fields in {
            "write": {"path": "skills/plots/SKILL.md", "content": "mine"},
            "edit": {"path": "skills/plots/SKILL.md", "old_string": "plots", "new_string": "mine"},
        }.items():
            answer = call(ann, f"{tools}/{tool}", fields)
            assert answer["is_error"] and answer["error_type"] == "read_only", answer
        files = f"/v1/sessions/{session}/files"
        assert ann("PUT", f"{files}/skills/plots/new", b"mine").status == 403
        assert ann.delete(f"{files}/skills/plots/SKILL.md").status == 403
        assert ann.get(f"{files}/skills/plots/sub/x").body == b"y"
        # The control: beside it all of that can be done.
        assert ann("PUT", f"{files}/skills/beside", b"mine").status == 201
        assert ann.delete(f"{files}/skills/beside").status == 204
        ann.python(session, "1")
    assert (server.folder / "skills" / skill / "1/SKILL.md").read_text() == MAIN


def test_skills_are_found_before_anything_has_run(server, ann):
    upload(ann, zipped({"SKILL.md": MAIN, "lib/a.py": "import needle\n"}))
    session = ann.session(skills=["plots"])
    tools = f"/v1/sessions/{session}/tools"
    for _ in ("before the first call", "after it"):
        for fields in ({"pattern": "skills/**/*.py"}, {"pattern": "**/*.py", "path": "skills/plots"}):
            paths = call(ann, f"{tools}/glob", fields)["structured"]["paths"]
            assert [path.rsplit("skills/", 1)[1] for path in paths] == ["plots/lib/a.py"], paths
        for path in ("skills/plots", "skills/plots/lib/a.py", "."):
            found = call(ann, f"{tools}/grep", {"pattern": "needle", "path": path})["structured"]
            assert [each["line"] for each in found["matches"]] == [1], (path, found)
        listed = ann.get(f"/v1/sessions/{session}/files?path=skills/plots").json["files"]
        assert [each["name"] for each in listed] == ["SKILL.md", "lib"]
        ann.python(session, "1")


def test_tools_name_the_skills_of_their_session(server, ann):
    upload(ann, zipped({"SKILL.md": MAIN}))
    for skills in ([], ["plots"]):
        session = ann.session(skills=skills)
        tools = {tool["name"]: tool["description"] for tool in ann.get(f"/v1/sessions/{session}/tools").json["tools"]}
        for name in ("python", "shell", "read"):
            assert ("skills/plots: draws plots" in tools[name]) == bool(skills), tools[name]


def test_a_name_that_is_there_gets_another_version(server, ann, bob):
    first = upload(ann, zipped({"SKILL.md": MAIN, "v": "one"})).json
    second = upload(ann, zipped({"SKILL.md": MAIN, "v": "two"}))
    assert second.status == 201 and second.json["id"] == first["id"] and second.json["latest_version"] == "2"
    assert [each["id"] for each in ann.get("/v1/skills").json["data"]] == [first["id"]]
    # Another's is another skill, also an administrator's.
    for other in (bob, server.client("boss")):
        assert upload(other, zipped({"SKILL.md": MAIN})).json["id"] != first["id"]
    assert ann.get(f"/v1/skills/{first['id']}").json["latest_version"] == "2"


def test_a_link_in_the_way_of_a_skill_is_not_followed(start, scene):
    shared = scene.home / "shared"
    outside = scene.home / "outside"
    for folder in (shared, outside):
        folder.mkdir()
        scene.identity.own(folder)
    ann = start(session=f'workdir = "{shared}"').client("ann")
    upload(ann, zipped({"SKILL.md": MAIN}))
    planted = ann.session()
    ann.post(f"/v1/sessions/{planted}/shell", commands=[f"ln -s {outside} skills"])
    refused = ann.post("/v1/sessions", skills=["plots"])
    assert refused.status == 503 and "skills" in refused.error["message"], refused
    assert list(outside.iterdir()) == []
    # The control: without the link it is there.
    ann.post(f"/v1/sessions/{planted}/shell", commands=["rm skills"])
    session = ann.session(skills=["plots"])
    assert ann.python(session, "open('skills/plots/SKILL.md').read()")["result"] == repr(MAIN)


def test_versions_are_counted_and_the_latest_is_mounted(server, ann):
    skill = upload(ann, zipped({"SKILL.md": MAIN, "v": "one"})).json
    path = f"/v1/skills/{skill['id']}/versions"
    assert upload(ann, zipped({"SKILL.md": MAIN, "v": "two"}), path=path).json["latest_version"] == "2"
    assert [each["version"] for each in ann.get(path).json["data"]] == ["1", "2"]
    session = ann.session(skills=["plots"])
    assert ann.python(session, "open('skills/plots/v').read()")["result"] == "'two'"


def test_a_skill_that_is_removed_amid_an_upload_stays_away(server, ann):
    """Whichever comes first: a version goes with it, or finds no skill."""
    files = {"SKILL.md": MAIN, **{f"f{n}": "x" * 5000 for n in range(300)}}
    for _ in range(5):
        skill = upload(ann, zipped({"SKILL.md": MAIN})).json["id"]
        answers: list = []
        path = f"/v1/skills/{skill}/versions"
        upload_it = threading.Thread(target=lambda path=path: answers.append(upload(ann, zipped(files), path=path)))
        upload_it.start()
        assert ann.delete(f"/v1/skills/{skill}").status == 204
        upload_it.join()
        assert answers[0].status in (201, 404), answers
        assert ann.get("/v1/skills").json["data"] == [] and ann.get(f"/v1/skills/{skill}").status == 404
        assert not (server.folder / "skills" / skill).exists()


def test_a_skill_is_its_tokens_own_and_an_administrators_everybodys(server, ann, bob):
    mine = upload(ann, zipped({"SKILL.md": MAIN})).json["id"]
    assert bob.get("/v1/skills").json["data"] == [] and bob.get(f"/v1/skills/{mine}").status == 404
    assert bob.delete(f"/v1/skills/{mine}").status == 404
    assert bob.post("/v1/sessions", skills=[mine]).status == 404
    common = upload(server.client("boss"), zipped({"SKILL.md": MAIN})).json["id"]
    assert bob.get(f"/v1/skills/{common}").status == 200
    assert bob.delete(f"/v1/skills/{common}").status == 403


def test_skills_are_there_after_a_restart(server, ann, start):
    skill = upload(ann, zipped({"SKILL.md": MAIN})).json
    again = start(config="", skills=str(server.folder / "skills"))
    assert again.client("ann").get(f"/v1/skills/{skill['id']}").json == skill


@pytest.mark.parametrize(
    "files,why",
    [
        ({"x": "y"}, "SKILL.md"),
        ({"SKILL.md": "no front matter"}, "front matter"),
        ({"SKILL.md": "---\nname: x\n"}, "end"),
        ({"SKILL.md": "---\nname: x\n---\n"}, "description"),
        ({"SKILL.md": "---\nname: ../up\ndescription: d\n---\n"}, "name"),
        ({"SKILL.md": "---\nname: [1\n---\n"}, "YAML"),
        ({"SKILL.md": "---\n- a\n---\n"}, "mapping"),
        ({"SKILL.md": MAIN, "../up": "x"}, "no name"),
        ({"SKILL.md": MAIN, "/etc/x": "x"}, "no name"),
        ({"SKILL.md": MAIN, "a/../../x": "x"}, "no name"),
        ({"SKILL.md": MAIN, "a\\..\\..\\x": "x"}, "no name"),
        ({"SKILL.md": MAIN, "/".join("d" * 11): "x"}, "no name"),
        ({"SKILL.md": MAIN, "n" * 600: "x"}, "no name"),
        ({"SKILL.md": MAIN, "a": "x", "a/b": "y"}, "a file and a folder"),
        ({"SKILL.md": MAIN, **{str(i): "" for i in range(500)}}, "500 files"),
    ],
)
def test_what_is_no_skill_is_refused_and_leaves_nothing(server, ann, files, why):
    refused = upload(ann, zipped(files))
    assert refused.status == 400 and why in refused.error["message"], refused
    left = [name for _, _, names in os.walk(server.folder / "skills") for name in names]
    assert left == []


def test_a_link_in_an_archive_is_refused(server, ann):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("SKILL.md", MAIN)
        link = zipfile.ZipInfo("passwd")
        link.create_system = 3
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    refused = upload(ann, out.getvalue())
    assert refused.status == 400 and "link" in refused.error["message"], refused


def test_a_zip_bomb_is_given_up(server, ann):
    refused = upload(ann, zipped({"SKILL.md": MAIN, "bomb": b"\0" * (200 << 20)}))
    assert refused.status == 400 and "64 MiB" in refused.error["message"]
    with open(f"/proc/{server.process.pid}/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    assert peak < 400_000, "kB"


@pytest.mark.parametrize("body", [b"", b"PK\x03\x04 nonsense", b"nonsense", zipped({"SKILL.md": MAIN})[:-30]])
def test_what_is_no_archive_is_refused(server, ann, body):
    assert upload(ann, body).status == 400


@pytest.mark.parametrize("body", [b"", b"--XX", b"--XX\r\n\r\n", b"--XX--", b"x--XX\r\na: b\r\n\r\n--XX--"])
def test_what_is_no_form_is_refused(server, ann, body):
    assert upload(ann, body, {"Content-Type": "multipart/form-data; boundary=XX"}).status == 400
    assert upload(ann, body, {"Content-Type": "multipart/form-data"}).status == 400


def test_another_type_is_refused(server, ann):
    assert upload(ann, json.dumps({}).encode(), {"Content-Type": "application/json"}).status == 415


def test_too_large_an_upload_is_refused(server, ann):
    head = (
        f"POST /v1/skills HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ann.token}\r\n"
        f"Content-Type: application/zip\r\nContent-Length: {51 << 20}\r\n\r\n"
    )
    assert server.raw(head.encode()).startswith(b"HTTP/1.1 413")
