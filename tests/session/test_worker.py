"""The Python worker of a session: what a call leaves for the next, and what is answered."""

from __future__ import annotations

import collections
import json
import os
import resource
import signal
import subprocess
import time

import pytest
from worker_driver import LOST, SLOWER, SYSTEM_PYTHON, Died, Worker, pythons



def minor_version(worker) -> int:
    return int(worker.ready["python"].split(".")[1])


# ---------------------------------------------------------------- state


def test_ready_says_version_and_pid(python, worker):
    assert worker.ready["op"] == "ready"
    assert ".".join(worker.ready["python"].split(".")[:2]) in pythons()
    assert worker.ready["pid"] == worker.process.pid


def test_globals_and_imports_stay(worker):
    worker.good("import math\nx = 3\ndef area(): return math.pi * x")
    assert worker.run("int(area())").repr == "9"


def test_open_files_and_threads_stay(worker):
    worker.good("""
import threading
f = open("notes", "w+")
go, seen = threading.Event(), []
thread = threading.Thread(target=lambda: seen.append(go.wait(20)), daemon=True)
thread.start()
f.write("one")
""")
    worker.good("f.write(' two'); go.set(); thread.join(20)")
    assert worker.run("f.seek(0); f.read(), seen").repr == "('one two', [True])"


def test_the_guest_is_main(worker):
    answer = worker.good("""
import dataclasses, pickle, sys
@dataclasses.dataclass
class Point:
    x: "int" = 1
p = pickle.loads(pickle.dumps(Point(4)))
__name__, sys.modules["__main__"].Point is Point, p, vars() is vars(sys.modules["__main__"])
""")
    assert answer.repr == "('__main__', True, Point(x=4), True)"


def test_multiprocessing_by_fork(worker):
    answer = worker.good("""
import multiprocessing
def square(n): return n * n
with multiprocessing.get_context("fork").Pool(2) as pool:
    squares = pool.map(square, range(5))
squares
""")
    assert answer.repr == "[0, 1, 4, 9, 16]"
    assert worker.run("1 + 1").repr == "2"


def test_future_imports_stay(worker):
    worker.good("from __future__ import annotations")
    assert worker.run("def f(x: nowhere): pass\nf.__annotations__").repr == "{'x': 'nowhere'}"


def test_the_workers_own_future_imports_are_not_the_guests(worker):
    assert worker.run("def f(x: int): pass\nf.__annotations__").repr == "{'x': <class 'int'>}"


def test_modules_in_the_workdir_are_found(worker):
    worker.good("with open('mine.py', 'w') as f: f.write('where = 5')")
    assert worker.run("import mine; mine.where").repr == "5"


def test_modules_in_the_workdir_do_not_shadow_the_workers(python):
    names = "traceback linecache tokenize json io os types signal select collections textwrap re codeop"
    with Worker(python, files=[name + ".py" for name in names.split()]) as worker:
        assert "ZeroDivisionError" in worker.run("1/0").traceback
        assert "SyntaxError" in worker.run("x = =").traceback


def test_arguments_are_empty(worker):
    assert worker.run("import sys; sys.argv").repr == "['']"


def test_a_guests_functions_have_source(worker):
    worker.good("def twice(x):\n    return 2 * x\n")
    assert worker.run("import inspect; inspect.getsource(twice)").repr == repr("def twice(x):\n    return 2 * x\n")


# ---------------------------------------------------------------- results


def test_a_last_expression_is_the_result(worker):
    answer = worker.run("x = 20\nx + 1")
    assert answer.frame == {
        "op": "done", "id": 1, "status": "success", "exception": None, "exit_code": None,
        "result": {"repr": "21", "type": "int", "data": {}},
    }  # fmt: skip


@pytest.mark.parametrize("code", ["None", "x = 1", "", "# only a comment", "def f(): return 3"])
def test_nothing_gives_no_result(code):
    with Worker() as worker:
        assert worker.good(code).result is None


def test_underscore_is_the_last_result(worker):
    worker.good("6 * 7")
    worker.good("None")
    assert worker.run("_ + 1").repr == "43"


@pytest.mark.parametrize(
    "code, name",
    [
        ("1", "int"),
        ("class A:\n  class B: pass\nA.B()", "A.B"),
        ("import collections; collections.OrderedDict()", "collections.OrderedDict"),
        ("type('T', (), {'__module__': 5})()", "T"),
        ("type('T' * 500, (), {})()", "T" * 200 + "… [300 characters cut]"),
        ("class M(type):\n  __name__ = property(lambda c: 1/0)\nclass C(metaclass=M): pass\nC()", "C"),
    ],
)
def test_types_are_named_as_tracebacks_name_them(worker, code, name):
    assert worker.good(code).result["type"] == name


def test_a_long_repr_is_cut_and_says_how_much(python):
    with Worker(python, max_repr=100) as worker:
        assert worker.run("'a' * 1000").repr == "'" + "a" * 99 + "… [902 characters cut]"


@pytest.mark.parametrize(
    "body",
    [
        "def __repr__(self): raise ValueError('no')",
        "def __repr__(self): raise SystemExit(3)",
        "def __repr__(self): raise GeneratorExit",
        "def __repr__(self): return 5",
        "def __repr__(self): return None",
        "def __repr__(self): return repr(self)",
        "__repr__ = None",
        "__class__ = property(lambda self: 1/0)\n  def __repr__(self): raise self",
    ],
)
def test_a_value_that_cannot_be_shown_is_named(worker, body):
    answer = worker.good(f"class Odd:\n  {body}\nOdd()")
    assert answer.result == {"repr": "<unprintable Odd object>", "type": "Odd", "data": {}}


def test_a_repr_of_a_hostile_str_is_made_plain(worker):
    answer = worker.good("""
class Text(str):
    def boom(self, *_): raise RuntimeError
    __len__ = __getitem__ = __str__ = __repr__ = __eq__ = __hash__ = encode = __iter__ = __format__ = boom
class Odd:
    def __repr__(self): return Text("shown")
Odd()
""")
    assert answer.repr == "shown"


def test_half_surrogates_are_replaced_since_json_cannot_have_them(worker):
    assert worker.run("class S:\n  __repr__ = lambda s: 'a\\ud800b'\nS()").repr == "a?b"
    assert worker.run("raise ValueError('a\\udc80b')").exception["message"] == "a?b"
    assert worker.run("'\U0001f600 ü'").repr == "'\U0001f600 ü'"


def test_a_repr_that_nests_too_deep_is_named(worker):
    assert worker.good("x = []\nfor _ in range(100000): x = [x]\nx").repr == "<unprintable list object>"


# ---------------------------------------------------------------- await


def test_await_at_top_level(worker):
    assert worker.run("import asyncio\nawait asyncio.sleep(0, 'slept')").repr == "'slept'"
    assert worker.good("async with asyncio.Lock(): x = 5").result is None
    assert worker.run("[i async for i in (lambda: (x async for x in agen()))()] if False else x").repr == "5"


def test_tasks_go_on_in_the_next_call_that_awaits(worker):
    worker.good("""
import asyncio
ticks = []
async def tick():
    for n in range(3):
        ticks.append(n)
        await asyncio.sleep(0)
task = asyncio.get_running_loop() if False else None
async def begin():
    return asyncio.ensure_future(tick())
task = await begin()
""")
    before = worker.run("len(ticks)").repr
    assert worker.run("len(ticks)").repr == before
    assert worker.run("await task; ticks").repr == "[0, 1, 2]"


def test_asyncio_run_works_between_awaits(worker):
    worker.good("import asyncio\nawait asyncio.sleep(0)")
    assert worker.run("asyncio.run(asyncio.sleep(0, 1))").repr == "1"
    assert worker.run("await asyncio.sleep(0, 2)").repr == "2"


def test_a_closed_event_loop_is_replaced(worker):
    worker.run("import asyncio\nasyncio.get_running_loop().close() if await asyncio.sleep(0, 1) else 0")
    worker.good("import gc; [o.close() for o in gc.get_objects() if isinstance(o, asyncio.BaseEventLoop)]")
    assert worker.run("await asyncio.sleep(0, 2)").repr == "2"


def test_tracebacks_of_awaits_show_only_the_guest(worker):
    answer = worker.run("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    1/0\nawait f()")
    assert [line for line in answer.traceback.splitlines() if "File" in line] == [
        '  File "<cell 1>", line 5, in <module>',
        '  File "<cell 1>", line 4, in f',
    ]


def test_an_interrupted_await_does_not_go_on_later(worker):
    worker.start("""import asyncio
asyncio.get_running_loop().call_later(0.05, print, "waiting")
try:
    await asyncio.sleep(60)
finally:
    print("left")
""")
    worker.wait_for("waiting")
    worker.interrupt()
    answer = worker.finish()
    assert answer.exception["type"] == "KeyboardInterrupt"
    assert "left" in answer.stdout
    if minor_version(worker) >= 11:  # older ones do not say where a task was cancelled
        assert '"<cell 1>", line 4' in answer.traceback
    assert worker.run("len(asyncio.all_tasks(asyncio.get_event_loop_policy().get_event_loop()))").repr == "0"


# ---------------------------------------------------------------- exceptions


def test_tracebacks_show_the_guests_lines_and_no_others(worker):
    worker.good("def f(x):\n    return 1 / x\n")
    answer = worker.run("def g():\n    f(0)\ng()")
    lines = [line for line in answer.traceback.splitlines() if not set(line) <= set(" ~^")]
    assert lines == [
        "Traceback (most recent call last):",
        '  File "<cell 2>", line 3, in <module>',
        "    g()",
        '  File "<cell 2>", line 2, in g',
        "    f(0)",
        '  File "<cell 1>", line 2, in f',
        "    return 1 / x",
        "ZeroDivisionError: division by zero",
    ]
    assert (answer.status, answer.result) == ("error", None)
    assert answer.exception["type"] == "ZeroDivisionError"
    assert answer.exception["message"] == "division by zero"


def test_lines_are_shown_also_after_the_line_cache_was_emptied(worker):
    worker.good("def f(): raise KeyError('here')")
    assert "    f()  # this line" in worker.run("import linecache; linecache.clearcache()\nf()  # this line").traceback


def test_a_syntax_error_is_shown_as_python_shows_it(worker):
    answer = worker.run("x = 1\nif x\n  pass")
    lines = answer.traceback.splitlines()
    assert lines[:2] == ['  File "<cell 1>", line 2', "    if x"]
    assert lines[2].strip() == "^"
    assert lines[3].startswith("SyntaxError: ")
    assert answer.exception["type"] == "SyntaxError"


@pytest.mark.parametrize("code", ["return 1", "def f(:", "(" * 300, "a\0b", "x = '", "  x", "\ud800"])
def test_what_cannot_be_compiled_is_answered(worker, code):
    answer = worker.run(code)
    assert answer.status == "error"
    assert "belljar" not in answer.traceback and "worker" not in answer.traceback
    assert worker.run("1 + 1").repr == "2"


@pytest.mark.parametrize(
    "name",
    [
        "BaseException", "KeyboardInterrupt", "GeneratorExit", "StopIteration", "StopAsyncIteration", "MemoryError",
        "asyncio.CancelledError", "RecursionError", "EOFError", "BrokenPipeError", "BlockingIOError", "AssertionError",
    ],
)  # fmt: skip
def test_every_exception_is_an_answer(worker, name):
    answer = worker.run(f"import asyncio\nraise {name}('why')")
    assert answer.exception["message"] == "why"
    assert answer.exception["type"].endswith(name.split(".")[-1])
    assert worker.run("1 + 1").repr == "2"


def test_every_exception_of_an_await_is_an_answer(worker):
    for name in ("KeyboardInterrupt", "SystemExit", "asyncio.CancelledError", "GeneratorExit", "KeyError"):
        answer = worker.run(f"import asyncio\nawait asyncio.sleep(0)\nraise {name}('why')")
        assert answer.status == "error", name
    worker.run("await asyncio.sleep(0)\nraise StopIteration")  # an end or an error, by version
    assert worker.run("await asyncio.sleep(0, 3)").repr == "3"


@pytest.mark.parametrize("code", ["exit()", "import sys; sys.exit()", "raise SystemExit(0)", "quit(0)"])
def test_a_clean_exit_is_a_success_and_the_session_lives_on(worker, code):
    worker.good("x = 5")
    assert worker.run(code).frame["exception"] is None
    assert worker.run("x").repr == "5"
    assert worker.run("input()").exception["type"] == "EOFError"


@pytest.mark.parametrize("code, message", [("exit(3)", "3"), ("raise SystemExit('bad')", "bad")])
def test_another_exit_is_an_error(worker, code, message):
    answer = worker.run(code)
    assert (answer.status, answer.exception["type"]) == ("error", "SystemExit")
    assert answer.exception["message"] == message


def test_causes_are_shown(worker):
    answer = worker.run("try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e")
    assert "KeyError: 'a'" in answer.traceback
    assert "The above exception was the direct cause of the following exception:" in answer.traceback
    assert answer.traceback.endswith("ValueError: b\n")


def test_exception_groups_are_shown(worker):
    if minor_version(worker) < 11:
        return
    answer = worker.run("raise ExceptionGroup('many', [ValueError('one'), KeyError('two')])")
    assert "ValueError: one" in answer.traceback and "KeyError: 'two'" in answer.traceback


def test_runaway_recursion_is_answered(worker):
    answer = worker.run("def f(n): return f(n + 1)\nf(0)")
    assert answer.exception["type"] == "RecursionError"
    assert len(answer.traceback) < 5000
    assert worker.run("1 + 1").repr == "2"


def test_running_out_of_memory_is_answered(python):
    with Worker(python) as worker:
        worker.good("import resource; resource.setrlimit(resource.RLIMIT_DATA, (300 << 20, 300 << 20))")
        answer = worker.run("held = []\nwhile True: held.append(bytearray(100_000))")
        assert answer.exception["type"] == "MemoryError"
        assert "<cell 2>" in answer.traceback
        worker.good("held.clear()")
        assert worker.run("1 + 1").repr == "2"


@pytest.mark.parametrize(
    "body",
    [
        "def __str__(self): raise ValueError",
        "def __str__(self): return 5",
        "def __str__(self): raise SystemExit",
        "__traceback__ = property(lambda self: 'nonsense')",
        "__cause__ = property(lambda self: 1/0)",
        "__context__ = property(lambda self: self)",
        "__class__ = int",
        "__notes__ = 5",
        "args = property(lambda self: 1/0)",
        "__suppress_context__ = property(lambda self: 1/0)",
        "def __getattribute__(self, name): raise RuntimeError",
        "def __init_subclass__(cls): raise 1\n  __module__ = 7\n  __hash__ = None",
    ],
)
def test_a_strange_exception_is_answered(worker, body):
    answer = worker.run(f"class Odd(Exception):\n  {body}\nraise Odd('why')")
    assert answer.status == "error"
    assert answer.exception["type"] == "Odd"
    assert "<cell 1>" in answer.traceback
    assert worker.run("1 + 1").repr == "2"


def test_an_exception_that_cannot_be_shown_is_named(worker):
    answer = worker.run("class Odd(Exception):\n  def __str__(self): raise ValueError\nraise Odd")
    assert answer.exception["message"] == "<unprintable Odd object>"


def test_a_long_message_is_cut_and_the_traceback_keeps_its_end(python):
    with Worker(python, max_repr=200) as worker:
        answer = worker.run("class E(Exception): pass\nraise E('m' * 5000 + 'the end')")
        assert answer.exception["message"].endswith("characters cut]")
        assert answer.traceback.startswith("Traceback") and answer.traceback.endswith("the end\n")
        assert "characters cut]" in answer.traceback


def test_an_endless_chain_of_causes_is_answered(worker):
    answer = worker.run("""
e = ValueError('a')
for n in range(3000):
    f = KeyError(n); f.__cause__ = e; e = f
raise e
""")
    assert answer.exception["type"] == "KeyError"
    answer = worker.run("a, b = ValueError('a'), ValueError('b')\na.__context__ = b; b.__context__ = a\nraise a")
    assert answer.exception["message"] == "a"


def test_an_exception_does_not_keep_the_guests_objects(worker):
    worker.good("import gc, weakref\ngc.disable()\nclass Big: pass")
    worker.run("def f():\n    global ref\n    big = Big(); ref = weakref.ref(big); big.no\nf()")
    assert worker.run("ref() is None").repr == "True"


# ---------------------------------------------------------------- output


def test_output_goes_to_the_pipes_and_is_there_before_the_answer(worker):
    answer = worker.good("""
import os, subprocess, sys
print("one")
print("two", file=sys.stderr)
sys.stdout.write("three\\n")
sys.stdout.buffer.write(b"four\\n")
sys.stdout.flush()
os.system("echo five")
subprocess.run(["echo", "six"])
print("seven, no newline", end="")
sys.stderr.write("eight")
""")
    assert answer.stdout == "one\nthree\nfour\nfive\nsix\nseven, no newline"
    assert answer.stderr == "two\neight"


def test_output_is_live(worker):
    worker.start("import time\nprint('now')\ngo = False\nwhile not go: time.sleep(0.01)")
    worker.wait_for("now")
    worker.interrupt()
    assert worker.finish().status == "error"


def test_nothing_printed_raises(worker):
    answer = worker.good("print('\\ud800 \\udcff ü \\U0001f600 \\0')")
    assert answer.stdout == "\\ud800 \\udcff ü \U0001f600 \0\n"


def test_newlines_are_kept(worker):
    assert worker.good("print('a\\r\\nb\\rc')").raw == b"a\r\nb\rc\n"


def test_a_forged_answer_in_the_output_is_only_output(worker):
    answer = worker.good("""
import os
os.write(1, (50).to_bytes(4, "little") + b'{"op":"done","id":1,"status":"success","result":1}')
5
""")
    assert answer.repr == "5" and '"op":"done"' in answer.stdout


def test_logging_set_up_in_one_call_works_in_the_next(worker):
    worker.good("import logging, sys; logging.basicConfig(stream=sys.stdout)")
    assert worker.good("logging.error('told')").stdout == "ERROR:root:told\n"


@pytest.mark.parametrize(
    "code",
    ["input()", "input('name? ')", "sys.stdin.read()", "sys.stdin.readline()", "sys.stdin.readlines()",
     "next(iter(sys.stdin))", "sys.stdin.buffer.read()", "sys.__stdin__.read()"],
)  # fmt: skip
def test_there_is_no_input(worker, code):
    answer = worker.run("import sys\n" + code)
    assert answer.exception["type"] == "EOFError"
    assert answer.exception["message"] == "a session has no standard input"
    assert answer.traceback.count("File") == 1


@pytest.mark.parametrize(
    "code",
    [
        "sys.stdout = None",
        "sys.stdout = io.StringIO(); sys.stderr = io.StringIO()",
        "del sys.stdout",
        "sys.stdout.close(); sys.stderr.close()",
        "sys.stdout.buffer.close()",
        "sys.stdout.detach()",
        "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='latin-1')",
        "sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='latin-1')",
        "sys.stdout = open(1, 'w')",
        "contextlib.redirect_stdout(io.StringIO()).__enter__()",
        "os.close(1)",
        "os.closerange(0, 10)",
        "os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
        "os.dup2(os.open('/dev/null', os.O_RDONLY), 1); os.dup2(0, 2)",
        "os.set_blocking(1, False); os.set_blocking(2, False)",
        "class Odd:\n  def __getattribute__(self, name): raise SystemExit\n  __eq__ = None\nsys.stdout = Odd()",
        "class Odd:\n  write = flush = lambda *_: 1/0\nsys.stdout = sys.stderr = Odd()",
        "sys.stdout.reconfigure(encoding='utf-16', line_buffering=False)\nsys.stdout = None",
        "sys.stdin = None; os.close(0)",
    ],
)
def test_streams_are_restored_for_the_next_call(worker, code):
    worker.run("import contextlib, io, os, sys\n" + code)
    answer = worker.good("import sys\nprint('out'); print('err', file=sys.stderr)\nos.system('echo sub; echo sub >&2')")
    assert answer.stdout.replace("\0", "").replace("\ufffd", "") == "out\nsub\n"
    assert answer.stderr == "err\nsub\n"
    assert worker.run("sys.stdin.read()").exception["type"] == "EOFError"


def test_what_was_written_before_the_stream_was_replaced_is_not_lost(worker):
    answer = worker.good("import io, sys\nsys.stdout.write('kept ')\nsys.stdout = io.StringIO()")
    assert answer.stdout == "kept "
    answer = worker.good("""
sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')
sys.stdout.write('also')
0
""")
    assert answer.stdout == "also"


def test_output_printed_while_descriptor_1_was_closed_comes_after_all(worker):
    assert "kept" in worker.good("import os, sys\nsys.stdout.write('kept')\nos.close(1)").stdout


def test_more_output_than_a_pipe_holds(worker):
    answer = worker.good("for n in range(20000): print('x' * 99)\nprint('y' * 3_000_000)")
    assert len(answer.stdout) == 20000 * 100 + 3_000_001


def test_a_non_blocking_pipe_loses_nothing(worker):
    answer = worker.run("""
import os, sys
os.set_blocking(1, False)
sent = 0
try:
    for n in range(100):
        sys.stdout.write("x" * 60000)
        sent += 1
except BlockingIOError:
    pass
sent
""")
    assert answer.status == "success"
    assert len(worker.good("print('after')").stdout) == len("after\n")


# ---------------------------------------------------------------- descriptors and processes


def test_subprocesses_have_no_descriptor_of_the_worker(worker):
    answer = worker.good("""
import subprocess
subprocess.run(["ls", "/proc/self/fd"], stdout=subprocess.PIPE, close_fds=False).stdout.split()
""")
    assert answer.repr == "[b'0', b'1', b'2', b'3']"  # 3 is ls's own


def test_the_workers_descriptors_are_high(python):
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))  # noqa: E731
    with Worker(python, limits=limit) as worker:
        answer = worker.good("import os; sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-5]")
        assert answer.repr == "[0, 1, 2, 3]"  # 3 is listdir's own
        worker.good("os.closerange(3, 190)")
        assert worker.run("1 + 1").repr == "2"


def test_a_forked_child_that_comes_back_neither_answers_nor_serves(worker):
    answer = worker.good("""
import os
pid = os.fork()
if pid: status = os.waitpid(pid, 0)[1]
else: print("child")
pid and status
""")
    assert (answer.repr, answer.stdout) == ("0", "child\n")
    assert worker.run("1 + 1").repr == "2"


@pytest.mark.parametrize(
    "end, status",
    [("1/0", 1), ("raise SystemExit(7)", 7), ("exit()", 0), ("display('x'); 5", 0), ("raise KeyboardInterrupt", 1)],
)
def test_a_forked_child_ends_as_a_script_would(worker, end, status):
    answer = worker.good(f"import os\npid = os.fork()\nif not pid:\n    {end}\npid and os.waitpid(pid, 0)[1] >> 8")
    assert answer.repr == str(status)
    assert worker.run("1 + 1").repr == "2"


def test_a_child_forked_in_a_repr_does_not_answer(worker):
    answer = worker.good("""
import os
class Odd:
    def __repr__(self):
        pid = os.fork()
        return str(pid and os.waitpid(pid, 0)[1])
Odd()
""")
    assert answer.repr == "0"
    assert worker.run("1 + 1").repr == "2"


def test_a_forked_child_does_not_hold_the_pipes(worker):
    worker.good("import os, time\npid = os.fork()\nif not pid:\n    time.sleep(60)")
    with pytest.raises(Died) as died:
        worker.run("os._exit(5)")
    assert died.value.args[0] == 5


def test_a_lost_control_pipe_ends_the_worker(worker):
    with pytest.raises(Died) as died:
        worker.run("import os; os.closerange(3, 100000)")
    assert died.value.args[0] == LOST


def test_the_worker_ends_with_the_engine_and_closes_files(worker):
    worker.good("import atexit\nf = open('kept', 'w')\nf.write('text')\natexit.register(print, 'bye')")
    worker.requests.close()
    assert worker.process.wait(20 * SLOWER) == 0
    assert worker.out.take() == b"bye\n"
    with open(os.path.join(worker.folder, "kept")) as f:
        assert f.read() == "text"


# ---------------------------------------------------------------- interrupts and signals


def test_an_interrupt_raises_in_guest_code(worker):
    worker.start("import time\ntry:\n    print('in'); time.sleep(60)\nfinally:\n    print('out')")
    worker.wait_for("in")
    worker.interrupt()
    answer = worker.finish()
    assert answer.exception["type"] == "KeyboardInterrupt"
    assert answer.stdout == "in\nout\n"
    assert '"<cell 1>", line 3' in answer.traceback and answer.traceback.count("File") == 1
    assert worker.run("1 + 1").repr == "2"


@pytest.mark.parametrize(
    "code",
    [
        "print('in')\nwhile True: pass",
        "class Odd:\n  def __repr__(self):\n    print('in')\n    while True: pass\nOdd()",
        "class Odd:\n  def _repr_html_(self):\n    print('in')\n    while True: pass\nOdd()",
        "class Odd:\n  def _repr_html_(self):\n    print('in')\n    while True: pass\ndisplay(Odd())",
        "import threading\nprint('in')\nthreading.Event().wait()",
        "import subprocess\nprint('in')\nsubprocess.run(['sleep', '60'])",
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nprint('in')\nwhile True: pass",
        "def g():\n  try:\n    yield 1\n  finally:\n    print('in')\n    while True: pass\nx = g(); next(x); x.close()",
    ],
)
def test_an_interrupt_ends_what_loops(worker, code):
    worker.start(code)
    worker.wait_for("in")
    worker.interrupt()
    answer = worker.finish()
    assert answer.exception["type"] == "KeyboardInterrupt"
    assert worker.run("1 + 1").repr == "2"


def test_an_interrupt_ends_an_exception_that_loops_while_it_is_shown(worker):
    worker.start("class Odd(Exception):\n  def __str__(self):\n    print('in')\n    while True: pass\nraise Odd")
    for _ in range(2):  # once for its message, once for its traceback
        worker.wait_for("in")
        worker.out.take()
        worker.interrupt()
    answer = worker.finish()
    assert answer.exception["type"] == "Odd"
    assert answer.exception["message"] == "<unprintable Odd object>"
    assert worker.run("1 + 1").repr == "2"


def test_a_guest_that_catches_an_interrupt_can_be_interrupted_again(worker):
    worker.start("""
import time
for n in (1, 2):
    try:
        print('in')
        time.sleep(60)
    except KeyboardInterrupt: print('caught', n)
7
""")
    worker.wait_for("in\n")
    worker.interrupt()
    worker.wait_for("caught 1\nin\n", asking=True)
    worker.interrupt()
    assert worker.finish().repr == "7"


def test_an_interrupt_while_a_display_waits_for_the_engine_breaks_no_frame(worker):
    worker.start("print('in')\nwhile True: display('x' * 60000)")
    worker.wait_for("in")
    time.sleep(0.3)  # until the pipe is full; were it not, this would prove less, not fail
    worker.interrupt()
    answer = worker.finish()
    assert answer.exception["type"] == "KeyboardInterrupt"
    assert {len(one["text/plain"]) for one in answer.displays} == {60002}


def test_an_interrupt_between_calls_is_ignored_and_not_kept(worker):
    worker.good("x = 1")
    for _ in range(20):
        worker.interrupt()
    assert worker.run("import time; time.sleep(0.05); 'fine'").repr == "'fine'"


STORM = """
import os, random, signal, sys, time
while True:
    os.kill(int(sys.argv[1]), signal.SIGINT)
    end = time.perf_counter() + random.random() / 5000
    while time.perf_counter() < end: pass
"""
SHOWN = """
class Shown:
    def __repr__(self): return "text"
    def _repr_html_(self): return "<b/>"
Shown()
"""


def test_interrupts_at_any_moment_lose_no_answer(worker):
    """The call ends as it would, or interrupted; the answer comes in any case."""
    kinds = ["1 + 1", "1/0", "print('x' * 1000)", "display('x')", "raise SystemExit", "x = =", SHOWN]
    storm = subprocess.Popen([SYSTEM_PYTHON, "-c", STORM, str(worker.ready["pid"])])
    try:
        seen = collections.Counter()
        for n in range(4000 // SLOWER):
            worker.start(kinds[n % len(kinds)])
            frame = worker.receive()
            while frame["op"] != "done":
                frame = worker.receive()
            seen[frame["exception"] and frame["exception"]["type"]] += 1
    finally:
        storm.kill()
        storm.wait()
    assert seen.keys() == {None, "KeyboardInterrupt", "ZeroDivisionError", "SyntaxError"}
    worker.out.take()
    assert worker.run("1 + 1").repr == "2"


def test_a_guests_interrupt_handler_is_honoured_in_its_calls_only(worker):
    worker.good("import signal, time\nseen = []\nsignal.signal(signal.SIGINT, lambda *_: seen.append(1)) and None")
    worker.interrupt()
    assert worker.run("len(seen)").repr == "0"
    worker.start("print('in')\nwhile not seen: time.sleep(0.01)\n'handled'")
    worker.wait_for("in")
    worker.interrupt()
    assert worker.finish().repr == "'handled'"
    assert worker.run("signal.getsignal(signal.SIGINT).__name__").repr == "'<lambda>'"


def test_an_ignored_interrupt_stays_ignored(worker):
    worker.good("import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN) and None")
    worker.start("print('in'); time.sleep(0.2); 'whole'")
    worker.wait_for("in")
    worker.interrupt()
    assert worker.finish().repr == "'whole'"


def test_other_handlers_stay_and_run_between_calls(worker):
    worker.good("""
import signal
seen = []
signal.signal(signal.SIGUSR1, lambda *_: (seen.append(1), print('got it'))) and None
""")
    os.kill(worker.ready["pid"], signal.SIGUSR1)
    worker.wait_for("got it")
    assert worker.run("len(seen)").repr == "1"
    assert worker.run("signal.raise_signal(signal.SIGUSR1); len(seen)").repr == "2"


def test_a_handler_that_raises_between_calls_costs_nothing(worker):
    worker.good("""
import signal
def handler(*_):
    raise TimeoutError('late')
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
""")
    end = time.monotonic() + 20 * SLOWER
    while b"TimeoutError: late" not in worker.err.data and time.monotonic() < end:
        time.sleep(0.01)
    answer = worker.run("1 + 1")
    assert answer.repr == "2"
    assert "TimeoutError: late" in answer.stderr and "<cell 1>" in answer.stderr


def test_an_alarm_in_a_call_raises_there(worker):
    answer = worker.run("""
import signal, time
def handler(*_): raise TimeoutError('now')
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
time.sleep(60)
""")
    assert answer.exception["type"] == "TimeoutError"


def test_a_storm_of_a_guests_own_alarms_costs_nothing(worker):
    worker.good("""
import signal
def handler(*_): raise TimeoutError
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
""")
    for n in range(200):
        answer = worker.run(("1 + 1", "display('x')")[n % 2])
        assert answer.status == "success" or answer.exception["type"] == "TimeoutError"
        worker.err.take()
    while worker.run("signal.setitimer(signal.ITIMER_REAL, 0)").status != "success":
        pass
    assert worker.run("1 + 1").repr == "2"


def test_a_handler_may_display_while_a_display_is_sent(worker):
    worker.start("""
import signal
count = 0
def handler(*_):
    global count
    count += 1
    if count >= 400: signal.setitimer(signal.ITIMER_REAL, 0)  # or a slow machine never gets out of it
    display("from the handler")
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
while count < 400: display("x" * 300)
""")
    answer = worker.finish()
    assert answer.status == "success"
    assert sum(one["text/plain"] == "'from the handler'" for one in answer.displays) >= 400


# ---------------------------------------------------------------- frames


def test_a_request_of_64_mib(worker):
    answer = worker.run("s = '" + "x" * (64 << 20) + "'\nlen(s)")
    assert answer.repr == str(64 << 20)


def test_non_blocking_pipes_work_in_both_directions(python):
    with Worker(python, nonblocking=True) as worker:
        worker.start("for n in range(40): display('x' * 60000)\n'y' * 60000")
        time.sleep(0.2)  # its writes have to find the pipe full
        answer = worker.finish()
        assert len(answer.displays) == 40 and len(answer.repr) == 60002
        assert worker.run("s = '" + "x" * (4 << 20) + "'\nlen(s)").repr == str(4 << 20)


def test_no_frame_is_larger_than_agreed(python):
    with Worker(python, max_frame=200_000, max_repr=10_000_000, max_images=1000) as worker:
        worker.run("""
class Odd:
    def __repr__(self): return chr(1) * 1_000_000
    def _repr_html_(self): return chr(2) * 1_000_000
    def _repr_png_(self): return b"\\x89PNG\\r\\n\\x1a\\n" + bytes(70_000)
    def _repr_mimebundle_(self, **_): return {"text/x-%d" % n: chr(3) * 1_000_000 for n in range(5)}
display(Odd())
Odd()
""")
        assert 100_000 < worker.largest <= 200_000
        answer = worker.run("raise ValueError(chr(1) * 1_000_000)")
        assert answer.exception["type"] == "ValueError" and worker.largest <= 200_000


def test_a_frame_that_would_still_be_too_large_says_so(python):
    """What is left out is told, which is text too; here everything is as large as it may be."""
    with Worker(python, max_frame=1 << 16, max_repr=1 << 20) as worker:
        code = """
class Odd:
    def __repr__(self): return chr(1) * 1000
    def _repr_mimebundle_(self, **_):
        texts = {"text/%d" % n: chr(1) * 1000 for n in range(7)}
        left_out = {chr(1) * 80 + "/json%d" % n: ["j" * 100_000] for n in range(24)}
        return dict(left_out, **texts, **{"image/svg+xml": "s" * 32_000})
Odd()
"""
        answer = worker.good(code)
        assert worker.largest <= 1 << 16
        assert answer.repr.endswith(" bytes were left out]")
        worker.start(code.replace("\nOdd()", "\ndisplay(Odd())"))
        assert worker.receive()["data"]["text/plain"].endswith(" bytes were left out]")


def test_displays_of_threads_have_the_last_calls_id(worker):
    worker.good("""
import threading
go = threading.Event()
def work():
    go.wait(); display('late')
thread = threading.Thread(target=work); thread.start()
""")
    answer = worker.good("go.set(); thread.join()")
    assert answer.displays == [{"text/plain": "'late'"}]


def test_displays_of_many_threads_do_not_mix(python):
    with Worker(python, nonblocking=True, max_repr=300_000, max_frame=64 << 20) as worker:
        answer = worker.good("""
import threading
def work(n):
    for _ in range(5): display(str(n) * 250_000)  # more than a pipe takes at once
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for t in threads: t.start()
for t in threads: t.join()
""")
        expected = sorted([repr(str(n) * 250_000) for n in range(8)] * 5)
        assert sorted(one["text/plain"] for one in answer.displays) == expected


# ---------------------------------------------------------------- warm start


def test_a_warm_worker_imports_ahead_and_says_what():
    with Worker(warm=["json", "no_such_module", "random", "numpy"]) as worker:
        assert worker.out.take() == b"json random numpy\n"
        assert worker.ready["pid"] != worker.process.pid
        assert worker.run("import sys; 'numpy' in sys.modules").repr == "True"


def test_two_warm_workers_do_not_draw_the_same_numbers():
    drawn = set()
    for _ in range(2):
        with Worker(warm=["random", "numpy"]) as worker:
            drawn |= set(eval(worker.run("import random, numpy; random.random(), float(numpy.random.rand())").repr))
    assert len(drawn) == 4


def test_after_fork_gives_new_numbers_also_without_pythons_own_hook():
    import runpy

    names = runpy.run_path(str(pytest.importorskip("worker_driver").SESSION / "worker.py"), run_name="belljar_worker")
    import random

    random.seed(1)
    expected = random.random()
    random.seed(1)
    names["after_fork"]()
    assert random.random() != expected


def test_frames_are_strict_json(worker):
    worker.start("class Odd:\n  def _repr_json_(self): return {'a': [1.5, None, 'ü']}\nOdd()")
    answer = worker.finish()
    assert json.loads(answer.data["application/json"]) == {"a": [1.5, None, "ü"]}
