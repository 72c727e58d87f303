"""A crash inside a jar runs nothing outside. In a machine of its own, because the program that the
kernel runs for core dumps is set for a whole machine. `guest/crash.py` tries it inside."""

import json
import pathlib

import pytest
import vm
from test_hosts import belljar  # noqa: F401  (a fixture)
from test_vm import kernel  # noqa: F401  (a fixture)

HERE = pathlib.Path(__file__).parent
BOOT_AND_RUN = 300


@pytest.fixture(scope="module")
def found(kernel, belljar):  # noqa: F811
    command = "/usr/bin/python3 /belljar/crash.py > /out/found.json"
    result = vm.run_suite("full", "root", command, belljar, timeout=BOOT_AND_RUN,
                          extra={"/belljar/crash.py": HERE / "guest" / "crash.py"})  # fmt: skip
    assert result.exit_code == 0, result.output
    return json.loads(result.files["found.json"])


@pytest.mark.parametrize("who", ["root", "user"])
def test_a_crash_outside_is_heard_of(found, who):
    """The control."""
    assert found[f"{who} outside"]["heard"], found


@pytest.mark.parametrize("who", ["root", "user"])
@pytest.mark.parametrize("profile", ["developer", "restricted", "public-bot"])
def test_a_crash_inside_is_not_heard_of(found, who, profile):
    crashes = {name: crash for name, crash in found.items() if name.startswith(f"{who} {profile} ")}
    assert len(crashes) == 5, found
    for name, crash in crashes.items():
        assert (crash["heard"], crash["limit"]) == (False, "1 1"), (name, crash)
