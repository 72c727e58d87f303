#!/usr/bin/env python3
"""Traps that were fallen into once, as rules: each has a pattern and a reason."""
import pathlib
import re
import sys

RULES = [
    # (pattern, where it is allowed, reason)
    (r"(?<!\w)::open(at)?\((?!.*O_CLOEXEC)(?!.*/dev/null)", ("_test.cc",),
     "a descriptor leaked across exec is an escape: O_CLOEXEC"),
    (r"\bunshare\((?!0\))", ("_test.cc",), "namespaces come from clone3; a child uses SYS_unshare"),
    (r"getenv\(", ("src/cli/", "_test.cc"), "only the command line reads the environment"),
    (r"\b(TODO|FIXME|XXX)\b", (), "say why, or do it"),
    (r"std::system\(|popen\(", (), "no shell of ours"),
    (r"(&&|\|\||\?)\s*!?\(?co_await", ("src/broker/",),
     "GCC 12 miscompiles a conditional co_await: name its result first"),
    (r"\b(if|while|switch|for) \(.*[^=!<>]=[^=].*co_await", (),
     "GCC 12 miscompiles a co_await in an initialiser of a condition: name its result first"),
    (r"co_await [^;]*\(\{", (), "GCC 12 miscompiles braced temporaries in a co_await: name them first"),
]

bad = 0
for path in sorted(one for folder in ("src", "bindings") for one in pathlib.Path(folder).rglob("*")):
    if path.suffix not in {".h", ".cc"}:
        continue
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        statement = line + (lines[number] if number < len(lines) and not line.rstrip().endswith(";") else "")
        if line.lstrip().startswith("//"):
            continue
        for pattern, allowed, reason in RULES:
            if any(part in str(path) for part in allowed):
                continue
            if re.search(pattern, line) and re.search(pattern, statement):
                print(f"{path}:{number}: {reason}: {line.strip()}")
                bad += 1
print(f"traps: {bad} found")
sys.exit(bad != 0)
