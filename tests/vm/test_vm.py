"""The project's tests on other kernels, and proof that those hosts are as poor as they say.

A machine that cannot be had (no qemu, no kernel) is a skip that says why, and a failure when
BELLJAR_MUST_WORK=1. Settings, all from the environment:

  BELLJAR                the binary under test
  BELLJAR_VM_KERNEL      Debian package of the kernel   BELLJAR_VM_ACCEL     tcg or kvm
  BELLJAR_VM_PYTEST      more words for pytest inside    BELLJAR_VM_TIMEOUT  seconds for one host
  BELLJAR_VM_ALL=1       every case on every host, see guest/selection.py
"""

import functools
import json
import os
import shlex
import subprocess
import sys
from xml.etree import ElementTree

import image
import pytest
import vm

BOOT_TIMEOUT = 120  # for a machine that only boots and looks around: 4 s on an idle computer
SUITES = ("escape", "compat")
IDENTITIES = ("root", "user")
SUITE_MEMORY_MB = 3072


def unavailable(reason: str):
    if os.environ.get("BELLJAR_MUST_WORK") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def kernel():
    try:
        kernel = vm.fetch_kernel()
        image.disk()
        vm.accelerator(kernel)
        vm.qemu_command("tcg", kernel, 0, "", 0, 0)  # says when qemu is not here
    except vm.Unavailable as error:
        unavailable(str(error))
    return kernel


# --- each kind of host is what it says ---------------------------------------------------------

# What guest/probe.py must find. ENOTSUP: the kernel has Landlock, and it is turned off. ENOSPC: the
# number of user namespaces is used up. proc is tried without a user namespace, so only a full root
# may; idmap, which belljar uses as root, needs the root of the whole machine.
HOSTS = """
config       user   landlock  userns  proc_in_userns  proc   pivot_root  idmap   pids    memory
full         root   ok        ok      ok              ok     ok          ok      ok      ok
full         guest  ok        ok      ok              EPERM  ok          EPERM   EACCES  EACCES
no-landlock  root   ENOTSUP   ok      ok              ok     ok          ok      ok      ok
no-landlock  guest  ENOTSUP   ok      ok              EPERM  ok          EPERM   EACCES  EACCES
no-userns    root   ok        ENOSPC  ENOSPC          ok     ok          ENOSPC  ok      ok
no-userns    guest  ok        ENOSPC  ENOSPC          EPERM  ENOSPC      ENOSPC  EACCES  EACCES
neither      root   ENOTSUP   ENOSPC  ENOSPC          ok     ok          ENOSPC  ok      ok
neither      guest  ENOTSUP   ENOSPC  ENOSPC          EPERM  ENOSPC      ENOSPC  EACCES  EACCES
container    root   ok        ok      EPERM           EPERM  ok          EPERM   EROFS   EROFS
container    guest  ok        ok      EPERM           EPERM  ok          EPERM   EROFS   EROFS
cgroup       root   ok        ok      ok              ok     ok          ok      ok      ok
cgroup       guest  ok        ok      ok              EPERM  ok          EPERM   ok      ok
"""


def claims():
    header, *rows = (line.split() for line in HOSTS.strip().splitlines())
    for config, user, *answers in rows:
        for fact, answer in zip(header[2:], answers, strict=True):
            yield pytest.param(config, user, fact, answer, id=f"{config}-{user}-{fact}")


@functools.cache
def facts(kernel, config: str, user: str) -> dict:
    """One boot for all the claims about a host."""
    guest = vm.Guest(
        kernel, files={"/vm/probe.py": vm.HERE / "guest" / "probe.py"}, **vm.CONFIGS[config]
    )
    result = guest.run("exec /usr/bin/python3 -I /vm/probe.py", BOOT_TIMEOUT, user)
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    return {**found, **found.pop("cgroup")}


@pytest.mark.parametrize("config, user, fact, answer", claims())
def test_host_is_what_it_says(kernel, config, user, fact, answer):
    assert facts(kernel, config, user)[fact] == answer


def test_every_kind_of_host_has_claims():
    told = {tuple(param.values[:2]) for param in claims()}
    assert told == {(config, user) for config in vm.CONFIGS for user in vm.USERS}


def test_script_runs_as_the_user_asked_for(kernel):
    assert facts(kernel, "full", "root")["uid"] == 0
    assert facts(kernel, "full", "guest")["uid"] == 1000


def test_kernel_is_not_this_machines(kernel):
    assert facts(kernel, "full", "root")["kernel"] == kernel.release != os.uname().release


def test_delegated_controllers_are_those_asked_for(kernel):
    for user in vm.USERS:
        assert facts(kernel, "cgroup", user)["controllers"] == ["memory", "pids"]


# --- the harness itself ------------------------------------------------------------------------

PROGRAMS = (
    "awk bash find free git grep less ls mount ps python3 rsync script sed setpriv sort strace su "
    "tar top unshare uptime xargs"
).split()


@pytest.fixture(scope="module")
def programs_found(kernel):
    """Name -> whether it starts, so with all its libraries."""
    script = "".join(
        f"{name} --version >/dev/null 2>&1 </dev/null || {name} -W version >/dev/null 2>&1 && "
        f"echo {name}\n"
        for name in PROGRAMS
    )
    return vm.Guest(kernel).run(script, BOOT_TIMEOUT).output.split()


@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_has_program(programs_found, name):
    if name in image.missing_optional_packages():
        unavailable(f"{name} is not in the machine (hint: apt-get install {name})")
    assert name in programs_found


def test_result_has_exit_code_output_and_files(kernel, tmp_path):
    (tmp_path / "brought").write_text("along")
    guest = vm.Guest(kernel, files={"/data": tmp_path})
    result = guest.run(
        "mkdir -p /out/deep; cat /data/brought >/out/deep/file; echo to stderr >&2\n"
        "printf 'no newline'; exit 7", BOOT_TIMEOUT, "guest",
    )  # fmt: skip
    assert (result.exit_code, result.output) == (7, "to stderr\nno newline")
    assert result.files == {"deep/file": b"along"}


def test_signal_is_told_as_a_shell_does(kernel):
    assert vm.Guest(kernel).run("kill -9 $$", BOOT_TIMEOUT).exit_code == 137


def children() -> list[str]:
    done = subprocess.run(
        ["ps", "-o", "comm=", "--ppid", str(os.getpid())], capture_output=True, text=True
    )
    return [name for name in done.stdout.split() if name.startswith("qemu")]


def test_machine_that_hangs_is_ended(kernel):
    with pytest.raises(vm.GuestTimeout, match="going to sleep"):
        vm.Guest(kernel).run("echo going to sleep; sleep 1000", timeout=15)
    assert children() == []


def test_machine_that_panics_is_no_result(kernel):
    with pytest.raises(vm.GuestFailed, match="sysrq"):
        vm.Guest(kernel).run("echo c >/proc/sysrq-trigger; sleep 1000", BOOT_TIMEOUT)
    assert children() == []


def test_setting_that_fails_ends_the_machine(kernel):
    with pytest.raises(vm.GuestFailed, match="no.such.setting"):
        vm.Guest(kernel, sysctls={"no.such.setting": "1"}).run("echo ran", BOOT_TIMEOUT)


# --- the hook ----------------------------------------------------------------------------------

SAMPLE_TEST = """
import os, subprocess

def test_binary_runs():
    done = subprocess.run([os.environ["BELLJAR"], "hello"], capture_output=True, text=True)
    assert done.stdout == "sample hello\\n"

def test_user_namespace_can_be_made():
    assert subprocess.run(["unshare", "-Ur", "true"]).returncode == 0
"""


@pytest.fixture
def sample_tree(tmp_path):
    (tmp_path / "tests" / "escape").mkdir(parents=True)
    (tmp_path / "tests" / "escape" / "test_sample.py").write_text(SAMPLE_TEST)
    binary = tmp_path / "sample"
    binary.write_text('#!/bin/sh\necho sample "$@"\n')
    binary.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("user", vm.USERS)
@pytest.mark.parametrize("config, failures", [("full", 0), ("container", 0), ("no-userns", 1)])
def test_suite_passes_and_fails_by_its_host(kernel, sample_tree, config, user, failures):
    result = vm.run_suite(
        config, user, "/usr/bin/python3 -m pytest -q tests/escape", sample_tree / "sample",
        tree=sample_tree, timeout=BOOT_TIMEOUT,
    )  # fmt: skip
    assert result.exit_code == min(failures, 1), result.output
    assert f"{2 - failures} passed" in result.output


# --- the real thing ----------------------------------------------------------------------------


@pytest.fixture(scope="session")
def belljar():
    binary = os.environ.get("BELLJAR")
    if not binary:
        unavailable("BELLJAR does not name the binary to test")
    assert os.access(binary, os.X_OK), f"BELLJAR={binary} is not a program"
    return binary


# Callers who get no jar at all there, and what they are told; test_hosts.py has the whole table. All
# other refusals name a promise, which the suites accept the loss of, to try what is still kept.
REFUSES = {"container": {"root": "root without CAP_SYS_ADMIN"}}


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    return vm.suite_programs(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module", params=vm.CONFIGS)
def ran(request, kernel, belljar, programs):
    """All suites on one kind of host, in one boot: guest/suites says how, guest/selection.py what."""
    config = request.param
    names = {
        "BELLJAR_MUST_WORK": "1",  # a skip in the machine is a failure
        "BELLJAR_TEST_ACCEPTS": "1",
        "BELLJAR_TEST_REFUSES": json.dumps(REFUSES.get(config, {})),
        "BELLJAR_TEST_SLOWER": "4" if vm.accelerator(kernel) == "tcg" else "1",
        "BELLJAR_TEST_USER": "guest",
        "BELLJAR_VM_ALL": os.environ.get("BELLJAR_VM_ALL", ""),
        "BELLJAR_VM_SUITES": " ".join(SUITES),
    }
    words = shlex.split(os.environ.get("BELLJAR_VM_PYTEST", ""))
    command = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in names.items())
    command += shlex.join(["/vm/suites", *IDENTITIES, "--", *words])
    guest = {f"/vm/{name}": vm.HERE / "guest" / name for name in ("suites", "selection.py")}
    result = vm.run_suite(
        config, "root", command, belljar, timeout=float(os.environ.get("BELLJAR_VM_TIMEOUT", 3600)),
        stream=sys.stdout, extra={**guest, **programs}, memory_mb=SUITE_MEMORY_MB,
    )  # fmt: skip
    return config, result


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("identity", IDENTITIES)
def test_suite(ran, identity, suite):
    config, result = ran
    name = f"{identity}-{suite}"
    assert f"{name}.xml" in result.files, f"{name} did not run to its end:\n{result.output}"
    print(result.files[f"{name}.txt"].decode(errors="replace"))
    counts = ElementTree.fromstring(result.files[f"{name}.xml"]).find("testsuite").attrib
    assert int(counts["tests"]) > 0
    bad = int(counts["failures"]) + int(counts["errors"])
    assert bad == 0, f"{bad} of tests/{suite} failed on {config} as {identity} (output above)"
