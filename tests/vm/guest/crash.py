#!/usr/bin/env python3
"""Who hears of a crash, as JSON: run as root inside a machine by test_core_dumps.py.

The machine's program for core dumps is one that notes that it was run. Somebody crashes outside,
which is the control, and in a jar of each profile: as it is, and after the guest has changed its
limit on core dumps.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import time

BELLJAR = os.environ["BELLJAR"]
HEARD = pathlib.Path("/tmp/heard")
CATCHER = pathlib.Path("/tmp/catcher")
PROFILES = ("developer", "restricted", "public-bot")
USER = 1000

CHANGES = {
    "as it is": "pass",
    "lowered": "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
    "only its soft limit lowered": "resource.setrlimit(resource.RLIMIT_CORE, (0, 1))",
    "raised": "try: resource.setrlimit(resource.RLIMIT_CORE, (-1, -1))\nexcept ValueError: pass",
    "lowered and asked for": "try: resource.prlimit(0, resource.RLIMIT_CORE, (0, 0))\nexcept OSError: pass",
}
CRASH = """
import os, resource, signal
{change}
print(*resource.getrlimit(resource.RLIMIT_CORE), flush=True)
os.kill(os.getpid(), signal.SIGSEGV)
"""


def crash(who, argv, change, home):
    prefix = [] if who == "root" else ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--"]
    HEARD.unlink(missing_ok=True)
    done = subprocess.run(
        [*prefix, *argv, "/usr/bin/python3", "-c", CRASH.format(change=change)], cwd=home / "work",
        env={"PATH": os.environ["PATH"], "HOME": str(home)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    end = time.monotonic() + 2  # the program runs beside us
    while not HEARD.exists() and time.monotonic() < end:
        time.sleep(0.05)
    return {"heard": HEARD.exists(), "limit": done.stdout.strip(), "errors": done.stderr}


def main():
    CATCHER.write_text(f"#!/bin/sh\ncat > /dev/null\n: > {HEARD}\n")
    CATCHER.chmod(0o755)
    pathlib.Path("/proc/sys/kernel/core_pattern").write_text(f"|{CATCHER}")
    found = {}
    for who in ("root", "user"):
        home = pathlib.Path(tempfile.mkdtemp(prefix="crash-", dir="/home"))
        (home / "work").mkdir()
        for folder in (home, home / "work"):
            os.chmod(folder, 0o755)
            os.chown(folder, *([USER, USER] if who == "user" else [0, 0]))
        found[f"{who} outside"] = crash(who, [], "pass", home)
        for profile in PROFILES:
            for name, change in CHANGES.items():
                argv = [BELLJAR, "exec", f"--profile={profile}", "--"]
                found[f"{who} {profile} {name}"] = crash(who, argv, change, home)
    print(json.dumps(found, indent=1))


main()
