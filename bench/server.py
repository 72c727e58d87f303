#!/usr/bin/env python3
"""The server under load: one-shot executions, what HTTP adds to a call, tools, and guests that spin.

  server.py [--seconds=N] [--doc=FILE] [--check]

One run starts one `belljar serve` of the release build and drives it from processes of its own, each with one
connection that it keeps.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import http.client
import json
import multiprocessing
import os
import pathlib
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BELLJAR = pathlib.Path(os.environ.get("BELLJAR", ROOT / "build/release/belljar"))
DRIVER = pathlib.Path(os.environ.get("SESSION_DRIVER", BELLJAR.parent / "session_driver"))
TOKEN = "bench-token-0123456789abcdef"
CLIENTS = (1, 8, 64)
P99_WHILE_SPINNING = 100.0  # ms


class Refused(Exception):
    pass


class Client:
    def __init__(self, port: int):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def __call__(self, method: str, path: str, **fields) -> dict:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        body = None
        if fields:
            body, headers["Content-Type"] = json.dumps(fields), "application/json"
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise Refused(f"{method} {path}: {answer.status} {text[:500]!r}")
        return json.loads(text) if text else {}


@contextlib.contextmanager
def server():
    with tempfile.TemporaryDirectory(prefix="belljar-bench-") as folder:
        tokens = pathlib.Path(folder, "tokens")
        tokens.write_text(f"bench admin {TOKEN}\n")
        tokens.chmod(0o600)
        config = pathlib.Path(folder, "config.toml")
        config.write_text(
            f'[session]\nmax_sessions = 500\n[server]\nlisten = ["127.0.0.1:0"]\nsocket = "{folder}/s.sock"\n'
            f'skills_dir = "{folder}/skills"\nmax_sessions_per_token = 500\nmax_requests = 500\nmax_requests_total = 1000\n'
        )
        errors = open(pathlib.Path(folder, "errors"), "w+")
        process = subprocess.Popen(
            [BELLJAR, "serve", f"--config={config}", f"--token-file={tokens}", "--audit=none", "--profile=developer"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
        )  # fmt: skip
        try:
            yield wait_for_port(process, pathlib.Path(folder, "errors"))
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def wait_for_port(process: subprocess.Popen, errors: pathlib.Path) -> int:
    for _ in range(1500):
        text = errors.read_text()
        if "belljar: ready" in text:
            return int(re.search(r"listening on 127\.0\.0\.1:(\d+)", text)[1])
        if process.poll() is not None:
            raise SystemExit(text)
        time.sleep(0.02)
    raise SystemExit("the server is not ready: " + errors.read_text())


def work(port: int, seconds: float, queue) -> None:
    client = Client(port)
    times, failures = [], []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        try:
            answer = client("POST", "/v1/execute/python", code="1+1")
            assert answer["result"] == "2", answer
            times.append((time.monotonic() - began) * 1000)
        except Refused as refusal:
            failures.append(str(refusal))
    queue.put((times, failures))


def one_shots(port: int, clients: int, seconds: float) -> tuple[float, list[float], list[str]]:
    queue = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(port, seconds, queue)) for _ in range(clients)]
    for worker in workers:
        worker.start()
    told = [queue.get() for _ in workers]
    for worker in workers:
        worker.join()
    times = [each for mine, _ in told for each in mine]
    return len(times) / seconds, times, [each for _, mine in told for each in mine]


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def round_trips(port: int, rounds: int) -> dict[str, list[float]]:
    """The same call through the engine alone and through HTTP, in turns."""
    setup = {"profile": "developer", "settings": {"python": "/usr/bin/python3"}}
    driver = subprocess.Popen(
        [DRIVER, json.dumps(setup)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tempfile.gettempdir()
    )

    def direct(code: str) -> None:
        request = {"id": 1, "op": "python", "session": "a", "code": code}
        driver.stdin.write((json.dumps(request) + "\n").encode())
        driver.stdin.flush()
        assert json.loads(driver.stdout.readline())["status"] == "success"

    client = Client(port)
    session = client("POST", "/v1/sessions")["id"]
    times: dict[str, list[float]] = {"engine": [], "http": []}
    for _ in range(rounds + 5):
        began = time.monotonic()
        direct("1+1")
        times["engine"].append((time.monotonic() - began) * 1000)
        began = time.monotonic()
        client("POST", f"/v1/sessions/{session}/python", code="1+1")
        times["http"].append((time.monotonic() - began) * 1000)
    driver.stdin.close()
    driver.wait()
    client("DELETE", f"/v1/sessions/{session}")
    return {name: list_[5:] for name, list_ in times.items()}  # the first ones start interpreters


def while_guests_spin(port: int, seconds: float) -> list[float]:
    """The API's answers while twice as many guests as there are cores never stop."""
    client = Client(port)
    sessions = [client("POST", "/v1/sessions")["id"] for _ in range(2 * os.cpu_count())]
    for session in sessions:
        client("POST", f"/v1/sessions/{session}/tools/process_start", arguments=["sh", "-c", "while :; do :; done"])
    times = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for path in ("/v1/health", "/v1/sessions", f"/v1/sessions/{sessions[0]}/files"):
            began = time.monotonic()
            client("GET", path)
            times.append((time.monotonic() - began) * 1000)
        time.sleep(0.01)
    for session in sessions:
        client("DELETE", f"/v1/sessions/{session}")
    return times


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--doc")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()

    rows, failed = [], 0
    with server() as port:
        one_shots(port, 1, 1)  # the warm interpreter is there
        for clients in CLIENTS:
            rate, times, failures = one_shots(port, clients, options.seconds)
            failed += len(failures)
            print(*failures[:3], sep="\n", file=sys.stderr)
            rows.append(
                f"| one-shot executions a second, {clients} client{'s' * (clients > 1)} | {rate:.1f} | "
                f"p50 {statistics.median(times):.1f} ms, p99 {percentile(times, 0.99):.1f} ms | | |"
            )
        trips = round_trips(port, int(options.seconds * 50))
        added = statistics.median(trips["http"]) - statistics.median(trips["engine"])
        late = percentile(trips["http"], 0.99) - percentile(trips["engine"], 0.99)
        rows.append(f"| added by HTTP to a session call, ms | p50 {added:.2f} | p99 {late:.2f} | | |")
        spinning = percentile(while_guests_spin(port, options.seconds), 0.99)
        met = spinning <= P99_WHILE_SPINNING
        rows.append(f"| executions that failed | {failed} | | 0 | {'missed' if failed else 'met'} |")
        rows.append(
            f"| p99 of the API while guests spin on all cores, ms | {spinning:.1f} | | ≤ {P99_WHILE_SPINNING:.0f} | "
            f"{'met' if met else 'missed'} |"
        )
    table = "\n".join([
        f"{platform.machine()}, {os.cpu_count()} virtual cores, Linux {platform.release()}, {datetime.date.today()}; "
        f"{options.seconds:.0f} s each. Profile developer.",
        "",
        "| | | | target | |",
        "|---|---|---|---|---|",
        *rows,
    ])  # fmt: skip
    print(table)
    if options.doc:
        path = pathlib.Path(options.doc)
        text = path.read_text()
        begin, end = "<!-- server:begin -->", "<!-- server:end -->"
        if begin not in text:
            text += f"\n## The server\n\n{begin}\n{end}\n"
        head, rest = text.split(begin)
        path.write_text(head + begin + "\n" + table + "\n" + end + rest.split(end)[1])
    sys.exit(1 if options.check and (failed or not met) else 0)


if __name__ == "__main__":
    main()
