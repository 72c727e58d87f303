"""What a guest may do to the process it shares with the worker. After each, the next call answers, or the worker
has ended, which the engine sees and makes good; it never hangs, and never answers wrongly."""

from __future__ import annotations

import pytest
from worker_driver import LOST, SYSTEM_PYTHON, Died, Worker

# Each is one call; then 1 + 1 must be 2.
SURVIVED = {
    "builtins are patched": """
import builtins
for name in ("print", "open", "len", "isinstance", "issubclass", "__import__", "compile", "eval", "exec", "repr",
             "str", "dict", "type", "callable", "range", "getattr", "setattr", "vars", "hash", "max", "min", "sum",
             "map", "list", "enumerate", "next", "iter", "id", "memoryview", "bytearray", "any", "reversed"):
    setattr(builtins, name, None)
""",
    "builtins are emptied": "import builtins; vars(builtins).clear()",
    "builtins raise": """
import builtins
def boom(*a, **k): raise SystemExit
for name in list(vars(builtins)):
    if callable(getattr(builtins, name)) and not name.startswith("__"): setattr(builtins, name, boom)
""",
    "sys.modules is cleared": "import sys; sys.modules.clear()",
    "sys.modules is replaced": "import sys; sys.modules = {}",
    "sys.modules is nothing": "import sys; sys.modules = None",
    "modules are replaced": """
import sys
for name in ("json", "os", "sys", "io", "traceback", "linecache", "signal", "select", "builtins", "types", "asyncio"):
    sys.modules[name] = None
""",
    "modules are patched": """
import io, json, linecache, os, select, signal, struct, sys, traceback
for module in (io, json, linecache, os, select, signal, struct, traceback):
    for name in list(vars(module)):
        if not name.startswith("__"): setattr(module, name, None)
""",
    "the os module raises": """
import os, posix
def boom(*a, **k): raise KeyboardInterrupt
for module in (os, posix):
    for name in list(vars(module)):
        if callable(getattr(module, name)) and not name.startswith("__"): setattr(module, name, boom)
""",
    "the guest's globals are cleared": "globals().clear()",
    "the guest's builtins are nothing": "__builtins__ = None",
    "main is replaced": "import sys; sys.modules['__main__'] = sys",
    "streams and hooks are nothing": """
import sys
sys.stdout = sys.stderr = sys.stdin = sys.excepthook = sys.displayhook = sys.unraisablehook = None
sys.__stdout__ = sys.__stderr__ = sys.path = sys.meta_path = sys.path_hooks = sys.argv = None
""",
    "sys is emptied": "import sys; vars(sys).clear()",
    "a tiny recursion limit": """
import sys
for limit in range(1, 100):
    try: sys.setrecursionlimit(limit)
    except RecursionError: continue
    break
""",
    "a huge recursion limit": "import sys; sys.setrecursionlimit(2**31 - 1)",
    "a tracer that raises": "import sys\ndef trace(*a): raise ValueError\nsys.settrace(trace)",
    "a tracer that traces all": "import sys\ndef trace(*a): return trace\nsys.settrace(trace)",
    "a tracer that raises later": """
import sys
count = 0
def trace(frame, *a):
    global count
    count += 1
    if count > 3: raise KeyboardInterrupt
    return trace
sys.settrace(trace)
""",
    "a profiler that raises": """
import sys
def prof(frame, event, arg):
    if event == 'call': raise ValueError
sys.setprofile(prof)
""",
    "a profiler that raises at C calls": """
import sys
calls = 0
def prof(frame, event, arg):
    global calls
    calls += event == 'c_call'
    if calls > 2: raise SystemExit
sys.setprofile(prof)
""",
    "hooks for threads": """
import threading
threading.settrace(lambda *a: 1/0); threading.setprofile(lambda *a: 1/0); threading.excepthook = None
thread = threading.Thread(target=print); thread.start(); thread.join()
""",
    "monitoring that watches all": """
import sys
if hasattr(sys, "monitoring"):
    m, seen = sys.monitoring, []
    m.use_tool_id(3, "odd")
    m.register_callback(3, m.events.LINE, lambda *a: seen.append(a))
    m.set_events(3, m.events.LINE)
""",
    "no collector, no switching": "import gc, sys; gc.disable(); gc.set_threshold(0); sys.setswitchinterval(1000)",
    "a collector's callback that raises": "import gc; gc.callbacks.append(lambda *a: 1/0); gc.set_threshold(1)",
    "warnings are errors": "import warnings; warnings.simplefilter('error'); warnings.showwarning = None",
    "the locale is changed": """
import locale
for n in ('C', 'POSIX', 'C.UTF-8'):
    locale.setlocale(locale.LC_ALL, n)
""",
    "the workdir is deleted": "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
    "the environment is emptied": "import os; os.environ.clear(); os.environ = None",
    "exit handlers": "import atexit\n@atexit.register\ndef boom(): raise SystemExit(3)",
    "descriptors 0 to 9 are closed": "import os; os.closerange(0, 10)",
    "descriptors are replaced": "import os\nfor n in range(10): os.dup2(os.open('/dev/null', os.O_RDWR), n)",
    "stdout is a full disk": "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1); print('x' * 100000)",
    "stdout is a closed pipe": "import os\nr, w = os.pipe(); os.close(r); os.dup2(w, 1); print('x' * 100000)",
    "all descriptors are in use": """
import os
try:
    while True: os.dup(0)
except OSError: pass
""",
    "no file may be opened": "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
    "no process may be made": "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))",
    "a handler for every signal": """
import signal
def boom(*a): raise SystemExit
for number in range(1, 65):
    try: signal.signal(number, boom)
    except (OSError, ValueError): pass
""",
    "every signal is blocked": "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))",
    "a wake-up descriptor": """
import os, signal
r, w = os.pipe(); os.set_blocking(w, False); signal.set_wakeup_fd(w); signal.raise_signal(signal.SIGINT)
""",
    "the main thread is interrupted by another": """
import _thread, threading
for _ in range(50): threading.Timer(0.001, _thread.interrupt_main).start()
""",
    "threads that print go on": """
import threading, time
def work():
    for _ in range(200): print("x" * 100); time.sleep(0.001)
for _ in range(4): threading.Thread(target=work, daemon=True).start()
""",
    "a thread that spins": """
import threading
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
""",
    "a __del__ that raises at the next call": "class D:\n    def __del__(self): raise SystemExit\nd = D()\n_ = d",
    "the last result cannot be let go": """
class D:
    def __del__(self): raise KeyboardInterrupt
    def __eq__(self, other): raise SystemExit
D()
""",
    "a decoder is replaced": """
import codecs
codecs.register_error("replace", lambda e: 1/0); codecs.register_error("backslashreplace", lambda e: 1/0)
print("\\ud800")
""",
    "an encoding is lost": "import encodings; encodings._cache.clear(); encodings.utf_8 = encodings.aliases = None",
    "exceptions are patched": """
import builtins, traceback
builtins.BaseException = builtins.Exception = builtins.KeyboardInterrupt = builtins.SystemExit = int
traceback.TracebackException.format = traceback.TracebackException.__init__ = None
raise ValueError("x")
""",
    "the line cache is nonsense": """
import linecache
linecache.cache = None
linecache.getline = linecache.getlines = None
1/0
""",
    "display is replaced": "import builtins; builtins.display = None; del builtins.display",
    "the import hook is gone": "import sys; sys.meta_path.clear(); sys.path_importer_cache.clear()",
    "the event loop is broken": """
import asyncio
loop = asyncio.new_event_loop(); loop.close()
asyncio.set_event_loop(loop)
asyncio.new_event_loop = asyncio.get_event_loop = None
asyncio.events._set_running_loop(loop)
""",
    "a coroutine is left running": """
import asyncio
async def forever():
    while True:
        try: await asyncio.sleep(0.001)
        except BaseException: pass
asyncio.ensure_future(forever()) and await asyncio.sleep(0.01)
""",
    "numbers may have no digits": "import sys\ngetattr(sys, 'set_int_max_str_digits', int)(640)\n10 ** 5000",
    "deep frames are kept": """
import sys
kept = []
def deep(n):
    if n: return deep(n - 1)
    kept.append(sys._getframe()); raise ValueError
deep(900)
""",
    "a str is the exit code": """
class S(str):
    def __eq__(self, o): raise 1
    __len__ = __str__ = None
raise SystemExit(S('x'))
""",
    "an int is the exit code": """
class I(int):
    def __eq__(self, o): raise 1
    __bool__ = __int__ = None
raise SystemExit(I(0))
""",
    "an exception of a strange class": """
class M(type):
    def __instancecheck__(c, o): raise SystemExit
    def __subclasscheck__(c, o): raise SystemExit
    def __getattribute__(c, n): raise SystemExit
class E(BaseException, metaclass=M):
    def __init__(self, *a): pass
raise E
""",
    "an exception that is its own context": "e = ValueError(); e.__cause__ = e\nraise e",
    "a result that lies about its class": """
class Liar:
    __class__ = property(lambda self: str)
    def __getattribute__(self, name): raise KeyboardInterrupt if name == "never" else AttributeError
Liar()
""",
    "a result of a strange class": """
class M(type):
    def __getattribute__(c, n): raise SystemExit
class C(metaclass=M): pass
C()
""",
    "mocks": "from unittest.mock import MagicMock; MagicMock()",
    "an alarm that is still to come": """
import signal
def boom(*a): raise SystemExit
signal.signal(signal.SIGALRM, boom); signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
""",
    "code that is very long": "x = 0\n" + "x += 1\n" * 20000,
    "code that nests": "(" * 90 + "1" + ")" * 90,
    "a file named as the worker's modules are": """
import sys
for name in ("asyncio", "traceback", "json", "io"):
    with open(name + ".py", "w") as f: f.write("raise SystemExit")
    sys.modules.pop(name, None)
raise ValueError
""",
}

# Each of these ends the worker, with this status where it is ours to choose.
ENDED = {
    "it exits": ("import os; os._exit(3)", 3),
    "it kills itself": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9),
    "it crashes": ("import ctypes; ctypes.string_at(0)", -11),
    "it aborts": ("import os; os.abort()", -6),
    "all descriptors are closed": ("import os; os.closerange(0, 1 << 16)", LOST),
    "the pipes are another's": ("""
import os
null = os.open("/dev/null", os.O_RDWR)
for n in map(int, os.listdir("/proc/self/fd")):
    if n > 9: os.dup2(null, n)
""", None),
    "the requests have an end": ("""
import fcntl, os
read, write = os.pipe()
os.close(write)
for n in map(int, os.listdir("/proc/self/fd")):
    if n > 9 and fcntl.fcntl(n, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY and n != read: os.dup2(read, n)
""", None),
}  # fmt: skip


def test_there_are_enough_cases():
    assert len(SURVIVED) + len(ENDED) >= 40


@pytest.mark.parametrize("code", SURVIVED.values(), ids=SURVIVED.keys())
def test_survived(worker, code):
    worker.run(code)
    answer = worker.run("1 + 1")
    if "setitimer" in code:  # the guest's own alarm may be what a call comes to
        while answer.repr != "2":
            answer = worker.run("1 + 1")
    assert answer.repr == "2", answer.frame
    if "setitimer" not in code:
        assert worker.run("1/0").exception["type"] == "ZeroDivisionError"


@pytest.mark.parametrize("code, status", ENDED.values(), ids=ENDED.keys())
def test_ended(worker, code, status):
    with pytest.raises(Died) as died:
        worker.run(code)
        worker.run("1 + 1")
    assert status is None or died.value.args[0] == status


def test_a_tracer_sees_nothing_of_the_answer(worker):
    worker.good("import sys\ndef trace(*a): raise ValueError\nsys.settrace(trace)")
    worker.good("count = 0\ndef prof(*a):\n    global count; count += 1\nsys.setprofile(prof)")
    before = worker.run("count").repr
    assert (worker.run("count").repr, worker.run("sys.getprofile()").repr) == (before, None)


def test_monitoring_that_raises_in_every_line_ends_the_worker(worker):
    code = """
import sys
m = sys.monitoring
m.use_tool_id(3, "odd")
def boom(*a): raise ValueError
m.register_callback(3, m.events.LINE, boom)
m.set_events(3, m.events.LINE)
"""
    if int(worker.ready["python"].split(".")[1]) >= 12:
        with pytest.raises(Died):
            worker.run(code)


def test_an_audit_hook_refuses_but_does_not_end(worker):
    worker.run("""
import sys
def hook(event, args):
    if event == 'compile': raise ValueError('refused')
sys.addaudithook(hook)
""")
    assert worker.run("1 + 1").exception["message"] == "refused"


def test_memory_that_stays_full_is_answered(python):
    with Worker(python) as worker:
        worker.good("import resource; resource.setrlimit(resource.RLIMIT_DATA, (200 << 20, 200 << 20))")
        filling = """
held = []
size = 1 << 20
while size > 64:
    try:
        while True: held.append(bytes(size))
    except MemoryError: size //= 2
"""
        try:
            worker.run(filling)
            for _ in range(3):
                worker.run("[0] * 100000")
            worker.run("held = None")
            assert worker.run("1 + 1").repr == "2"
        except Died as died:
            assert died.args[0] == LOST


def test_ten_thousand_calls_do_not_grow():
    with Worker(SYSTEM_PYTHON) as worker:
        size = "int(open('/proc/self/statm').read().split()[1]) * 4096"
        for n in range(500):
            worker.run(f"{n} + 1\n1/0")
        before = int(worker.run(size).repr)
        for n in range(10000):
            worker.start(f"{n} + 1")
            worker.receive()
        assert int(worker.run(size).repr) - before < 16 << 20
