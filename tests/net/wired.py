"""A scene with a cable: runs commands in the tests' internet, under belljar and without it."""

from __future__ import annotations

import os
import pathlib
import socket

import arena
import jar as jars
import names
import network as networks
from services import Services

PATIENCE = 60.0  # seconds that any one command may take, whatever happens
FIELDS = {"time_ms", "pid", "process", "name", "address", "port", "protocol", "allowed", "rule", "why"}
FOLDER = pathlib.Path(__file__).parent


def allow(*rules: str) -> list[str]:
    return [f"--allow-net={rule}" for rule in rules]


class Wired:
    def __init__(self, scene: jars.Scene, network: networks.Network, services: Services, programs):
        self.scene = scene
        self.network = network
        self.services = services
        self.programs = programs
        self.outside = networks.Outside(network, scene)
        self.authority = os.fspath(scene.file("ca.pem", services.certificates.authority.read_bytes()))

    def jar(self, profile: str = "developer") -> networks.Jar:
        return networks.Jar(self.network, self.scene, profile)

    def run(self, command, *rules: str, profile: str = "developer", policy=(), env=None, **how) -> jars.Run:
        """Under belljar, with these rules. Variables are given to the guest by name."""
        flags = [*allow(*rules), *policy, *(f"--env={name}={value}" for name, value in (env or {}).items())]
        how.setdefault("timeout", PATIENCE)
        run = self.jar(profile).run(command, policy=flags, **how)
        print(run)
        assert not run.hung, "did not end"
        return run

    def ok(self, command, *rules: str, **how) -> str:
        run = self.run(command, *rules, **how)
        assert run.exit == 0, "failed"
        return run.stdout

    def control(self, command, **how) -> jars.Run:
        """Without belljar: what is not possible there either proves nothing."""
        how.setdefault("timeout", PATIENCE)
        run = self.outside.run(command, **how)
        print(run)
        assert not run.hung, "did not end"
        return run

    def bring(self, program: str) -> str:
        """Puts a program of ours into the workdir; how to call it from there."""
        self.scene.file(program, self.programs.path(program).read_bytes(), mode=0o755)
        return f"./{program}"

    def python(self, code: str, *arguments) -> list[str]:
        """The command that runs this code; nothing of the machine's Python but its library."""
        name = f"program-{abs(hash(code))}.py"
        self.scene.file(name, code)
        return ["/usr/bin/python3", "-I", name, *map(str, arguments)]

    def listener(self, address: str, port: int = 0, kind: int = socket.SOCK_STREAM) -> jars.Listener:
        """A service of the machine on which belljar runs."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with self.network.here():
            made = jars.Listener(family, kind, (address, port))
        self.scene.on_exit(made.close)
        return made


def events(run: jars.Run) -> list[dict]:
    found = (run.report or {}).get("network")
    assert isinstance(found, list), f"the report has no list of network events:\n{run}"
    for event in found:
        assert FIELDS <= event.keys(), f"an event without {FIELDS - event.keys()}: {event}"
    return found


def decisions(run: jars.Run, host: str, *, allowed: bool) -> list[dict]:
    """The events about a host, by its name or one of its addresses."""
    known = {host, *names.ADDRESSES.get(host, ())}
    return [event for event in events(run) if event["allowed"] is allowed and {event["name"], event["address"]} & known]


def assert_explained(run: jars.Run, host: str) -> None:
    """A person sees what was denied, and what to add."""
    assert decisions(run, host, allowed=False), f"no event says that {host} was denied:\n{run}"
    assert f"--allow-net={host}" in run.stderr, f"nothing says which rule would allow {host}:\n{run}"


class Attacker(arena.Attacker):
    """An attacker with a cable. The control has the whole internet, a jar what its rules say."""

    def __init__(self, scene, network, services, setting, promise, programs):
        super().__init__(scene, setting, promise, programs)
        self.network = network
        self.services = services
        self.wired = Wired(scene, network, services, programs)
        self.runner = self.wired.outside if self.is_control else self.wired.jar(setting)
        self.mark = services.mark()

    def start(self, program: str, *args, **how):
        return super().start(program, *map(str, args), **how)

    def run(self, program: str, *args, **how):
        return super().run(program, *map(str, args), **how)

    def python(self, code: str, *arguments, says_done=True, **how) -> jars.Run:
        return self.command(self.wired.python(code, *arguments), says_done=says_done, **how)

    def command(self, command, **how):
        how.setdefault("timeout", PATIENCE)
        return super().command(command, **how)

    def seen(self, *addresses: str, service: str | None = None):
        """What these hosts saw since the test began."""
        return self.services.since(self.mark, *addresses, service=service)

    def asked(self) -> list[tuple[str, int, str]]:
        return self.network.name_server.asked
