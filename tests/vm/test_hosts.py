"""belljar on hosts that lack something: it keeps what it says it keeps, and where it
cannot, it refuses and says why. `guest/behaviour.py` tries it inside each machine."""

import json
import os
import pathlib

import pytest
import vm
from test_vm import kernel, unavailable  # noqa: F401  (a fixture)

HERE = pathlib.Path(__file__).parent
BOOT_AND_RUN = 300

# What each profile does where. "kept": it starts and nothing gets out. A text: it is
# refused, exit 125, and the error holds that text. "weak": it starts, and says which
# promise is lost.
KEPT, WEAK = "kept", "weak"
NOT_ROOTS = "root without CAP_SYS_ADMIN"
EXPECTED = {
    ("full", "root"): (KEPT, KEPT, KEPT),
    ("full", "guest"): (KEPT, KEPT, KEPT),
    ("no-landlock", "root"): (KEPT, KEPT, KEPT),
    ("no-landlock", "guest"): (KEPT, KEPT, KEPT),
    ("no-userns", "root"): (KEPT, KEPT, KEPT),
    ("no-userns", "guest"): ('"files"', '"files"', '"files"'),
    ("neither", "root"): (KEPT, KEPT, KEPT),
    ("neither", "guest"): ('"files"', '"files"', '"files"'),
    ("container", "root"): (NOT_ROOTS, NOT_ROOTS, NOT_ROOTS),
    ("container", "guest"): (WEAK, '"processes"', '"processes"'),
    ("cgroup", "root"): (KEPT, KEPT, KEPT),
    ("cgroup", "guest"): (KEPT, KEPT, KEPT),
}
PROFILES = ("developer", "restricted", "public-bot")
NO_IDMAP = {("no-userns", "root"), ("neither", "root")}


@pytest.fixture(scope="session")
def belljar():
    binary = os.environ.get("BELLJAR")
    if not binary:
        unavailable("BELLJAR does not name the binary to test")
    return binary


# A machine of each kind is started once, by the process that has all its tests.
MACHINES = [pytest.param(one, id="-".join(one), marks=pytest.mark.xdist_group("-".join(one))) for one in EXPECTED]


@pytest.fixture(scope="module", params=MACHINES)
def host(request, kernel, belljar):  # noqa: F811
    config, user = request.param
    command = "/usr/bin/python3 /belljar/behaviour.py > /out/found.json"
    result = vm.run_suite(config, user, command, belljar, timeout=BOOT_AND_RUN,
                          extra={"/belljar/behaviour.py": HERE / "guest" / "behaviour.py"})
    assert result.exit_code == 0, result.output
    return config, user, json.loads(result.files["found.json"])


def starts(found, profile):
    return found[profile]["exit"] != 125


def test_each_profile_starts_or_is_refused_with_the_reason(host):
    config, user, found = host
    for profile, expected in zip(PROFILES, EXPECTED[config, user]):
        run = found[profile]
        if expected in (KEPT, WEAK):
            assert run["exit"] == 0 and "done" in run["out"], (profile, run)
            assert (expected == WEAK) == ("not kept here" in run["err"]), (profile, run)
        else:
            assert run["exit"] == 125 and expected in run["err"], (profile, run)
            assert "hint" in run["err"], (profile, run)
            assert run["out"] == [], (profile, run)


# (user namespaces, mounts, /proc, landlock, cgroup v2) as doctor finds them.
DOCTOR = {
    ("full", "root"): (True, True, True, True, True),
    ("full", "guest"): (True, True, True, True, False),
    ("no-landlock", "root"): (True, True, True, False, True),
    ("no-landlock", "guest"): (True, True, True, False, False),
    ("no-userns", "root"): (False, True, True, True, True),
    ("no-userns", "guest"): (False, False, False, True, False),
    ("neither", "root"): (False, True, True, False, True),
    ("neither", "guest"): (False, False, False, False, False),
    ("container", "root"): (True, False, False, True, False),
    ("container", "guest"): (True, True, False, True, False),
    ("cgroup", "root"): (True, True, True, True, True),
    ("cgroup", "guest"): (True, True, True, True, True),
}
NAMES = ("user namespaces", "mounts of our own", "a new /proc", "landlock", "cgroup v2")


def test_doctor_finds_what_the_host_has(host):
    config, user, found = host
    there = {finding["name"]: finding["there"] for finding in found["doctor"]["findings"]}
    assert tuple(there[name] for name in NAMES) == DOCTOR[config, user]


def test_nothing_outside_is_read_or_changed(host):
    config, user, found = host
    for profile in PROFILES:
        run = found[profile]
        for sign in ("read_secret", "could_signal", "is_root"):
            assert sign not in run["out"], (profile, run)
        assert run["secret_intact"] and run["bystander_alive"], (profile, run)


def test_without_a_sandbox_all_of_it_succeeds(host):
    """The control: `open` denies none of it, where it starts."""
    config, user, found = host
    if user == "root" or not starts(found, "open"):
        return  # as root the guest of `open` is another, unprivileged user
    assert {"wrote_workdir", "read_secret", "connected"} <= set(found["open"]["out"])
    assert not found["open"]["secret_intact"]


def test_processes_and_network_of_the_host_are_out_of_reach(host):
    config, user, found = host
    for profile, expected in zip(PROFILES, EXPECTED[config, user]):
        if expected == KEPT:
            assert "saw_process" not in found[profile]["out"], (profile, found[profile])
        if profile != "developer":
            assert "connected" not in found[profile]["out"], (profile, found[profile])


def test_the_workdir_is_writable_where_it_can_be(host):
    config, user, found = host
    for profile in PROFILES:
        if not starts(found, profile):
            continue
        wrote = "wrote_workdir" in found[profile]["out"]
        assert wrote == ((config, user) not in NO_IDMAP), (profile, found[profile])
        if not wrote:
            assert "cannot be shown as the guest's own" in found[profile]["err"]


def test_a_guest_with_too_much_memory_is_ended_with_the_reason(host):
    config, user, found = host
    if not starts(found, "developer"):
        return
    assert found["memory"]["exit"] != 0, found["memory"]
    run = found["shared_memory"]
    assert run["exit"] == 137 and "MB of memory" in run["err"], run
    assert found["report"]["reason"] == "out of memory", found["report"]
    assert found["report"]["limits_hit"] == ["max_memory_mb"], found["report"]
    enforced = found["report"]["enforced"].get("limits", [])
    has_cgroup = config == "cgroup" or (user == "root" and config != "container")
    assert ("cgroup" in enforced) == has_cgroup, enforced


def test_the_cap_on_processes_holds(host):
    config, user, found = host
    if not starts(found, "developer"):
        return
    assert found["processes"]["out"] and int(found["processes"]["out"][0]) <= 20, found["processes"]


def test_the_cap_on_processor_time_is_on_the_sum(host):
    config, user, found = host
    if not starts(found, "developer") or "not kept here: limits" in found["developer"]["err"]:
        return
    assert "burnt" not in found["busy"]["out"], found["busy"]
    assert "CPU time" in found["busy"]["err"], found["busy"]
