"""Which cases of the suites run on which test machine: a pytest plugin, used by `suites`.

The build machine runs every case. Here the kernel differs and what the host lacks, so that is what
is tried, in a time that somebody waits for:

  identity   BELLJAR_TEST_IDENTITY: one run for each, side by side
  profiles   a test with three ways or more runs each way under one profile, in turn: every way
             and every profile is there, not every pair. Others run under all, and compat, where a
             profile changes little, under one in turn, except on `full`
  controls   only on `full`: what the attack does without a sandbox is the kernel's, the same on all
  mistakes   only on `full`: a bad flag or file is refused before the host is looked at
  mounts     not in `container`, where nobody can make the mounts that a test begins with
  limits     all that `cgroup` has of the hostile cases: it differs from `full` in nothing else

BELLJAR_VM_ALL=1 runs everything but the other identity.
"""

import os

PROFILES = ("developer", "restricted", "public-bot")
MISTAKES = ("test_bad_", "test_no_command_is_refused", "test_odd_name_steers", "test_path_that_is_too_long")
CONFIG = os.environ["BELLJAR_VM_CONFIG"]
IDENTITY = os.environ["BELLJAR_TEST_IDENTITY"]
ALL = os.environ.get("BELLJAR_VM_ALL") == "1"


def pytest_collection_modifyitems(config, items):
    turns = Turns()
    wanted = [item for item in items if is_wanted(item, turns)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(wanted)])
    items[:] = wanted


class Turns:
    """Deals out profiles: each test has the next, and each way of a test too."""

    def __init__(self):
        self.tests: dict[str, int] = {}
        self.ways: dict[str, dict[str, int]] = {}

    def way(self, item) -> tuple[int, int]:
        """Number of the test, and of this way of it."""
        test = f"{item.fspath}::{item.originalname}"
        number = self.tests.setdefault(test, len(self.tests))
        ways = self.ways.setdefault(test, {})
        mine = [v for k, v in item.callspec.params.items() if k not in ("identity", "setting", "profile")]
        return number, ways.setdefault(repr(mine), len(ways))


def ways_of(item) -> int:
    """How many ways a test has, from its marks."""
    count = 1
    for mark in item.iter_markers("parametrize"):
        if "setting" not in mark.args[0]:
            count *= len(mark.args[1])
    return count


def is_wanted(item, turns: Turns) -> bool:
    params = getattr(getattr(item, "callspec", None), "params", {})
    if params.get("identity", IDENTITY) != IDENTITY:
        return False
    if ALL:
        return True
    if CONFIG == "container" and item.fspath.basename == "test_host_mounts.py":
        return False
    attack = item.get_closest_marker("attack")
    if CONFIG != "full" and (params.get("setting") == "control" or item.name.startswith(MISTAKES)):
        return False
    if CONFIG == "cgroup" and "/escape/" in str(item.fspath):
        limits = attack and attack.kwargs["promise"] == "limits"
        return bool(limits) or item.originalname == "test_leaves_nothing_on_the_host"
    setting = params.get("setting", params.get("profile"))
    if setting not in PROFILES:
        return True
    test, way = turns.way(item)
    if "profile" in params:  # compat has the first two
        return CONFIG == "full" or setting == PROFILES[(test + way) % 2]
    return ways_of(item) < 3 or setting == PROFILES[(test + way) % 3] or not in_turn(item)


def in_turn(item) -> bool:
    """Whether the test runs under all three profiles, so that turns are fair."""
    for mark in item.iter_markers("parametrize"):
        if "setting" in mark.args[0]:
            return {setting for _, setting in mark.args[1]} >= set(PROFILES)
    return False
