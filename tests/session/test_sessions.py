"""How sessions begin, wait for one another, and end."""

from __future__ import annotations

import os
import pathlib
import stat
import time

import pytest

import jar as jars
from boxes import box, engine, engines, plain, plain_box  # noqa: F401
from engine import SLOWER, Engine, EngineDied, Refused

SOON = 5 * SLOWER


def until(condition, patience: float = SOON) -> bool:
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def lives(pid: int) -> bool:
    """Whether it can still do anything: the dead wait for whoever is to bury them."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rsplit(")", 1)[1].split()[0] not in "ZX"


# ---------------------------------------------------------------- beginning


def test_the_first_call_makes_a_session(engine):
    box = engine.box("made-by-a-call")
    assert box.name not in [one["id"] for one in engine.sessions()]
    assert box.value("1 + 1") == "2"
    assert box.name in [one["id"] for one in engine.sessions()]
    box.close()
    assert box.name not in [one["id"] for one in engine.sessions()]


def test_open_makes_up_an_id_that_cannot_be_guessed(plain):
    first, second = plain.call("open").session, plain.call("open").session
    assert first != second and len(first) >= 20
    for name in (first, second):
        plain.call("close", session=name)


def test_open_of_one_that_is_there_is_refused(plain_box):
    plain_box.python("1")
    with pytest.raises(Refused, match="already"):
        plain_box.engine.call("open", session=plain_box.name)


def test_open_takes_a_policy(plain):
    plain.call("open", session="bot", profile="public-bot")
    assert plain.box("bot").python("1").working_directory == "/workspace"
    plain.box("bot").close()


@pytest.mark.parametrize("name", ["", "..", ".x", "../x", "a/b", "a\0b", "a b", "ü", "x" * 129, "a\n", "%2e%2e", "/etc", "~"])
@pytest.mark.parametrize("op", ["python", "shell", "reset"])
def test_an_id_that_is_none_is_refused(plain, name, op):
    with pytest.raises(Refused, match="no session id"):
        plain.call(op, session=name, code="1", commands=["true"])


@pytest.mark.parametrize("op", ["interrupt", "close"])
def test_what_is_not_there_cannot_be_ended(plain, op):
    with pytest.raises(Refused, match="no such session"):
        plain.call(op, session="never-seen")


def test_an_id_never_becomes_a_part_of_a_path(plain):
    dots = plain.box("a..")
    assert dots.value("__import__('os').listdir()") == "[]"  # a name and nothing else
    dots.close()
    box = plain.box("findable-name")
    box.python("1")
    found = [path for folder in plain.folders() for path in folder.rglob("*") if "findable" in str(path)]
    assert found == [] and "findable" not in box.python("1").working_directory
    box.close()


def test_the_workdir_is_fresh_and_private(identity, engine):
    box = engine.box()
    assert box.value("import os\nos.listdir()") == "[]"
    (folder,) = engine.folders()
    info = os.stat(folder)
    assert stat.S_IMODE(info.st_mode) == 0o700 and info.st_uid == identity.uid
    box.close()


def test_home_lasts_with_the_session(box):
    box.shell("echo x >~/in-home")
    box.python("import os\nos._exit(1)")
    assert box.value("import os\nopen(os.path.expanduser('~/in-home')).read()") == "'x\\n'"


def test_a_workdir_can_be_shared(scene):
    scene.file("there.txt", "was here")
    with Engine(scene, settings={"workdir": str(scene.workdir)}) as engine:
        one, other = engine.box(), engine.box()
        assert one.python("open('there.txt').read()").files == []
        answer = one.python("open('new.txt', 'w').write('from one')")
        assert answer.file_names() == ["new.txt"] and answer.working_directory == str(scene.workdir)
        answer = other.python("open('new.txt').read()")
        assert answer.result == "'from one'" and answer.files == []
    assert (scene.workdir / "new.txt").read_text() == "from one"
    assert (scene.workdir / "there.txt").exists()


def test_what_is_hidden_in_a_shared_workdir_does_not_come_back(scene, profile):
    """Its owner may change it during a call, and whoever calls may ask for it; the guest sees neither."""
    key, inner = scene.file("server.pem", "SECRET1"), scene.file("sub/key", "SECRET1")
    settings = {"workdir": str(scene.workdir)}
    with Engine(scene, profile, settings, hide=[str(key), str(inner.parent)]) as engine:
        call = engine.box("one").send_python(
            "import time\nprint('begun', flush=True)\n"
            "while not __import__('os').path.exists('seen'): time.sleep(.01)\n"
            "open('server.pem').read()",
            outputs=["server.pem", "sub/key", "sub/../server.pem"],
            stream=True,
        )
        call.wait_for_output(b"begun")
        scene.file("server.pem", "SECRET2")
        scene.file("sub/key", "SECRET2")
        scene.identity.own(scene.file("seen", "1"))
        answer = call.wait()
        assert answer.exception["type"] == "PermissionError"
        assert answer.file_names() == ["seen"] and "SECRET" not in str(answer["files"])
        assert answer.says("there is no file server.pem")


def test_what_the_guest_may_not_read_in_a_shared_workdir_does_not_come_back(everyone):
    """Root's engine could. A file of its own folder's owner the guest may read, and gets."""
    if "root" not in everyone:
        pytest.skip("needs to be started by root")
    with jars.Scene(everyone["root"]) as scene:
        theirs, ours = scene.file("theirs", "SECRET"), scene.file("ours", "mine")
        inner = scene.file("folder/inner", "SECRET")
        os.chmod(theirs, 0o600)
        os.chmod(ours, 0o600)
        os.chmod(inner.parent, 0o700)
        everyone["user"].own(theirs, inner.parent)
        with Engine(scene, settings={"workdir": str(scene.workdir)}) as engine:
            box = engine.box()
            assert box.python("open('theirs').read()").exception["type"] == "PermissionError"
            assert box.value("open('ours').read()") == "'mine'"
            answer = box.python("1", outputs=["theirs", "ours", "folder/inner"])
            assert answer.file_names() == ["ours"] and answer.file("ours")["text"] == "mine"
            assert answer.says("there is no file theirs") and answer.says("there is no file folder/inner")


def test_a_policy_without_a_sandbox_is_refused(scene):
    engine = Engine(scene, mode="off")
    with pytest.raises(EngineDied, match="125: sessions are not run without a sandbox"):
        engine.box().python("1")


# ---------------------------------------------------------------- turns


def test_calls_of_one_session_run_one_at_a_time_and_in_order(box):
    calls = [box.send_python(f"import time\nlog = globals().setdefault('log', [])\nlog.append({i})\ntime.sleep(0.01)\nlog.append({i})") for i in range(20)]
    for call in calls:
        assert call.wait().status == "success"
    assert box.value("log") == repr([i for i in range(20) for _ in range(2)])


def test_shell_calls_of_one_session_run_in_order(plain_box):
    calls = [plain_box.send_shell(f"echo {i} >>log; sleep 0.01; echo {i} >>log") for i in range(20)]
    for call in calls:
        call.wait()
    assert plain_box.shell("cat log").stdout.split() == [str(i) for i in range(20) for _ in range(2)]


def test_python_and_shell_of_one_session_run_beside_each_other(plain_box):
    python = plain_box.send_python("import os, time\nopen('p', 'w').close()\nwhile not os.path.exists('s'): time.sleep(0.01)", timeout_ms=20_000)
    shell = plain_box.send_shell("until [ -e p ]; do sleep 0.01; done; touch s", timeout_ms=20_000)
    assert shell.wait().status == "success" and python.wait().status == "success"


def test_sessions_run_in_parallel(engine):
    boxes = [engine.box() for _ in range(8)]
    began = time.monotonic()
    calls = [box.send_python("import time\ntime.sleep(1)\n'slept'") for box in boxes]
    assert [call.wait().result for call in calls] == ["'slept'"] * 8
    assert time.monotonic() - began < 1 + SOON
    for box in boxes:
        box.close()


def test_sessions_do_not_see_one_another(engine):
    one, other = engine.box(), engine.box()
    one.python("x = 1\nopen('mine.txt', 'w').write('x')")
    one.shell("sleep 30 &")
    assert other.value("'x' in globals(), __import__('os').path.exists('mine.txt')") == "(False, False)"
    assert other.shell("ps -C sleep -o stat=").stdout == ""
    folder = one.python("1").working_directory
    if engine.profile != "public-bot":
        assert other.shell(f"ls {folder}").exit_code != 0
    one.close()
    other.close()


def test_a_busy_session_is_said_to_be(plain_box):
    call = plain_box.send_python("print('on', flush=True)\nimport time\ntime.sleep(60)", stream=True)
    call.wait_for_output(b"on")
    (mine,) = [one for one in plain_box.engine.sessions() if one["id"] == plain_box.name]
    assert mine["busy"] and mine["memory_kb"] > 1000
    plain_box.interrupt()
    call.wait()
    (mine,) = [one for one in plain_box.engine.sessions() if one["id"] == plain_box.name]
    assert not mine["busy"]


# ---------------------------------------------------------------- ending


def test_close_removes_everything(identity, engine):
    box = engine.box()
    box.python("import subprocess\nopen('file', 'w').close()\nsubprocess.Popen(['setsid', 'sleep', '100'])")
    box.shell("sleep 100 &")
    before = set(engine.guests())
    (folder,) = engine.folders()
    mine = max(folder.iterdir(), key=lambda path: int(path.name))
    box.close()
    assert until(lambda: not mine.exists())
    assert until(lambda: len(set(engine.guests()) & before) < len(before))


def test_close_while_a_call_runs_answers_it(box):
    call = box.send_python("print('on', flush=True)\nwhile True: pass", stream=True)
    shell = box.send_shell("echo on; sleep 100", stream=True)
    waiting = [box.send_python("1") for _ in range(3)]
    call.wait_for_output(b"on")
    shell.wait_for_output(b"on")
    box.close()
    for one in (call, shell):
        answer = one.wait(SOON)
        assert answer.status == "error" and answer.state_lost and answer.says("closed")
    assert call.wait().stdout == "on\n"
    for one in waiting:
        with pytest.raises(Refused, match="ended"):
            one.wait(SOON)


def test_close_while_a_worker_starts_answers_it(plain):
    for _ in range(20):
        box = plain.box()
        calls = [box.send_python("1"), box.send_shell("true")]
        box.close()
        for call in calls:
            try:
                call.wait(SOON)
            except Refused:
                pass


def test_after_close_the_same_id_is_a_new_session(plain_box):
    plain_box.python("x = 1\nopen('f', 'w').close()")
    plain_box.close()
    answer = plain_box.python("'x' in globals(), __import__('os').listdir()")
    assert answer.result == "(False, [])" and answer.notes == []


def test_a_workdir_with_strange_modes_and_depths_is_removed(plain):
    box = plain.box()
    box.python(
        "import os\nfor i in range(300):\n    os.mkdir('d'); os.chdir('d')\n"
        "open('f', 'w').close()\nos.chmod('f', 0)\nos.chmod('.', 0)"
    )
    box.shell("mkdir locked; touch locked/x; chmod 000 locked; ln -s / out; mkfifo p")
    (folder,) = plain.folders()
    mine = max(folder.iterdir(), key=lambda path: int(path.name))
    box.close()
    assert until(lambda: not mine.exists(), 4 * SOON)


def test_idle_sessions_are_ended_and_their_next_call_says_so(scene):
    with Engine(scene, settings={"idle": 300, "reap_every": 50}) as engine:
        box, busy = engine.box(), engine.box()
        box.python("x = 1\nopen('f', 'w').close()")
        running = busy.send_python("import time\ntime.sleep(1.2)\n'worked'")
        assert until(lambda: box.name not in [one["id"] for one in engine.sessions()])
        assert busy.name in [one["id"] for one in engine.sessions()]
        answer = box.python("'x' in globals(), __import__('os').listdir()")
        assert answer.result == "(False, [])" and answer.says("idle") and answer.says("fresh")
        assert box.python("1").notes == []
        assert running.wait().result == "'worked'"
        assert until(lambda: engine.sessions() == [])
        assert until(lambda: not any(any(folder.iterdir()) for folder in engine.folders()))


def test_use_keeps_a_session_from_being_idle(scene):
    with Engine(scene, settings={"idle": 600, "reap_every": 50}) as engine:
        box = engine.box()
        box.python("x = 0")
        for _ in range(8):
            time.sleep(0.15)
            box.python("x += 1")
        assert box.value("x") == "8"


def test_too_many_sessions_are_refused(scene):
    with Engine(scene, settings={"max_sessions": 3}) as engine:
        boxes = [engine.box() for _ in range(3)]
        for box in boxes:
            box.python("1")
        with pytest.raises(Refused, match="3 sessions.*hint"):
            engine.box().python("1")
        assert boxes[0].value("1 + 1") == "2"
        boxes[0].close()
        assert engine.box().value("1 + 1") == "2"


def test_too_much_memory_in_all_is_refused(scene):
    with Engine(scene, settings={"max_total_memory_mb": 150}) as engine:
        large = engine.box()
        large.python("x = bytearray(b'x') * 200_000_000")
        with pytest.raises(Refused, match="MB together.*hint"):
            engine.box().python("1")
        large.python("del x")
        assert engine.box().value("1 + 1") == "2"


# ---------------------------------------------------------------- the end of an engine


def test_an_engine_that_ends_leaves_nothing(scene, profile):
    engine = Engine(scene, profile)
    running = [engine.box().send_python("import time\nprint('on', flush=True)\ntime.sleep(100)", stream=True) for _ in range(5)]
    for call in running:
        call.wait_for_output(b"on")
    engine.box().shell("sleep 100 & setsid sleep 100 &")
    guests, folders = engine.guests(), engine.folders()
    assert len(guests) >= 10 and len(folders) == 1
    assert engine.close() == 0, engine.epitaph()
    assert until(lambda: not any(map(lives, guests)), 1 * SLOWER)
    assert not folders[0].exists()


def test_an_engine_that_ends_amid_many_calls_and_starts_leaves_nothing(scene):
    engine = Engine(scene)
    for i in range(15):
        box = engine.box()
        box.send_python("import time\ntime.sleep(100)")
        box.send_python("1")
        box.send_shell("sleep 100", one_shot=i % 2 == 0) if i % 2 == 0 else box.send_shell("sleep 100")
        box.send_shell("echo")
        engine.send("reset", session=box.name)
    time.sleep(0.1)  # some have started, some not
    guests = engine.guests()
    assert engine.close() == 0, engine.epitaph()
    assert until(lambda: not any(map(lives, guests)), 1 * SLOWER)
    assert engine.folders() == []


def test_sigkill_amid_fifty_calls_leaves_no_guest_and_the_next_start_no_folder(scene):
    """Within a second no guest lives; the folders go when the next engine of this caller starts."""
    engine = Engine(scene, settings={"max_sessions": 100})
    boxes = [engine.box() for _ in range(50)]
    calls = [box.send_python("import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '1000'])\nprint('on', flush=True)\nwhile True: time.sleep(0.1)", stream=True) for box in boxes]
    for call in calls:
        call.wait_for_output(b"on")
    boxes[0].shell("touch file")
    guests = engine.guests()
    assert len(guests) >= 150
    folders = engine.folders()
    assert len(folders) == 1
    engine.kill()
    began = time.monotonic()
    assert until(lambda: not any(map(lives, guests)), 1 * SLOWER), "guests live"
    assert time.monotonic() - began < 1 * SLOWER
    assert folders[0].exists()  # nobody was there to remove it
    with Engine(scene) as after:
        assert after.box().value("1 + 1") == "2"
        assert until(lambda: not folders[0].exists(), 30 * SLOWER), "it is removed beside its work"


def test_folders_of_an_engine_that_lives_stay(scene):
    with Engine(scene) as first:
        box = first.box()
        box.shell("echo x >file")
        with Engine(scene) as second:
            second.box().python("1")
        assert box.shell("cat file").stdout == "x\n"


def test_no_descriptors_are_left_over(scene):
    """Neither in the engine nor of its own in a guest."""
    with Engine(scene) as engine:
        def held():
            return len(os.listdir(f"/proc/{engine.pid}/fd"))

        def life():
            box = engine.box()
            box.python("1")
            box.shell("true", "exit 1")
            box.shell("true", one_shot=True)
            box.python("import os\nos._exit(1)")
            box.python("1", output_file="out")
            box.reset()
            box.close()

        life()
        time.sleep(0.3)  # longer than the engine looks after a worker that hung up
        before = held()
        for _ in range(10):
            life()
        assert until(lambda: held() <= before), f"{held()} after {before}"


def test_a_guest_has_no_descriptors_but_its_own(box):
    answer = box.python(
        "import os\nfound = {}\nfor name in os.listdir('/proc/self/fd'):\n"
        "    try: found[int(name)] = os.readlink(f'/proc/self/fd/{name}').split(':')[0]\n    except OSError: pass\n"
        "sorted(found.values())"
    )
    kinds = eval(answer.result)
    assert kinds.count("pipe") == 6, kinds  # two of them kept for repair
    assert set(kinds) <= {"pipe", "/dev/null", "anon_inode"}, kinds
    listed = box.shell("ls -l /proc/self/fd | sed -n 's/.*-> //p' | sort").stdout.split()
    assert [one.split(":")[0] for one in listed if not one.startswith("/")] == ["pipe", "pipe"], listed


def test_many_short_sessions_cost_no_memory(scene):
    with Engine(scene) as engine:
        def live(count):
            for _ in range(count):
                box = engine.box()
                box.python("print('x' * 100_000)")
                box.close()

        live(20)
        before = engine.memory_kb()
        live(60)
        assert engine.memory_kb() < before + 3000
