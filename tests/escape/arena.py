"""How a hostile test is written, so that none can pass for the wrong reason.

A test describes one attack and what to look at afterwards. It is run in several
settings: `control`, without a sandbox, where it MUST succeed; and under each profile,
where it must NOT. Each setting by each identity.

    @attack(1, "files")
    def test_reads_ssh_key(attacker):
        run = attacker.run("01_read", attacker.scene.home / ".ssh/id_rsa")
        attacker.verdict(key=attacker.scene.ssh_key in run.stdout)
"""

from __future__ import annotations

import os
import pathlib
import shutil

import jar as jars
import pytest
from programs import Programs

PROMISES = ("files", "exceptions", "network", "processes", "environment", "limits", "syscalls")
CONTROL = "control"

# Where a host loses a whole promise, this is what `explain` says of it, and every attack on the
# promise may succeed. What it says of a part excuses only the attacks that name it by `lost`.
WHOLE = {
    "files": "there are neither mounts of our own nor Landlock",
    "exceptions": "hide and protect need mounts of our own",
    "network": "needs a network namespace",
    "processes": "the guest can see and signal the caller's processes",
    "environment": "the caller's variables can be read",
    "limits": "\0",  # no host loses them all
    "syscalls": "seccomp filters cannot be installed",
}


def attack(number: int, promise: str, *, control: str = "root user", profiles=jars.PROFILES, lost=()):
    """Marks a test with its line in the list of attacks and the promise it would break.

    control: the identities for which it succeeds outside; what an ordinary user cannot
    do outside either has a control as root only.
    lost: parts of what belljar says of a poor host, each of which means that this gets through.
    """
    assert promise in PROMISES
    runs = [(who, CONTROL) for who in control.split()]
    runs += [(who, profile) for who in ("root", "user") for profile in profiles]

    def mark(test):
        test = pytest.mark.attack(number=number, promise=promise, lost=tuple(lost))(test)
        return pytest.mark.parametrize(("identity", "setting"), runs, indirect=["identity"])(test)

    return mark


def findings(run: jars.Run) -> dict[str, str]:
    """What a program said of each thing it tried: "ESCAPED", or why not."""
    found = {}
    for line in run.stdout.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == "ESCAPED":
            found[words[1]] = "ESCAPED"
        elif len(words) == 3 and words[0] == "stopped":
            found[words[1]] = words[2]
    return found


class Attacker:
    def __init__(self, scene: jars.Scene, setting: str, promise: str, programs: Programs, lost=()):
        self.scene = scene
        self.setting = setting
        self.promise = promise
        self.lost = (WHOLE[promise], *lost)
        self.programs = programs
        self.runs: list[jars.Run] = []
        self.runner = jars.Outside(scene) if self.is_control else jars.Jar(scene, setting)

    @property
    def is_control(self) -> bool:
        return self.setting == CONTROL

    def inside(self, path) -> str:
        return self.runner.inside(path)

    def bring(self, program: str) -> str:
        """Puts a hostile program into the workdir; how to call it from there."""
        target = self.scene.workdir / program
        if not target.exists():
            shutil.copyfile(self.programs.path(program), target)
            os.chmod(target, 0o755)
            self.scene.identity.own(target)
        return f"./{program}"

    def start(self, program: str, *args, **how):
        return self.runner.start([self.bring(program), *map(os.fspath, args)], **how)

    def run(self, program: str, *args, **how) -> jars.Run:
        return self.command([self.bring(program), *map(os.fspath, args)], says_done=True, **how)

    def shell(self, script: str, *args, **how) -> jars.Run:
        return self.command(["/bin/sh", "-c", script, "sh", *map(os.fspath, args)], **how)

    def command(self, command, *, may_end_early=False, may_refuse=False, says_done=False, **how) -> jars.Run:
        """Runs it, and makes sure that it did run: nothing is proved by what never started.

        may_end_early: being killed is one way to be stopped.
        may_refuse: belljar may say no before the guest starts.
        """
        run = self.runner.run(command, **how)
        self.runs.append(run)
        if self.is_control or (may_refuse and run.exit == jars.OWN_FAILURE):
            return run
        if not may_end_early:
            assert not run.hung, f"did not end:\n{run}"
            if says_done:
                assert "done" in run.stdout.split("\n"), f"the attack did not run to its end:\n{run}"
        assert run.exit not in (jars.OWN_FAILURE, 126, 127), f"the guest was not started:\n{run}"
        return run

    def allowed_loss(self, words: str) -> bool:
        """A poorer host may let this through, if belljar says so there, in these words."""
        reported = [loss["what"] for run in self.runs for loss in (run.report or {}).get("losses", [])]
        warned = [line for run in self.runs for line in run.stderr.splitlines() if line.startswith("belljar: warning: ")]
        said = [*self.runner.losses(), *reported, *warned]
        return any(part in what for part in (*self.lost, *filter(None, [words])) for what in said)

    def verdict(self, found: dict[str, str] | None = None, *, root_only=(), beyond=(), absent=(), excused=None, loss="", **happened: bool):
        """found: what programs said; happened: what was seen at the target.

        loss: words by which the plan says that it does not keep the promise against this.
        root_only: what an ordinary user cannot do outside either.
        beyond: what this caller cannot do outside either, whoever it is.
        absent: errnos which, in the control, mean that this kernel does not have the thing.
        excused: a part of what belljar says of a poor host -> what gets through there, and no more.
        """
        everything = dict(found or {}) | {
            what: "ESCAPED" if did else "did not happen" for what, did in happened.items()
        }
        assert everything, "nothing was tried"
        shown = "\n\n".join(map(str, self.runs))
        if self.is_control:
            beyond = {*beyond, *(root_only if self.scene.identity.uid else ())}
            failed = {
                what: why
                for what, why in everything.items()
                if why != "ESCAPED" and why not in absent and what not in beyond
            }
            assert not failed, f"does not work without a sandbox either, so it proves nothing: {failed}\n{shown}"
            return
        said = "\n".join(self.runner.losses())
        through = {what for part, those in (excused or {}).items() if part in said for what in those}
        out = [what for what, why in everything.items() if why == "ESCAPED" and what not in through]
        if out and self.allowed_loss(loss):
            return
        assert not out, f"ESCAPED ({self.promise}): {', '.join(out)}\n{shown}"


def built_programs(folder: pathlib.Path) -> Programs:
    sources = pathlib.Path(__file__).parent / "programs"
    given = os.environ.get("BELLJAR_ESCAPE_PROGRAMS")
    return Programs(sources, pathlib.Path(given), built=True) if given else Programs(sources, folder)
