"""What a process goes through: Ctrl-C, forks, threads, its end; and nothing is left of what it ran."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import belljar
from belljar import Session
from conftest import PATIENCE, appears, children, descriptors, resident_kb, threads

LONG = os.environ.get("BELLJAR_LONG") == "1"

# Each blocks in a call, and has a file `begun` made once the guest runs.
BLOCKED = {
    "run": "belljar.run(['sh', '-c', 'touch begun; sleep 600'])",
    "python": "s.python('import time; open(\"begun\", \"w\").close(); time.sleep(600)')",
    "python that does not stop": "s.python('import time\\nopen(\"begun\", \"w\").close()\\nwhile True:\\n"
    "  try: time.sleep(600)\\n  except BaseException: pass')",
    "shell": "s.shell('touch begun; sleep 600')",
    "stream": "list(s.shell_stream('touch begun; sleep 600'))",
    "result of a stream": "s.python_stream('import time; open(\"begun\", \"w\").close(); time.sleep(600)').result",
    "tool": "belljar.tools(s)['shell'](commands=['touch begun; sleep 600'])",
}

PROGRAM = """
import os, sys, time
import belljar
s = belljar.Session(workdir=os.getcwd())
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", time.monotonic(), flush=True)
    # The session can be used on.
    if {again}: print("again", s.shell("echo yes").stdout.strip(), flush=True)
s.close()
"""


@pytest.mark.parametrize("name", BLOCKED)
def test_ctrl_c_comes_back_at_once(name, program, work):
    process = program(PROGRAM.format(call=BLOCKED[name], again=name != "run"))
    assert appears(work / "begun")
    time.sleep(0.2)  # until it waits for the answer and no more for the start
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=PATIENCE)[0]
    words = output.split()
    assert words[0] == "interrupted", output
    # On a machine that does nothing else it takes some 10 ms: bench/python.py measures it.
    assert float(words[1]) - sent < 2.0, output
    assert name == "run" or words[-2:] == ["again", "yes"], output
    assert process.returncode == 0


def test_a_program_that_ends_without_a_word_leaves_nothing(program, work):
    """No close, no with; a thread in a call; the end of the interpreter ends it all."""
    process = program(
        textwrap.dedent("""
        import os, threading, belljar
        s = belljar.Session(workdir=os.getcwd())
        print(s.python("import os; os.getpid()").ok, flush=True)
        threading.Thread(target=lambda: s.shell("touch begun; sleep 600"), daemon=True).start()
        while not os.path.exists("begun"): pass
        print([line for line in os.popen("ps -o pid= --ppid %d" % os.getpid()).read().split()], flush=True)
        """)
    )
    output = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 0, output
    assert output.startswith("True\n") and "Traceback" not in output, output
    assert not [name for name in os.listdir("/tmp") if name.startswith(f"belljar-{process.pid}-")]


def test_a_program_that_is_killed_takes_its_guests_along(program, work):
    process = program(
        "import belljar\nwith belljar.Session(workdir='.') as s:\n"
        "    s.shell('touch begun; while true; do echo $$ > pid; date +%s%N > beat; sleep 0.05; done')\n"
    )
    assert appears(work / "beat")
    process.kill()
    process.wait()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        beat = (work / "beat").read_text()
        time.sleep(1)
        if (work / "beat").read_text() == beat:
            break
    else:
        pytest.fail("the guest lives on")
    # The next start takes away what the killed one could not.
    belljar.shutdown()
    Session().close()
    assert not [name for name in os.listdir("/tmp") if name.startswith(f"belljar-{process.pid}-")]


def test_a_fork_has_no_part_in_the_sessions_of_its_parent():
    with Session() as s:
        s.python("x = 1")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                try:
                    s.python("x = 2")
                except belljar.SessionClosed:
                    code = 0
                # What is its own works.
                code += 0 if belljar.run(["true"]).ok else 2
                with Session() as own:
                    code += 0 if own.python("1 + 1").result == "2" else 4
                s.close()
                belljar.shutdown()
            except BaseException:
                code = 8
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 if sys.version_info >= (3, 9) else True
        assert s.python("x").result == "1"


def test_multiprocessing_of_the_host_is_not_disturbed(program):
    process = program(
        textwrap.dedent("""
        import multiprocessing, belljar

        def work(i):
            return belljar.run(["sh", "-c", f"echo {i}"]).stdout

        if __name__ == "__main__":
            with belljar.Session() as s:
                s.python("1")
                with multiprocessing.get_context("fork").Pool(2) as pool:
                    print(pool.map(work, range(4)))
        """)
    )
    output = process.communicate(timeout=PATIENCE)[0]
    assert output == "['0\\n', '1\\n', '2\\n', '3\\n']\n"


def test_many_threads_may_run_at_once():
    outcomes = []

    def work(i):
        outcomes.append(belljar.run(["sh", "-c", f"echo {i}"]).stdout)

    pool = [threading.Thread(target=work, args=(i,)) for i in range(12)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    assert sorted(outcomes) == sorted(f"{i}\n" for i in range(12))


def test_an_abandoned_session_is_closed():
    s = Session()
    folder = s.describe()["folder"]
    assert os.path.exists(folder)
    del s
    end = time.monotonic() + PATIENCE
    while os.path.exists(folder) and time.monotonic() < end:
        time.sleep(0.05)
    assert not os.path.exists(folder)


def test_shutdown_leaves_no_thread_and_a_new_session_starts():
    belljar.shutdown()
    with Session() as s:
        assert s.python("1").ok
        belljar.shutdown()
        with pytest.raises(belljar.SessionClosed):
            s.python("1")
    assert not children()
    with Session() as s:
        assert s.python("2").result == "2"


POOLED = 20  # threads that the engine's pools may grow to when calls meet: five pools of four


def settled(measure, most, patience=PATIENCE):
    """The first figure that is within `most`; a closed session's folder is removed beside the caller,
    so a second look may see more again."""
    end = time.monotonic() + patience
    while (figure := measure()) > most and time.monotonic() < end:
        time.sleep(0.05)
    return figure


def at_rest(measure, patience=PATIENCE):
    """The figure once it has been the same for half a second: what stays, not what is passing."""
    end = time.monotonic() + patience
    figures = [measure()]
    while time.monotonic() < end and (len(figures) < 10 or len(set(figures[-10:])) > 1):
        time.sleep(0.05)
        figures.append(measure())
    return figures[-1]


def test_many_runs_cost_nothing():
    rounds = 10_000 if LONG else 150
    belljar.shutdown()
    for _ in range(20):
        belljar.run(["/bin/true"])
    before = at_rest(descriptors), at_rest(threads), children(), resident_kb()
    for _ in range(rounds):
        assert belljar.run(["/bin/true"]).ok
    assert settled(descriptors, before[0]) <= before[0]
    assert settled(threads, before[1]) <= before[1]
    assert children() <= before[2]
    assert resident_kb() - before[3] < 4 * 1024, "memory grew"


def test_many_sessions_cost_nothing():
    rounds = 1_000 if LONG else 25
    belljar.shutdown()

    def one():
        with Session() as s:
            assert s.python("1").ok and s.shell("true").ok

    for _ in range(10):
        one()
    before = at_rest(descriptors), at_rest(threads), len(children()), resident_kb()
    for _ in range(rounds):
        one()
    assert settled(descriptors, before[0]) <= before[0]
    assert threads() - before[1] < POOLED, "a thread for each session"
    assert settled(lambda: len(children()), before[2]) <= before[2]
    assert resident_kb() - before[3] < 8 * 1024, "memory grew"
    belljar.shutdown()
    assert not children()


def test_a_large_process_with_many_threads_launches():
    size = (2048 if LONG else 256) << 20
    memory = bytearray(size)
    memory[::4096] = b"x" * len(memory[::4096])
    stop = threading.Event()
    pool = [threading.Thread(target=stop.wait) for _ in range(50)]
    for thread in pool:
        thread.start()
    try:
        assert belljar.run(["echo", "hi"]).stdout == "hi\n"
        with Session() as s:
            assert s.python("1").ok
    finally:
        stop.set()
        for thread in pool:
            thread.join()
    assert len(memory) == size


def test_importing_starts_nothing():
    code = "import os, belljar; print(len(os.listdir('/proc/self/task')))"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, universal_newlines=True, timeout=PATIENCE)
    assert done.stdout == "1\n"
