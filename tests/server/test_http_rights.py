"""File tools and file routes do what the guest could do, and say so; the audit says who asked."""

import json
import os

import pytest


@pytest.fixture
def shared(scene):
    folder = scene.home / "shared"
    folder.mkdir()
    scene.identity.own(folder)
    return folder


def tool(client, session: str, name: str, **arguments) -> dict:
    body = json.dumps(arguments).encode()
    answer = client("POST", f"/v1/sessions/{session}/tools/{name}", body, {"Content-Type": "application/json"})
    assert answer.status == 200, answer
    return answer.json


def plant(path, content: str, mode: int, uid: int) -> None:
    path.write_text(content)
    os.chown(path, uid, uid)
    path.chmod(mode)


def test_in_a_shared_folder_the_tools_have_the_guests_rights(start, scene, shared):
    """As root too: files of somebody else's in a folder that the guest has as its own."""
    if os.geteuid() != 0:
        pytest.skip("only root can leave files of others")
    stranger = 54321
    plant(shared / "secret", "SECRET", 0o600, stranger)
    (shared / "closed").mkdir()
    plant(shared / "closed/inside", "SECRET", 0o644, stranger)
    (shared / "kept").mkdir()
    plant(shared / "kept/file", "kept", 0o644, stranger)
    for name, mode in (("closed", 0o700), ("kept", 0o755)):
        os.chown(shared / name, stranger, stranger)
        (shared / name).chmod(mode)
    ann = start(session=f'workdir = "{shared}"').client("ann")
    session = ann.session()
    files = f"/v1/sessions/{session}/files"
    # The control: the guest cannot do any of it.
    commands = ["cat secret", "ls closed", "echo x > kept/file", "rm -f kept/file", "echo x > kept/new"]
    answer = ann.post(f"/v1/sessions/{session}/shell", commands=commands).json
    assert all(each["exit_code"] != 0 for each in answer["commands"]), answer
    for name, arguments in (
        ("read", {"path": "secret"}), ("read", {"path": "closed/inside"}),
        ("write", {"path": "kept/file", "content": "x"}), ("write", {"path": "kept/new", "content": "x"}),
        ("edit", {"path": "kept/file", "old_string": "kept", "new_string": "x"}),
        ("glob", {"pattern": "*", "path": "closed"}),
    ):  # fmt: skip
        refused = tool(ann, session, name, **arguments)
        assert refused["is_error"] and refused["error_type"] == "no_permission", (name, refused)
    assert tool(ann, session, "grep", pattern="SECRET")["structured"]["matches"] == []
    assert ann.get(f"{files}/secret").status == 403
    assert ann.get(f"{files}?path=closed").status == 403
    assert ann.delete(f"{files}/kept/file").status == 403
    assert ann("PUT", f"{files}/kept/file", b"x").status == 403
    assert (shared / "kept/file").read_text() == "kept" and os.listdir(shared / "kept") == ["file"]
    # What is the guest's own is the tools' too, and belongs to the same.
    ann.post(f"/v1/sessions/{session}/shell", commands=["umask 077; mkdir own; echo mine > own/file"])
    assert "mine" in tool(ann, session, "read", path="own/file")["text"]
    assert not tool(ann, session, "write", path="own/new/file", content="x")["is_error"]
    assert {os.stat(path).st_uid for path in (shared, shared / "own/new", shared / "own/new/file")} == {scene.identity.uid}
    assert ann.post(f"/v1/sessions/{session}/shell", commands=["echo y >> own/new/file"]).json["status"] == "success"


def test_a_hidden_file_is_not_listed(start, shared):
    (shared / "seen").write_text("x")
    (shared / "secret").write_text("a secret of 24 bytes ...")
    os.link(shared / "secret", shared / "again")
    ann = start(session=f'workdir = "{shared}"').client("ann")
    for policy, names in (({}, ["again", "secret", "seen"]), ({"hide": [f"{shared}/secret"]}, ["seen"])):
        session = ann.session(policy=policy)
        for _ in ("before the first call", "after it"):
            listed = ann.get(f"/v1/sessions/{session}/files").json["files"]
            assert [each["name"] for each in listed] == names, listed
            ann.python(session, "1")


@pytest.mark.parametrize("flag", ["hide", "protect"])
def test_a_narrower_policy_is_taken_where_the_operator_hides_by_flag(start, scene, shared, flag):
    (shared / "kept").write_text("x")
    ann = start(f"--{flag}={shared}/kept", session=f'workdir = "{shared}"').client("ann")
    made = ann.post("/v1/sessions", policy={"max_memory_mb": 512, "network": "none"})
    assert made.status == 201, made
    answer = ann.post(f"/v1/sessions/{made.json['id']}/shell", commands=["echo y > kept"]).json
    assert answer["status"] != "success" and (shared / "kept").read_text() == "x", answer


def test_the_audit_names_who_called(start, scene):
    audit = scene.home / "audit.jsonl"
    server = start(f"--audit={audit}")
    ann, bob = server.client("ann"), server.client("bob")
    session = ann.session(shared=True)
    ann.python(session, "'by ann'")
    bob.python(f"{session}@ann", "'by bob'")
    tool(bob, f"{session}@ann", "write", path="by-bob", content="x")
    trails = [audit.with_name(f"audit.{name}.jsonl") for name in ("ann", "bob")]  # of each who called
    lines = [json.loads(line) for trail in trails for line in trail.read_text().splitlines()]
    calls = [(line["principal"], line.get("owner"), line["tool"]) for line in lines if line["event"] == "call"]
    assert calls == [("ann", None, "python"), ("bob", "ann", "python"), ("bob", "ann", "write")], lines


def test_a_tilde_is_the_home_that_the_shell_has(server, ann):
    session = ann.session()
    assert not tool(ann, session, "write", path="~/from-a-tool", content="one")["is_error"]
    answer = ann.post(f"/v1/sessions/{session}/shell", commands=["cat ~/from-a-tool; ls -A", "echo two > ~/by-shell"]).json
    assert answer["stdout"] == "one", answer
    assert "two" in tool(ann, session, "read", path="~/by-shell")["text"]
    assert not tool(ann, session, "edit", path="~/by-shell", old_string="two", new_string="three")["is_error"]
    assert tool(ann, session, "glob", pattern="~/by-*")["structured"]["total"] == 1
    assert len(tool(ann, session, "grep", pattern="three", path="~")["structured"]["matches"]) == 1


def test_refusals_say_truly_why(server, ann):
    session = ann.session()

    def text(path: str) -> str:
        refused = tool(ann, session, "read", path=path)
        assert refused["is_error"], refused
        return refused["text"]

    answer = ann.post(f"/v1/sessions/{session}/shell", commands=["cat /etc/shadow", "echo x > /tmp/mine && cat /tmp/mine"])
    assert [each["exit_code"] != 0 for each in answer.json["commands"]] == [True, False], answer
    assert "change its mode" not in text("/etc/shadow") and "do without it" in text("/etc/shadow")
    assert "use shell or python" in text("/tmp/mine") and "use shell or python" in text("/proc/self/status")
    assert "the shell does not see it either" in text("/var/nothing/here")
