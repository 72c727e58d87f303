"""The Python worker of a session: runs a guest's code call by call and answers over a pipe.

The engine starts it with a pipe of requests as 0, pipes as 1 and 2 and one for answers as 3, executes this text (it
has no file) and calls main(). The guest finds /dev/null as 0. A frame is a 4-byte little-endian length and JSON. The
first request, setup, carries the text of worker_display.py, which is executed in this namespace too. The guest's module is `__main__`,
which outlives calls; so do imports, open files, threads, signal handlers and the event loop. Tracers do not.

This is no boundary: guest and worker are one process, and the engine trusts nothing that comes from here. What
is defended is that the session goes on: no accident of ordinary code, and little of what is done on purpose,
costs an answer or the worker.
  - What is needed is bound before guest code runs, and the builtins are a copy of our own, so that a module the
    guest patched, emptied or replaced does not matter.
  - Guest code, also a `__repr__`, is entered only through `Worker.guest`. Only in there does SIGINT raise.
  - Streams, descriptors 0 to 2, tracers, signal handlers and a low recursion limit are put right after each call.
  - An exception or a value is shown by its own code, which may raise, loop or lie: texts are checked and cut.
What cannot be helped ends the process with LOST, and the engine starts another: a control pipe that is gone,
an exception thrown into the middle of a frame. Not defended: os._exit and crashes; a guest that looks for the
worker through frames or gc; an audit hook, which nobody can remove, so what it refuses stays refused.

Needs CPython 3.8 or newer and nothing but its own library.
"""

import __future__
import builtins
import sys
from _ast import Expr, Expression, PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST
from _io import BufferedWriter, FileIO, TextIOWrapper
from _json import encode_basestring, make_encoder, make_scanner
from _signal import NSIG, SIGINT, getsignal, raise_signal, signal
from _thread import allocate_lock, get_ident
from fcntl import F_DUPFD_CLOEXEC, fcntl
from io import TextIOBase
from os import O_CLOEXEC, O_RDONLY, _exit, close, dup2, environ, getpid, open as open_file
from os import readv, register_at_fork, set_blocking, sysconf, write
from select import POLLIN, POLLOUT, poll
from sys import getrecursionlimit, setprofile, setrecursionlimit, settrace
from types import TracebackType

OWN = globals()
OWN["__builtins__"] = dict(vars(builtins))  # what the functions below see, whatever a guest does to its own
MODULES = sys.modules

LOST = 86  # exit status: the worker cannot go on, start another
DESCRIPTORS_BELOW = 4096  # ours are high, where nobody meets them, but the kernel's table stays small
LARGEST_REQUEST = 1 << 30
RESERVE = 4 << 20  # memory kept back for the answer to a MemoryError
SOURCES_KEPT = 32 << 20  # characters of past calls that tracebacks can show
RECURSION = getrecursionlimit()
CO_COROUTINE = 0x80
FUTURES = 0
for _feature in __future__.all_feature_names:
    FUTURES |= getattr(__future__, _feature).compiler_flag


class Json:
    """How requests are read."""

    strict, object_hook, object_pairs_hook = True, None, None
    parse_float, parse_int, parse_constant = float, int, float


def refuse(value):
    raise TypeError("not JSON")


def json_encoder(seen, nan):
    return make_encoder(seen, refuse, encode_basestring, None, ":", ",", False, False, nan)


SCAN = make_scanner(Json)
ENCODE = json_encoder(None, True)
# Guest code runs under this frame, whose globals are not ours.
CALL = eval("lambda function, *args, **named: function(*args, **named)", {"__builtins__": builtins})


# ---------------------------------------------------------------- texts


def plain(text):
    """An exact str of a str, whatever its class overrides; None of anything else."""
    return str.__str__(text) if issubclass(type(text), str) else None


def clip(text, limit):
    cut = len(text) - limit
    return text if cut <= 0 else "%s… [%d characters cut]" % (text[:limit], cut)


def clip_middle(text, limit):
    """As clip, but keeps the end too: it is what says which error it was."""
    cut, head = len(text) - limit, limit // 4
    return text if cut <= 0 else "%s\n… [%d characters cut] …\n%s" % (text[:head], cut, text[head + cut :])


def qualified(kind):
    """The name of a type as tracebacks have it, without asking its metaclass."""
    name = plain(type.__dict__["__qualname__"].__get__(kind)) or "object"
    try:
        module = plain(type.__dict__["__module__"].__get__(kind))
    except AttributeError:
        module = None
    return clip(name if module in (None, "builtins", "__main__") else module + "." + name, 200)


def unprintable(value):
    return "<unprintable %s object>" % qualified(type(value))


# ---------------------------------------------------------------- exceptions

get_cause = BaseException.__dict__["__cause__"].__get__
get_context = BaseException.__dict__["__context__"].__get__
get_traceback = BaseException.__dict__["__traceback__"].__get__
set_traceback = BaseException.__dict__["__traceback__"].__set__
get_exit_code = SystemExit.__dict__["code"].__get__


def trimmed(traceback, sources):
    """A traceback without the worker's frames, nor an event loop's before the guest's first."""
    entries = []
    while traceback is not None:
        around = traceback.tb_frame.f_globals
        if around is not OWN and around is not CALL.__globals__:
            entries.append(traceback)
        traceback = traceback.tb_next
    cells = (at for at, one in enumerate(entries) if one.tb_frame.f_code.co_filename in sources)
    rest = None
    for one in reversed(entries[next(cells, 0) :]):
        rest = TracebackType(rest, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return rest


def trim(error, sources):
    """Trims an exception and those that it came from."""
    found, waiting = {}, [error]
    while waiting and len(found) < 1000:
        one = waiting.pop()
        if one is not None and id(one) not in found:
            found[id(one)] = one
            set_traceback(one, trimmed(get_traceback(one), sources))
            waiting += get_cause(one), get_context(one)


def as_python_shows(error):
    shown = OWN["TracebackException"](type(error), error, get_traceback(error))
    return "".join(shown.format() if get_traceback(error) else shown.format_exception_only())


def as_we_can(error, message):
    """When Python's way failed: calls nothing of the guest's."""
    lines, traceback = ["Traceback (most recent call last):\n"], get_traceback(error)
    while traceback is not None and len(lines) < 1000:
        code = traceback.tb_frame.f_code
        lines.append('  File "%s", line %s, in %s\n' % (code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return "".join(lines) + "%s: %s\n" % (qualified(type(error)), message)


def exit_code(error):
    """The status that an exception would end a script with."""
    if not issubclass(type(error), SystemExit):
        return 1
    code = get_exit_code(error)
    return 0 if code is None else int(code) if type(code) in (int, bool) else 1


# ---------------------------------------------------------------- streams


class NoInput(TextIOBase):
    """sys.stdin: says that there is nothing to read, rather than give an empty text."""

    name, mode, encoding = "<stdin>", "r", "utf-8"

    def readline(self, *_):
        raise EOFError("a session has no standard input")

    read = readlines = __next__ = readline
    buffer = property(lambda self: self)

    def readable(self):
        return True

    def fileno(self):
        return 0

    def close(self):  # exit() does it
        pass


def text_stream(fd, name):
    raw = FileIO(fd, "w", closefd=False)
    raw.name = name
    stream = TextIOWrapper(BufferedWriter(raw, 1 << 16), "utf-8", "backslashreplace", "\n", line_buffering=True)
    stream.mode = "w"
    return stream


# ---------------------------------------------------------------- the worker


class Worker:
    def __init__(self, answers_fd):
        self.pid, self.thread, self.lock = getpid(), get_ident(), allocate_lock()
        first = max(min(sysconf("SC_OPEN_MAX"), DESCRIPTORS_BELOW) - 8, 3)
        self.requests = fcntl(0, F_DUPFD_CLOEXEC, first)
        self.answers = fcntl(answers_fd, F_DUPFD_CLOEXEC, first)
        close(answers_fd)
        null = open_file("/dev/null", O_RDONLY | O_CLOEXEC)
        dup2(null, 0)
        close(null)
        self.standard = [fcntl(fd, F_DUPFD_CLOEXEC, first) for fd in (0, 1, 2)]
        self.incoming = poll()
        self.incoming.register(self.requests, POLLIN)

        self.dpi, self.max_repr, self.max_frame, self.max_images, self.max_video_frames = 150, 65536, 32 << 20, 32, 64
        self.call_id, self.flags, self.sources, self.source_size = 0, PyCF_ALLOW_TOP_LEVEL_AWAIT, {}, 0
        self.display = self.outcome = self.reserve = self.loop = None

        # Where we are, see "signals".
        self.running, self.inside, self.critical, self.waiting, self.interrupted = False, 0, False, False, False
        self.parked, self.deferred = {}, []
        self.handler = self.on_signal  # one object, so that `is` finds it

    # ------------------------------------------------------------ frames

    def wait(self):
        """Until there is something to read; what a guest's signal handlers raise meanwhile is told and dropped."""
        for _ in range(1000):
            try:
                while self.deferred:
                    self.shielded(self.deferred.pop(0))
                self.waiting = True
                self.incoming.poll()
                self.waiting = False
                return
            except BaseException:
                self.waiting = False
        _exit(LOST)

    def read(self, count):
        """That many bytes, or None at the end."""
        buffer = bytearray(count)
        view = memoryview(buffer)
        while view:
            try:
                got = readv(self.requests, [view])
            except BlockingIOError:
                self.incoming.poll()
                continue
            if not got:
                return None
            view = view[got:]
        return buffer

    def receive(self):
        """The next request, or None when the engine has gone."""
        self.wait()
        try:
            head = self.read(4)
            size = int.from_bytes(head or b"", "little")
            body = self.read(size if size <= LARGEST_REQUEST else -1) if head else None
            return None if body is None else SCAN(body.decode(), 0)[0]
        except BaseException:  # part of a frame may be gone
            _exit(LOST)

    def send(self, frame):
        if getpid() != self.pid:
            _exit(0)  # a child that a guest forked has nobody to answer
        payload = self.encoded(frame)
        view = memoryview(len(payload).to_bytes(4, "little") + payload)
        main = get_ident() == self.thread
        if main:
            before, self.critical = self.critical, True
        with self.lock:
            try:
                while view:
                    try:
                        view = view[write(self.answers, view) :]
                    except BlockingIOError:
                        room = poll()
                        room.register(self.answers, POLLOUT)
                        room.poll()
            except BaseException:  # part of a frame may have gone
                _exit(LOST)
        if main:
            self.critical = before

    def encoded(self, frame):
        payload = "".join(ENCODE(frame, 0)).encode("utf-8", "replace")
        if len(payload) <= self.max_frame:
            return payload
        # The fields have limits of their own and do not come to this, but the engine counts on the whole.
        note = "[%d bytes were left out]" % len(payload)
        small = dict(frame, data={"text/plain": note})
        if frame["op"] == "done":
            small = dict(frame, result=frame["result"] and {"repr": note, "type": "object", "data": {}})
            small["exception"] = frame["exception"] and {"type": "Exception", "message": note, "traceback": ""}
        return "".join(ENCODE(small, 0)).encode()

    def publish(self, data):
        """A display, at once. In a child that a guest forked its text is printed."""
        if getpid() != self.pid:
            return CALL(print, data["text/plain"])
        frame = {"op": "display", "id": self.call_id, "data": data}
        if not self.running or get_ident() != self.thread:  # no handler of the guest's can come between
            return self.send(frame)
        # A handler that displays may come while handlers are parked or put back for another display.
        before, self.critical, taken = self.critical, True, []
        try:
            self.park(taken)
            self.send(frame)
        finally:
            self.unpark(taken)
            self.critical = before
        if not before:
            self.deliver()

    # ------------------------------------------------------------ signals
    #
    # SIGINT raises KeyboardInterrupt in guest code and in what is done on its behalf (inside), except while a
    # frame is written (critical) and in guest() itself. Elsewhere it is only noted, so it cannot cost an answer;
    # the note counts while a call's own code runs (running), not while its answer is made.
    # Handlers of the guest's, which may raise, are taken out (parked) while our code runs: a signal is then kept
    # for the guest (deferred), or its handler called where nothing can be broken (waiting).

    def on_signal(self, number, frame):
        if number == SIGINT:
            if self.inside and not self.critical and frame.f_code is not GUEST_CODE:
                raise KeyboardInterrupt
            self.interrupted = True
        elif self.waiting:
            self.waiting = False
            self.shielded(number)
            self.waiting = True
        elif number not in self.deferred:
            self.deferred.append(number)

    def shielded(self, number):
        try:
            self.guest(self.parked[number], number, None)
        except BaseException as error:
            self.complain(error)
        if getpid() != self.pid:
            _exit(0)
        self.park([])  # it may have set others

    def park(self, taken):
        """Adds the numbers of those it took to `taken`. A handler not yet parked may come between any two steps,
        park and unpark for a display of its own, set others, or raise."""
        for number in range(1, NSIG):
            handler = getsignal(number)
            if handler is not self.handler and (callable(handler) or number == SIGINT):
                taken.append(number)
                self.parked[number] = handler
                self.parked[number] = signal(number, self.handler)

    def unpark(self, taken):
        for number in taken:
            handler = self.parked.pop(number, None)
            if handler is None:  # was not set by Python, and cannot be
                continue
            if number == SIGINT and self.interrupted:
                self.interrupted = False
                self.deferred.append(SIGINT)
            if getsignal(number) is self.handler:
                signal(number, handler)

    def deliver(self):
        """What came for the guest while its handlers were parked."""
        for _ in range(len(self.deferred)):
            if self.deferred:
                raise_signal(self.deferred.pop(0))
        self.check_interrupt()

    def check_interrupt(self):
        interrupted, self.interrupted = self.interrupted, False
        if interrupted and self.running:
            raise KeyboardInterrupt

    def guest(self, function, *args, **named):
        """Calls what is the guest's, or may call it."""
        if get_ident() != self.thread:
            return CALL(function, *args, **named)
        self.check_interrupt()
        self.inside += 1
        try:
            return CALL(function, *args, **named)
        finally:
            self.inside -= 1

    def ask(self, function, *args, **named):
        """As guest(), for what only describes: None when it raises. An interrupt goes on."""
        try:
            return self.guest(function, *args, **named)
        except KeyboardInterrupt:
            raise
        except BaseException:
            return None

    # ------------------------------------------------------------ a call

    def execute(self, code, file, arguments):
        """Runs a call's code; returns the rest of its answer."""
        value = error = result = exception = code_of_exit = None
        try:
            self.enter()
            if file is not None:
                self.become_script(file, arguments)
            self.attempt(code, file or "<cell %d>" % self.call_id)
            value, error = self.outcome
        except BaseException as failure:  # of a guest's tracer or signal handler, in our frames
            error = failure
        self.outcome = None
        self.leave()
        if getpid() != self.pid:
            self.end_child(error)
        if error is None and value is not None:
            try:
                vars(builtins)["_"] = value
                result = self.describe(value)
            except BaseException as failure:
                error = failure
        self.display.show_rest()
        if error is not None and issubclass(type(error), SystemExit):
            code_of_exit = exit_code(error) & 255
        if error is not None and exit_code(error) != 0:
            result, exception = None, self.explain(error)
        value = error = None  # an exception's frames lead back to this one, and would keep each other
        status = "error" if exception else "success"
        return {"status": status, "result": result, "exception": exception, "exit_code": code_of_exit}

    def become_script(self, file, arguments):
        """What a script finds that is run by its name."""
        self.names["__file__"] = file
        sys.argv[:] = [file] + arguments
        sys.path[:1] = [file.rpartition("/")[0]]

    def enter(self):
        self.running = True
        self.display.new_call()
        self.reserve = self.reserve or self.ask(bytes, RESERVE)
        MODULES["__main__"] = self.main
        self.names.setdefault("__builtins__", builtins)
        self.names.setdefault("__name__", "__main__")
        self.unpark(list(self.parked))
        self.deliver()

    def attempt(self, code, name):
        """The guest's code; then its tracers off in the same frame, since they would see any other call."""
        try:
            self.outcome = self.run(code, name), None
        except BaseException as error:
            self.outcome = None, error
        settrace(None)
        setprofile(None)

    def leave(self):
        """Takes the guest's ways of interfering out of our way."""
        for _ in range(100):
            try:
                settrace(None)
                setprofile(None)
                if getrecursionlimit() < RECURSION:
                    setrecursionlimit(RECURSION)
                self.inside, self.critical = 0, False
                self.park([])
                self.running, self.interrupted = False, False
                return
            except BaseException:
                continue
        _exit(LOST)

    def run(self, code, name):
        value = None
        for step in self.compiled(code, name):
            value = self.guest(eval, step, self.names)
            if step.co_flags & CO_COROUTINE:
                value = self.guest(self.awaited, value)
        return value

    def compiled(self, code, name):
        """Code objects: of all but a last expression, and of that."""
        self.remember(code, name)
        steps, last = [], None
        tree = self.guest(compile, code, name, "exec", self.flags | PyCF_ONLY_AST, True)
        if tree.body and type(tree.body[-1]) is Expr:
            last = Expression(tree.body.pop().value)
        if tree.body:
            steps.append(self.guest(compile, tree, name, "exec", self.flags, True))
            self.flags |= steps[0].co_flags & FUTURES
        if last:
            steps.append(self.guest(compile, last, name, "eval", self.flags, True))
        return steps

    def remember(self, code, name):
        """Keeps the text for tracebacks and inspect; of old calls, no more than is reasonable."""
        self.source_size += len(code) - self.sources.pop(name, (0,))[0]
        self.sources[name] = len(code), None, code.splitlines(True), name
        while self.source_size > SOURCES_KEPT and len(self.sources) > 1:
            oldest = next(iter(self.sources))
            self.source_size -= self.sources.pop(oldest)[0]
            self.ask(lambda: OWN["linecache"].cache.pop(oldest, None))
        self.ask(lambda: OWN["linecache"].cache.__setitem__(name, self.sources[name]))

    def awaited(self, coroutine):
        """What a coroutine gives. Its event loop stays for later calls, with the tasks in it."""
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(through(coroutine))
        try:
            return self.loop.run_until_complete(task)
        except BaseException as error:
            if not task.done():  # or it would go on in the next call
                task.cancel()
                try:
                    self.loop.run_until_complete(task)
                except asyncio.CancelledError as cancelled:
                    error.with_traceback(cancelled.__traceback__)  # where it was waiting
            raise error

    # ------------------------------------------------------------ answers

    def text(self, value):
        text = plain(self.ask(repr, value))
        return clip(unprintable(value) if text is None else text, self.max_repr)

    def describe(self, value):
        text, (data, notes) = self.text(value), self.display.rich(value)
        return {"repr": text + notes, "type": qualified(type(value)), "data": data}

    def explain(self, error):
        """An exception as it is answered. Nothing in here may raise, whatever the exception does."""
        if issubclass(type(error), MemoryError):
            self.reserve = None
        try:
            message = plain(self.guest(str, error))
        except BaseException:
            message = None
        message = clip(unprintable(error) if message is None else message, self.max_repr)
        try:
            trim(error, self.sources)
            OWN["linecache"].cache.update(self.sources)
            shown = plain(self.guest(as_python_shows, error))
        except BaseException:
            shown = as_we_can(error, message)
        return {"type": qualified(type(error)), "message": message, "traceback": clip_middle(shown, self.max_repr)}

    def complain(self, error):
        """Of an exception that belongs to no call, or to a forked child."""
        shown = self.explain(error)["traceback"]
        try:
            self.guest(lambda: sys.stderr.write(shown))
        except BaseException:
            pass

    def end_child(self, error):
        """A child that a guest forked came to the end of the call's code: it ends as a script would."""
        if error is not None and not issubclass(type(error), SystemExit):
            self.complain(error)
        self.flush()
        _exit(0 if error is None else exit_code(error) & 255)

    # ------------------------------------------------------------ streams and descriptors

    def set_streams(self):
        self.streams = text_stream(1, "<stdout>"), text_stream(2, "<stderr>")
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__ = self.streams

    def streams_changed(self):
        try:
            out, err = self.streams
            return out.closed or err.closed or sys.stdout is not out or sys.stderr is not err
        except (AttributeError, ValueError):  # deleted; detached
            return True

    def flush(self):
        streams = sys.__dict__.get("stdout"), sys.__dict__.get("stderr"), *self.streams
        for stream in {id(one): one for one in streams}.values():
            try:
                self.guest(lambda: stream.flush())
            except BaseException:
                pass

    def settle(self):
        """Everything printed is in the pipes, and the next call finds streams that work."""
        self.flush()  # to where the guest may have sent it
        self.restore_descriptors()
        sys.stdin = self.stdin
        if self.streams_changed():
            self.flush()
            self.set_streams()
            self.restore_descriptors()  # a stream of the guest's that has just gone may have closed them
        self.flush()
        self.park([])  # what describing and flushing may have set

    def restore_descriptors(self):
        for number, fd in enumerate(self.standard):
            dup2(fd, number)
        set_blocking(1, True)
        set_blocking(2, True)

    # ------------------------------------------------------------ a life

    def prepare_guest(self):
        """What the guest finds: its module, its streams, its arguments."""
        self.main, self.boot = type(sys)("__main__"), MODULES.get("__main__")
        MODULES["__main__"], self.names = self.main, vars(self.main)
        self.names["__builtins__"] = builtins
        self.stdin = sys.stdin = sys.__stdin__ = NoInput()
        self.set_streams()
        sys.argv[:] = [""]
        signal(SIGINT, self.handler)
        # A forked child must not keep the engine from seeing that the worker has died.
        register_at_fork(after_in_child=lambda: close(self.answers))
        register_at_fork(after_in_child=lambda: close(self.requests))

    def set_up(self, request):
        for name in ("dpi", "max_repr", "max_frame", "max_images", "max_video_frames"):
            setattr(self, name, request.get(name, getattr(self, name)))
        self.max_frame = max(self.max_frame, 1 << 16)
        # All texts of an answer together, each character six bytes at worst, leave half of a frame to pictures.
        self.max_repr = min(self.max_repr, self.max_frame // 128)
        self.send({"op": "ready", "python": "%d.%d.%d" % sys.version_info[:3], "pid": self.pid})
        load(request.get("display"))  # while the engine makes up its first call
        self.display = OWN["Display"](self)
        sys.path.insert(0, "")  # not before our own imports

    def answer(self, request):
        self.call_id, self.interrupted = request["id"], False
        try:
            rest = self.execute(request["code"], request.get("file"), request.get("arguments"))
        except BaseException as error:
            self.leave()
            rest = {"status": "error", "result": None, "exception": self.explain(error)}
        self.settle()
        self.send(dict(rest, op="done", id=self.call_id))

    def serve(self):
        self.prepare_guest()
        while True:
            request = self.receive()
            if request is None:
                return
            try:
                if request["op"] == "setup":
                    self.set_up(request)
                elif request["op"] == "execute":
                    self.answer(request)
            except BaseException:  # no answer could be made
                _exit(LOST)


GUEST_CODE = Worker.guest.__code__


async def through(coroutine):
    """From 3.12 on, code that was compiled for await at top level lets StopIteration out, and a task hangs on it."""
    return await coroutine


# ---------------------------------------------------------------- what the engine calls


def load(display):
    """What only answers need, so that `ready` need not wait for it."""
    import ast  # noqa: F401 (traceback wants it later, and must not find the guest's)
    import linecache
    import tokenize  # noqa: F401 (linecache wants it later, and must not find the guest's)
    import traceback

    OWN["linecache"], OWN["TracebackException"] = linecache, traceback.TracebackException
    if display is not None:
        exec(compile(display, "<belljar display>", "exec"), OWN)


def prepare(preload, display=None):
    """For a warm start, in the process that will fork: imports in advance; returns what could be imported."""
    load(display)
    environ["MPLBACKEND"] = "Agg"
    imported = []
    for name in preload:
        try:
            __import__(name)
            imported.append(name)
        except Exception:
            pass  # the guest will see for itself
    return imported


def after_fork():
    """In the child of a warm process, before main(): what must not be the same in two sessions."""
    for name in ("random", "numpy.random"):
        if name in MODULES:
            MODULES[name].seed()


def main(answers_fd):
    """Serves until the engine closes its pipe; the interpreter then ends as it does, closing files."""
    Worker(answers_fd).serve()
