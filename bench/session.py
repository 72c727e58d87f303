#!/usr/bin/env python3
"""Sessions beside Jupyter's kernel: first result, round trip, output, memory.

  session.py [--rounds=N] [--doc=FILE] [--check]

Both are driven from this process, in turns. The kernel is ipykernel through
jupyter_client, in an environment made for it; numpy and matplotlib are Debian's.
"""

from __future__ import annotations

import argparse
import base64
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DRIVER = ROOT / "build/release/session_driver"
PYTHON = "/usr/bin/python3"
PACKAGES = ["ipykernel", "jupyter_client"]
IMPORTS = "import numpy, matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot"
LINES = 100_000  # of 1,000 characters
TARGETS = {"warm": 0.03, "round trip": 0.1, "private MiB": 6.0}


class Engine:
    """session_driver: lines of JSON."""

    def __init__(self, **settings):
        setup = {"profile": "developer", "settings": {"python": PYTHON, "max_sessions": 1000, **settings}}
        self.process = subprocess.Popen(
            [DRIVER, json.dumps(setup)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tempfile.gettempdir()
        )
        self.last = 0

    def call(self, **request) -> dict:
        self.last += 1
        self.process.stdin.write((json.dumps({"id": self.last, **request}) + "\n").encode())
        self.process.stdin.flush()
        self.streamed = 0
        while True:
            answer = json.loads(self.process.stdout.readline())
            if "stream" in answer:
                self.streamed += len(base64.b64decode(answer["bytes"]))
            elif answer["id"] == self.last:
                assert "error" not in answer, answer
                return answer

    def python(self, session: str, code: str, **more) -> dict:
        answer = self.call(op="python", session=session, code=code, **more)
        assert answer["status"] == "success", answer
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


KERNEL = r"""
import sys, time, json
from jupyter_client.manager import start_new_kernel
def say(**what): print(json.dumps(what), flush=True)
began = time.monotonic()
manager, client = start_new_kernel(kernel_name="python3")
def run(code, silent=False):
    got = 0
    message = client.execute(code)
    while True:
        reply = client.get_iopub_msg(timeout=60)
        if reply["parent_header"].get("msg_id") != message: continue
        if reply["msg_type"] == "stream": got += len(reply["content"]["text"])
        if reply["msg_type"] == "error": raise SystemExit("\n".join(reply["content"]["traceback"]))
        if reply["msg_type"] == "status" and reply["content"]["execution_state"] == "idle": break
    client.get_shell_msg(timeout=60)
    return got
run("1+1")
say(first=time.monotonic() - began, pid=manager.provisioner.process.pid if hasattr(manager, "provisioner") else None)
for line in sys.stdin:
    request = json.loads(line)
    began = time.monotonic()
    got = run(request["code"])
    say(time=time.monotonic() - began, got=got)
client.stop_channels(); manager.shutdown_kernel(now=True)
"""


class Kernel:
    """ipykernel through jupyter_client, in a process of its own environment."""

    def __init__(self, python: pathlib.Path):
        self.process = subprocess.Popen(
            [python, "-c", KERNEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tempfile.gettempdir()
        )
        hello = json.loads(self.process.stdout.readline())
        self.first, self.pid = hello["first"], hello["pid"]

    def run(self, code: str) -> dict:
        self.process.stdin.write(json.dumps({"code": code}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def environment() -> pathlib.Path:
    folder = ROOT / "build/bench-jupyter"
    python = folder / "bin/python"
    if not python.exists():
        print("making an environment with", *PACKAGES, file=sys.stderr)
        subprocess.run([PYTHON, "-m", "venv", "--system-site-packages", folder], check=True)
    if subprocess.run([python, "-c", "import " + ", ".join(PACKAGES)], capture_output=True).returncode:
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    subprocess.run(
        [python, "-m", "ipykernel", "install", "--sys-prefix", "--name", "python3"], check=True, capture_output=True
    )
    return python


def descendants(pid: int) -> set[int]:
    found = set()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            for child in (task / "children").read_text().split():
                found |= {int(child)} | descendants(int(child))
        except OSError:
            pass
    return found


def private_mib(pids) -> float:
    total = 0
    for pid in pids:
        try:
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Private_"):
                    total += int(line.split()[1])
        except OSError:
            pass
    return total / 1024


def first_results(rounds: int, python: pathlib.Path) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"cold": [], "warm": [], "kernel": []}
    cold = Engine(preload=[])
    warm = Engine()
    warm.python("wake", "1")
    for round_ in range(rounds):
        for name, engine in (("cold", cold), ("warm", warm)):
            began = time.monotonic()
            engine.python(f"s{round_}", "1+1")
            times[name].append(time.monotonic() - began)
            engine.call(op="close", session=f"s{round_}")
        if round_ % 10 == 0:
            kernel = Kernel(python)
            times["kernel"].append(kernel.first)
            kernel.close()
    cold.close()
    warm.close()
    return times


def round_trips(rounds: int, python: pathlib.Path) -> dict[str, list[float]]:
    engine, kernel = Engine(), Kernel(python)
    engine.python("a", "1")
    times: dict[str, list[float]] = {"session": [], "kernel": []}
    for _ in range(rounds):
        began = time.monotonic()
        engine.python("a", "1+1")
        times["session"].append(time.monotonic() - began)
        times["kernel"].append(kernel.run("1+1")["time"])
    engine.close()
    kernel.close()
    return times


def output(python: pathlib.Path) -> dict[str, float]:
    code = f"for i in range({LINES}): print('x' * 999)"
    engine, kernel = Engine(), Kernel(python)
    began = time.monotonic()
    engine.python("a", code, stream=True)
    ours = time.monotonic() - began
    assert engine.streamed == LINES * 1000
    answer = kernel.run(code)
    engine.close()
    kernel.close()
    mb = LINES * 1000 / 1e6
    return {"session": mb / ours, "kernel": answer["got"] / 1e6 / answer["time"]}


def memory(sessions: int, python: pathlib.Path) -> dict[str, float]:
    engine = Engine()
    engine.python("wake", IMPORTS)
    before = private_mib(descendants(engine.process.pid))
    for i in range(sessions):
        engine.python(f"m{i}", IMPORTS)
    ours = (private_mib(descendants(engine.process.pid)) - before) / sessions
    kernel = Kernel(python)
    kernel.run(IMPORTS)
    theirs = private_mib({kernel.pid} if kernel.pid else descendants(kernel.process.pid))
    kernel.close()
    engine.close()
    return {"session": ours, "kernel": theirs}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--doc")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    python = environment()

    first = {name: statistics.median(list_) * 1000 for name, list_ in first_results(options.rounds, python).items()}
    trips = {name: statistics.median(list_) * 1000 for name, list_ in round_trips(options.rounds * 10, python).items()}
    rate = output(python)
    space = memory(20, python)
    missed = []

    def row(what, ours, theirs, form, ratio=None, target=None):
        verdict = ""
        if target is not None:
            met = ratio <= target
            verdict = "met" if met else "missed"
            if not met:
                missed.append(what)
        shown = f"{ratio:.3f}" if ratio is not None else ""
        goal = f"≤ {target}" if target is not None else ""
        return f"| {what} | {form.format(ours)} | {form.format(theirs)} | {shown} | {goal} | {verdict} |"

    table = "\n".join([
        f"{platform.machine()}, {os.cpu_count()} virtual cores, Linux {platform.release()}, "
        f"{datetime.date.today()}; {options.rounds} rounds. Profile developer, {platform.python_implementation()} "
        f"{subprocess.run([PYTHON, '-V'], capture_output=True, text=True).stdout.split()[1]}.",
        "",
        "| | belljar | ipykernel | ratio | target | |",
        "|---|---|---|---|---|---|",
        row("first result of a new session, cold, ms", first["cold"], first["kernel"], "{:.1f}", first["cold"] / first["kernel"]),
        row("the same, warm (numpy, pandas, pyplot imported), ms", first["warm"], first["kernel"], "{:.2f}", first["warm"] / first["kernel"], TARGETS["warm"]),
        row("round trip of `1+1`, ms", trips["session"], trips["kernel"], "{:.3f}", trips["session"] / trips["kernel"], TARGETS["round trip"]),
        row("100 MB printed, MB/s", rate["session"], rate["kernel"], "{:.0f}"),
        row("private memory of an idle session with numpy and pyplot, MiB", space["session"], space["kernel"], "{:.1f}", space["session"], TARGETS["private MiB"]),
    ])  # fmt: skip
    print(table)
    if options.doc:
        path = pathlib.Path(options.doc)
        text = path.read_text()
        begin, end = "<!-- session:begin -->", "<!-- session:end -->"
        if begin not in text:
            text += f"\n## Sessions\n\n{begin}\n{end}\n"
        head, rest = text.split(begin)
        path.write_text(head + begin + "\n" + table + "\n" + end + rest.split(end)[1])
    sys.exit(1 if options.check and missed else 0)


if __name__ == "__main__":
    main()
