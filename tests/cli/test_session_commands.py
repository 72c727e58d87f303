"""belljar python and belljar shell: sessions for a person and for scripts."""

from __future__ import annotations

import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time

import jar as jars
import pytest


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/belljar").mkdir(parents=True)


def belljar(*words: str, **how) -> subprocess.CompletedProcess:
    how = {"timeout": 60, "capture_output": True, "text": True, **how}
    return subprocess.run([jars.binary(), *words], **how)


class Terminal:
    """A person at a terminal."""

    def __init__(self, *words: str):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(jars.binary(), [jars.binary(), *words])
        self.seen = ""

    def expect(self, pattern: str, seconds: float = 20) -> str:
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < end, f"no {pattern!r} in {self.seen!r}"
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    assert re.search(pattern, self.seen), f"ended without {pattern!r}: {self.seen!r}"
        before, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return before

    def type(self, text: str):
        os.write(self.fd, text.encode())

    def exit_code(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def finish(self) -> int:
        """^D on an empty line, until it is seen: what comes before the line is edited means something else."""
        for _ in range(100):
            self.type("\x15\x04")
            select.select([self.fd], [], [], 0.2)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        raise AssertionError("it does not end")


def test_code_comes_from_a_flag_a_file_or_the_input(tmp_path):
    (tmp_path / "x.py").write_text("print('file')")
    assert belljar("python", "-c", "print('flag')").stdout == "flag\n"
    assert belljar("python", "x.py").stdout == "file\n"
    assert belljar("python", "-", input="print('input')").stdout == "input\n"
    assert belljar("python", input="print('input')").stdout == "input\n"


@pytest.mark.parametrize("profile", ["developer", "restricted", "public-bot"])
def test_python_has_matplotlib_of_the_system(profile):
    """Debian's needs a file in /etc."""
    code = "import matplotlib\nprint(matplotlib.rcParams['backend'] != '')"
    run = belljar("python", f"--profile={profile}", "--python=/usr/bin/python3", "-c", code)
    assert run.stdout == "True\n", run


def test_the_value_of_the_last_expression_is_shown():
    run = belljar("python", "-c", "x = 20\nx * 2 + 2")
    assert (run.stdout, run.returncode) == ("42\n", 0)


def test_an_exception_is_shown_and_the_code_says_so():
    run = belljar("python", "-c", "print('before')\n1/0")
    assert run.stdout == "before\n" and "ZeroDivisionError" in run.stderr and run.returncode == 1


def test_the_timeout_is_the_policys():
    run = belljar("python", "--timeout=1", "-c", "import time\nprint('a', flush=True)\ntime.sleep(60)")
    assert run.stdout == "a\n" and run.returncode == 124


def test_json_has_everything():
    answer = json.loads(belljar("python", "--json", "-c", "open('new.txt', 'w').write('hi')\n'ü'").stdout)
    assert answer["schema_version"] == 1 and answer["status"] == "success"
    assert answer["result"] == "'ü'" and answer["result_type"] == "str"
    assert answer["files"] == [{"name": "new.txt", "size": 2, "mime": "text/plain", "text": "hi"}]


SYSTEM_PYTHON = "--python=/usr/bin/python3"  # it has matplotlib


def test_a_script_has_its_arguments_name_and_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/helper.py").write_text("word = 'helped'\n")
    (tmp_path / "sub/main.py").write_text("import sys, helper\nprint(sys.argv, __file__, __name__, helper.word)\n1 + 1\n")
    run = belljar("python", "sub/main.py", "a", "--b")
    assert run.stdout == "['sub/main.py', 'a', '--b'] sub/main.py __main__ helped\n", run
    (tmp_path / "wrong.py").write_text("def f():\n    return 1 / 0\nf()\n")
    run = belljar("python", "wrong.py")
    assert run.returncode == 1 and 'File "wrong.py", line 2, in f' in run.stderr and "belljar" not in run.stderr, run


@pytest.mark.parametrize(
    "code, exit_code, says",
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("exit()", 0, ""),
        ("import sys; sys.exit('in words')", 1, "in words\n"),
        ("raise KeyError(1)", 1, "KeyError: 1\n"),
        ("import os; os._exit(4)", 4, "exited with code 4"),
        ("import os; os.kill(os.getpid(), 11)", 139, "killed by SIGSEGV"),
    ],
)
def test_the_exit_code_is_the_programs_own(code, exit_code, says):
    run = belljar("python", "-c", code)
    assert run.returncode == exit_code and says in run.stderr and ("Traceback" in run.stderr) == ("KeyError" in code), run
    answer = json.loads(belljar("python", "--json", "-c", code).stdout)
    assert answer["exit_code"] == (None if "KeyError" in code else exit_code)


def test_without_a_flag_there_is_no_timeout_and_with_one_it_is_said():
    config = "[session]\npython_timeout = \"300ms\"\nmax_timeout = \"300ms\"\n"
    (pathlib.Path(os.environ["XDG_CONFIG_HOME"]) / "belljar/config.toml").write_text(config)
    assert belljar("python", "-c", "import time; time.sleep(1); print('done')").stdout == "done\n"
    for run in (
        belljar("python", "--timeout=300ms", "-c", "while True: pass"),
        belljar("shell", "--timeout=300ms", "-c", "sleep 100"),
    ):
        assert run.returncode == 124 and "ended after 300 ms (--timeout changes it)" in run.stderr, run


def test_pictures_are_files_whose_paths_are_shown():
    plot = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show(); plt.plot([3]); None"
    run = belljar("python", SYSTEM_PYTHON, "-c", plot)
    paths = re.findall(r"\[picture: (/tmp/belljar-images-\w+/(\d)\.png)\]", run.stdout)
    try:
        assert [number for _, number in paths] == ["1", "2"] and run.returncode == 0, run
        for path, _ in paths:
            assert pathlib.Path(path).read_bytes().startswith(b"\x89PNG") and os.stat(path).st_mode & 0o777 == 0o600
    finally:
        for path, _ in paths:
            shutil.rmtree(os.path.dirname(path), ignore_errors=True)


def test_the_interpreter_can_be_named(tmp_path):
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    run = belljar("python", "--python=venv/bin/python", "-c", "import sys; print(sys.prefix)")
    assert run.stdout == f"{tmp_path}/venv\n", run
    work = tmp_path / "work"
    work.mkdir()
    run = belljar("python", "--profile=restricted", f"--python={tmp_path}/venv/bin/python", "-c", "1", cwd=work)
    assert run.returncode == 125 and f"--extra-read={tmp_path}/venv shows it" in run.stderr, run
    words = [f"--python={tmp_path}/venv/bin/python", f"--extra-read={tmp_path}/venv", "-c", "40 + 2"]
    assert belljar("python", "--profile=restricted", *words, cwd=work).stdout == "42\n"


def test_the_policy_holds(tmp_path):
    run = belljar("python", "--network=none", "-c", "open('/etc/shadow').read()")
    assert run.returncode == 1 and re.search("PermissionError|FileNotFoundError", run.stderr)


def test_what_is_not_understood_is_refused():
    for words in (["python", "a.py", "b.py"], ["python", "-c"], ["shell", "ls"], ["shell", "--json"]):
        assert belljar(*words).returncode == jars.OWN_FAILURE
    missing = belljar("python", "missing.py")
    assert missing.returncode == jars.OWN_FAILURE and "missing.py" in missing.stderr


def test_sessions_are_not_run_without_a_sandbox():
    run = belljar("python", "--sandbox=off", "-c", "1")
    assert run.returncode == jars.OWN_FAILURE and "without a sandbox" in run.stderr


def test_an_interpreter_that_is_not_there_is_said(tmp_path):
    (tmp_path / "belljar.toml").write_text('[session]\npython = "python9"\n')
    refused = belljar("python", "-c", "1")
    assert refused.returncode == jars.OWN_FAILURE and "[session]" in refused.stderr and "trust" in refused.stderr
    assert belljar("trust").returncode == 0
    run = belljar("python", "-c", "1")
    assert run.returncode == jars.OWN_FAILURE and "start python9" in run.stderr and "[session]" in run.stderr


def test_a_command_of_the_shell_gives_its_code():
    run = belljar("shell", "-c", "echo out; echo err >&2; exit 7")
    assert run.stdout == "out\n" and "err" in run.stderr and run.returncode == 7
    answer = json.loads(belljar("shell", "--json", "-c", "false").stdout)
    assert answer["commands"] == [{"command": "false", "exit_code": 1}] and answer["exit_code"] == 1


def test_at_a_terminal_python_is_asked_for_statement_by_statement():
    terminal = Terminal("python")
    terminal.expect(">>> ")
    terminal.type("x = 6\n")
    terminal.expect(">>> ")
    terminal.type("for i in (1, 2):\n  print(x * i)\n\n")
    terminal.expect("6\r\n12\r\n>>> ")
    terminal.type("x + 1\n")
    terminal.expect("7\r\n>>> ")
    assert terminal.finish() == 0


def test_control_c_stops_a_call_and_gives_up_a_line():
    terminal = Terminal("python")
    terminal.expect(">>> ")
    terminal.type("x = 1; import time; print('on' + 'ce'); time.sleep(100)\n")
    terminal.expect("once")
    terminal.type("\x03")
    terminal.expect("KeyboardInterrupt\r\n>>> ")
    terminal.type("if not finished:\n")
    terminal.expect(r"\.\.\. ")
    terminal.type("\x03")
    terminal.expect(">>> ")
    terminal.type("x\n")
    terminal.expect("1\r\n>>> ")
    assert terminal.finish() == 0


def test_lines_are_remembered(tmp_path):
    for line in ("print('fi' + 'rst')\n", "\x1b[A\n"):  # the second time with the arrow key
        terminal = Terminal("python")
        terminal.expect(">>> ")
        terminal.type(line)
        terminal.expect("first\r\n>>> ")
        assert terminal.finish() == 0
    history = tmp_path / "state/belljar/python_history"
    assert history.stat().st_mode & 0o77 == 0


def test_what_a_guest_prints_cannot_command_the_terminal():
    terminal = Terminal("python")
    terminal.expect(">>> ")
    terminal.type(r"print('\x1b]0;owned\x07\x1b[31mred\x1b[0m\x1b[6n' + 'end')" + "\n")
    seen = terminal.expect("end\r\n>>> ")
    assert "\x1b[31mred\x1b[0mend" in seen and "\x1b]" not in seen and "\x1b[6n" not in seen
    assert terminal.finish() == 0


def test_neither_can_a_value_or_an_exception():
    person = Terminal("python")
    person.expect(">>> ")
    person.type("class T:\n    def __repr__(self): return 'a' + chr(27) + ']0;title' + chr(7) + chr(0x9b) + 'b'\n\nT()\n")
    assert "\x1b]" not in person.expect("ab\r?\n")
    person.type("raise ValueError('c' + chr(27) + ']52;c;aGk=' + chr(7) + 'd')\n")
    assert "\x1b]" not in person.expect("ValueError: cd")
    assert person.finish() == 0


def test_what_is_typed_is_what_runs():
    person = Terminal("python")
    person.expect(">>> ")
    person.type('print("ä€😀", len("ä€😀"))\n')
    person.expect("ä€😀 3\r?\n")
    person.type("if True:\n\tprint(6 * 7)\n\n")
    person.expect("42")
    assert person.finish() == 0


@pytest.mark.parametrize("line, exit_code", [("exit()", 0), ("quit()", 0), ("import sys; sys.exit(5)", 5)])
def test_the_person_can_leave_by_the_usual_words(line, exit_code):
    person = Terminal("python")
    person.expect(">>> ")
    person.type(line + "\n")
    assert person.exit_code() == exit_code


def test_at_a_terminal_the_shell_is_an_ordinary_one():
    terminal = Terminal("shell")
    terminal.type("echo $((6 * 7)); exit 5\n")
    terminal.expect("42\r\n")
    assert terminal.exit_code() == 5


def test_a_command_that_exits_says_nothing_of_it():
    run = belljar("shell", "-c", "echo out; exit 3")
    assert (run.returncode, run.stdout, run.stderr) == (3, "out\n", "")
    own = belljar("shell", "-c", "echo exit >&2; exit 3")
    assert (own.returncode, own.stderr) == (3, "exit\n"), "its own words stay"
    assert belljar("shell", "-c", "echo exit >&2").stderr == "exit\n"
    answer = json.loads(belljar("shell", "--json", "-c", "exit 3").stdout)
    assert (answer["exit_code"], answer["stderr"], answer["notes"]) == (3, "", [])
    killed = belljar("shell", "-c", "kill -9 $$")
    assert killed.returncode == 137 and "killed by SIGKILL" in killed.stderr, "what nobody asked for is said"


def test_json_has_no_controls_that_a_terminal_obeys(tmp_path):
    """C1 controls as well: U+009B begins a sequence as ESC [ does."""
    controls = "".join(map(chr, [*range(1, 32), *range(127, 160)]))
    code = f"print({controls!r}, end='')"
    for words in (["python", "--json", "-c", code], ["shell", "--json", "-c", f"printf %s '{controls[-33:]}'"]):
        done = subprocess.run([jars.binary(), *words], cwd=tmp_path, capture_output=True, timeout=60)
        text = done.stdout.decode()
        assert not [c for c in text if c != "\n" and (c < " " or "\x7f" <= c < "\xa0")], done
        assert json.loads(text)["stdout"].endswith("\x9b\x9c\x9d\x9e\x9f"), done
