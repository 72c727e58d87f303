from __future__ import annotations

import os
import threading
import time

import pytest

import belljar
from belljar import CodeExecutionConfig, SandboxPolicy, Session, ShellConfig, Skill
from conftest import PATIENCE


@pytest.fixture(scope="module")
def shared():
    with Session() as session:
        yield session


@pytest.fixture
def s(shared):
    shared.reset()
    return shared


def test_the_example_of_the_readme(work):
    (work / "data").mkdir()
    (work / "data/x.csv").write_text("a,b\n1,2\n3,4\n")
    (work / "Makefile").write_text("all:\n\t@echo made\n")
    code = "import pandas as pd; df = pd.read_csv('data/x.csv'); df.plot()"
    with Session(profile="restricted", extra_fs_read=["data", "Makefile"]) as s:
        r = s.python(code, timeout=PATIENCE)
        assert r.ok, r
        assert r.stdout == "" and "Axes" in r.result and r.files == []
        r.images[0].save("plot.png")
        text = "".join(chunk.text for chunk in s.shell_stream("make -j2"))
    assert (work / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert text == "made\n"
    assert r._repr_png_().startswith(b"\x89PNG") and "<img" in r._repr_html_()


def test_a_workdir_that_may_not_be_written_has_its_links_too(work):
    (work / "data").mkdir()
    (work / "data/x").write_text("found")
    with Session(deny_write=True, extra_fs_read=["data"]) as s:
        assert s.shell("cat data/x").stdout == "found"
        assert not s.shell("touch made").ok


def test_state_lasts(s):
    assert s.python("x = 20").result is None
    assert s.python("x + 1").result == "21"
    s.shell("cd /tmp; export WHO=you")
    assert s.shell("echo $PWD $WHO; cd - >/dev/null").stdout == "/tmp you\n"


def test_an_exception_is_an_answer(s):
    r = s.python("print('before')\n1 / 0")
    assert r.status == "error" and not r.ok and r.stdout == "before\n"
    assert r.exception.type == "ZeroDivisionError" and "1 / 0" in r.exception.traceback
    assert "ZeroDivisionError" in r._repr_html_()


def test_commands_have_exit_codes(s):
    r = s.shell(["true", "false", "echo on"])
    assert [command.exit_code for command in r.commands] == [0, 1, 0]
    assert r.exit_code == 0 and not r.timed_out


def test_rich_values_come_back(s):
    r = s.python("class H:\n  def _repr_html_(self): return '<script>alert(1)</script>'\nH()")
    assert r.result_data["text/html"] == "<script>alert(1)</script>"
    assert "<script>" not in r._repr_html_()


def test_files_come_back(s, work):
    r = s.python("open('made.txt', 'w').write('hello'); open('made.bin', 'wb').write(bytes([0, 255]))")
    files = {file.name: file for file in r.files}
    assert files["made.txt"].text == "hello" and files["made.bin"].content == b"\x00\xff"
    files["made.bin"].save(work / "here.bin")
    assert (work / "here.bin").read_bytes() == b"\x00\xff"
    assert s.python("pass", outputs=["made.txt"]).files[0].text == "hello"


def test_files_go_in_and_out(s):
    s.write_file("deep/er/in.txt", "one")
    s.write_file("raw", b"\x00\xff")
    assert s.shell("cat deep/er/in.txt").stdout == "one"
    assert s.read_file("raw") == b"\x00\xff"
    assert {"deep", "raw"} <= {entry["name"] for entry in s.list_files()}
    with pytest.raises(belljar.ToolError) as caught:
        s.read_file("not there")
    assert caught.value.kind == "not_found"
    s.shell("ln -sf /etc/shadow link; ln -sfn / root")
    for path in ("link", "root/etc/shadow", "../../../../etc/shadow"):
        with pytest.raises(belljar.ToolError):
            s.read_file(path)


def test_streams_come_while_code_runs(s):
    stream = s.python_stream("import time, sys\nprint('first', flush=True)\nwhile True:\n  time.sleep(0.1)", timeout=3)
    assert next(stream).text == "first\n"  # long before the end
    assert stream.result.status == "timeout"
    chunks = list(s.shell_stream("echo out; echo err >&2"))
    assert {(chunk.stream, chunk.text) for chunk in chunks} == {("stdout", "out\n"), ("stderr", "err\n")}


def test_a_character_that_is_cut_in_two_comes_whole(s):
    code = "import os, time\nfor b in 'é€'.encode(): os.write(1, bytes([b])); time.sleep(0.02)"
    chunks = [chunk.text for chunk in s.python_stream(code)]
    assert "".join(chunks) == "é€" and "\ufffd" not in "".join(chunks)


def test_a_stream_that_is_left_stops_the_call(s):
    with s.python_stream("import time\nprint('begun', flush=True)\ntime.sleep(600)") as stream:
        next(stream)
    with pytest.raises(belljar.Error):
        stream.result
    began = time.monotonic()
    assert s.python("1 + 1").result == "2"
    assert time.monotonic() - began < PATIENCE


def test_a_timeout_keeps_state(s):
    s.python("x = 1")
    r = s.python("import time; print('here'); time.sleep(600)", timeout=0.5)
    assert r.status == "timeout" and r.interrupted and r.stdout == "here\n"
    assert s.python("x").result == "1"


def test_interrupt_from_another_thread(s):
    begun = threading.Event()
    results = []

    def call():
        with s.python_stream("import time\nprint('begun', flush=True)\ntime.sleep(600)") as stream:
            for _ in stream:
                begun.set()
            results.append(stream.result)

    thread = threading.Thread(target=call)
    thread.start()
    assert begun.wait(PATIENCE)
    s.interrupt()
    thread.join(PATIENCE)
    assert results and results[0].interrupted and results[0].exception.type == "KeyboardInterrupt"


def test_threads_run_side_by_side(s):
    """The lock is given away: both calls wait for each other's file."""
    code = "import os, time\nopen({0!r}, 'w').close()\nwhile not os.path.exists({1!r}): time.sleep(0.02)\n'met'"
    results = {}

    def python():
        results["python"] = s.python(code.format("a", "b"), timeout=PATIENCE)

    def shell():
        results["shell"] = s.shell("touch b; until test -e a; do sleep 0.02; done; echo met", timeout=PATIENCE)

    pair = [threading.Thread(target=python), threading.Thread(target=shell)]
    for thread in pair:
        thread.start()
    for thread in pair:
        thread.join()
    assert results["python"].result == "'met'" and results["shell"].stdout == "met\n"


def test_reset_keeps_files(s):
    s.python("x = 1; open('kept', 'w').close()")
    s.reset()
    assert s.python("import os; ('x' in globals(), os.path.exists('kept'))").result == "(False, True)"


def test_a_workdir_can_be_named(work):
    (work / "here.txt").write_text("here")
    configs = {
        "code_execution_config": CodeExecutionConfig(working_directory=str(work)),
        "shell_config": ShellConfig(working_directory=str(work)),
    }
    with Session(**configs) as s:
        assert s.python("open('here.txt').read()").result == "'here'"
        assert s.shell("echo made > made.txt").ok
        assert s.describe()["folder"] == str(work)
    assert (work / "made.txt").read_text() == "made\n"
    with pytest.raises(ValueError):
        Session(
            code_execution_config=CodeExecutionConfig(working_directory=str(work)),
            shell_config=ShellConfig(working_directory="/tmp"),
        )


def test_a_fresh_workdir_is_gone_afterwards():
    with Session() as s:
        folder = s.describe()["folder"]
        s.shell("echo x > x")
        assert os.path.exists(folder)
    end = time.monotonic() + PATIENCE
    while os.path.exists(folder) and time.monotonic() < end:
        time.sleep(0.05)
    assert not os.path.exists(folder)


def test_configs_say_interpreter_shell_and_times(work):
    code = CodeExecutionConfig(python_path="/usr/bin/python3", timeout_secs=1)
    shell = ShellConfig(shell_path="/bin/sh", timeout_secs=1)
    with Session(code_execution_config=code, shell_config=shell) as s:
        assert s.python("import sys; sys.executable").result == "'/usr/bin/python3'"
        assert s.shell("echo ${BASH_VERSION-none}").stdout == "none\n"
        assert s.python("import time; time.sleep(600)").status == "timeout"
        assert s.shell("sleep 600").timed_out


def test_a_policy_for_both(work):
    policy = SandboxPolicy(network="none")
    with Session(code_execution_config=CodeExecutionConfig(sandbox_policy=policy)) as s:
        assert s.policy is policy
        assert "no sockets" not in s.python("import socket; socket.socket()").stdout
        assert s.python("import socket; socket.socket()").status == "error"
    with pytest.raises(ValueError):
        Session(policy=SandboxPolicy(), code_execution_config=CodeExecutionConfig(sandbox_policy=policy))


def test_none_is_no_sandbox_and_warns():
    with pytest.warns(belljar.NoSandbox):
        session = Session(shell_config=ShellConfig(sandbox_policy=None))
    with session as s:
        assert s.policy.profile == "open"
        assert s.shell("test -e /sys/kernel").ok and s.python("1 + 1").result == "2"
    with Session() as s:
        assert not s.shell("test -e /sys/kernel").ok


def test_skills_are_there_and_read_only(work):
    skill = work / "greet"
    skill.mkdir()
    (skill / "SKILL.md").write_text("say hello")
    with Session(skills=[Skill("greet", "greets people", str(skill))]) as s:
        assert s.shell("cat skills/greet/SKILL.md").stdout == "say hello"
        assert not s.shell("echo changed > skills/greet/SKILL.md").ok
        assert "greets people" in belljar.tools(s)["shell"].description
    assert (skill / "SKILL.md").read_text() == "say hello"
    with pytest.raises(ValueError):
        Skill("../x", "", str(skill))


def test_skills_leave_nothing_in_a_workdir_that_stays(work):
    skill = work.parent / f"{work.name}-skill"
    skill.mkdir()
    with Session(skills=[Skill("greet", "", str(skill))], workdir=work) as s:
        assert s.shell("test -d skills/greet").ok
    assert os.listdir(work) == []


def test_why_gives_the_hint(s, tmp_path_factory):
    secret = tmp_path_factory.mktemp("outside") / "data.csv"
    secret.write_text("a\n1\n")
    assert s.python(f"open({str(secret)!r})").exception.type in ("FileNotFoundError", "PermissionError")
    assert f"extra_fs_read=[{str(secret)!r}]" in s.why(secret)
    with Session(extra_fs_read=[secret]) as allowed:
        assert allowed.python(f"open({str(secret)!r}).read()").result == "'a\\n1\\n'"


def test_a_closed_session_says_so():
    s = Session()
    s.close()
    s.close()
    assert s.closed
    with pytest.raises(belljar.SessionClosed):
        s.python("1")


def test_closing_answers_a_call_of_another_thread():
    s = Session()
    begun = threading.Event()
    ends = []

    def call():
        try:
            for _ in s.python_stream("import time\nprint(1, flush=True)\ntime.sleep(600)"):
                begun.set()
            ends.append("ended")
        except belljar.Error as error:
            ends.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert begun.wait(PATIENCE)
    s.close()
    thread.join(PATIENCE)
    assert ends


def test_tools_are_functions_with_schemas(s):
    tools = belljar.tools(s)
    assert {"python", "shell", "read", "write", "edit", "glob", "grep"} <= {tool.name for tool in tools}
    openai = {one["function"]["name"]: one["function"] for one in tools.openai()}
    assert openai["python"]["parameters"]["required"] == ["code"]
    assert "session" not in openai["python"]["parameters"]["properties"]
    anthropic = {one["name"]: one for one in tools.anthropic()}
    assert anthropic["shell"]["input_schema"]["type"] == "object"
    assert "loopback" in tools["python"].description

    assert tools["write"](path="notes.txt", content="alpha\nbeta\n").is_error is False
    assert "beta" in tools["grep"](pattern="bet").text
    assert tools["python"](code="1 / 0").error_type == "exception"
    assert tools["python"](code="import matplotlib.pyplot as p; p.plot([1, 2]); p.show()").images
    assert tools.call("shell", '{"commands": ["exit 3"]}').error_type == "exit_code"
    assert tools.call("shell", "{").error_type == "invalid_arguments"
    assert tools.call("shell", "[]").error_type == "invalid_arguments"
    assert tools.call("nothing", {}).error_type == "unknown_tool"
    assert tools.call("python", {"code": 7}).error_type == "invalid_arguments"
    with pytest.raises(KeyError):
        tools["nothing"]
