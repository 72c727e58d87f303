"""Names belong to a token: nobody comes into another's session, or gets another's skill, by a name."""

from __future__ import annotations

import json
import subprocess

import jar as jars
import pytest
import serving
from test_http_mcp import answer_in, begin, message
from test_http_skills import MAIN, upload, zipped


def run_by_rest(client, called: str, code: str) -> str:
    answer = client.post(f"/v1/sessions/{called}/python", code=code)
    return answer.json["result"] if answer.status == 200 else f"error: {answer.error['message']}"


def run_by_dispatch(client, called: str, code: str) -> str:
    answer = client.post(f"/v1/dispatch/{called}", name="python", arguments={"code": code})
    assert answer.status == 200, answer
    return answer.json["content"].strip()


def run_by_mcp(client, called: str, code: str) -> str:
    called = message(client, "tools/call", begin(client), 2, name="python", arguments={"session": called, "code": code})
    result = answer_in(called)["result"]
    text = result["content"][0]["text"].strip()
    return f"error: {text}" if result["isError"] else text


WAYS = {"rest": run_by_rest, "dispatch": run_by_dispatch, "mcp": run_by_mcp}


@pytest.mark.parametrize("way", WAYS)
def test_a_plain_name_never_leads_into_a_session_that_another_shares(server, ann, bob, way):
    bob.session(id="main", shared=True)
    bob.python("main", "kept = []")
    said = WAYS[way](ann, "main", "kept.append('secret of ann')")
    assert bob.python("main", "kept")["result"] == "[]", said
    if way == "mcp":
        return  # whose calls are for one's own sessions only
    # The control: who says whose it is comes into it.
    run = WAYS[way](ann, "main@bob", "kept.append('a word to bob')")
    assert bob.python("main", "kept")["result"] == "['a word to bob']", run


@pytest.mark.parametrize("way", WAYS)
def test_two_tokens_have_each_a_session_of_the_same_name(server, ann, bob, way):
    for client, word in ((ann, "'of ann'"), (bob, "'of bob'")):
        client.session(id="main")
        client.python("main", f"word = {word}")
    run = WAYS[way]
    assert (run(ann, "main", "word"), run(bob, "main", "word")) == ("'of ann'", "'of bob'")
    assert run(ann, "main@ann", "word") == "'of ann'", "so may one's own be called, too"
    assert run(ann, "main@bob", "word").startswith("error"), "it is not shared"
    assert ann.delete("/v1/sessions/main").status == 204
    assert bob.python("main", "word")["result"] == "'of bob'"
    assert [each["id"] for each in bob.get("/v1/sessions").json["sessions"]] == ["main"]


@pytest.mark.parametrize("way", ["dispatch", "mcp"])
def test_a_name_that_another_has_is_no_obstacle(server, ann, bob, way):
    """The first call makes a session where one's own is not there."""
    bob.session(id="main")
    assert WAYS[way](ann, "main", "6 * 7") == "42"


def test_a_session_is_not_made_for_another(server, ann, bob):
    assert ann.post("/v1/sessions", id="main@bob").status == 400
    assert ann.post("/v1/sessions", id="main@ann").status == 400, "whose it is is the token's"
    for way in ("dispatch", "mcp"):
        assert WAYS[way](ann, "main@bob", "1").startswith("error")
    assert server.client("boss").get("/v1/sessions").json == {"sessions": []}


def test_an_administrator_says_whose_session_it_is(server, ann, bob):
    boss = server.client("boss")
    with boss.stream("GET", "/v1/events?types=call_finished") as events, \
            ann.stream("GET", "/v1/events?session=main&types=call_finished") as anns:  # fmt: skip
        events.until("hello")
        anns.until("hello")
        for client in (bob, ann):
            client.session(id="main")
            client.python("main", "1")
        assert [events.until("call_finished")["session_id"] for _ in range(2)] == ["main@bob", "main@ann"]
        assert anns.until("call_finished")["session_id"] == "main"
    assert {each["id"] for each in boss.get("/v1/sessions").json["sessions"]} == {"main@ann", "main@bob"}
    assert boss.get("/v1/sessions/main").status == 404
    assert boss.delete("/v1/sessions/main").status == 404
    answer = boss.post("/v1/sessions/main@ann/python", code="2")
    assert answer.json["session_id"] == "main@ann" and answer.json["result"] == "2", answer
    assert boss.session(id="main") == "main"
    assert boss.delete("/v1/sessions/main").status == 204, "his own"
    assert boss.delete("/v1/sessions/main@ann").status == 204
    assert bob.get("/v1/sessions/main").status == 200 and ann.get("/v1/sessions/main").status == 404


def test_the_commands_say_whose_session_it_is(server, scene, ann, bob):
    environment = {**jars.Outside(scene).environment(), "HOME": str(scene.home), "XDG_RUNTIME_DIR": str(server.folder)}

    def cli(*words):
        command = scene.identity.command([jars.binary(), "sessions", *words, f"--socket={server.socket_path}"])
        return subprocess.run(command, cwd=scene.home, env=environment, capture_output=True, text=True,
                              timeout=serving.PATIENCE)  # fmt: skip

    for client in (ann, bob):
        client.session(id="main")
    assert {line.split()[0] for line in cli("list").stdout.splitlines()} == {"main@ann", "main@bob"}
    refused = cli("kill", "main")
    assert refused.returncode == 125 and "NAME@TOKEN" in refused.stderr, refused
    assert cli("kill", "main@bob").returncode == 0
    assert ann.get("/v1/sessions/main").status == 200 and bob.get("/v1/sessions/main").status == 404


def test_the_audit_and_approvals_say_whose_session_it_is(start, scene):
    audit = scene.home / "audit.jsonl"
    server = start("--permission=ask", f"--audit={audit}")
    ann, boss = server.client("ann"), server.client("boss")
    ann.session(id="main")
    with boss.stream("POST", "/v1/sessions/main@ann/python", code="1", stream=True) as call:
        asked = call.until("agentic_tool_approval_required")
        shown = {each: each.get(f"/v1/approvals/{asked['approval_id']}").json["session_id"] for each in (ann, boss)}
        assert (asked["session_id"], shown[boss], shown[ann]) == ("main@ann", "main@ann", "main")
        assert boss.post(f"/v1/approvals/{asked['approval_id']}", decision="approve").status == 200
        call.until("result")
    (line,) = [json.loads(each) for each in audit.with_name("audit.boss.jsonl").read_text().splitlines()
               if '"call"' in each]  # fmt: skip
    assert (line["principal"], line["owner"], line["session"]) == ("boss", "ann", "main"), line


def test_an_address_shows_no_other_session_of_its_owner(server, ann):
    one, other = ann.session(id="one"), ann.session(id="other")
    path = ann.post(f"/v1/sessions/{one}/dispatch").json["path"]
    answer = server.client(None).post(path, name="session_list", arguments={})
    assert other not in answer.json["content"] and one in answer.json["content"], answer
    listed = ann("POST", f"/v1/sessions/{one}/tools/session_list", b"{}", {"Content-Type": "application/json"})
    assert "other" in listed.json["text"], "the control: the token itself sees both"


# ------------------------------------------------------------------- skills


def skill_named(name: str, text: str) -> bytes:
    return zipped({"SKILL.md": MAIN.replace("plots", name), "whose": text})


def test_a_skill_of_a_name_is_ones_own(server, ann, bob):
    boss = server.client("boss")
    for client, whose in ((ann, "ann"), (bob, "bob")):
        assert upload(client, skill_named("plots", whose)).status == 201
    # A plain name is never a tenant's, whoever asks.
    assert boss.post("/v1/sessions", skills=["plots"]).status == 404
    assert boss.get("/v1/skills/plots").status == 404
    assert boss.delete("/v1/skills/plots").status == 404
    assert upload(boss, skill_named("plots", "boss"), path="/v1/skills/plots/versions").status == 404
    # One that is named with its owner is, for who may use it.
    assert {each["owner"] for each in boss.get("/v1/skills").json["data"]} == {"ann", "bob"}
    session = boss.session(skills=["plots@ann"])
    assert boss.python(session, "open('skills/plots/whose').read()")["result"] == "'ann'"
    assert ann.post("/v1/sessions", skills=["plots@bob"]).status == 404
    assert boss.delete("/v1/skills/plots@bob").status == 204
    assert bob.get("/v1/skills/plots").status == 404 and ann.get("/v1/skills/plots").status == 200


def test_what_an_administrator_shares_is_found_by_its_name(server, ann):
    boss = server.client("boss")
    upload(boss, skill_named("plots", "boss"))
    session = ann.session(skills=["plots"])
    assert ann.python(session, "open('skills/plots/whose').read()")["result"] == "'boss'"
    assert ann.delete("/v1/skills/plots").status == 403
    assert ann.delete("/v1/skills/plots@boss").status == 403
    upload(ann, skill_named("plots", "ann"))
    assert ann.python(ann.session(skills=["plots"]), "open('skills/plots/whose').read()")["result"] == "'ann'"
    assert ann.python(ann.session(skills=["plots@boss"]), "open('skills/plots/whose').read()")["result"] == "'boss'"
    assert ann.delete("/v1/skills/plots").status == 204
    assert boss.get("/v1/skills/plots").status == 200
