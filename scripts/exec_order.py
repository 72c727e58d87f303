#!/usr/bin/env python3
"""Writes cmake/exec_order.ld: what `belljar exec` runs, so that the linker puts it together.

  scripts/exec_order.py [build/release]    as root, with the release preset built

Each page of code that a launch touches is a page fault and counts as resident memory. The program has a server in it
too, so without an order the half MiB that a launch needs is strewn over all of it. A few launches are stepped through,
instruction by instruction, and the link is done once more with a map, which says from where each instruction came. What
a later change adds and this list does not know is linked as before.
"""
import bisect
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ORDER = ROOT / "cmake" / "exec_order.ld"
LAUNCHES = [["--profile", "restricted", "--", "/bin/true"],
            ["--profile", "open", "--", "/bin/true"],
            ["--profile", "developer", "--", "/bin/sleep", "1"]]

TRACEME, PEEKUSER, SINGLESTEP, DETACH, SETOPTIONS = 0, 3, 9, 17, 0x4200
FORK, VFORK, CLONE, EXEC = 1, 2, 3, 4
RIP = 16 * 8
OPTIONS = 1 << FORK | 1 << VFORK | 1 << CLONE | 1 << EXEC
ALL_CHILDREN = 0x40000000  # __WALL

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def step_through(command: list[str]) -> set[int]:
    """The addresses of all instructions that ran, in the program and in what it forked, until the guest's exec."""
    child = os.fork()
    if child == 0:
        libc.ptrace(TRACEME, 0, None, None)
        os.execv(command[0], command)
    seen: set[int] = set()
    os.waitpid(child, 0)
    libc.ptrace(SETOPTIONS, child, None, OPTIONS)
    libc.ptrace(SINGLESTEP, child, None, 0)
    while True:
        try:
            pid, status = os.waitpid(-1, ALL_CHILDREN)
        except ChildProcessError:
            return seen
        if not os.WIFSTOPPED(status):
            continue
        if status >> 16 == EXEC:
            libc.ptrace(DETACH, pid, None, 0)  # the guest
            continue
        seen.add(libc.ptrace(PEEKUSER, pid, RIP, None))
        stop = os.WSTOPSIG(status)
        quiet = status >> 16 != 0 or stop in (signal.SIGTRAP, signal.SIGSTOP)
        libc.ptrace(SINGLESTEP, pid, None, 0 if quiet else stop)


def link_with_map(build: pathlib.Path, program: pathlib.Path) -> str:
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "belljar"], capture_output=True, text=True, check=True)
    link = commands.stdout.splitlines()[-1]
    link_map = program.with_suffix(".map")
    link = link.replace(" -o belljar ", f" -o {program} -Wl,-Map={link_map} ")
    subprocess.run(link, shell=True, cwd=build, check=True, stderr=subprocess.DEVNULL)
    return link_map.read_text()


def sections(link_map: str) -> list[tuple[int, int, str, str]]:
    """Start, size, name and file of each input section of code."""
    found = []
    name = None
    for line in link_map[link_map.index("\nLinker script and memory map"):].splitlines():
        if alone := re.fullmatch(r" (\.text[\w.$]*)", line):
            name = alone[1]
        elif whole := re.fullmatch(r"(?: (\.text[\w.$]*))?\s+(0x\w+)\s+(0x\w+) (\S.*)", line):
            section = whole[1] or name
            if section and int(whole[3], 16):
                found.append((int(whole[2], 16), int(whole[3], 16), section, whole[4]))
            name = None
    return sorted(found)


def pattern(section: str, file: str) -> str:
    if section.startswith(".text.startup"):
        return "*(.text.startup .text.startup.*)"
    member = re.search(r"(lib[\w+-]+\.a)\(([^)]+)\)$", file)
    if member and not section.startswith(".text._Z"):
        return f"*{member[1]}:{member[2]}({section})"
    if section == ".text":
        return f"*{pathlib.Path(file).name}(.text)"
    function = re.sub(r"\.(lto_priv|constprop|isra|part|cold)\..*", "", section)
    return f"*({function} {function}.*)"


def main() -> None:
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "release").resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # a guest of root's is another user
        program = pathlib.Path(folder) / "belljar"
        code = sections(link_with_map(build, program))
        workdir = pathlib.Path(folder) / "work"
        workdir.mkdir()
        seen: set[int] = set()
        for launch in LAUNCHES:
            print("stepping through belljar exec", *launch, flush=True)
            seen |= step_through([str(program), "exec", "-C", str(workdir), *launch])
    starts = [start for start, *_ in code]
    used = {bisect.bisect_right(starts, address) - 1 for address in seen if starts[0] <= address <= starts[-1]}
    hot = [code[i] for i in sorted(used)]
    patterns = list(dict.fromkeys(pattern(section, file) for _, _, section, file in hot))
    ORDER.write_text("/* Made by scripts/exec_order.py: what `belljar exec` runs lies together. */\n"
                     "SECTIONS {\n  .text.exec : {\n    " + "\n    ".join(patterns) + "\n  }\n}\nINSERT BEFORE .text;\n")
    print(f"{len(patterns)} sections, {sum(size for _, size, *_ in hot) // 1024} KiB of {sum(size for _, size, *_ in code) // 1024}")


if __name__ == "__main__":
    main()
