#!/usr/bin/env python3
"""What belljar could leave behind on a host: processes, mounts, cgroups, files in
temporary folders, System V memory. Taken before the tests and compared after.

  leftovers.py --snapshot           prints one
  leftovers.py --compare SNAPSHOT   fails on what is there now and was not then
"""
import json
import os
import pathlib
import sys
import time

SETTLE_SECONDS = 5  # the kernel takes namespaces down after their last process


def processes():
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            line = pathlib.Path("/proc", entry, "cmdline").read_bytes()
            uid = os.stat(f"/proc/{entry}").st_uid
        except OSError:
            continue
        words = line.decode(errors="replace").split("\0")
        name = os.path.basename(words[0])
        if name in ("belljar", "belljar-init") or uid >= 0x70000000:
            found.append(f"process {entry}: {' '.join(words)[:80]}")
    return found


def mounts():
    return [f"mount {line.split()[4]}" for line in open("/proc/self/mountinfo")]


def cgroups():
    return [f"cgroup {path}" for path in pathlib.Path("/sys/fs/cgroup").rglob("belljar-*")]


def files():
    return [f"file {path}" for folder in ("/tmp", "/dev/shm", "/var/tmp")
            for path in pathlib.Path(folder).glob("belljar*")]


def shared_memory():
    with open("/proc/sysvipc/shm") as table:
        return [f"shared memory {line.split()[1]}" for line in list(table)[1:]]


def snapshot():
    return sorted(processes() + mounts() + cgroups() + files() + shared_memory())


def main():
    if sys.argv[1:2] == ["--snapshot"]:
        print(json.dumps(snapshot()))
        return 0
    before = set(json.loads(sys.argv[2]))
    deadline = time.monotonic() + SETTLE_SECONDS
    while (left := [item for item in snapshot() if item not in before]) and time.monotonic() < deadline:
        time.sleep(0.1)
    for item in left:
        print("left behind:", item)
    print(f"leftovers: {len(left)}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
