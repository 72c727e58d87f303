"""What a shell call of a session promises, each by its name."""

from __future__ import annotations

import time

import pytest

from boxes import box, engine, engines, plain, plain_box  # noqa: F401
from engine import SLOWER, Engine, Refused

SOON = 5 * SLOWER
SLEEPERS = "ps -C sleep -o stat= | grep -v Z"  # that are not dead already
# What is killed may still be there for a moment.
NO_SLEEPERS = f"while {SLEEPERS} >/dev/null; do sleep 0.02; done; echo none"


def codes(answer) -> list:
    return [command["exit_code"] for command in answer.commands]


# ---------------------------------------------------------------- state


def test_folder_variables_and_functions_last(box):
    box.shell("mkdir sub; cd sub; v='a b'; export W=w; greet() { echo \"hello $1\"; }; alias up='cd ..'")
    answer = box.shell("basename $PWD", "echo \"$v\"", "sh -c 'echo $W'", "greet you")
    assert answer.stdout == "sub\na b\nw\nhello you\n"
    assert answer.working_directory.endswith("/sub")


def test_options_last(plain_box):
    plain_box.shell("set -u; shopt -s nullglob; set -o pipefail")
    answer = plain_box.shell("echo no-such-*", "true | false | true", "shopt nullglob")
    assert answer.stdout.startswith("\n") and codes(answer)[1] == 1 and "on" in answer.stdout
    assert not answer.state_lost


def test_set_e_lasts_and_ends_the_shell_as_it_says(box):
    box.shell("set -e; v=1")
    assert box.shell("case $- in *e*) echo on;; esac").stdout == "on\n"
    answer = box.shell("echo before", "false", "echo never")
    assert answer.stdout == "before\n" and codes(answer) == [0, 1, None]
    assert answer.state_lost and answer.says("ended with code 1") and answer.exit_code == 1
    after = box.shell("echo \"[$v]\"; case $- in *e*) echo on;; esac")
    assert after.stdout == "[]\n"


def test_background_jobs_last(box):
    box.shell("sleep 55 & echo $! >pid; (until [ -e go ]; do sleep 0.02; done; echo woken >woke) &")
    assert box.shell("kill -0 $(cat pid) && echo lives", "jobs -p | wc -l").stdout.split() == ["lives", "2"]
    box.shell("touch go", "until [ -e woke ]; do sleep 0.02; done", timeout_ms=10_000)
    assert box.shell("kill $(cat pid); wait $(cat pid) 2>/dev/null; echo $?").stdout == "143\n"


def test_traps_and_umask_last(plain_box):
    plain_box.shell("trap 'echo caught' USR1; umask 077")
    assert plain_box.shell("kill -USR1 $$", "umask").stdout == "caught\n0077\n"


# ---------------------------------------------------------------- results


def test_all_fields_of_a_result_are_there(box):
    answer = box.shell("echo out; echo err >&2", "exit_like() { return 3; }; exit_like", "echo more >file.txt")
    assert (answer.stdout, answer.stderr, answer.status) == ("out\n", "err\n", "success")
    assert codes(answer) == [0, 3, 0] and answer.exit_code == 0 and not answer.timed_out
    assert [command["command"] for command in answer.commands][0] == "echo out; echo err >&2"
    assert answer.file("file.txt")["text"] == "more\n" and answer.execution_time_ms > 0


def test_exit_code_is_that_of_the_last_command(plain_box):
    answer = plain_box.shell("true", "no-such-program", "(exit 4)")
    assert codes(answer) == [0, 127, 4] and answer.exit_code == 4 and answer.status == "error"


def test_a_signal_counts_as_a_shell_counts(plain_box):
    assert plain_box.shell("sh -c 'kill -9 $$'").exit_code == 137


def test_no_commands_are_no_error(plain_box):
    answer = plain_box.shell()
    assert answer.exit_code == 0 and answer.commands == [] and answer.status == "success"


@pytest.mark.parametrize(
    "command, out",
    [
        ("echo 'it'\\''s' \"a\\\"b\" $'x\\ty'", "it's a\"b x\ty\n"),
        ("cat <<EOF\none $((1 + 1))\nEOF", "one 2\n"),
        ("for i in 1 2\ndo\n  echo $i\ndone", "1\n2\n"),
        ("echo hi! wow!! a!b !$ '!1'", "hi! wow!! a!b !$ !1\n"),
        ("echo one # comment", "one\n"),
        ("# only a comment", ""),
        ("", ""),
        ("   ", ""),
        ("echo a\\\nb", "ab\n"),
        ("echo ü☃😀", "ü☃😀\n"),
        ("echo -n no newline", "no newline"),
        ("printf '%s\\n' \"$(echo nested \"$(echo deep)\")\"", "nested deep\n"),
        ("if true; then echo yes; fi; [[ a == a ]] && echo bash", "yes\nbash\n"),
        ("x=$(cat); echo \"[$x]\"; read y; echo \"[$y]\"", "[]\n[]\n"),
    ],
)
def test_commands_are_taken_as_they_are(plain_box, command, out):
    answer = plain_box.shell(command)
    assert answer.stdout == out and answer.exit_code == 0, answer


def test_a_command_with_a_nul_is_refused(plain_box):
    with pytest.raises(Refused, match="NUL"):
        plain_box.shell("echo a\0b")


def test_a_very_long_command_is_run(plain_box):
    answer = plain_box.shell("x='" + "y" * 500_000 + "'; echo ${#x}")
    assert answer.stdout == "500000\n"


# ---------------------------------------------------------------- output


def test_output_streams_while_a_command_runs(box):
    call = box.send_shell("echo early; until [ -e go ]; do sleep 0.02; done; echo late", stream=True)
    call.wait_for_output(b"early")
    assert not call.answered
    box.python("open('go', 'w').close()")
    assert call.wait().stdout == "early\nlate\n"
    assert call.streamed() == b"early\nlate\n"


def test_max_output_bounds_what_is_kept(box):
    answer = box.shell("seq 100000", max_output=1000)
    assert answer.stdout.startswith("1\n2\n") and answer.stdout.endswith("99999\n100000\n")
    assert answer.stdout_cut_bytes == 588895 - 1000 and "bytes cut" in answer.stdout


def test_max_output_cannot_be_raised_over_the_setting(plain_box):
    answer = plain_box.shell("head -c 3000000 /dev/zero | tr '\\0' x", max_output=10_000_000)
    assert answer.stdout_cut_bytes == 3_000_000 - (1 << 20)


def test_max_output_of_nothing_keeps_nothing(plain_box):
    answer = plain_box.shell("echo hello", max_output=0)
    assert answer.stdout_cut_bytes == 6 and "hello" not in answer.stdout


def test_whole_output_goes_to_a_file(plain_box):
    plain_box.shell("seq 100000", max_output=100, output_file="all.txt")
    assert plain_box.shell("wc -l <all.txt").stdout.strip() == "100000"


def test_binary_output_is_repaired(plain_box):
    answer = plain_box.shell("head -c 100000 /dev/urandom; echo end")
    assert answer.stdout.endswith("end\n")


def test_bash_does_not_complain_of_its_missing_terminal(plain_box):
    call = plain_box.send_shell("sh -c 'kill -9 $$'", "echo real >&2", stream=True)
    answer = call.wait()
    assert answer.stderr.endswith("real\n") and "tcsetattr" not in answer.stderr
    assert b"tcsetattr" not in call.streamed("stderr")


def test_2_dev_null_works(box):
    assert box.shell("ls /no/such 2>/dev/null; echo $?").stdout == "2\n"


# ---------------------------------------------------------------- time


def test_a_timeout_interrupts_the_foreground_and_keeps_state(box):
    box.shell("v=kept; cd /")
    call = box.send_shell("echo partial; echo x >\"$OLDPWD/early.txt\"; sleep 100", "echo never", timeout_ms=300)
    answer = call.wait()
    assert answer.status == "timeout" and answer.timed_out and answer.exit_code == 124
    assert answer.interrupted and not answer.killed and not answer.state_lost
    assert answer.stdout == "partial\n" and answer.file_names() == ["early.txt"]
    assert codes(answer)[1] is None and "timeout" in answer.limits_hit
    assert call.seconds < 0.3 + SOON
    after = box.shell("echo $v $PWD", NO_SLEEPERS, timeout_ms=5000 * SLOWER)
    assert after.stdout == "kept /\nnone\n" and after.notes == []


def test_a_program_that_ignores_the_interrupt_is_killed_and_the_shell_lives(box):
    box.shell("v=kept")
    call = box.send_shell("sh -c 'trap \"\" INT; while :; do sleep 44; done'", timeout_ms=300)
    answer = call.wait()
    assert answer.status == "timeout" and answer.killed and not answer.state_lost
    assert answer.says("did not stop") and call.seconds < 1.0 + SOON
    assert box.shell("echo $v", NO_SLEEPERS, timeout_ms=5000 * SLOWER).stdout == "kept\nnone\n"


# A guest's process that keeps bash's copy of the descriptor of answers, and says a code for every number.
FORGE = """
(end=$((SECONDS + 20)); while [ $SECONDS -lt $end ]; do
  for n in $(seq 60); do for fd in 10 11 12; do printf "$n 77 /forged\\0" >&$fd; done; done
done) 2>/dev/null &
"""


def test_what_a_command_leaves_behind_does_not_answer_for_the_next(box):
    box.shell("true")
    box.shell(FORGE)
    for _ in range(20):
        answer = box.shell("true", "cd /")
        assert codes(answer) == [0, 0] and answer.working_directory == "/", answer


def test_a_loop_with_a_trap_on_int_is_ended(box):
    call = box.send_shell("trap '' INT; while :; do sleep 0.1; done", timeout_ms=300)
    answer = call.wait()
    assert answer.status == "timeout" and answer.killed and answer.state_lost
    assert answer.says("shell ended") and call.seconds < 2.0 + SOON
    assert box.shell("echo fresh").stdout == "fresh\n"


def test_a_busy_loop_with_a_trap_on_int_is_ended(plain_box):
    call = plain_box.send_shell("trap '' INT; while :; do :; done", timeout_ms=300)
    answer = call.wait()
    assert answer.killed and answer.state_lost and call.seconds < 2.0 + SOON
    assert plain_box.shell("echo fresh").stdout == "fresh\n"


def test_a_busy_loop_is_interrupted_and_keeps_state(plain_box):
    plain_box.shell("v=1")
    answer = plain_box.shell("while :; do :; done", timeout_ms=300)
    assert answer.interrupted and not answer.killed
    assert plain_box.shell("echo $v").stdout == "1\n"


def test_background_jobs_of_earlier_calls_survive_a_timeout(box):
    box.shell("sleep 33 & echo $! >pid")
    time.sleep(0.05)  # the kernel dates processes by hundredths of a second
    box.shell("sh -c 'trap \"\" INT; sleep 44'", timeout_ms=200)
    assert box.shell("kill -0 $(cat pid) && echo lives").stdout == "lives\n"


def test_timeout_is_of_all_commands_together(plain_box):
    call = plain_box.send_shell("sleep 0.3", "sleep 0.3", "sleep 0.3", timeout_ms=500)
    answer = call.wait()
    assert answer.timed_out and codes(answer)[0] == 0 and codes(answer)[2] is None
    assert call.seconds < 0.5 + SOON


def test_timeout_is_under_the_ceiling(identity, engines):
    strict = engines.get(identity, "developer", settings={"max_timeout": 400})
    call = strict.box().send_shell("sleep 100", timeout_ms=900_000)
    answer = call.wait()
    assert answer.timed_out and answer.says("limited to 0.400 s") and call.seconds < 0.4 + SOON


def test_interrupt_stops_the_command_that_runs(box):
    box.shell("v=5")
    call = box.send_shell("sh -c 'echo on; exec sleep 100'", "echo never", stream=True)
    call.wait_for_output(b"on")
    box.interrupt()
    answer = call.wait()
    assert answer.interrupted and answer.status == "error" and answer.stdout == "on\n" and codes(answer) == [130, None]
    assert box.shell("echo $v").stdout == "5\n"


# ---------------------------------------------------------------- limits


def test_cpu_time_is_named(identity, engines):
    short = engines.get(identity, "developer", max_cpu_secs=1)
    box = short.box()
    box.shell("v=1")
    answer = box.shell("while :; do :; done")
    assert answer.limits_hit == ["max_cpu_secs"] and answer.status == "error"
    assert box.shell("echo $v").stdout == "1\n"
    box.close()


def test_memory_is_named(identity, engines):
    small = engines.get(identity, "developer", max_memory_mb=200)
    box = small.box()
    answer = box.shell("python3 -c 'x = bytearray(500_000_000)'")
    assert "max_memory_mb" in answer.limits_hit and answer.exit_code == 1
    answer = box.shell("head -c 400M /dev/zero | tail -c 399M >/dev/shm/x 2>&1; head -c 400M /dev/zero >/dev/shm/y; sleep 5")
    assert "max_memory_mb" in answer.limits_hit, answer
    assert box.shell("echo again").stdout == "again\n"
    box.close()


def test_a_fork_bomb_is_named_and_ended(identity, profile, engines):
    few = engines.get(identity, profile, max_procs=30)
    box = few.box()
    call = box.send_shell("bomb() { bomb | bomb & }; bomb; sleep 5", timeout_ms=1000)
    answer = call.wait()
    assert "max_procs" in answer.limits_hit, answer
    assert call.seconds < 1 + 3 * SOON
    for _ in range(100):  # what the bomb left may still fork
        try:
            if box.shell("/bin/echo fine").stdout == "fine\n":
                break
        except Refused:
            pass
        box.python("import os, signal\nos.kill(-1, signal.SIGKILL)")
    else:
        pytest.fail("the session did not come back")
    box.close()


def test_a_file_that_grows_too_large_is_named(identity, engines):
    small = engines.get(identity, "developer", max_file_sz_mb=1)
    box = small.box()
    answer = box.shell("head -c 3M /dev/zero >big")
    assert answer.exit_code != 0 and "max_file_sz_mb" in answer.limits_hit, answer
    box.close()


# ---------------------------------------------------------------- ends of a shell


@pytest.mark.parametrize(
    "command, code, said",
    [
        ("exit", 0, "ended with code 0"),
        ("exit 3", 3, "ended with code 3"),
        ("kill -9 $$", 137, "killed by SIGKILL"),
        ("exec true", 0, "ended with code 0"),
        ("exec sh -c 'echo replaced; exit 5'", 5, "ended with code 5"),
        ("kill -SEGV $$", 139, "killed by SIGSEGV"),
        ("exec no-such-program", 127, None),
        ("exec 10>&- 11>&- 12>&- 13>&- 3>&-", None, None),
        ("exec 0</dev/null 10<&- 11<&- 12<&-", None, None),
        ("logout 2>/dev/null; return 4", None, None),
        ("kill $$", None, None),  # an interactive shell ignores SIGTERM
    ],
)
def test_a_shell_that_ends_is_replaced_and_said(box, command, code, said):
    box.shell("v=1; mkdir sub; cd sub; echo stays >file.txt")
    call = box.send_shell("echo before", command, "echo after", timeout_ms=20_000)
    answer = call.wait()
    assert answer.stdout.startswith("before\n") and call.seconds < SOON
    if said is not None:
        assert codes(answer) == [0, code, None] and answer.exit_code == code
        assert answer.state_lost and answer.says(said) and answer.says("lost")
    after = box.shell("echo \"[$v]\"; cat file.txt", timeout_ms=20_000)
    assert after.stdout == ("[]\nstays\n" if answer.state_lost else "[1]\nstays\n"), (answer, after)


def test_a_shell_that_ends_between_calls_is_replaced_and_said(plain_box):
    plain_box.shell("v=1; TMOUT=1; sh -c 'sleep 0.1; kill -9 $PPID' &")
    plain_box.python("import subprocess, time\nwhile subprocess.run(['pgrep', '-x', 'bash'], stdout=-3).returncode == 0: time.sleep(0.02)")
    after = plain_box.shell("echo \"[$v]\"")
    assert after.stdout == "[]\n" and after.says("fresh")


def test_a_program_that_took_the_shells_place_is_awaited(plain_box):
    answer = plain_box.shell("exec sh -c 'sleep 0.3; echo done; exit 6'")
    assert answer.stdout == "done\n" and answer.exit_code == 6


def test_the_next_shell_begins_where_the_last_was(plain_box):
    plain_box.shell("mkdir here; cd here")
    plain_box.shell("exit 1")
    assert plain_box.shell("basename $PWD").stdout == "here\n"
    plain_box.shell("rmdir \"$PWD\"; exit 1")
    assert plain_box.shell("pwd").stdout.strip() == plain_box.python("1").working_directory


@pytest.mark.parametrize("command", ["echo 'unclosed", 'echo "unclosed', "cat <<EOF\nunclosed", "if true; then", "( echo", "echo $(", "}", ";;"])
def test_what_is_not_closed_is_an_error_and_no_more(box, command):
    box.shell("v=1")
    call = box.send_shell(command, "echo after", timeout_ms=20_000)
    answer = call.wait()
    assert "after" in answer.stdout and not answer.state_lost and call.seconds < SOON
    assert box.shell("echo $v").stdout == "1\n"


def test_stty_and_other_games_with_terminals_do_nothing(plain_box):
    answer = plain_box.shell("stty -echo raw", "tput clear 2>/dev/null; reset 2>/dev/null", "tty", "echo fine", timeout_ms=20_000)
    assert answer.stdout.endswith("fine\n") and not answer.state_lost


def test_a_background_process_that_holds_the_pipe_holds_nobody_up(box):
    call = box.send_shell("sleep 60 & (sleep 61; echo late) & echo now")
    answer = call.wait()
    assert answer.stdout == "now\n" and call.seconds < SOON
    assert box.shell("echo again").stdout == "again\n"


def test_a_background_process_that_writes_on_is_heard_in_later_calls(plain_box):
    plain_box.shell("(until [ -e go ]; do sleep 0.02; done; echo from-behind; touch done) &")
    answer = plain_box.shell("touch go; until [ -e done ]; do sleep 0.02; done", timeout_ms=10_000)
    assert answer.stdout == "from-behind\n"


def test_a_stopped_shell_is_continued(plain_box):
    plain_box.shell("v=1")
    call = plain_box.send_shell("kill -STOP $$; echo on", timeout_ms=20_000)
    assert call.wait().stdout == "on\n" and call.seconds < SOON
    assert plain_box.shell("echo $v").stdout == "1\n"


# ---------------------------------------------------------------- one-shot


def test_one_shot_keeps_nothing_and_disturbs_nothing(box):
    folder = box.shell("v=kept; mkdir sub; cd sub; pwd").stdout.strip()
    answer = box.shell("echo \"[$v]\" $PWD; v=other; cd /", "exit 3", "echo never", one_shot=True)
    assert answer.stdout == f"[] {folder.removesuffix('/sub')}\n" and codes(answer) == [0, 3, None]
    assert answer.exit_code == 3 and not answer.state_lost
    after = box.shell("echo $v $PWD")
    assert after.stdout == f"kept {folder}\n" and after.notes == []


def test_one_shot_sees_the_same_files_and_processes(plain_box):
    plain_box.shell("echo x >file; sleep 22 &")
    assert plain_box.shell("cat file; pgrep -x sleep >/dev/null && echo sleeps", one_shot=True).stdout == "x\nsleeps\n"


def test_one_shot_runs_beside_a_busy_shell(plain_box):
    busy = plain_box.send_shell("until [ -e go ]; do sleep 0.02; done; echo went", timeout_ms=20_000)
    assert plain_box.shell("echo beside; touch go", one_shot=True).stdout == "beside\n"
    assert busy.wait().stdout == "went\n"


def test_what_a_one_shot_leaves_behind_ends_with_it(plain_box):
    plain_box.shell("sleep 12 & echo started", one_shot=True)
    assert plain_box.shell(NO_SLEEPERS, timeout_ms=5000 * SLOWER).stdout == "none\n"


def test_one_shot_has_a_timeout_and_can_be_interrupted(plain_box):
    answer = plain_box.shell("echo a; sleep 100", one_shot=True, timeout_ms=300)
    assert answer.timed_out and answer.stdout == "a\n" and answer.exit_code == 124
    call = plain_box.send_shell("echo on; sleep 100", one_shot=True, stream=True)
    call.wait_for_output(b"on")
    plain_box.interrupt()
    assert call.wait().interrupted


# ---------------------------------------------------------------- other shells


@pytest.fixture
def dash(identity, engines):
    made = engines.get(identity, "developer", settings={"shell": "sh"}).box()
    yield made
    made.close()


def test_sh_keeps_state_too(dash):
    dash.shell("mkdir d; cd d; v=1; f() { echo f$v; }; sleep 20 &")
    answer = dash.shell("basename $PWD; f", "(exit 3)", "echo 'unclosed", "echo on")
    assert answer.stdout == "d\nf1\non\n" and codes(answer)[1] == 3 and codes(answer)[2] not in (0, None)
    assert not answer.state_lost


def test_sh_is_interrupted_and_keeps_state(dash):
    dash.shell("v=kept")
    for command in ("sleep 100", "while :; do :; done", "sh -c 'trap \"\" INT; sleep 44'"):
        answer = dash.shell(command, timeout_ms=300)
        assert answer.timed_out and not answer.state_lost, answer
    assert dash.shell("echo $v").stdout == "kept\n"


def test_sh_that_ends_is_replaced(dash):
    for command, code in (("exit 4", 4), ("exec true", 0), ("kill -9 $$", 137)):
        answer = dash.shell(command)
        assert answer.exit_code == code and answer.state_lost
    assert dash.shell("echo fine").stdout == "fine\n"


def test_a_shell_that_is_not_there_is_our_error(scene):
    with Engine(scene, settings={"shell": "/no/such/shell"}) as engine:
        with pytest.raises(Refused, match="start /no/such/shell.*hint"):
            engine.box().shell("echo")


def test_a_shell_that_is_none_is_our_error(scene):
    with Engine(scene, settings={"shell": "/usr/bin/true"}) as engine:
        call = engine.box().send_shell("echo")
        with pytest.raises(Refused, match="does not answer"):
            call.wait()
        assert call.seconds < SOON
