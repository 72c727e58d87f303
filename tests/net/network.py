"""An internet of the tests' own, on one machine, which leaves that machine's network alone.

    here    where belljar runs: a network namespace with one cable and nothing else, and a
            mount namespace whose /etc/hosts and /etc/resolv.conf are the tests' own
    world   the other end of the cable: every other host of names.py

Both go away with the process that made them. Servers are threads of the test process: a
socket belongs to the namespace in which it was made, whoever uses it, so a test can look
at what they saw.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import jar as jars
import names

CABLE_HERE, CABLE_WORLD = "cable-here", "cable-world"
WORLD_END = ("198.51.100.254", "2001:db8:51::fe")
CLONE_NEWNET = 0x40000000

HOSTS_FILE = f"""127.0.0.1 localhost
::1 localhost
{names.FROM_HOSTS} from-hosts.example
"""
# One try: a test that waits for a name server in vain should not wait long.
RESOLV_CONF = f"nameserver {names.SERVER}\noptions timeout:2 attempts:1\n"

libc = ctypes.CDLL(None, use_errno=True)


@dataclasses.dataclass(frozen=True)
class Placed(jars.Identity):
    """An identity that starts its commands here and not on the machine's network."""

    enter: tuple[str, ...] = ()

    def command(self, argv):
        return [*self.enter, *super().command(argv)]


class Network:
    def __init__(self):
        self._undo = contextlib.ExitStack()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="belljar-net-"))
        self._undo.callback(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o755)
        (self.folder / "hosts").write_text(HOSTS_FILE)
        (self.folder / "resolv.conf").write_text(RESOLV_CONF)
        bind = "".join(f"mount --bind {self.folder}/{file} /etc/{file} && " for file in ("hosts", "resolv.conf"))
        self._here = self._holder("--mount", "--propagation=private", script=bind)
        self._world = self._holder()
        self.here_fd = os.open(f"/proc/{self._here.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.world_fd = os.open(f"/proc/{self._world.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self._undo.callback(os.close, self.here_fd)
        self._undo.callback(os.close, self.world_fd)
        self._connect()
        with self.world():
            udp = bound(names.SERVER, 53, socket.SOCK_DGRAM)
            tcp = bound(names.SERVER, 53)
        self.name_server = names.NameServer(udp, tcp)

    def close(self) -> None:
        self._undo.close()

    def on_exit(self, deed, *args, **named) -> None:
        self._undo.callback(deed, *args, **named)

    def _holder(self, *flags: str, script: str = "") -> subprocess.Popen:
        """A process for a namespace to live in. It ends with its standard input, that is, with us."""
        process = subprocess.Popen(
            ["/usr/bin/unshare", "--net", *flags, "/bin/sh", "-c", f"{script} echo ready && exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._undo.callback(process.wait)
        self._undo.callback(process.stdin.close)
        self._undo.callback(process.stdout.close)
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError("cannot make a namespace")
        return process

    def _connect(self) -> None:
        here, world = self._here.pid, self._world.pid
        self._ip(here, f"link add name {CABLE_HERE} type veth peer name {CABLE_WORLD} netns {world}")
        for pid, cable, ends in ((here, CABLE_HERE, names.HERE), (world, CABLE_WORLD, WORLD_END)):
            self._ip(
                pid, "link set lo up", f"link set {cable} up",
                f"address add {ends[0]}/24 dev {cable}", f"address add {ends[1]}/64 dev {cable} nodad",
            )  # fmt: skip
        self._ip(here, f"route add default via {WORLD_END[0]}", f"route add default via {WORLD_END[1]}")
        hosts = {address for addresses in names.ADDRESSES.values() for address in addresses}
        hosts |= {names.SERVER, names.FROM_HOSTS}
        hosts -= {*names.HERE, names.UNREACHABLE, names.BLACK_HOLE, "127.0.0.1", "::1", "0.0.0.0", "::"}
        lines = []
        for address in sorted(hosts):
            if not address.startswith(("::ffff:", "64:ff9b::")):
                lines.append(f"address add {address}/{'128 nodad' if ':' in address else '32'} dev {CABLE_WORLD}")
        # Addresses of links are for neighbours; here, as in a cloud, one is routed.
        lines.append(f"route add unreachable {names.UNREACHABLE}")
        lines.append(f"route add blackhole {names.BLACK_HOLE}")
        self._ip(world, *lines)
        for pid in (here, world):
            self._sysctl(pid, "net/ipv4/ip_forward", "1")
            # A million connections, one after the other, need their ports again soon.
            self._sysctl(pid, "net/ipv4/ip_local_port_range", "2048 65000")
            self._sysctl(pid, "net/ipv4/tcp_tw_reuse", "1")
            self._sysctl(pid, "net/core/somaxconn", "4096")
            self._sysctl(pid, "net/ipv4/icmp_ratelimit", "0")
            self._sysctl(pid, "net/ipv4/icmp_msgs_per_sec", "100000")

    def _ip(self, pid: int, *lines: str) -> None:
        subprocess.run(
            [*self._enter(pid, "--net"), "ip", "-batch", "-"],
            input="\n".join(lines).encode() + b"\n", check=True,
        )  # fmt: skip

    def _sysctl(self, pid: int, key: str, value: str) -> None:
        """As far as this kernel has it in a namespace."""
        subprocess.run(
            [*self._enter(pid, "--net"), "sh", "-c", f"echo {value} > /proc/sys/{key}"],
            check=False, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    @staticmethod
    def _enter(pid: int, *which: str) -> tuple[str, ...]:
        return ("/usr/bin/nsenter", f"--target={pid}", *which)

    def placed(self, identity: jars.Identity, folder: os.PathLike | str) -> Placed:
        fields = {field.name: getattr(identity, field.name) for field in dataclasses.fields(jars.Identity)}
        enter = (*self._enter(self._here.pid, "--net", "--mount"), f"--wdns={os.fspath(folder)}", "--")
        return Placed(**fields, enter=enter)

    def start_server(self, argv: list[str], **popen) -> subprocess.Popen:
        """A packaged server, in the world."""
        popen.setdefault("stdout", subprocess.DEVNULL)
        popen.setdefault("stderr", subprocess.DEVNULL)
        process = subprocess.Popen(
            [*self._enter(self._world.pid, "--net"), *argv],
            stdin=subprocess.DEVNULL, cwd=self.folder, start_new_session=True, **popen,
        )  # fmt: skip
        self._undo.callback(process.wait)
        self._undo.callback(process.kill)
        return process

    def world(self):
        """`with network.world():` sockets made by this thread are there."""
        return inside(self.world_fd)

    def here(self):
        return inside(self.here_fd)


@contextlib.contextmanager
def inside(namespace: int):
    back = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        setns(namespace)
        yield
    finally:
        setns(back)
        os.close(back)


def setns(namespace: int) -> None:
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def bound(address: str, port: int, kind: int = socket.SOCK_STREAM) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if made.family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.bind((address, port))
    return made


class _Here:
    """Runs here what its other base runs on the machine."""

    def __init__(self, network: Network, scene: jars.Scene, *rest):
        super().__init__(scene, *rest)
        self.network = network

    def start(self, command, *, cwd=None, **how):
        self.identity = self.network.placed(self.scene.identity, cwd or self.scene.workdir)
        return super().start(command, cwd=cwd, **how)


class Jar(_Here, jars.Jar):
    pass


class Outside(_Here, jars.Outside):
    pass
