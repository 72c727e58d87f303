#!/usr/bin/env python3
"""clang-tidy over src/, tests included, with all of .clang-tidy: tidy.py [FILE]...

Needs build/clang configured and its generated headers; `check.sh tidy` sees to that.
A file that was clean is left out until it, a header of ours that it includes, its
flags, .clang-tidy or clang-tidy have changed: ~/.cache/belljar-tidy remembers.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

TIDY = "clang-tidy-19"
ROOT = pathlib.Path(__file__).resolve().parent.parent
STATE = ROOT / "build/tidy"
# By content, so that another clone of the same need not be checked again.
CLEAN = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "belljar-tidy"
# Built by commands of their own, see src/launcher/init.cmake and joiner.cmake.
ALONE = [ROOT / "src/launcher/init.cc", ROOT / "src/launcher/joiner.cc"]
ALONE_COMMAND = f"clang++-19 -std=c++23 -O2 -Wall -Wextra -I{ROOT}/src -ffreestanding -fno-exceptions -fno-rtti"

# The test replaces malloc, in ways that checks forbid and in the C library's own header;
# what only other systems build needs their headers, and check_macos.sh compiles it.
LEFT_OUT = {
    ROOT / "src/launcher/no_malloc_test.cc",
    ROOT / "src/launcher/elsewhere.cc",
    *(ROOT / "src/launcher/macos").glob("*.cc"),
}


def commands():
    """One command a file: what two targets share need not be checked twice."""
    entries = {
        str(file): {"directory": str(ROOT), "file": str(file), "command": f"{ALONE_COMMAND} -c {file}"} for file in ALONE
    }
    for entry in json.loads((ROOT / "build/clang/compile_commands.json").read_text()):
        entries.setdefault(entry["file"], entry)
    return entries


def fingerprint(entry):
    compiler = [*shlex.split(entry["command"]), "-MM", "-o", "-"]
    made = subprocess.run(compiler, cwd=entry["directory"], capture_output=True, text=True)
    if made.returncode != 0:
        return None  # clang-tidy will say why
    digest = hashlib.sha256(entry["command"].replace(os.fspath(ROOT), "").encode())
    digest.update(subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout)
    for name in [*ROOT.glob("src/**/.clang-tidy"), ROOT / ".clang-tidy", *made.stdout.replace("\\\n", " ").split()[1:]]:
        digest.update(pathlib.Path(entry["directory"], name).read_bytes())
    return digest.hexdigest()


def is_ours(line):
    """The analyzer does not know how a coroutine's frame is filled, and complains of Asio."""
    return ": error: " in line and not (line.startswith("/usr/include/boost/asio/") and "[clang-analyzer-" in line)


def check(entry):
    """What there is to complain about; None for what was clean before."""
    key = fingerprint(entry)
    if key and (CLEAN / key).exists():
        return None
    run = subprocess.run([TIDY, "--quiet", "-p", STATE, entry["file"]], capture_output=True, text=True)
    if run.returncode != 0 and any(is_ours(line) for line in (run.stdout or ": error: ").splitlines()):
        return run.stdout or run.stderr
    if key:
        (CLEAN / key).touch()
    return ""


def main():
    entries = commands()
    files = [str(pathlib.Path(name).resolve()) for name in sys.argv[1:]]
    if not files:
        ours = set((ROOT / "src").rglob("*.cc")) - LEFT_OUT
        files = sorted(map(str, ours), key=os.path.getsize, reverse=True)
    if unknown := [name for name in files if name not in entries]:
        sys.exit("tidy: nothing builds " + " ".join(unknown))
    STATE.mkdir(parents=True, exist_ok=True)
    CLEAN.mkdir(parents=True, exist_ok=True)
    (STATE / "compile_commands.json").write_text(json.dumps(list(entries.values())))

    looked_at = bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(check, [entries[name] for name in files]):
            looked_at += found is not None
            if found:
                bad += 1
                print(found, flush=True)
    print(f"tidy: {len(files)} files, {looked_at} looked at, {bad} with findings")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
