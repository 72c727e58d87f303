"""Which warm interpreters there are: none that a guest can have written, and few, shared and not kept for good."""

from __future__ import annotations

import os
import pathlib
import subprocess
import time

import pytest

import jar as jars
from engine import SLOWER, Engine, wait_until_warm

PYTHON = "/usr/bin/python3"
PATIENCE = 60 * SLOWER


@pytest.fixture
def scene(identity):
    with jars.Scene(identity) as made:
        yield made


def settled(engine: Engine, started: str = "cold", looks: int = 20) -> list[dict]:
    """The starts of some sessions, one after the other, until one is not as it is said."""
    answers = []
    for _ in range(looks):
        box = engine.box()
        answers.append(box.python("planted = globals().get('planted') or vars(__builtins__).get('planted')\nplanted"))
        box.close()
        if answers[-1].started != started:
            break
        time.sleep(0.1)
    return answers


# ---------------------------------------------------------------- what a guest can have written


PLANT = "import builtins; builtins.planted = True\n"


@pytest.fixture(params=["workdir", "home"])
def environment(request, scene):
    """A virtual environment. Sessions share the workdir and may write it; the home an earlier run may have."""
    folder = str(getattr(scene, request.param) / "venv")
    make = [PYTHON, "-m", "venv", "--without-pip", "--system-site-packages", folder]
    subprocess.run(scene.identity.command(make), check=True, cwd=scene.workdir)
    return folder


def activated(folder: str) -> tuple[str, ...]:
    return ("env", f"VIRTUAL_ENV={folder}", f"PATH={folder}/bin:{jars.SYSTEM_PATH}")


def test_what_a_guest_plants_in_an_environment_does_not_run_in_what_sessions_are_forked_from(scene, environment):
    settings = {"workdir": str(scene.workdir), "preload": ["json"]}
    [packages] = pathlib.Path(environment).glob("lib/python3*/site-packages")
    planted = packages / "x.pth"
    if packages.is_relative_to(scene.workdir):
        with Engine(scene, settings=settings, under=activated(environment)) as engine:
            answer = engine.box().python(f"open('{planted}', 'w').write({PLANT!r})")
            assert answer.status == "success", answer
    else:
        planted.write_text(PLANT)
    with Engine(scene, settings=settings, under=activated(environment)) as engine:
        answers = settled(engine)
        assert {answer.started for answer in answers} == {"cold"}, answers[-1]
        assert answers[-1].result == "True"  # the control: in a session's own interpreter it runs


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHOME", "PYTHONPYCACHEPREFIX"])
def test_no_interpreter_that_loads_what_a_variable_names_is_forked_from(scene, name):
    folder = os.path.join(scene.home, "modules")
    os.makedirs(folder)
    os.chown(folder, scene.identity.uid, scene.identity.gid)
    variable = (name, "/usr" if name == "PYTHONHOME" else folder)
    under = ("env", "=".join(variable))
    with Engine(scene, "open", settings={"python": PYTHON, "preload": ["json"]}, under=under) as engine:
        assert {answer.started for answer in settled(engine)} == {"cold"}


def test_the_systems_python_is(scene):
    """The control."""
    with Engine(scene, settings={"python": PYTHON, "preload": ["json"], "workdir": str(scene.workdir)}) as engine:
        wait_until_warm(engine)


# ---------------------------------------------------------------- how many


def opened(engine: Engine, name: str, **policy) -> str:
    return engine.call("open", session=name, profile="developer", **policy).session


def becomes_warm(engine: Engine, name: str, **policy) -> bool:
    """Sessions with this policy do, at last."""
    end = time.monotonic() + PATIENCE
    for number in range(10_000):
        session = opened(engine, f"{name}-{number}", **policy)
        started = engine.call("python", session=session, code="1").started
        engine.call("close", session=session)
        if started == "warm":
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return False


def is_python(pid: int) -> bool:
    try:
        return b"belljar warm" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def parent_of(pid: int) -> int:
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def forking(engine: Engine) -> int:
    """How many interpreters there are to fork from. Their forks look the same, but for their parent."""
    return sum(is_python(pid) and not is_python(parent_of(pid)) for pid in engine.guests())


SETTINGS = {"python": PYTHON, "preload": ["json"], "max_sessions": 50}


def test_sessions_that_differ_in_what_no_interpreter_needs_share_one(scene):
    with Engine(scene, settings=SETTINGS) as engine:
        wait_until_warm(engine)
        for number in range(6):
            session = opened(engine, f"s-{number}", max_memory_mb=500 + number, max_procs=30 + number)
            assert engine.call("python", session=session, code="1").started == "warm"
        assert forking(engine) == 1


def test_interpreters_that_nobody_used_for_long_make_room(scene):
    """Sessions with ten policies, one after the other, all come to start warm."""
    with Engine(scene, settings=SETTINGS) as engine:
        wait_until_warm(engine)
        for number in range(10):
            assert becomes_warm(engine, f"s-{number}", hide=[f"/usr/share/hidden-{number}"]), number
            assert forking(engine) <= 4


def test_an_interpreter_that_makes_room_ends_after_its_last_worker(scene):
    with Engine(scene, settings=SETTINGS) as engine:
        wait_until_warm(engine)
        assert becomes_warm(engine, "other", hide=["/usr/share/hidden"])
        kept = opened(engine, "kept", hide=["/usr/share/hidden"])
        assert engine.call("python", session=kept, code="n = 7").started == "warm"
        for number in range(6):
            assert becomes_warm(engine, f"s-{number}", hide=[f"/usr/share/hidden-{number}"])
        assert engine.call("python", session=kept, code="n").result == "7"
        assert forking(engine) == 5
        answer = engine.call("python", session=kept, code="import os; os._exit(3)")
        assert answer.exit_code == 3, answer.notes
        end = time.monotonic() + PATIENCE
        while forking(engine) > 4 and time.monotonic() < end:
            time.sleep(0.1)
        assert forking(engine) <= 4


def test_no_owner_keeps_the_interpreters_from_others(scene):
    """Owners are told by the part of a session's id before the colon."""
    with Engine(scene, settings=SETTINGS) as engine:
        wait_until_warm(engine)
        assert becomes_warm(engine, "honest:s", hide=["/usr/share/hidden"])
        for number in range(6):
            assert becomes_warm(engine, f"greedy:s-{number}", hide=[f"/usr/share/hidden-{number}"]), number
        session = opened(engine, "honest:again", hide=["/usr/share/hidden"])
        assert engine.call("python", session=session, code="1").started == "warm"
