#!/usr/bin/env python3
"""What belljar does on this host, as JSON: run inside a machine by test_hosts.py.

For each profile: does it start, may the guest write its workdir, read a secret beside
it, empty that secret, see a process of the host, reach a listener of the host; and what
ends a guest that takes too much memory, processor time or too many processes.
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

BELLJAR = os.environ["BELLJAR"]
PROFILES = ("open", "developer", "restricted", "public-bot")

GUEST = """
( echo written > here ) 2>/dev/null && echo wrote_workdir
cat {secret} 2>/dev/null | grep -q sesame && echo read_secret
( : > {secret} ) 2>/dev/null
python3 -c 'import os; os.truncate("{secret}", 0)' 2>/dev/null
[ -d /proc/{outside}/fd ] && ls /proc/{outside}/fd >/dev/null 2>&1 && echo saw_process
grep -q outside-mark[e]r /proc/[0-9]*/cmdline 2>/dev/null && echo saw_process
kill -0 {outside} 2>/dev/null && echo could_signal
python3 -c 'import socket; socket.create_connection(("127.0.0.1", {port}), 2)' 2>/dev/null && echo connected
[ "$(id -u)" = 0 ] && echo is_root
echo done
"""


def belljar(profile, *command, flags=(), cwd=None):
    done = subprocess.run(
        [BELLJAR, "exec", f"--profile={profile}", *flags, "--", *command],
        cwd=cwd, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return {"exit": done.returncode, "out": done.stdout.split(), "err": done.stderr.strip()}


def listener():
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: [server.accept() for _ in range(99)], daemon=True).start()
    return server.getsockname()[1]


def main():
    top = pathlib.Path(tempfile.mkdtemp(prefix="hosts-", dir=os.environ.get("HOME", "/root")))
    work = top / "work"
    work.mkdir()
    bystander = subprocess.Popen(["outside-marker", "300"], executable="/usr/bin/sleep")
    port = listener()
    found = {}
    try:
        for profile in PROFILES:
            secret = top / "secret"
            secret.write_text("sesame\n")
            script = GUEST.format(secret=secret, outside=bystander.pid, port=port)
            found[profile] = belljar(profile, "/bin/sh", "-c", script, cwd=work)
            found[profile]["secret_intact"] = secret.read_text() == "sesame\n"
            found[profile]["bystander_alive"] = bystander.poll() is None
        hungry = "x = b'x' * (400 << 20); import time; time.sleep(20)"
        found["memory"] = belljar(
            "developer", "python3", "-c", hungry, flags=["--max-memory-mb=150"], cwd=work)
        report = top / "report.json"
        # A mapping that RLIMIT_DATA does not count: the sum over the jar must.
        shared = ("import mmap, time; m = mmap.mmap(-1, 400 << 20)\n"
                  "for i in range(0, 400 << 20, 4096): m[i] = 1\ntime.sleep(20)")
        found["shared_memory"] = belljar(
            "developer", "python3", "-c", shared,
            flags=["--max-memory-mb=150", f"--report={report}"], cwd=work)  # fmt: skip
        found["report"] = json.loads(report.read_text()) if report.exists() else None
        many = "import os, time\nn = 0\ntry:\n  for _ in range(200):\n    n += 1\n    if os.fork() == 0:\n      time.sleep(5); os._exit(0)\nexcept OSError: pass\nprint(n)"
        found["processes"] = belljar(
            "developer", "python3", "-c", many, flags=["--max-procs=20"], cwd=work)
        # One after the other, each within the limit: only the sum over the jar is not.
        busy = "import os, time\nfor _ in range(12):\n  if os.fork() == 0:\n    while time.process_time() < 0.5: pass\n    os._exit(0)\n  os.wait()\nprint('burnt')"
        found["busy"] = belljar(
            "developer", "python3", "-c", busy, flags=["--max-cpu-secs=2"], cwd=work)
        doctor = subprocess.run([BELLJAR, "doctor", "--json"], capture_output=True, text=True)
        found["doctor"] = json.loads(doctor.stdout)
    finally:
        bystander.kill()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
