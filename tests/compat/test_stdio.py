"""What a guest gets from its caller besides files: descriptors, exit code, variables, place."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import threading

import jar as jars
import pytest

EVERY_BYTE = bytes(range(256)) * 300


def quiet(stderr: str) -> list[str]:
    """Without what belljar says about a poor host."""
    return [line for line in stderr.splitlines() if not line.startswith("belljar: warning:")]


# ------------------------------------------------------------------ descriptors


def test_dev_null_is_writable(jar):
    run = jar.run(["/bin/sh", "-c", "ls /nonexistent 2>/dev/null; cat </dev/null; echo x >/dev/null; echo end"])
    assert (run.exit, run.stdout, quiet(run.stderr)) == (0, "end\n", [])


def test_python_devnull(jar):
    out = jar.python("""
import subprocess as s
print(s.run(["sh", "-c", "cat; echo lost; echo lost >&2"], stdin=s.DEVNULL, stdout=s.DEVNULL, stderr=s.DEVNULL).returncode)
""")
    assert out == "0\n"


def test_output_and_errors_stay_apart(jar):
    run = jar.run(["/bin/sh", "-c", "echo out; echo err >&2"])
    assert (run.exit, run.stdout, quiet(run.stderr)) == (0, "out\n", ["err"])


def test_only_three_descriptors_are_inherited(jar):
    # bash's own redirections give the guest a fourth, which belljar must close.
    run = jar.from_shell("$JAR ls /proc/self/fd 7</etc/passwd")
    assert run.stdout.split() == ["0", "1", "2", "3"]  # 3: the folder that ls reads


def test_binary_data_is_untouched(jar):
    process = jar.start(["/bin/cat"], stdin=subprocess.PIPE)
    out, err = process.communicate(EVERY_BYTE, timeout=20 * jars.SLOWER)
    assert (process.returncode, out, quiet(err.decode())) == (0, EVERY_BYTE, [])


def test_file_position_is_shared_with_the_caller(jar, scene):
    scene.file("lines", "one\ntwo\nthree\n")
    run = jar.from_shell("{ read -r first; $JAR sh -c 'read -r x; echo guest:$x'; cat; } <lines")
    assert run.stdout == "guest:two\nthree\n"


def test_redirection_to_a_file_the_guest_cannot_name(jar, scene):
    log = scene.outside / "log"
    run = jar.from_shell(f"$JAR sh -c 'echo hello; test ! -e {log}' >>{log}")
    assert log.read_text() == "hello\n"
    assert run.exit == (1 if jar.said("neither mounts of our own", "stops neither stat") else 0)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors(jar, scene, closed):
    run = jar.from_shell(f"$JAR sh -c 'cat >/dev/null; echo x; echo y >&2; ls /proc/self/fd >fds' {closed} || true")
    print(run)
    # Nothing of belljar's own must have slipped into the gap.
    assert (scene.workdir / "fds").read_text().split() == ["0", "1", "2", "3"]


def test_dev_stdin_stdout_stderr_by_name(jar):
    run = jar.from_shell(
        "echo in | $JAR sh -c 'cat /dev/stdin; echo out >/dev/stdout; echo err | tee /dev/stderr >/dev/null' 2>&1 | cat"
    )
    assert quiet(run.stdout) == ["in", "out", "err"]


def test_process_substitution(jar):
    assert jar.ok(["/bin/bash", "-c", "diff <(echo a) <(echo a) && cat <(echo b)"]) == "b\n"


def test_one_gibibyte_through_a_pipe(jar):
    blocks, block = 1024 // jars.SLOWER, os.urandom(1 << 20)
    sent, got, size = hashlib.sha256(), hashlib.sha256(), 0
    process = jar.start(["/bin/cat"], stdin=subprocess.PIPE, bufsize=0, pipesize=1 << 20)

    def feed():
        for number in range(blocks):
            data = number.to_bytes(8, "big") + block[8:]
            sent.update(data)
            process.stdin.write(data)
        process.stdin.close()

    feeder = threading.Thread(target=feed)
    feeder.start()
    while data := process.stdout.read(1 << 20):
        got.update(data)
        size += len(data)
    feeder.join()
    assert process.wait(20 * jars.SLOWER) == 0
    print(f"{size} bytes came back, {got.hexdigest()[:16]}")
    assert size == blocks << 20
    assert got.digest() == sent.digest()


def test_a_reader_that_stops_early_ends_the_guest(jar):
    run = jar.from_shell("$JAR yes | head -n 1; echo ${PIPESTATUS[0]}")
    assert run.stdout == "y\n141\n"  # 128 + SIGPIPE


def test_a_child_left_behind_does_not_keep_the_caller_waiting(jar):
    run = jar.run(["/bin/sh", "-c", "sleep 50 & echo end"])
    assert (run.exit, run.stdout) == (0, "end\n")
    assert run.seconds < 5 * jars.SLOWER


# ------------------------------------------------------------------- exit codes


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 42", 42),
        ("exit 125", 125),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("kill -SEGV $$", 139),
    ],
)
def test_exit_code_is_the_guests(jar, script, code):
    assert jar.run(["/bin/sh", "-c", script]).exit == code


def test_commands_that_cannot_be_run(jar, scene):
    scene.file("text", "not a program\n", mode=0o644)
    scene.folder("folder")
    scene.file("broken", "#!/nonexistent/interpreter\n", mode=0o755)
    for command, code in {
        "no-such-command": 127,
        "./no-such-file": 127,
        "/no/such/folder/file": 127,
        "./text": 126,
        "./folder": 126,
        "./broken": 127,
    }.items():
        run = jar.run([command])
        assert run.exit == code, command
        assert run.stderr.strip(), "it should say why"


def test_script_without_a_first_line_is_run_by_sh(jar, scene):
    scene.file("script", "echo script $1\n", mode=0o755)
    assert jar.ok(["./script", "works"]) == "script works\n"


# ----------------------------------------------------------------------- signals


def test_timeout_ends_what_ignores_sigterm(jar):
    mark = f"belljar-mark-{os.urandom(6).hex()}"
    script = 'trap "" TERM; sh -c "sleep 50; :" "$0" & while :; do sleep 0.1; done'
    run = jar.run(["/bin/sh", "-c", script, mark], policy=["--timeout=1"])
    assert run.exit == jars.TIMED_OUT
    assert 1 <= run.seconds < 6 * jars.SLOWER
    assert jars.processes_with(mark) == []


def test_timeout_lets_a_guest_say_goodbye(jar):
    script = 'trap "echo bye; exit 3" TERM; echo up; while :; do sleep 0.1; done'
    run = jar.run(["/bin/sh", "-c", script], policy=["--timeout=1"])
    assert (run.exit, run.stdout) == (jars.TIMED_OUT, "up\nbye\n")
    assert run.seconds < 3 * jars.SLOWER


def test_sigterm_reaches_the_guest(jar):
    script = 'trap "echo bye; exit 5" TERM; echo up; while :; do sleep 0.1; done'
    with jar.start(["/bin/sh", "-c", script]) as process:
        assert process.stdout.readline() == b"up\n"
        process.terminate()  # `timeout` passes it on to belljar
        assert process.stdout.read() == b"bye\n"
        assert process.wait(10 * jars.SLOWER) == 5


# ------------------------------------------------------------------ surroundings


def test_environment(jar, scene):
    odd = "a=b c\n\"quoted\" 'too' ümlaut \\ $HOME"
    out = jar.ok(
        ["/usr/bin/env", "-0"],
        policy=["--allow-env=MY_*", f"--env=GIVEN={odd}", "--env=EMPTY="],
        env={"MY_ODD": odd, "SECRET_TOKEN": "hunter2", "LC_ALL": "C.UTF-8", "TERM": "vt100"},
    )
    got = dict(entry.split("=", 1) for entry in out.split("\0") if entry)
    assert {name: got.get(name) for name in ("MY_ODD", "GIVEN", "EMPTY", "LC_ALL", "TERM", "PATH")} == {
        "MY_ODD": odd, "GIVEN": odd, "EMPTY": "", "LC_ALL": "C.UTF-8", "TERM": "vt100", "PATH": jars.SYSTEM_PATH,
    }  # fmt: skip
    if jar.said("neither mounts of our own", "Landlock stops neither"):
        assert got["HOME"].startswith("/tmp/belljar-")  # nothing can be mounted at the real one
    else:
        assert got["HOME"] == str(scene.home)
    assert "SECRET_TOKEN" not in got


def test_home_and_tmp_can_be_written(jar):
    out = jar.shell('echo 1 >"$HOME/.config-of-mine"; cat ~/.config-of-mine; f=$(mktemp); echo 2 >"$f"; cat "$f"')
    assert out == "1\n2\n"


def test_user_has_a_name(jar):
    name, user, home = jar.shell('id -un; whoami; getent passwd "$(id -u)" | cut -d: -f6').split()
    assert name == user
    assert home.startswith("/")


@pytest.mark.parametrize("umask", ["0022", "0027", "0077"])
def test_umask_is_kept(jar, scene, umask):
    run = jar.from_shell(f"umask {umask}; $JAR sh -c 'umask; touch file; mkdir folder'")
    assert run.stdout == umask + "\n"
    for name, full in {"file": 0o666, "folder": 0o777}.items():
        info = (scene.workdir / name).stat()
        assert info.st_mode & 0o777 == full & ~int(umask, 8)
        assert (info.st_uid, info.st_gid) == (jar.identity.uid, jar.identity.gid)


def test_working_directory_is_kept(jar, scene):
    folder = scene.folder("some where/deep")
    assert jar.ok(["/bin/pwd"], cwd=folder) == f"{folder}\n"


def test_symlinked_workdir_works_by_both_names(jar, scene):
    scene.file("file", "content\n")
    link = scene.base / "link"
    link.symlink_to(scene.workdir)
    names = f"{shlex.quote(str(link))}/file {shlex.quote(str(scene.workdir))}/file ./file"
    for arrive in (f"cd {link} && $JAR", f"{jar.prefix(f'--workdir={link}')}"):
        run = jar.from_shell(f"{arrive} sh -c 'cat {names}; echo new >{link}/written'", cwd="/")
        assert (run.exit, run.stdout) == (0, "content\n" * 3)
        written = scene.workdir / "written"
        assert written.read_text() == "new\n"
        written.unlink()


def test_one_mebibyte_of_arguments_and_environment(jar):
    arguments = [f"{number}{'a' * 100_000}" for number in range(7)]
    variables = {f"BIG_{number}": f"{number}{'e' * 100_000}" for number in range(4)}
    code = """
import hashlib, os, sys
big = [os.environ[f"BIG_{n}"] for n in range(4)]
print(hashlib.sha256("".join(sys.argv[1:] + big).encode()).hexdigest())
"""
    out = jar.python(code, *arguments, env=variables, policy=["--allow-env=BIG_*"])
    expected = "".join(arguments + list(variables.values()))
    assert len(expected) > 1 << 20
    assert out.strip() == hashlib.sha256(expected.encode()).hexdigest()


def test_fifty_launches_at_once(jar):
    # Where all of them are one account, they are fewer than max_procs together.
    count = 10 if jar.said("such as processes and watches of files") else 50
    many = [jar.start(["/bin/sh", "-c", 'echo $1; sleep 0.2; exit $1', "sh", str(n)]) for n in range(count)]
    ends = []
    for process in many:
        out, err = process.communicate(timeout=60 * jars.SLOWER)
        ends.append((process.returncode, out, quiet(err.decode())))
    assert ends == [(n, f"{n}\n".encode(), []) for n in range(count)]
