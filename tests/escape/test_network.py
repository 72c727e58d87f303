"""Network: with `none` and `loopback` nothing of the host's can be reached, nor reaches in."""

from __future__ import annotations

import contextlib
import socket
import subprocess

import jar as jars
import pytest
from arena import attack, findings

NETWORKS = [["--network=none"], ["--network=loopback"]]
IDS = ["none", "loopback"]


def host_addresses() -> list[str]:
    """Addresses of the host that are not loopback, as far as it has any."""
    found = []
    for family, beyond in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((beyond, 9))  # sends nothing
            found.append(probe.getsockname()[0])
    return found


def everywhere(scene, kind) -> dict[str, jars.Listener]:
    """A listener on every address of the host."""
    listeners = {}
    for address in ["127.0.0.1", "::1", *host_addresses()]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listeners[f"[{address}]" if ":" in address else address] = jars.Listener(family, kind, (address, 0))
    for listener in listeners.values():
        scene.on_exit(listener.close)
    return listeners


@attack(29, "network")
@pytest.mark.parametrize("policy", NETWORKS, ids=IDS)
@pytest.mark.parametrize("kind", ["tcp", "udp", "fastopen", "mptcp"])
def test_reaches_a_service_of_the_host(attacker, kind, policy):
    listeners = everywhere(attacker.scene, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    targets = [f"{kind}:{address}:{listener.port}" for address, listener in listeners.items()]
    attacker.run("29_connect", *targets, policy=policy)
    attacker.verdict(**{f"{kind}:{address}": listener.called() for address, listener in listeners.items()})


@attack(29, "network", profiles=("restricted", "public-bot"))
@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_reaches_a_service_of_the_host_by_default(attacker, kind):
    listeners = everywhere(attacker.scene, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    targets = [f"{kind}:{address}:{listener.port}" for address, listener in listeners.items()]
    attacker.run("29_connect", *targets)
    attacker.verdict(**{f"{kind}:{address}": listener.called() for address, listener in listeners.items()})


@attack(29, "network")
@pytest.mark.parametrize("policy", NETWORKS, ids=IDS)
def test_reaches_the_cloud_metadata_service(attacker, policy):
    """Nothing is there on most machines: the host's own address stands in for the control."""
    target = host_addresses()[:1] if attacker.is_control else ["169.254.169.254"]
    if not target:
        pytest.skip("this host has no address but loopback")
    listener = jars.Listener(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0))
    attacker.scene.on_exit(listener.close)
    port = listener.port if attacker.is_control else 80
    run = attacker.run("29_connect", f"tcp:{target[0]}:{port}", policy=policy)
    attacker.verdict(findings(run))


@attack(29, "network", control="root")
@pytest.mark.parametrize("policy", NETWORKS, ids=IDS)
def test_pings_the_host(attacker, policy):
    """127.0.0.1 answers inside too, from the jar's own loopback: another address must not."""
    addresses = [address for address in host_addresses() if ":" not in address]
    if not addresses:
        pytest.skip("this host has no address but loopback")
    # Groups that may ping are the host's choice; the control runs in one.
    if attacker.is_control:
        attacker.runner.prefix = (
            "/usr/bin/unshare", "--net", "/bin/sh", "-c",
            'echo "0 2147483647" > /proc/sys/net/ipv4/ping_group_range && ip link set lo up'
            f' && ip address add {addresses[0]}/32 dev lo && exec "$@"', "sh",
        )  # fmt: skip
    run = attacker.run("29_connect", f"icmp:{addresses[0]}:0", policy=policy)
    attacker.verdict(findings(run))


@attack(29, "network")
@pytest.mark.parametrize("policy", NETWORKS, ids=IDS)
def test_is_called_from_the_host(attacker, policy):
    """A service that the guest opens is not one on the host's network."""
    with socket.socket() as spare:
        spare.bind(("127.0.0.1", 0))
        port = spare.getsockname()[1]
    process = attacker.start("29_listen", str(port), policy=policy)
    attacker.scene.on_exit(process.kill)
    assert process.stdout.readline() == b"ready\n", process.stderr.read()
    reached = False
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        reached = True
    try:
        out, _ = process.communicate(timeout=10 * jars.SLOWER)
    except subprocess.TimeoutExpired:
        pytest.fail("did not end")
    attacker.verdict(reached=reached, called=b"ESCAPED called" in out)


@attack(29, "network")
@pytest.mark.parametrize("policy", NETWORKS, ids=IDS)
def test_reaches_a_service_of_the_host_with_python(attacker, policy):
    """As a script would, which may find another way than our own program does."""
    listener = jars.Listener(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
    attacker.scene.on_exit(listener.close)
    script = (
        "import urllib.request as u\n"
        "try: u.urlopen('http://127.0.0.1:%d/', timeout=2)\n"
        "except Exception as e: print(e)" % listener.port
    )
    attacker.command(["/usr/bin/python3", "-I", "-c", script], policy=policy)
    attacker.verdict(called=listener.called())
