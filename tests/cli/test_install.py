"""What `cmake --install` gives: a program, a library that another project finds, pages.

The tree that is installed is BELLJAR_BUILD, or the one that BELLJAR stands in, or a
fresh one.
"""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).parents[2]
PATIENCE = 900  # a fresh tree is built; one that is there takes seconds


def run(*command, cwd=None):
    done = subprocess.run(
        list(map(os.fspath, command)), cwd=cwd, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, f"$ {' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    named = os.environ.get("BELLJAR_BUILD") or os.path.dirname(os.environ.get("BELLJAR", ""))
    if named and (pathlib.Path(named) / "CMakeCache.txt").is_file():
        folder = pathlib.Path(named)
    else:
        folder = tmp_path_factory.mktemp("build")
        run("cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja", "-DBELLJAR_TESTS=OFF")
    run("cmake", "--build", folder, "--target", "belljar", "belljar_merged")
    return folder


@pytest.fixture(scope="module")
def prefix(build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", build, "--prefix", folder)
    return folder


def test_the_program_runs(prefix, tmp_path):
    assert run(prefix / "bin/belljar", "exec", "--", "echo", "hello", cwd=tmp_path) == "hello\n"


def test_there_is_one_library_and_the_public_headers(prefix):
    assert [path.name for path in prefix.rglob("*.a")] == ["libbelljar.a"]
    headers = {path.name for path in (prefix / "include/belljar").iterdir()}
    assert headers == {"belljar.h", "caller.h", "error.h", "outcome.h", "policy.h", "session.h"}
    assert [path.name for path in (prefix / "include").iterdir()] == ["belljar"]


def test_man_pages_and_completions_are_there(prefix):
    share = prefix / "share"
    for page in ("man1/belljar.1", "man1/belljar-exec.1", "man5/belljar.toml.5"):
        assert (share / "man" / page).read_text().startswith(".TH BELLJAR"), page
    for script in (
        "bash-completion/completions/belljar",
        "zsh/site-functions/_belljar",
        "fish/vendor_completions.d/belljar.fish",
    ):
        assert "belljar" in (share / script).read_text(), script
    # As the program printed them, whatever signs they hold.
    printed = run(prefix / "bin/belljar", "completion", "bash")
    assert (share / "bash-completion/completions/belljar").read_text() == printed


def test_every_header_stands_alone(prefix, tmp_path):
    for header in (prefix / "include/belljar").iterdir():
        source = tmp_path / "alone.cc"
        source.write_text(f"#include <belljar/{header.name}>\n")
        run("c++", "-std=c++23", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
            f"-I{prefix}/include", source)  # fmt: skip


def test_another_project_builds_against_it(prefix, tmp_path):
    run("cmake", "-S", SOURCE / "examples/cpp", "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    work = tmp_path / "work"
    work.mkdir()
    shown = run(tmp_path / "build/example", work)
    assert "ended with 1\n" in shown, shown  # Python's, for what it could not open
    assert (work / "answer").read_text() == "42"
    assert "/etc/hostname" in shown
    assert "the client inside read b'42'" in shown, shown


def test_a_staged_install_goes_to_destdir(build, tmp_path):
    subprocess.run(
        ["cmake", "--install", build, "--prefix", "/usr"], check=True, capture_output=True,
        env=os.environ | {"DESTDIR": os.fspath(tmp_path)},
    )  # fmt: skip
    assert (tmp_path / "usr/bin/belljar").is_file()
    assert (tmp_path / "usr/share/man/man1/belljar.1").is_file()
