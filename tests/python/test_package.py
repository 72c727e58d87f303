from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import zipfile

import pytest
import worker_driver
from installing import BUILDING, DEBIANS, LONG, ROOT, build, environment, run


@pytest.fixture
def place(identity):
    """Where an identity's programs are started."""
    folder = tempfile.mkdtemp(prefix="python-", dir=identity.folder)
    identity.own(folder)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_the_notebook(installed, identity, place):
    """A CSV, a plot, a blocked read, its hint, and the way on."""
    command = identity.command([str(installed.python), str(installed.package / "notebook.py")])
    output = run(*command, cwd=place, env={**environment(identity, place), "TMPDIR": place})
    lines = dict(line.split(": ", 1) for line in output.splitlines() if ": " in line)
    assert lines["mean"] == "3.83"
    assert lines["plot"] == "True" and lines["blocked"] in ("FileNotFoundError", "PermissionError")
    assert "extra_fs_read=['" in output and "costs.csv" in lines["why"]
    assert lines["profit"] == "6.5"


def test_one_wheel_for_every_python(installed):
    (wheel,) = installed.wheels.glob("*.whl")
    assert re.fullmatch(r"belljar-[\d.]+-py3-none-linux_\w+\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    assert {"belljar/__init__.py", "belljar/_lib/libbelljar.so", "belljar/py.typed"} <= set(names)
    assert not [name for name in names if name.endswith((".a", ".h")) or name.startswith(("bin/", "lib/", "include/"))]


PYTHONS = {name: path for name, path in worker_driver.pythons().items()}


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
def test_it_works_in(installed, python, tmp_path):
    code = (
        "import asyncio, sys; sys.path.insert(0, sys.argv[1]); import belljar\n"
        "assert belljar.run(['echo', 'hi']).stdout == 'hi\\n'\n"
        "with belljar.Session() as s: assert s.python('6 * 7').result == '42'\n"
        "async def main():\n"
        "    async with belljar.AsyncSession() as s: return (await s.shell('echo hi')).stdout\n"
        "assert asyncio.run(main()) == 'hi\\n'\n"
        "assert belljar.run(['false']).exit_code == 1\nprint('works')\n"
    )
    (wheel,) = installed.wheels.glob("*.whl")
    unpacked = installed.folder / "unpacked"
    if not unpacked.exists():
        zipfile.ZipFile(wheel).extractall(unpacked)
    assert run(python, "-c", code, unpacked, cwd=tmp_path) == "works\n"


def test_the_root_gives_the_same_wheel(installed, tmp_path):
    (wheel,) = installed.wheels.glob("*.whl")
    other = build(ROOT, tmp_path)
    mine, theirs = (
        {one.filename: one.CRC for one in zipfile.ZipFile(path).infolist() if one.filename.startswith("belljar/")}
        for path in (wheel, other)
    )
    assert mine == theirs


if LONG:  # it builds everything anew

    def test_pip_builds_it_in_isolation(tmp_path):
        """As people do: pip fetches what the build needs, and nothing else is there."""
        run(DEBIANS, "-m", "venv", tmp_path / "venv")
        python = tmp_path / "venv/bin/python"
        run(python, "-m", "pip", "install", "-q", ROOT / "bindings/python", env={**os.environ, **BUILDING})
        assert run(python, "-c", "import belljar; print(belljar.run(['echo', 'hi']).stdout)", cwd=tmp_path) == "hi\n\n"


def test_the_two_project_files_agree():
    def settings(path: pathlib.Path) -> list:
        places = {"build-dir", "cmake.source-dir", "readme", "wheel.packages"}
        lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        return [line for line in lines if line.split(" = ")[0] not in places]

    root = settings(ROOT / "pyproject.toml")
    assert root == settings(ROOT / "bindings/python/pyproject.toml")
    version = re.search(r"project\(belljar VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert f'version = "{version}"' in root
    assert f'__version__ = "{version}"' in (ROOT / "bindings/python/src/belljar/__init__.py").read_text()


@pytest.mark.parametrize(
    "command",
    [["mypy", "--strict", "--no-incremental", "--cache-dir=/dev/null"], ["pyright", "--warnings"]],
    ids=["mypy", "pyright"],
)
def test_types_are_whole(installed, tools, command):
    """Of a program, as its author's editor sees the package; and of the package itself."""
    sample = installed.package / "typed_sample.py"
    python = ["--python-executable" if command[0] == "mypy" else "--pythonpath", installed.python]
    run(tools / command[0], *command[1:], *python, sample, cwd=installed.folder)
    wrong = installed.folder / "wrong_sample.py"
    wrong.write_text("import belljar\nbelljar.Session(extra_reads=['data'])\nx: int = belljar.run(['true']).stdout\n")
    done = subprocess.run(
        list(map(str, [tools / command[0], *command[1:], *python, wrong])),
        stdout=subprocess.PIPE, text=True, cwd=installed.folder,
    )  # fmt: skip
    assert done.returncode != 0 and "extra_reads" in done.stdout and "int" in done.stdout, done.stdout


def test_the_packages_own_types(tools):
    run(tools / "mypy", "--strict", "--no-incremental", "--cache-dir=/dev/null",
        ROOT / "bindings/python/src/belljar", cwd=ROOT / "build")  # fmt: skip


def test_the_packages_own_tests(own_tests, identity):
    """The last, since they have been running all the while."""
    code, output = own_tests[identity.name].result()
    print(output)
    assert code == 0 and re.search(r"\d+ passed", output) and "skipped" not in output, output
