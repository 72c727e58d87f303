#!/usr/bin/env python3
"""The Python package beside subprocess, bubblewrap and the program: launching, and Ctrl-C.

  python.py [--rounds=N] [--program=FILE] [--doc=FILE] [--check]

All are launched from one Python process, in turns, in an order that changes: from a small one, and
from one with 2 GiB resident and 50 threads. The package is built and installed into an environment
of its own; the program is build/release/belljar, or the one that is named.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"
PROGRAM = ROOT / "build/release/belljar"
TARGETS = {"belljar.run": 1.1, "ctrl-c": 0.2}
GUEST = "/bin/true"


def bubblewrap(work: str) -> list:
    """Namespaces, binds and folders as the profile restricted has them."""
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for folder in ("/usr", "/etc", "/opt"):
        command += ["--ro-bind-try", folder, folder]
    for link in ("bin", "sbin", "lib", "lib64"):
        command += ["--symlink", f"usr/{link}", f"/{link}"]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/run"]
    return [*command, "--bind", work, work, "--chdir", work, "--clearenv", "--setenv", "PATH", "/usr/bin:/bin", GUEST]


def spawn(command: list) -> None:
    """The least that a process can do to launch another."""
    _, status = os.waitpid(os.posix_spawnp(command[0], command, os.environ), 0)
    assert status == 0, (command, status)


def measure(rounds: int, mib: int, program: str) -> None:
    """In a process of its own: prints the median of each launcher, in seconds."""
    import belljar

    work = tempfile.mkdtemp(prefix="bench-python-")
    os.chdir(work)
    memory = bytearray(mib << 20)
    for at in range(0, len(memory), 4096):
        memory[at] = 1
    stop = threading.Event()
    for _ in range(50 if mib else 0):
        threading.Thread(target=stop.wait, daemon=True).start()

    policy = belljar.SandboxPolicy()
    command = [program, "exec", "--profile=restricted", "--", GUEST]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "check": True}
    launchers = {
        "subprocess.run": lambda: subprocess.run([GUEST], **quiet),
        "subprocess.run of bwrap": lambda: subprocess.run(bubblewrap(work), **quiet),
        "subprocess.run of belljar exec": lambda: subprocess.run(command, **quiet),
        "posix_spawn of belljar exec": lambda: spawn(command),
        "belljar.run": lambda: belljar.run([GUEST], policy, check=True),
    }
    times = {name: [] for name in launchers}
    for turn in range(rounds + 3):
        order = list(launchers)
        random.shuffle(order)
        for name in order:
            began = time.perf_counter()
            launchers[name]()
            if turn >= 3:
                times[name].append(time.perf_counter() - began)
    stop.set()
    os.chdir("/")
    os.rmdir(work)
    print(json.dumps({name: statistics.median(taken) for name, taken in times.items()}))


BLOCKED = """
import os, sys, time, belljar
os.chdir({work!r})
s = belljar.Session()
s.shell("true"); s.python("1")
try:
    print("ready", flush=True)
    {call}
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
s.close()
"""
CALLS = {
    "run": "belljar.run(['sleep', '600'])",
    "Session.python": "s.python('import time; time.sleep(600)')",
    "Session.python that ignores it": "s.python('import time\\nwhile True:\\n  try: time.sleep(9)\\n  except BaseException: pass')",
    "Session.shell": "s.shell('sleep 600')",
    "Session.shell_stream": "list(s.shell_stream('sleep 600'))",
}


def ctrl_c(python: pathlib.Path, call: str) -> float:
    with tempfile.TemporaryDirectory(prefix="bench-python-") as work:
        code = BLOCKED.format(work=work, call=call)
        process = subprocess.Popen([python, "-c", code], stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        time.sleep(0.5)  # until it waits
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        caught = float(process.stdout.readline())
        process.communicate(timeout=60)
        return caught - sent


def environment() -> pathlib.Path:
    folder = ROOT / "build/bench-python"
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([PYTHON, "-m", "venv", "--system-site-packages", folder], check=True)
    building = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", "CC": "cc", "CXX": "c++"}
    command = [python, "-m", "pip", "install", "-q", "--force-reinstall", ROOT / "bindings/python"]
    subprocess.run(command, check=True, env={**os.environ, **building})
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--program", default=str(PROGRAM))
    parser.add_argument("--doc")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)  # MiB of the process
    options = parser.parse_args()
    if options.measure is not None:
        measure(options.rounds, options.measure, options.program)
        return

    python = environment()
    found = {}
    for mib in (0, 2048):
        command = [python, __file__, f"--measure={mib}", f"--rounds={options.rounds}", f"--program={options.program}"]
        found[mib] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    waits = {name: max(ctrl_c(python, call) for _ in range(5)) for name, call in CALLS.items()}

    missed = []

    def judged(name: str, value: float, target: float) -> str:
        if value <= target:
            return "met"
        missed.append(name)
        return "missed"

    base = "posix_spawn of belljar exec"
    lines = [
        f"{platform.machine()}, {os.cpu_count()} virtual cores, Linux {platform.release()}, {datetime.date.today()}; "
        f"{options.rounds} rounds, as {'root' if os.geteuid() == 0 else 'an ordinary user'}. Profile restricted; "
        f"Python {subprocess.run([PYTHON, '-V'], stdout=subprocess.PIPE, text=True).stdout.split()[1]}.",
        "",
        "| launching `/bin/true` | small process, ms | × belljar exec | 2 GiB, 50 threads, ms | × belljar exec | target | |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in found[0]:
        small, large = found[0][name], found[2048][name]
        ratios = small / found[0][base], large / found[2048][base]
        target = TARGETS.get(name)
        verdict = judged(name, max(ratios), target) if target else ""
        goal = f"≤ {target}" if target else ""
        lines.append(
            f"| {name} | {small * 1000:.2f} | {ratios[0]:.2f} | {large * 1000:.2f} | {ratios[1]:.2f} | {goal} | {verdict} |"
        )
    lines += ["", "| Ctrl-C in | slowest of 5, ms | target | |", "|---|---|---|---|"]
    for name, wait in waits.items():
        lines.append(f"| {name} | {wait * 1000:.0f} | ≤ 200 | {judged(name, wait, TARGETS['ctrl-c'])} |")
    table = "\n".join(lines)
    print(table)
    if options.doc:
        path = pathlib.Path(options.doc)
        text = path.read_text()
        begin, end = "<!-- python:begin -->", "<!-- python:end -->"
        if begin not in text:
            text += f"\n## The Python package\n\n{begin}\n{end}\n"
        head, rest = text.split(begin)
        path.write_text(head + begin + "\n" + table + "\n" + end + rest.split(end)[1])
    sys.exit(1 if options.check and missed else 0)


if __name__ == "__main__":
    main()
