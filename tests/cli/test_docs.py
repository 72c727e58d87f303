"""The documents say what is true: pages made from tables are current, names in them exist."""

from __future__ import annotations

import pathlib
import re
import subprocess

import jar as jars
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def belljar(*words: str) -> str:
    return subprocess.run([jars.binary(), *words], capture_output=True, text=True, check=True, timeout=20).stdout


def test_policy_page_is_current():
    assert (ROOT / "docs/policy.md").read_text() == belljar("docs", "policy"), (
        "make it again: belljar docs policy > docs/policy.md"
    )


def test_table_of_hosts_is_current():
    table = re.search(r"<!-- ladder:begin -->\n(.*)<!-- ladder:end -->", (ROOT / "docs/hosts.md").read_text(), re.DOTALL)
    assert table[1] == belljar("docs", "hosts"), "put what `belljar docs hosts` prints into docs/hosts.md"


def test_table_of_limits_is_current():
    table = re.search(r"<!-- limits:begin -->\n(.*)<!-- limits:end -->", (ROOT / "docs/server.md").read_text(), re.DOTALL)
    assert table[1] == belljar("docs", "limits"), "put what `belljar docs limits` prints into docs/server.md"


def test_every_flag_of_the_policy_is_in_its_page():
    page = (ROOT / "docs/policy.md").read_text()
    flags = re.findall(r"^  (?:-\w, )?--([a-z-]+)", belljar("help", "exec").split("\nPolicy\n")[1]
                       .split("Flags of every command")[0], re.MULTILINE)  # fmt: skip
    assert len(flags) > 20
    assert [flag for flag in flags if f"`--{flag}" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    broken = []
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http:", "https:", "mailto:")) and not (page.parent / target).exists():
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_are_named_exist(page):
    """`test_files.py::test_x`, or `test_x` alone."""
    known = {}
    for file in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE):
            known.setdefault(name, set()).add(file.name)
    text = page.read_text()
    missing = [name for name in re.findall(r"`(?:test_\w+\.py::)?(test_\w+)`", text) if name not in known]
    missing += [
        f"{file}::{name}" for file, name in re.findall(r"`(test_\w+\.py)::(test_\w+)`", text)
        if file not in known.get(name, ())
    ]  # fmt: skip
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_flags_that_are_named_exist(page):
    commands = ("exec", "explain", "doctor", "python", "mcp", "approvals", "serve", "sessions")
    known = set(re.findall(r"--([a-z][a-z-]+)", "".join(belljar("help", c) for c in commands)))
    # Of other programs, as they appear beside ours.
    known |= {"user", "scope", "preset", "build", "no-landlock", "long", "foreground", "prefix", "install", "security-opt", "check"}
    found = re.findall(r"`[^`\n]*`", page.read_text())
    flags = [flag for code in found for flag in re.findall(r"(?<![\w-])--([a-z][a-z-]+)", code)]
    assert [flag for flag in flags if flag not in known] == []


@pytest.mark.parametrize("page", ["belljar", "belljar-exec", "belljar.toml"])
def test_man_page_is_roff(page):
    text = belljar("man", page)
    assert text.startswith(".TH ")
    requests = {line.split()[0] for line in text.splitlines() if line.startswith((".", "'"))}
    assert requests <= {".TH", ".SH", ".PP", ".TP", ".B", ".nf", ".fi"}
    for heading in (".SH NAME", ".SH SEE ALSO"):
        assert heading in text
