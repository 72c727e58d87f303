"""The hostile list: ways of Python and bash to break the protocol, the engine or another session.

Each attack runs in a session of its own, beside one that works on. Whatever it does, the engine
answers within the call's time, keeps its memory, and does the other's calls meanwhile; and the
attacker's next call works or says why.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import threading
import time

import pytest

from boxes import engines, plain, plain_box  # noqa: F401
from engine import SLOWER, Engine, Refused

TIME_MS = 600 * SLOWER  # of an attack
SOON = 5 * SLOWER
MEMORY_KB = 250_000  # that the engine may need for one attacker, at the most
LATENCY = 2 * SLOWER  # of a call of the other's, at the most, on a machine that has other work too
LONG = os.environ.get("BELLJAR_LONG") == "1"
FLOOD = 10_000_000_000 if LONG else 2_000_000_000


# Every caller and every policy that could matter, but not each with each: the list is long.
PAIRS = (("user", "developer"), ("root", "public-bot"))


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request):
    return request.param


@pytest.fixture
def engine(engines, everyone, pair):
    who, profile = pair
    if who not in everyone:
        pytest.skip(f"needs to be started by root to be {who}")
    return engines.get(everyone[who], profile, settings={"grace": 400 * SLOWER})


# ---------------------------------------------------------------- the frame of an attack


class Witness:
    """Another session, whose calls go on while somebody attacks."""

    def __init__(self, engine: Engine):
        self.box = engine.box()
        self.box.python("n = 0")
        self.calls, self.slowest, self.memory_kb = 0, 0.0, 0
        self.failures: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._before_kb = engine.memory_kb()
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.03):
                call = self.box.send_python("n += 1\nn")
                answer = call.wait()
                self.calls += 1
                if answer.result != str(self.calls) or answer.notes or answer.stdout or answer.stderr:
                    self.failures.append(str(answer))
                self.slowest = max(self.slowest, call.seconds)
                self.memory_kb = max(self.memory_kb, self.box.engine.memory_kb() - self._before_kb)
        except Exception as error:  # shown by the test
            self.failures.append(repr(error))

    def end(self) -> None:
        while self.calls < 3 and not self.failures and self._thread.is_alive():
            time.sleep(0.01)
        self._stop.set()
        self._thread.join()
        self.box.close()


@dataclasses.dataclass
class Attack:
    name: str
    code: str
    before: str = "pass"  # another call, first
    time_ms: int = TIME_MS
    once: bool = False  # neither policy nor caller matters to it


def cases(attacks: list[Attack]) -> list:
    """Each with the first pair, and with the others where they could matter."""
    return [
        pytest.param(pair, attack, id=f"{'-'.join(pair)}-{attack.name}")
        for pair in PAIRS
        for attack in attacks
        if pair == PAIRS[0] or not attack.once
    ]


def endure(engine: Engine, attack: Attack, send, next_call, heal) -> None:
    box = engine.box()
    witness = Witness(engine)
    try:
        call = send(box, attack)
        try:
            call.wait((attack.time_ms / 1000 + 2) * SLOWER + SOON)
        except Refused as refused:
            assert str(refused)
        assert call.seconds < attack.time_ms / 1000 + SOON
        # What it did to its own interpreter or shell may last, and then is said; not longer than that.
        try:
            next_call(box)
        except Refused as refused:
            assert str(refused)
        end = time.monotonic() + 2 * SOON
        while True:  # what it left running may have its way for a while
            try:
                heal(box)
                break
            except Refused as refused:
                assert str(refused) and time.monotonic() < end, refused
    finally:
        witness.end()
        box.close()
    assert engine.alive, engine.epitaph()
    assert witness.failures == [] and witness.calls >= 3
    assert witness.slowest < LATENCY, f"another session waited {witness.slowest:.2f} s"
    assert witness.memory_kb < MEMORY_KB, f"the engine needed {witness.memory_kb} kB more"


# ---------------------------------------------------------------- Python

# What a guest needs to speak for the worker.
TOOLS = """
import os, sys, json, socket, threading, time, signal, gc, ctypes, builtins, subprocess, fcntl, resource
def inode(fd):
    try: return os.fstat(fd).st_ino
    except OSError: return None
def control_fd(mode=os.O_WRONLY):  # of its answers, or requests
    for fd in sorted(map(int, os.listdir('/proc/self/fd'))):
        try:
            is_pipe = os.readlink('/proc/self/fd/%d' % fd).startswith('pipe:')
            if is_pipe and inode(fd) not in (inode(1), inode(2)) and fcntl.fcntl(fd, fcntl.F_GETFL) & 3 == mode: return fd
        except OSError: pass
def frame(payload):
    if not isinstance(payload, bytes): payload = json.dumps(payload).encode()
    return len(payload).to_bytes(4, 'little') + payload
def send(data):
    view = memoryview(data)
    while view: view = view[os.write(control_fd(), view):]
def forged(n, **more):
    return frame(dict(dict(op='done', id=n, status='success', result=dict(repr='forged', type='x', data={}), exception=None), **more))
"""
N = 3  # the number of the attack's call: tools, before, attack

# Keys that fall into one bucket of the engine's JSON parser, whatever its salt: FNV-1a of bytes below
# 16 touches only low bits that are known, and the table has as many buckets as there are keys.
COLLIDE = """
import itertools
count = 1 << 16
prime, back = 435, pow(435, -1, count)
ends = {0: ()}
for _ in range(5):
    further = {}
    for state, end in ends.items():
        before = state * back & count - 1
        for byte in range(16): further.setdefault(before ^ byte, (byte,) + end)
    ends = further
keys = []
for begin in itertools.product(range(16), repeat=5):
    state = 5
    for byte in begin: state = (byte ^ state) * prime & count - 1
    if state in ends: keys.append(''.join('\\\\u%04x' % byte for byte in begin + ends[state]))
    if len(keys) == count: break
body = ('{' + ','.join('"%s":0' % key for key in keys) + '}').encode()
"""
# Twenty processes with as many mappings as the kernel lets them have, and an address space that changes.
MAPPINGS = """
import mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
def area(size): return libc.mmap(None, ctypes.c_size_t(size), 0, 0x4022, -1, 0)
for _ in range(20):
    if os.fork() == 0:
        begin = area(140_000 * 4096)
        for page in range(0, 128_000, 2): libc.mprotect(ctypes.c_void_p(begin + page * 4096), 4096, 1)
        while True: time.sleep(1)
while True:
    large = area(1 << 40)
    time.sleep(0.06)
    libc.munmap(ctypes.c_void_p(large), ctypes.c_size_t(1 << 40))
    time.sleep(0.06)
"""
SIBLING = """
clone = 56 if os.uname().machine == 'x86_64' else 220
if ctypes.CDLL(None).syscall(clone, 0x8000 | 17, 0, 0, 0, 0) == 0: os._exit(0)  # CLONE_PARENT
"""


PYTHON = [
    # -- frames
    Attack("done-with-its-own-id", f"send(forged({N}))\n1", once=True),
    Attack("done-with-another-id", "send(forged(1) + forged(99) + forged(0) + forged(-1) + forged(2**63))\n1", once=True),
    Attack("done-for-calls-to-come", "for n in range(1, 1000): send(forged(n))", once=True),
    Attack("done-after-the-answer", f"def late():\n    time.sleep(0.1); send(forged({N}) + forged({N} + 1))\nthreading.Thread(target=late).start()", once=True),
    Attack("done-in-a-thread-for-ever", "def lie():\n    n = 0\n    while True:\n        n += 1; send(forged(n % 10)); time.sleep(0.001)\nthreading.Thread(target=lie, daemon=True).start()", once=True),
    Attack("done-with-wrong-types", f"send(frame(dict(op='done', id={N}, status=7, result=[1], exception='x')))", once=True),
    Attack("done-with-nested-fields", f"send(frame(dict(op='done', id={N}, status='error', exception=dict(type=dict(), message=[[]], traceback=5), result=dict(repr=None, type=3, data=[]))))", once=True),
    Attack("done-with-a-huge-text", f"send(forged({N}, exception=dict(type='x', message='y' * 15_000_000, traceback='')))", once=True),
    Attack("ready-again-and-again", "for _ in range(1000): send(frame(dict(op='ready', python=5)))", once=True),
    Attack("unknown-ops", "for op in ('execute', 'setup', '', None, [], 'x' * 1000): send(frame(dict(op=op)))", once=True),
    Attack("empty-frames", "send(b'\\0\\0\\0\\0' * 100_000)", once=True),
    Attack("no-objects", "for text in (b'[]', b'1', b'null', b'\"x\"', b'{', b'{}', b'\\xff\\xfe', b'\\0'): send(frame(text))", once=True),
    Attack("binary", "for _ in range(50): send(frame(os.urandom(100_000)))", once=True),
    Attack("bytes-out-of-frame", "os.write(control_fd(), os.urandom(7))", once=True),
    Attack("deep-json", "send(frame(b'[' * 5_000_000))\nsend(frame(b'{\"a\":' * 1_000_000))", once=True),
    Attack("deep-json-in-a-display", f"send(frame(b'{{\"op\":\"display\",\"id\":{N},\"data\":{{\"a\":' + b'[' * 30 + b']' * 30 + b'}}}}'))", once=True),
    Attack("largest-length", "os.write(control_fd(), b'\\xff\\xff\\xff\\xff')", once=True),
    Attack("one-byte-too-long", "os.write(control_fd(), ((16 << 20) + 1).to_bytes(4, 'little'))", once=True),
    Attack("length-without-bytes", "os.write(control_fd(), (16 << 20).to_bytes(4, 'little'))", once=True),
    Attack("half-a-header", "os.write(control_fd(), b'\\x10')", once=True),
    Attack("flood-of-frames", "data = frame(dict(op='display', id=1, data={})) * 1000\nwhile True: send(data)", once=True),
    Attack("flood-of-large-frames", "data = frame(b'[' + b'0,' * 8_000_000 + b'0]')\nwhile True: send(data)", once=True),
    Attack("flood-of-displays", f"data = frame(dict(op='display', id={N}, data={{'text/plain': 'x' * 100_000}}))\nwhile True: send(data)", once=True),
    Attack("empty-video-frames", f"data = frame(dict(op='display', id={N}, video_frames=[''] * 4_000_000))\nwhile True: send(data)", once=True),
    Attack("display-with-many-keys", f"data = frame(dict(op='display', id={N}, data={{str(i): '' for i in range(1_000_000)}}))\nwhile True: send(data)", once=True),
    Attack("keys-of-one-hash", COLLIDE + "data = frame(body)\nwhile True: send(data)", time_ms=4000 * SLOWER, once=True),
    Attack("a-child-of-the-workers-parent", SIBLING, once=True),
    Attack("more-mappings-than-can-be-counted", MAPPINGS, time_ms=4000 * SLOWER),
    Attack("same-key-again-and-again", f"send(frame(b'{{\"op\":\"display\",\"id\":{N},' + b'\"data\":{{}},' * 1_000_000 + b'\"x\":1}}'))", once=True),
    Attack("images-that-are-none", f"send(frame(dict(op='display', id={N}, data={{'image/png': '<not base64>\\0'}})))", once=True),
    # -- the pipes
    Attack("close-control", "os.close(control_fd())\ntime.sleep(60)"),
    Attack("close-requests", "os.close(control_fd(os.O_RDONLY))\ntime.sleep(60)"),
    Attack("request-of-its-own", "fd = os.open('/proc/self/fd/%d' % control_fd(os.O_RDONLY), os.O_WRONLY)\nos.write(fd, frame(dict(op='execute', id=99, code='os._exit(3)')))"),
    Attack("half-a-request-of-its-own", "fd = os.open('/proc/self/fd/%d' % control_fd(os.O_RDONLY), os.O_WRONLY)\nos.write(fd, b'\\xff\\xff')"),
    Attack("fill-the-requests", "fd = os.open('/proc/self/fd/%d' % control_fd(os.O_RDONLY), os.O_WRONLY | os.O_NONBLOCK)\nwhile True: os.write(fd, bytes(4096))"),
    Attack("read-its-own-answers", "fd = os.open('/proc/self/fd/%d' % control_fd(), os.O_RDONLY)\ndef steal():\n    while True: os.read(fd, 1)\nthreading.Thread(target=steal, daemon=True).start()"),
    Attack("output-over-control", "os.dup2(1, control_fd() or 0) if False else os.dup2(control_fd(), 1)\nprint('x' * 1000, flush=True)"),
    Attack("control-over-output", "fd = control_fd()\nos.dup2(1, fd)"),
    Attack("steal-a-request", "def steal():\n    while True: os.read(control_fd(os.O_RDONLY), 1)\nthreading.Thread(target=steal, daemon=True).start()"),
    Attack("the-smallest-control-pipes", "for mode in (os.O_RDONLY, os.O_WRONLY): fcntl.fcntl(control_fd(mode), 1031, 4096)\n'x' * 1_000_000"),
    Attack("non-blocking", "for fd in range(5000):\n    try: os.set_blocking(fd, False)\n    except OSError: pass"),
    Attack("a-raw-fork-speaks", f"libc = ctypes.CDLL(None)\nif libc.syscall(57 if os.uname().machine == 'x86_64' else 220, 17, 0, 0, 0, 0) == 0:\n    for _ in range(100): send(forged({N}))\n    os._exit(0)"),
    # -- output
    Attack("flood-of-output", f"data = b'x' * (1 << 20)\nfor _ in range({FLOOD} >> 20): os.write(1, data)\n'all of it'", time_ms=60_000, once=True),
    Attack("flood-of-both-streams", "data = b'x' * (1 << 16)\nwhile True: os.write(1, data); os.write(2, data)"),
    Attack("flood-after-the-answer", "for _ in range(3): subprocess.Popen(['yes'])"),
    Attack("flood-of-newlines", "subprocess.run('yes \"\" | head -c 200M', shell=True)"),
    Attack("binary-output", "for _ in range(100): os.write(1, os.urandom(100_000))"),
    Attack("escape-sequences", "os.write(1, b'\\x1b]0;title\\x07\\x1b[2J' * 1000 + b'\\0' * 1000)"),
    Attack("threads-that-print", "def talk():\n    while True: print('x' * 100)\nfor _ in range(20): threading.Thread(target=talk, daemon=True).start()"),
    Attack("read-its-own-output", "fd = os.open('/proc/self/fd/1', os.O_RDONLY)\nprint('stolen', flush=True)\nos.read(fd, 100)"),
    Attack("the-smallest-pipe", "fcntl.fcntl(1, 1031, 4096); fcntl.fcntl(2, 1031, 4096)\nprint('x' * 1_000_000)"),
    Attack("streams-that-raise", "class Bad:\n    def __getattr__(self, name): raise SystemExit(3)\nsys.stdout = sys.stderr = sys.__stdout__ = sys.stdin = Bad()"),
    Attack("streams-that-loop", "class Bad:\n    closed = False\n    def flush(self):\n        while True: pass\n    write = flush\nsys.stdout = sys.stderr = Bad()"),
    # -- signals and processes
    Attack("stop-itself-always", "me = os.getpid()\nif os.fork() == 0:\n    while True:\n        try: os.kill(me, signal.SIGSTOP)\n        except OSError: os._exit(0)\ntime.sleep(60)"),
    Attack("stop-and-continue-always", "me = os.getpid()\nif os.fork() == 0:\n    while True:\n        try: os.kill(me, signal.SIGSTOP); os.kill(me, signal.SIGCONT)\n        except OSError: os._exit(0)\ntime.sleep(0.5)"),
    Attack("stop-everything-always", "if os.fork() == 0:\n    while True: os.kill(-1, signal.SIGSTOP)\ntime.sleep(60)", time_ms=3000),
    Attack("kill-everything", "os.kill(-1, signal.SIGKILL)\nos.kill(os.getpid(), signal.SIGKILL)"),
    Attack("kill-its-group", "os.kill(0, signal.SIGKILL)"),
    Attack("kill-init", "for s in range(1, 65):\n    try: os.kill(1, s)\n    except OSError: pass"),
    Attack("kill-what-starts", "if os.fork() == 0:\n    os.setsid()\n    me, init = os.getpid(), 1\n    end = time.time() + 4\n    while time.time() < end:\n        for name in os.listdir('/proc'):\n            if name.isdigit() and int(name) not in (me, init):\n                try: os.kill(int(name), signal.SIGKILL)\n                except OSError: pass\n    os._exit(0)\ntime.sleep(60)", time_ms=3000),
    Attack("leave-the-group", "os.setpgid(0, 0) if os.getpgrp() != os.getpid() else os.setpgid(0, os.getppid()) if False else None\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"),
    Attack("storm-of-alarms", "signal.signal(signal.SIGALRM, lambda *_: 1 / 0)\nsignal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)"),
    Attack("interrupts-ignored-by-all", "for s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: pass"),
    Attack("signals-blocked", "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass"),
    Attack("interrupt-handler-that-loops", "def loop(*_):\n    while True: pass\nsignal.signal(signal.SIGINT, loop)\nwhile True: pass"),
    Attack("a-session-of-its-own", "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        while True: time.sleep(1)\n    os._exit(0)\nos._exit(0)"),
    Attack("many-orphans", "for _ in range(30):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(60)\n        os._exit(0)\nos._exit(1)"),
    Attack("be-another-program", "os.execvp('sleep', ['sleep', '60'])"),
    Attack("be-another-program-with-the-pipes", "os.set_inheritable(control_fd(), True)\nos.execvp('sleep', ['sleep', '60'])"),
    Attack("a-child-keeps-the-pipes", "os.set_inheritable(control_fd(), True)\nsubprocess.Popen(['sleep', '60'], close_fds=False)\nos._exit(3)"),
    # -- the interpreter
    Attack("no-modules", "sys.modules.clear()", once=True),
    Attack("modules-of-nothing", "for name in list(sys.modules): sys.modules[name] = None", once=True),
    Attack("tracer-that-raises", "def trace(*_): raise KeyError('traced')\nsys.settrace(trace); threading.settrace(trace)", once=True),
    Attack("profiler-that-raises", "def profile(*_): raise SystemExit('profiled')\nsys.setprofile(profile)", once=True),
    Attack("tracer-that-loops", "def trace(*_):\n    while True: pass\nsys.settrace(trace)\n(lambda: 1)()", once=True),
    Attack("gc-that-raises", "gc.callbacks.append(lambda *_: 1 / 0)\ngc.set_threshold(1)", once=True),
    Attack("gc-that-breaks-the-worker", "for thing in gc.get_objects():\n    if type(thing).__name__ == 'Worker':\n        for name in list(vars(thing)): setattr(thing, name, None)", once=True),
    Attack("gc-that-takes-the-lock", "for thing in gc.get_objects():\n    if type(thing).__name__ == 'Worker': thing.lock.acquire()", once=True),
    Attack("frames-that-are-rewritten", "f = sys._getframe()\nwhile f:\n    for name in list(f.f_globals):\n        if not name.startswith('__'): f.f_globals[name] = None\n    f = f.f_back", once=True),
    Attack("atexit-that-hangs", "import atexit\natexit.register(time.sleep, 1000)\nsys.exit()", once=True),
    Attack("builtins-of-nothing", "for name in list(vars(builtins)):\n    if name not in ('__build_class__', '__name__', 'list', 'vars'): setattr(builtins, name, None)", once=True),
    Attack("builtins-that-raise", "def bad(*_, **__): raise SystemExit(4)\nfor name in ('print', 'open', 'len', 'repr', 'str', 'compile', 'exec', 'eval', 'isinstance', '__import__', 'type'): setattr(builtins, name, bad)", once=True),
    Attack("import-that-loops", "def bad(*_, **__):\n    while True: pass\nbuiltins.__import__ = bad\nimport json", once=True),
    Attack("audit-hook-that-raises", "sys.addaudithook(lambda *_: 1 / 0)", once=True),
    Attack("excepthook-and-displayhook", "sys.excepthook = sys.displayhook = sys.unraisablehook = threading.excepthook = lambda *_: os._exit(9)\n1 / 0", once=True),
    Attack("recursion", "sys.setrecursionlimit(10**9)\ndef f(): return f()\nf()", once=True),
    Attack("no-recursion", "sys.setrecursionlimit(60)", once=True),
    Attack("no-descriptors", "resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))", once=True),
    Attack("all-descriptors", "while True: os.open('/dev/null', 0)", once=True),
    Attack("no-memory", "resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))\nx = bytearray(10_000_000)", once=True),
    Attack("cpu-limit-of-its-own", "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass", time_ms=4000, once=True),
    Attack("no-environment-and-no-folder", "os.environ.clear()\nos.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')", once=True),
    Attack("memory-of-zeros", "ctypes.memset(id(sys), 0, 64)", once=True),
    Attack("main-module-replaced", "sys.modules['__main__'] = None\nglobals().clear()", once=True),
    Attack("event-loop-that-never-ends", "import asyncio\nasync def f():\n    while True:\n        try: await asyncio.sleep(0.01)\n        except BaseException: pass\nawait f()", once=True),
    # -- values and exceptions
    Attack("huge-repr", "class Big:\n    def __repr__(self): return 'x' * 300_000_000\nBig()", time_ms=5000, once=True),
    Attack("huge-value", "'\\0' * 100_000_000", time_ms=5000, once=True),
    Attack("repr-that-raises", "class Bad:\n    def __repr__(self): raise SystemExit(5)\nBad()", once=True),
    Attack("repr-that-loops", "class Bad:\n    def __repr__(self):\n        while True: pass\nBad()", once=True),
    Attack("repr-that-is-no-text", "class Bad:\n    def __repr__(self): return 5\nBad()", once=True),
    Attack("repr-that-exits", "class Bad:\n    def __repr__(self): os._exit(6)\nBad()", once=True),
    Attack("repr-that-recurses", "class Bad:\n    def __repr__(self): return repr(self)\nBad()", once=True),
    Attack("repr-of-surrogates", "class Bad:\n    def __repr__(self): return '\\ud800\\udfff\\x00' * 100_000\nBad()", once=True),
    Attack("attributes-that-loop", "class Bad:\n    def __getattr__(self, name):\n        while True: pass\nBad()", once=True),
    Attack("type-that-lies", "class Meta(type):\n    __name__ = property(lambda self: 1 / 0)\n    def __repr__(self): raise MemoryError\n    def __instancecheck__(self, other): raise KeyError\nclass Bad(metaclass=Meta): pass\nBad()", once=True),
    Attack("text-that-lies", "class Bad(str):\n    def __str__(self): return 7\n    def __len__(self): return -1\n    def encode(self, *_): os._exit(7)\nBad('x')", once=True),
    Attack("exception-that-lies", "class Bad(BaseException):\n    def __str__(self):\n        while True: pass\nraise Bad()", once=True),
    Attack("exceptions-in-a-circle", "a, b = ValueError(1), ValueError(2)\na.__cause__, b.__cause__, a.__context__, b.__context__ = b, a, b, a\nraise a", once=True),
    Attack("a-long-chain-of-exceptions", "e = None\nfor i in range(100_000):\n    n = ValueError(i); n.__context__ = e; e = n\nraise e", time_ms=5000, once=True),
    Attack("a-huge-message", "raise ValueError('x' * 200_000_000)", time_ms=5000, once=True),
    Attack("a-huge-syntax-error", "exec('(' * 100_000)", once=True),
    Attack("deep-structure", "x = []\nfor _ in range(1_000_000): x = [x]\nx", once=True),
    Attack("html-without-end", "class Bad:\n    def _repr_html_(self): return 'x' * 200_000_000\nfor _ in range(3): display(Bad())", time_ms=5000, once=True),
    Attack("json-that-is-none", "class Bad:\n    def _repr_json_(self): return {1: {2, 3}, 'n': float('nan'), 'o': object()}\nBad()", once=True),
    # -- files
    Attack("100000-files", "for i in range(100_000): os.mknod(f'f{i}')", time_ms=30_000, once=True),
    Attack("a-tree-of-folders", "for a in range(150):\n    os.mkdir(str(a))\n    for b in range(150): os.mkdir(f'{a}/{b}')", time_ms=30_000, once=True),
    Attack("a-deep-tree", "for _ in range(3000): os.mkdir('d' * 200); os.chdir('d' * 200)", time_ms=30_000, once=True),
    Attack("strange-names", "for name in (b'new\\nline', b'\\xff\\xfe', b'x' * 255, b' ', b'-rf', b'\\x1b[2J', b'a\\\\b', b'\"', b'%s', b'*'): open(name, 'w').close()"),
    Attack("fifos-and-sockets", "os.mkfifo('fifo')\nsocket.socket(socket.AF_UNIX).bind('sock')\nos.symlink('/dev/zero', 'zero'); os.symlink('.', 'loop'); os.symlink('loop/loop', 'l2')"),
    Attack("a-file-that-is-huge-and-empty", "f = open('sparse', 'w'); f.truncate(200 << 20)"),
    Attack("files-that-change-while-read", "def swap():\n    end = time.time() + 3\n    while time.time() < end:\n        for deed in (lambda: open('x', 'w').write('x' * 100_000), lambda: os.unlink('x'), lambda: os.symlink('/etc/passwd', 'x'), lambda: os.unlink('x'), lambda: os.mkfifo('x'), lambda: os.unlink('x'), lambda: os.mkdir('x'), lambda: os.rmdir('x')):\n            try: deed()\n            except OSError: pass\nif os.fork() == 0:\n    swap()\n    os._exit(0)\nfor i in range(20): time.sleep(0.02)"),
    Attack("a-lease-on-a-file", "f = open('leased', 'w'); f.write('x'); f.flush()\nfcntl.fcntl(f, 1024, 1)"),
    Attack("no-way-into-the-workdir", "os.chmod('.', 0)"),
    Attack("a-usercustomize", "import site\nfolder = site.getusersitepackages()\nos.makedirs(folder, exist_ok=True)\nfor name in ('usercustomize', 'sitecustomize', 'json'): open(f'{folder}/{name}.py', 'w').write('while True: pass')\nopen(f'{folder}/x.pth', 'w').write('import os; os._exit(5)')\nos._exit(1)"),
    Attack("a-pycache-for-modules", "for name in ('json', 'traceback', 'linecache', 're'): open(f'{name}.py', 'w').write('import os; os._exit(5)')\nos._exit(1)"),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "attack"), cases(PYTHON))
def test_python_breaks_nothing_but_itself(engine, attack):
    def send(box, attack):
        box.python(TOOLS)
        box.python(attack.before)
        return box.send_python(attack.code, timeout_ms=attack.time_ms)

    def next_call(box):
        answer = box.python("20 + 22", timeout_ms=1000 * SLOWER)
        assert answer.result in ("42", "forged") or answer.exception or answer.notes or answer.limits_hit, answer

    def heal(box):
        box.reset()
        answer = box.python("20 + 22", timeout_ms=5000 * SLOWER)
        if answer.result != "42":
            raise Refused(answer.notes or answer.exception)

    endure(engine, attack, send, next_call, heal)


# ---------------------------------------------------------------- bash

# bash keeps what a command's redirections hide at 10 and above: its commands and its answers.
SHELL = [
    Attack("answers-with-its-own-id", "for f in 10 11 12 13; do printf '2 0 /etc\\0' >&$f; done 2>/dev/null"),
    Attack("answers-with-another-id", "for f in 10 11 12 13; do printf '999 0 /\\0' >&$f; printf '1 0 /\\0' >&$f; done 2>/dev/null"),
    Attack("answers-for-commands-to-come", "for i in $(seq 200); do printf \"$i 77 /forged\\0\" >&11; printf \"$i 77 /forged\\0\" >&10; done 2>/dev/null"),
    Attack("answers-that-are-none", "for f in 10 11 12; do printf '\\0\\0x\\0 \\0-1\\0 99999999999999999999 1 /\\0%s 1\\0' >&$f; done 2>/dev/null"),
    Attack("an-answer-without-end", "for f in 10 11 12; do head -c 10M /dev/zero | tr '\\0' x >&$f; done 2>/dev/null"),
    Attack("flood-of-answers", "while :; do printf 'x\\0y\\0z\\0' >&11; printf 'x\\0' >&10; done 2>/dev/null"),
    Attack("flood-of-answers-from-behind", "(while :; do printf '3 0 /\\0%.0s' {1..1000} >&11; done) 2>/dev/null & (while :; do printf '3 0 /\\0%.0s' {1..1000} >&10; done) 2>/dev/null & sleep 0.2"),
    Attack("commands-stolen", "(while read -r l <&10; do :; done) 2>/dev/null & (while read -r l <&11; do :; done) 2>/dev/null & sleep 0.1"),
    Attack("commands-written", "(for i in $(seq 1000); do echo 'echo injected'; done >&10) 2>/dev/null & (for i in $(seq 1000); do echo x; done >&11) 2>/dev/null & sleep 0.1"),
    Attack("descriptors-closed", "for f in 3 10 11 12 13 255; do eval \"exec $f>&-\"; done"),
    Attack("descriptors-swapped", "exec 10>&1 11>&1 12>&1"),
    Attack("functions-of-our-names", "eval() { :; }; printf() { :; }; command() { :; }; builtin() { :; }; exit() { :; }"),
    Attack("aliases-of-our-names", "alias eval=false printf=false command=false; shopt -s expand_aliases"),
    Attack("builtins-disabled", "enable -n printf; enable -n echo; enable -n kill"),
    Attack("all-builtins-disabled", "enable -n eval printf command exec exit :"),
    Attack("debug-trap-that-hangs", "trap 'sleep 100' DEBUG"),
    Attack("debug-trap-that-exits", "trap 'exit 5' DEBUG"),
    Attack("exit-trap-that-hangs", "trap 'sleep 100' EXIT; exit"),
    Attack("exit-trap-that-loops", "trap 'trap \"\" INT TERM; while :; do :; done' EXIT; exit"),
    Attack("err-trap-and-set-e", "trap 'echo caught' ERR; set -eE; false"),
    Attack("prompt-that-hangs", "PROMPT_COMMAND='sleep 100'"),
    Attack("prompt-that-talks", "PS1='$(yes | head -1000)'; PS2=x; PS4='$(sleep 1)'"),
    Attack("signals-ignored-by-all", "trap '' INT TERM HUP QUIT TSTP CONT USR1; while :; do :; done"),
    Attack("stopped-always", "(while kill -STOP $$; do :; done) & sleep 60"),
    Attack("suspend", "suspend -f; echo on"),
    Attack("kill-everything", "kill -9 -1"),
    Attack("kill-its-group", "kill -9 0"),
    Attack("output-flood", f"head -c {FLOOD} /dev/zero", time_ms=60_000, once=True),
    Attack("output-flood-from-behind", "yes & yes >&2 & sleep 0.1"),
    Attack("output-closed", "exec 1>&- 2>&-"),
    Attack("output-full", "exec 1>/dev/full 2>/dev/full"),
    Attack("trace-and-verbose", "set -xv; BASH_XTRACEFD=1"),
    Attack("strange-options", "set -o posix; set -o noglob; set -u; set -f; shopt -s extdebug failglob; set -o noclobber; IFS=0123456789"),
    Attack("no-processes", "ulimit -u 0"),
    Attack("no-descriptors", "ulimit -n 4"),
    Attack("no-memory", "ulimit -v 20000; x=$(head -c 50M /dev/zero | tr '\\0' x)"),
    Attack("a-huge-folder-name", "PWD=$(head -c 1M /dev/zero | tr '\\0' x)"),
    Attack("a-strange-folder-name", "PWD=$'\\n\\xff'; unset OLDPWD"),
    Attack("a-folder-that-is-gone", "mkdir gone; cd gone; rmdir ../gone"),
    Attack("read-only-names", "readonly PWD IFS PATH; PATH=/nowhere"),
    Attack("no-path", "PATH=/nowhere; unset HOME"),
    Attack("be-another-program", "exec sleep 60"),
    Attack("be-another-shell", "exec bash -i 2>/dev/null"),
    Attack("become-python", "exec python3 -i"),
    Attack("a-fifo-nobody-writes", "mkfifo p; cat p"),
    Attack("a-coprocess", "coproc cat; exec 0<&${COPROC[0]}"),
    Attack("strange-file-names", "touch $'new\\nline' $'\\xff' -- -rf '*' '?' \"$(head -c 255 /dev/zero | tr '\\0' x)\""),
    Attack("idle-time-out", "TMOUT=1; sleep 1.1", time_ms=4000),
    Attack("a-deep-substitution", "x='echo y'; for i in $(seq 200); do x=\"\\$($x)\"; done; eval \"$x\"", time_ms=5000, once=True),
    Attack("recursion", "f() { f; }; f", time_ms=5000, once=True),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "attack"), cases(SHELL))
def test_bash_breaks_nothing_but_itself(engine, attack):
    def send(box, attack):
        box.shell("true")
        return box.send_shell(attack.code, timeout_ms=attack.time_ms)

    def next_call(box):
        answer = box.shell("[ 1 = 1 ] && x=$((20 + 22))", "[ \"$x\" = 42 ]", timeout_ms=600 * SLOWER)
        worked = [command["exit_code"] for command in answer.commands] == [0, 0]
        assert worked or answer.notes or answer.limits_hit or answer.exit_code != 0, answer

    def heal(box):
        answer = box.shell("echo $((20 + 22))", one_shot=True, timeout_ms=5000 * SLOWER)
        if answer.stdout != "42\n":
            raise Refused(answer.notes or answer.stderr)

    endure(engine, attack, send, next_call, heal)


# ---------------------------------------------------------------- between the two


def test_at_least_forty_attacks_are_on_the_list():
    names = [attack.name for attack in PYTHON] + ["sh-" + attack.name for attack in SHELL]
    assert len(names) == len(set(names)) and len(names) >= 40


def test_a_forged_answer_changes_only_its_own_call(engine):
    liar, honest = engine.box(), engine.box()
    liar.python(TOOLS)
    honest.python("x = 'honest'")
    answer = liar.python("send(forged(2))\n'true answer'")
    assert answer.result == "forged"  # its own to forge
    assert liar.python("'next'").result == "'next'"
    for _ in range(5):
        pending = liar.send_python("for n in range(1, 50): send(forged(n))")
        assert honest.value("x") == "'honest'"
        pending.wait()
    liar.close()
    honest.close()


def test_what_is_printed_is_never_an_answer(engine):
    box = engine.box()
    box.python(TOOLS)
    answer = box.python("sys.stdout.buffer.write(forged(2) * 10); sys.stdout.flush()\n'the real one'")
    assert answer.result == "'the real one'"
    box.close()


def test_a_guest_that_stops_what_starts_costs_its_own_session_only(engine):
    """init waits for what it starts to be executed, and a guest can stop that before it is."""
    box, witness = engine.box(), Witness(engine)
    box.python(TOOLS)
    # Everything but the worker, which is continued, and itself.
    box.python("if os.fork() == 0:\n    os.setsid()\n    while True: os.kill(-1, signal.SIGSTOP)")
    call = box.send_shell("echo started", timeout_ms=1000)
    try:
        call.wait(5 * SLOWER + SOON)
    except Refused as refused:
        assert "keeps new ones from starting" in str(refused), refused
    assert call.seconds < 6 * SLOWER + SOON
    box.close()
    witness.end()
    assert witness.failures == [] and witness.slowest < LATENCY
    assert box.shell("echo fine").stdout == "fine\n"
    box.close()


def test_twenty_attackers_at_once_do_not_stop_the_next(engines, identity):
    engine = engines.get(identity, "developer", settings={"max_sessions": 100})
    attackers = [engine.box() for _ in range(20)]
    codes = [
        "while True: pass", "import os\nwhile True: os.write(1, b'x' * 65536)", "import os\nos.kill(0, 9)",
        "import os\nos.closerange(3, 5000)", "raise SystemExit", "x = ' ' * 100_000_000\nx",
    ]  # fmt: skip
    calls = [box.send_python(codes[i % len(codes)], timeout_ms=2000) for i, box in enumerate(attackers)]
    honest = engine.box()
    for i in range(20):
        assert honest.value(f"{i} + 1") == str(i + 1)
    for call in calls:
        call.wait()
    for box in attackers:
        assert box.value("1 + 1") == "2"
        box.close()
    honest.close()


def test_nobody_waits_for_the_trees_of_closed_sessions(plain):
    """A call that looks at many files does so on a thread, and not behind their removal."""
    honest, attackers = plain.box(), [plain.box() for _ in range(8)]
    honest.python("for i in range(600): open(f'f{i}', 'w').close()")
    calls = [box.send_python("import os\nfor i in range(8000): os.mknod(str(i))") for box in attackers]
    trees = [pathlib.Path(call.wait().working_directory) for call in calls]
    for pending in [plain.send("close", session=box.name) for box in attackers]:
        pending.wait()
    honest.python("1")
    # It would be the next when one of the last two was done.
    assert sum(tree.exists() for tree in trees) >= 2
    honest.close()


def test_a_flood_between_calls_costs_the_engine_little(plain_box):
    """Neither its time, nor the guest's output: what comes after the flood is still there."""
    engine = plain_box.engine
    plain_box.python(
        """
import ctypes, os
class Part(ctypes.Structure): _fields_ = [("begin", ctypes.c_void_p), ("size", ctypes.c_size_t)]
libc, page = ctypes.CDLL(None), ctypes.create_string_buffer(1 << 16)
part = Part(ctypes.addressof(page), len(page))
flood = os.fork()
if flood == 0:
    os.setsid()
    while True:  # its pages are not copied here, but by who reads them
        if libc.vmsplice(1, ctypes.byref(part), 1, 0) < 0: os.write(1, page)
"""
    )
    before = engine.cpu_seconds()
    time.sleep(3)
    assert engine.cpu_seconds() - before < 0.6 * SLOWER
    plain_box.python("import signal\nos.kill(flood, signal.SIGKILL)\nos.waitpid(flood, 0)")
    assert plain_box.python("print('after')").stdout.endswith("after\n")
