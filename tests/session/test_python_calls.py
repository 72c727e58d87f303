"""What a Python call of a session promises, each by its name."""

from __future__ import annotations

import base64
import time

import pytest

from boxes import box, engine, engines, plain, plain_box  # noqa: F401
from engine import SLOWER, Engine, Refused

SOON = 5 * SLOWER  # seconds; for what takes no time of its own


# ---------------------------------------------------------------- state


def test_state_lasts_between_calls(box):
    box.python("import math\nx = 40\ndef f(n): return n + 2\nout = open('notes.txt', 'w')")
    assert box.value("f(x) + math.floor(0.5)") == "42"
    assert box.value("out.write('kept'), out.close(), open('notes.txt').read()") == "(4, None, 'kept')"


def test_threads_go_on_between_calls(plain_box):
    plain_box.python(
        "import threading, time\nseen = []\ngo = threading.Event()\n"
        "def count():\n    go.wait()\n    seen.append('between')\n"
        "thread = threading.Thread(target=count)\nthread.start()"
    )
    plain_box.python("go.set()")
    assert plain_box.value("thread.join(), seen") == "(None, ['between'])"


def test_working_directory_and_environment_last(plain_box):
    plain_box.python("import os\nos.mkdir('sub')\nos.chdir('sub')\nos.environ['COLOUR'] = 'green'")
    assert plain_box.value("os.path.basename(os.getcwd()), os.environ['COLOUR']") == "('sub', 'green')"


def test_all_fields_of_a_result_are_there(box):
    answer = box.python("print('out')\nimport sys\nprint('err', file=sys.stderr)\nopen('a.txt', 'w').write('x')\n6 * 7")
    assert answer.stdout == "out\n" and answer.stderr == "err\n"
    assert (answer.status, answer.result, answer.result_type) == ("success", "42", "int")
    assert answer.exception is None and answer.images == [] and answer.video_frames == []
    assert answer.file_names() == ["a.txt"]
    assert answer.execution_time_ms > 0 and answer.working_directory
    assert not (answer.interrupted or answer.killed or answer.state_lost or answer.limits_hit or answer.notes)


def test_working_directory_is_the_guests_own_name_for_it(box):
    assert box.python("import os\nos.getcwd()").result == repr(box.python("1").working_directory)


def test_an_exception_comes_with_the_guests_own_lines(box):
    answer = box.python("def inner():\n    raise ValueError('no good')\n\ninner()")
    assert answer.status == "error" and not answer.state_lost
    assert (answer.exception["type"], answer.exception["message"]) == ("ValueError", "no good")
    assert "raise ValueError('no good')" in answer.exception["traceback"]
    assert "line 4" in answer.exception["traceback"]
    assert "belljar" not in answer.exception["traceback"]


def test_top_level_await_works(plain_box):
    assert plain_box.value("import asyncio\nawait asyncio.sleep(0, 'awaited')") == "'awaited'"


def test_display_and_rich_results_come_back(plain_box):
    answer = plain_box.python(
        "class Rich:\n    def _repr_html_(self): return '<b>bold</b>'\ndisplay(Rich())\nRich()"
    )
    assert [shown.get("text/html") for shown in answer.displays] == ["<b>bold</b>"]
    assert answer.result_data["text/html"] == "<b>bold</b>"


def test_a_png_is_an_image(plain_box):
    answer = plain_box.python("class P:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n'\ndisplay(P())")
    assert [base64.b64decode(image)[:4] for image in answer.images] == [b"\x89PNG"]


@pytest.mark.parametrize("code", ["input()", "import sys\nsys.stdin.read()"])
def test_reading_input_raises_eof_error(box, code):
    answer = box.python(code)
    assert answer.exception["type"] == "EOFError"
    assert box.value("1 + 1") == "2"


# ---------------------------------------------------------------- output


def test_output_streams_while_code_runs(box):
    call = box.send_python(
        "import os, time\nprint('early', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('late')",
        stream=True,
    )
    call.wait_for_output(b"early")
    assert not call.answered
    box.shell("touch go")
    assert call.wait().stdout == "early\nlate\n"
    assert call.streamed() == b"early\nlate\n"


def test_output_of_subprocesses_threads_and_descriptors_is_seen_in_order(box):
    answer = box.python(
        "import os, subprocess, threading\n"
        "print('one')\n"
        "subprocess.run(['echo', 'two'])\n"
        "os.write(1, b'three\\n')\n"
        "t = threading.Thread(target=lambda: print('four')); t.start(); t.join()\n"
        "os.system('echo five')\n"
    )
    assert answer.stdout.split() == ["one", "two", "three", "four", "five"]


def test_all_that_was_written_before_the_answer_is_in_it(plain_box):
    for size in (1, 4095, 65536, 65537, 1_000_000):
        assert plain_box.python(f"print('x' * {size}, end='')").stdout == "x" * size


def test_output_written_between_calls_stands_in_the_next(plain_box):
    plain_box.python(
        "import threading, os\n"
        "go = threading.Event()\ndef late():\n    go.wait(); print('late', flush=True); open('done', 'w').close()\n"
        "threading.Thread(target=late).start()"
    )
    plain_box.python("threading.Timer(0.05, go.set).start()")
    plain_box.shell("until [ -e done ]; do sleep 0.02; done")
    assert plain_box.python("pass").stdout == "late\n"


def test_output_keeps_head_and_tail_and_says_what_was_cut(box):
    answer = box.python("print('head'); print('x' * 3_000_000); print('tail')")
    assert answer.stdout.startswith("head\n") and answer.stdout.endswith("tail\n")
    assert answer.stdout_cut_bytes == 3_000_011 - (1 << 20)
    assert f"[... {answer.stdout_cut_bytes} bytes cut ...]" in answer.stdout
    assert len(answer.stdout) < (1 << 20) + 100 and answer.stderr_cut_bytes == 0


def test_each_stream_has_its_own_bound(plain_box):
    answer = plain_box.python("import sys\nsys.stderr.write('e' * 2_000_000)\nprint('all of this')")
    assert answer.stdout == "all of this\n" and answer.stdout_cut_bytes == 0
    assert answer.stderr_cut_bytes == 2_000_000 - (1 << 20)


def test_whole_output_goes_to_a_file_in_the_workdir(box):
    answer = box.python("print('x' * 3_000_000)\nimport os\nos.system('echo err >&2')", output_file="all.log")
    assert answer.stdout_cut_bytes > 0
    assert box.value("len(open('all.log').read()), open('all.log').read()[-4:]") == "(3000005, 'err\\n')"


@pytest.mark.parametrize("name", ["../out", "/tmp/out", ".hidden", "sub/out", "a\nb", "", "x" * 300])
def test_output_file_is_a_plain_name(plain_box, name):
    with pytest.raises(Refused, match="output_file"):
        plain_box.python("1", output_file=name)


def test_output_file_is_never_one_that_is_there(plain_box):
    plain_box.shell("ln -s /tmp/elsewhere link; echo mine >taken; mkfifo fifo")
    for name in ("link", "taken", "fifo"):
        with pytest.raises(Refused, match="File exists"):
            plain_box.python("print(1)", output_file=name)
    assert plain_box.shell("cat taken").stdout == "mine\n"


def test_output_file_ends_at_the_policys_file_size(plain, identity, engines):
    small = engines.get(identity, "developer", max_file_sz_mb=1)
    answer = small.box().python("print('x' * 3_000_000)", output_file="all.log")
    assert answer.file("all.log")["size"] == 1 << 20 and answer.says("output_file")


def test_invalid_utf8_is_repaired_for_text_and_kept_in_files(box):
    answer = box.python("import os\nos.write(1, b'a\\xff\\xfeb\\n')\nopen('raw.bin', 'wb').write(b'a\\xff\\xfe')")
    assert answer.stdout.startswith("a�") and answer.stdout.endswith("b\n")
    assert base64.b64decode(answer.file("raw.bin")["base64"]) == b"a\xff\xfe"


def test_streamed_output_is_the_bytes_themselves(plain_box):
    call = plain_box.send_python("import os\nos.write(1, bytes(range(256)))", stream=True)
    call.wait()
    assert call.streamed() == bytes(range(256))


# ---------------------------------------------------------------- time


def test_a_timeout_interrupts_and_keeps_state(box):
    box.python("kept = 'still here'")
    call = box.send_python("print('partial', flush=True)\nopen('early.txt', 'w').write('x')\nwhile True: pass", timeout_ms=300)
    answer = call.wait()
    assert answer.status == "timeout" and "timeout" in answer.limits_hit
    assert answer.interrupted and not answer.killed and not answer.state_lost
    assert answer.exception["type"] == "KeyboardInterrupt"
    assert answer.stdout == "partial\n" and answer.file_names() == ["early.txt"]
    assert call.seconds < 0.3 + SOON
    assert box.value("kept") == "'still here'"


def test_a_timeout_interrupts_the_whole_foreground(box):
    answer = box.python("import subprocess\nsubprocess.run(['sleep', '100'])", timeout_ms=300)
    assert answer.status == "timeout" and not answer.killed
    assert box.shell("ps -eo args | grep '[s]leep 100'").stdout == ""


def test_code_that_ignores_the_interrupt_is_killed_and_replaced(box):
    box.python("lost = 1\nopen('file.txt', 'w').write('stays')")
    call = box.send_python(
        "import signal, os\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('partial', flush=True)\n"
        "open('early.txt', 'w').write('x')\nwhile True: pass",
        timeout_ms=300,
    )
    answer = call.wait()
    assert answer.status == "timeout" and answer.killed and answer.state_lost
    assert answer.says("did not stop") and answer.says("state was lost")
    assert answer.stdout == "partial\n" and answer.file_names() == ["early.txt"]
    assert call.seconds < 1.0 + SOON
    after = box.python("open('file.txt').read(), 'lost' in globals()")
    assert after.result == "('stays', False)" and after.working_directory == answer.working_directory


def test_images_come_back_from_a_call_that_was_killed(plain_box):
    answer = plain_box.python(
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "class P:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n'\ndisplay(P())\nwhile True: pass",
        timeout_ms=300,
    )
    assert answer.killed and len(answer.images) == 1


def test_what_a_killed_interpreter_started_goes_with_it(plain_box):
    plain_box.python(
        "import signal, subprocess\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "subprocess.Popen(['sh', '-c', 'trap \"\" INT; while :; do sleep 77; done'])\nwhile True: pass",
        timeout_ms=300,
    )
    assert plain_box.shell("ps -eo args | grep '[s]leep 77'").stdout == ""


def test_a_caught_interrupt_that_ends_in_its_grace_is_an_answer(plain_box):
    answer = plain_box.python(
        "x = 1\nimport time\ntry:\n    while True: time.sleep(0.01)\nexcept KeyboardInterrupt:\n    print('tidied up')\n'result'", timeout_ms=300
    )
    assert answer.status == "timeout" and answer.interrupted and not answer.killed
    assert answer.stdout == "tidied up\n" and answer.result == "'result'"
    assert plain_box.value("x") == "1"


def test_a_call_may_ask_for_no_more_than_the_ceiling(identity, engines):
    strict = engines.get(identity, "developer", settings={"max_timeout": 400, "python_timeout": 200})
    call = strict.box().send_python("while True: pass", timeout_ms=600_000)
    answer = call.wait()
    assert answer.status == "timeout" and answer.says("limited to 0.400 s")
    assert 0.4 <= call.seconds < 0.4 + SOON
    assert strict.box().python("while True: pass").execution_time_ms < 400 + 1000 * SOON


@pytest.mark.parametrize("ms", [0, 1, -5])
def test_a_tiny_timeout_is_a_timeout_and_no_more(plain_box, ms):
    answer = plain_box.python("import time\nwhile True: time.sleep(0.01)", timeout_ms=ms)
    assert answer.status == "timeout"
    assert plain_box.value("1 + 1") == "2"


def test_interrupt_stops_the_call_that_runs(box):
    box.python("kept = 5")
    call = box.send_python("print('on', flush=True)\nwhile True: pass", stream=True)
    call.wait_for_output(b"on")
    box.interrupt()
    answer = call.wait()
    assert answer.status == "error" and answer.interrupted and not answer.killed
    assert answer.exception["type"] == "KeyboardInterrupt" and answer.limits_hit == []
    assert box.value("kept") == "5"


def test_interrupt_between_calls_is_nothing(plain_box):
    plain_box.python("x = 1")
    plain_box.interrupt()
    assert plain_box.value("x + 1") == "2"


def test_interrupt_while_the_interpreter_starts_is_not_lost(plain_box):
    call = plain_box.send_python("while True: pass", timeout_ms=20_000)
    plain_box.interrupt()
    answer = call.wait()
    assert answer.interrupted and answer.status == "error" and call.seconds < SOON


# ---------------------------------------------------------------- limits


def test_out_of_memory_is_named(identity, profile, engines):
    small = engines.get(identity, profile, max_memory_mb=200)
    box = small.box()
    answer = box.python("x = []\nwhile True: x.append(bytearray(10_000_000))")
    assert answer.status == "error" and "max_memory_mb" in answer.limits_hit, answer
    assert answer.says("memory")
    assert box.value("1 + 1") == "2"
    box.close()


def test_memory_of_many_processes_together_is_named(identity, engines):
    small = engines.get(identity, "developer", max_memory_mb=200)
    box = small.box()
    answer = box.python(
        "import os, time\n"
        "for _ in range(8):\n"
        "    if os.fork() == 0:\n"
        "        x = bytearray(os.urandom(1)) * 100_000_000\n"
        "        time.sleep(100)\n"
        "time.sleep(100)",
        timeout_ms=30_000,
    )
    assert answer.status == "error" and answer.limits_hit == ["max_memory_mb"] and answer.state_lost
    assert answer.says("out of memory")
    after = box.python("1 + 1")
    assert after.result == "2"
    box.close()


BURN = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass"


def test_cpu_time_over_the_cap_is_named(identity, profile, engines):
    short = engines.get(identity, profile, max_cpu_secs=1)
    box = short.box()
    box.python("kept = 7")
    answer = box.python(BURN.format(60))
    assert answer.status == "error" and answer.limits_hit == ["max_cpu_secs"], answer
    assert answer.says("CPU")
    assert box.value("kept") == "7"  # it stopped when asked
    box.close()


def test_cpu_time_counts_for_each_call_anew(identity, engines):
    short = engines.get(identity, "developer", max_cpu_secs=1)
    box = short.box()
    for _ in range(3):
        assert box.python(BURN.format(0.6)).status == "success"
    box.close()


def test_too_many_processes_are_named(identity, profile, engines):
    few = engines.get(identity, profile, max_procs=20)
    box = few.box()
    answer = box.python(
        "import os, time\npids = []\ntry:\n    while len(pids) < 200:\n        pid = os.fork()\n"
        "        if pid == 0: time.sleep(100)\n        pids.append(pid)\n"
        "finally:\n    for pid in pids: os.kill(pid, 9)"
    )
    assert answer.exception["type"] == "BlockingIOError" and "max_procs" in answer.limits_hit, answer
    assert answer.says("processes")
    assert box.value("1 + 1") == "2"
    box.close()


def test_too_many_threads_are_named(identity, engines):
    few = engines.get(identity, "developer", max_procs=20)
    box = few.box()
    answer = box.python(
        "import threading\nstop = threading.Event()\ntry:\n"
        "    for _ in range(100): threading.Thread(target=stop.wait).start()\nfinally: stop.set()"
    )
    assert "max_procs" in answer.limits_hit, answer
    box.close()


def test_a_fork_bomb_is_named_and_ended(identity, profile, engines):
    few = engines.get(identity, profile, max_procs=30)
    box = few.box()
    call = box.send_python(
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", timeout_ms=500
    )
    answer = call.wait()
    assert "max_procs" in answer.limits_hit and answer.status == "timeout", answer
    assert call.seconds < 0.5 + 2 * SOON
    after = box.python("1 + 1")
    assert after.result == "2", after
    box.close()


def test_files_that_grow_too_large_are_named(identity, engines):
    small = engines.get(identity, "developer", max_file_sz_mb=1)
    box = small.box()
    answer = box.python("open('big', 'wb').write(b'x' * 2_000_000)")
    assert answer.exception["type"] == "OSError" and "max_file_sz_mb" in answer.limits_hit
    box.close()


def test_a_call_that_hits_no_limit_names_none(box):
    answer = box.python("raise RuntimeError('Cannot allocate patience')")
    assert answer.limits_hit == [] and answer.notes == []


# ---------------------------------------------------------------- ends of an interpreter


def test_sys_exit_is_no_end_of_the_session(box):
    box.python("x = 1")
    answer = box.python("import sys\nsys.exit(3)")
    assert answer.exception["type"] == "SystemExit" and not answer.state_lost
    assert box.python("sys.exit()").status == "success"
    assert box.value("x") == "1"


@pytest.mark.parametrize("error", ["BaseException", "GeneratorExit", "KeyboardInterrupt", "asyncio.CancelledError"])
def test_a_base_exception_is_an_exception_like_others(plain_box, error):
    answer = plain_box.python(f"import asyncio\nx = 1\nraise {error}('why')")
    assert answer.status == "error" and not answer.state_lost
    assert answer.exception["type"].endswith(error.split(".")[-1])
    assert plain_box.value("x") == "1"


@pytest.mark.parametrize(
    "code, said",
    [
        ("import os\nos._exit(7)", "exited with code 7"),
        ("import os\nos._exit(0)", "exited with code 0"),
        ("import ctypes\nctypes.string_at(0)", "killed by SIGSEGV"),
        ("import os\nos.abort()", "killed by SIGABRT"),
        ("import os\nos.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("import os\nos.kill(os.getpid(), 15)", "killed by SIGTERM"),
        ("import os\nos.execvp('true', ['true'])", "exited with code 0"),
        ("import sys\nsys.setrecursionlimit(10**9)\ndef f(): return f()\nimport gc\ngc.disable()\n"
         "import ctypes\nctypes.memset(id(f), 0, 100)\nf()", "killed by SIGSEGV"),
    ],
    ids=["_exit-7", "_exit-0", "segfault", "abort", "kill-9", "kill-15", "exec", "corruption"],
)  # fmt: skip
def test_an_interpreter_that_dies_is_replaced_and_said(box, code, said):
    box.python("x = 1\nopen('stays.txt', 'w').write('stays')")
    call = box.send_python("print('before', flush=True)\n" + code)
    answer = call.wait()
    assert answer.status == "error" and answer.state_lost and not answer.killed
    assert answer.stdout == "before\n"
    assert answer.says(said) and answer.says("state was lost"), answer.notes
    assert call.seconds < SOON
    after = box.python("'x' in globals(), open('stays.txt').read()")
    assert after.result == "(False, 'stays')" and after.notes == []


def test_an_interpreter_that_dies_between_calls_is_replaced_and_said(plain_box):
    plain_box.python("import os, threading\nthreading.Timer(0.05, lambda: os._exit(5)).start()\npid = os.getpid()")
    plain_box.shell("while pgrep -f 'belljar_worker' >/dev/null; do sleep 0.02; done")
    after = plain_box.python("'pid' in globals()")
    assert after.result == "False" and after.says("fresh")


def test_an_interpreter_that_stops_itself_is_continued(box):
    call = box.send_python("x = 1\nimport os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n'went on'", timeout_ms=20_000)
    answer = call.wait()
    assert answer.result == "'went on'" and call.seconds < SOON
    assert box.value("x") == "1"


def test_an_interpreter_stopped_between_calls_is_continued(plain_box):
    plain_box.python("x = 1\nimport os, signal, threading\n"
                     "threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGSTOP)).start()")  # fmt: skip
    time.sleep(0.2)  # it is the stop that must not be seen: nothing says when it has happened
    call = plain_box.send_python("x", timeout_ms=20_000)
    assert call.wait().result == "1" and call.seconds < SOON


@pytest.mark.parametrize(
    "code",
    [
        "import os\nfor fd in range(10):\n    try: os.close(fd)\n    except OSError: pass",
        "import os\nos.closerange(0, 100000)",
        "import os\nnull = os.open('/dev/null', os.O_RDWR)\nfor fd in range(1024):\n"
        "    if fd != null: os.dup2(null, fd)",
        "import os, socket\nfor name in os.listdir('/proc/self/fd'):\n    try: os.close(int(name))\n    except OSError: pass",
        "import sys\nsys.stdout.close(); sys.stderr.close(); sys.stdin.close()",
        "import sys\ndel sys.stdout, sys.stderr, sys.stdin",
    ],
    ids=["close-0-to-9", "close-all", "dup2-over-all", "close-listed", "close-streams", "delete-streams"],
)  # fmt: skip
def test_closed_descriptors_cost_the_interpreter_at_most(box, code):
    box.python("x = 1")
    call = box.send_python(code, timeout_ms=20_000)
    answer = call.wait()
    assert call.seconds < SOON
    after = box.python("print('out')\n'x' in globals()")
    assert after.status == "success" and after.stdout == "out\n"
    assert answer.state_lost == (after.result == "False")
    if answer.state_lost:
        assert answer.status == "error" and answer.says("state was lost")


def test_close_of_0_to_9_keeps_state(box):
    box.python("x = 1\nimport os\nfor fd in range(10):\n    try: os.close(fd)\n    except OSError: pass")
    assert box.value("x") == "1"


def test_fork_in_guest_code_gives_one_answer(box):
    answer = box.python("import os\nx = 1\npid = os.fork()\nif pid == 0: x = 2\nelse: os.waitpid(pid, 0)\nprint('x', x)\nx")
    assert answer.result == "1" and sorted(answer.stdout.split("\n")) == ["", "x 1", "x 2"]
    assert box.value("x") == "1"


def test_a_forked_child_that_lives_holds_nobody_up(plain_box):
    call = plain_box.send_python("import os, time\nif os.fork() == 0:\n    time.sleep(100)\n    os._exit(0)\n'parent'")
    assert call.wait().result == "'parent'" and call.seconds < SOON
    call = plain_box.send_python("os._exit(1)")
    assert call.wait().state_lost and call.seconds < SOON
    assert plain_box.value("1 + 1") == "2"


def test_a_forked_child_that_kills_its_parent_is_seen(plain_box):
    answer = plain_box.python("import os, time\nif os.fork() == 0:\n    os.kill(os.getppid(), 9)\n    os._exit(0)\ntime.sleep(60)")
    assert answer.state_lost and answer.says("SIGKILL")
    assert plain_box.value("1 + 1") == "2"


# ---------------------------------------------------------------- files


def test_files_that_are_new_or_changed_come_back(box):
    box.shell("echo old >same.txt; echo old >changed.txt")
    answer = box.python("open('new.csv', 'w').write('a,b\\n')\nopen('changed.txt', 'w').write('new\\n')\n"
                        "import os\nos.makedirs('deep/er')\nopen('deep/er/x.json', 'w').write('{}')")  # fmt: skip
    assert answer.file_names() == ["changed.txt", "deep/er/x.json", "new.csv"]
    assert answer.file("new.csv") == {"name": "new.csv", "size": 4, "mime": "text/csv", "text": "a,b\n"}
    assert answer.file("changed.txt")["text"] == "new\n"
    assert box.python("1").files == []


def test_a_change_that_hides_its_time_is_seen(plain_box):
    plain_box.shell("echo aaaa >f; touch -d 2001-01-01 f")
    answer = plain_box.python("import os\nopen('f', 'w').write('bbbb\\n')\nos.utime('f', (978307200, 978307200))")
    assert answer.file_names() == ["f"]


def test_symlinks_fifos_and_devices_are_passed_over(box):
    call = box.send_shell(
        "ln -s /etc/passwd link; ln -s / root; mkfifo pipe; echo x >real; "
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\""
    )
    answer = call.wait()
    assert answer.file_names() == ["real"] and call.seconds < SOON


@pytest.mark.parametrize("wanted", ["link", "folder-link/passwd", "pipe", "../home", "/etc/passwd", "folder", "missing", "a\0b"])
def test_outputs_lead_nowhere_else(box, wanted):
    box.shell("ln -s /etc/passwd link; ln -s /etc folder-link; mkfifo pipe; mkdir folder")
    call = box.send_python("1", outputs=[wanted])
    answer = call.wait()
    assert answer.files == [] and answer.says("outputs") and call.seconds < SOON


def test_outputs_come_back_unchanged_too(box):
    folder = box.shell("echo old >report.txt; mkdir -p .cache; echo dot >.cache/x; pwd").stdout.strip()
    answer = box.python("1", outputs=["report.txt", ".cache/x"])
    assert [(file["name"], file["text"]) for file in answer.files] == [("report.txt", "old\n"), (".cache/x", "dot\n")]
    assert answer.notes == []
    assert box.python("1", outputs=[f"{folder}/report.txt"]).file("report.txt")["text"] == "old\n"


def test_caches_and_dot_files_are_no_news(plain_box):
    answer = plain_box.shell(
        "mkdir -p __pycache__ node_modules/x .git build; touch __pycache__/a node_modules/x/b .git/c build/d .e f"
    )
    assert answer.file_names() == ["f"]


def test_content_is_bounded_and_size_is_said(plain_box):
    answer = plain_box.python("open('big.bin', 'wb').write(b'x' * 3_000_000)\n"
                              "for i in range(20): open(f'm{i:02}', 'w').write('y' * 1_000_000)")  # fmt: skip
    assert answer.file("big.bin")["size"] == 3_000_000 and "text" not in answer.file("big.bin")
    with_content = [file for file in answer.files if "text" in file]
    assert len(answer.files) == 21 and len(with_content) == 8


def test_files_that_cannot_be_read_are_named_all_the_same(identity, engines):
    box = engines.get(identity, "developer").box()
    answer = box.shell("echo secret >f; chmod 000 f")
    assert answer.file_names() == ["f"] and answer.file("f")["size"] == 7
    box.close()


def test_a_guests_json_py_disturbs_nothing(box):
    box.shell("for m in json os io traceback linecache ast signal base64 struct; do echo 'raise SystemExit(9)' >$m.py; done")
    answer = box.python("print('fine')\n{'a': 1}")
    assert answer.stdout == "fine\n" and answer.result == "{'a': 1}"
    answer = box.python("1/0")
    assert answer.exception["type"] == "ZeroDivisionError" and "1/0" in answer.exception["traceback"]
    box.python("import os\nos._exit(1)")
    assert box.value("1 + 1") == "2"


def test_modules_in_the_workdir_can_be_imported(box):
    box.shell("echo 'answer = 42' >mine.py")
    assert box.value("import mine\nmine.answer") == "42"


def test_python_and_shell_see_the_same_files_and_processes(box):
    box.python("open('from-python', 'w').write('p')")
    assert box.shell("cat from-python; echo s >from-shell").stdout == "p"
    assert box.value("open('from-shell').read()") == "'s\\n'"
    assert box.shell("pwd").stdout.strip() == box.python("1").working_directory
    box.shell("sleep 66 &")
    assert box.value("import subprocess\nsubprocess.run(['pkill', '-x', 'sleep']).returncode") == "0"


# ---------------------------------------------------------------- reset


def test_reset_gives_a_fresh_interpreter_in_the_same_jar(box):
    box.shell("v=shell; sleep 88 & echo kept >file.txt; echo 'x = 1' >mine.py")
    box.python(
        "import os, signal, sys, threading, mine\nmine.x = 2\nos.chdir('/')\nos.environ['A'] = 'b'\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\nthreading.Thread(target=threading.Event().wait).start()\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()"
    )
    box.reset()
    answer = box.python(
        "import os, signal, threading\n"
        "'mine' in globals(), os.environ.get('A'), signal.getsignal(signal.SIGINT) is signal.SIG_IGN, "
        "threading.active_count(), os.path.exists('file.txt'), __import__('mine').x"
    )
    assert answer.result == "(False, None, False, 1, True, 1)", answer
    assert box.shell("echo $v; pgrep -x sleep >/dev/null && echo lives").stdout == "shell\nlives\n"


def test_what_python_started_lives_through_a_reset(plain_box):
    plain_box.python("import subprocess\np = subprocess.Popen(['sleep', '99'])")
    plain_box.reset()
    assert plain_box.shell("pgrep -x sleep >/dev/null && echo lives").stdout == "lives\n"


def test_reset_waits_its_turn(plain_box):
    first = plain_box.send_python("import time\ntime.sleep(0.2)\nx = 1\nx")
    reset = plain_box.engine.send("reset", session=plain_box.name)
    last = plain_box.send_python("'x' in globals()")
    assert first.wait().result == "1"
    reset.wait()
    assert last.wait().result == "False"


def test_reset_gets_rid_of_an_interpreter_that_will_not_end(plain_box):
    plain_box.python("import atexit, time, threading\natexit.register(time.sleep, 1000)\n"
                     "threading.Thread(target=time.sleep, args=(1000,)).start()")  # fmt: skip
    began = time.monotonic()
    plain_box.reset()
    assert time.monotonic() - began < SOON
    assert plain_box.value("1 + 1") == "2"


def test_numpy_can_be_imported_again_after_a_reset(plain_box):
    if plain_box.python("import numpy").status == "error":
        pytest.skip("numpy is not installed")
    plain_box.reset()
    assert plain_box.value("import numpy\nint(numpy.arange(4).sum())") == "6"


# ---------------------------------------------------------------- what is asked for


def test_another_interpreter_can_be_named(scene):
    with Engine(scene, settings={"python": "/usr/bin/python3"}) as engine:
        assert engine.box().value("import sys\nsys.executable") == "'/usr/bin/python3'"


def test_an_interpreter_that_is_not_there_is_our_error(scene):
    with Engine(scene, settings={"python": "/no/such/python"}) as engine:
        box = engine.box()
        for _ in range(2):
            with pytest.raises(Refused, match="start /no/such/python.*hint: install Python 3"):
                box.python("1")
        assert box.shell("echo fine").stdout == "fine\n"


def test_an_interpreter_that_is_none_is_our_error(scene):
    with Engine(scene, settings={"python": "/usr/bin/true"}) as engine:
        call = engine.box().send_python("1")
        with pytest.raises(Refused, match="start the Python worker"):
            call.wait()
        assert call.seconds < SOON


def test_large_code_is_run(plain_box):
    assert plain_box.value("x = '" + "y" * 5_000_000 + "'\nlen(x)") == "5000000"


def test_code_with_a_syntax_error_is_shown(plain_box):
    answer = plain_box.python("def f(:\n  pass")
    assert answer.exception["type"] == "SyntaxError" and "def f(:" in answer.exception["traceback"]


def test_code_with_strange_characters_is_run(plain_box):
    assert plain_box.value("'ü☃😀\\x00\\ud800'") == "'ü☃😀\\x00\\ud800'"
    assert plain_box.python("x = '\x00'").status == "error"
    assert plain_box.value("1 + 1") == "2"
