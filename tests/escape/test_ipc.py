"""Sockets, shared memory, descriptors and the terminal of the host."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import pty
import secrets
import socket
import struct
import subprocess
import termios
import tty

import jar as jars
import pytest
from arena import attack, findings

# ------------------------------------------------------------- 25: Unix sockets


def unix(attacker, address: str, kind=socket.SOCK_STREAM) -> jars.Listener:
    listener = jars.Listener(socket.AF_UNIX, kind, address, attacker.scene.identity)
    attacker.scene.on_exit(listener.close)
    if not address.startswith("\0"):
        attacker.scene.on_exit(lambda: os.path.exists(address) and os.unlink(address))
    return listener


@attack(25, "processes", lost=["abstract unix sockets of the host can be reached"])
@pytest.mark.parametrize("network", ["default", "none", "loopback", "full"])
def test_connects_to_an_abstract_socket(attacker, network):
    name = f"belljar-test-{secrets.token_hex(6)}"
    stream = unix(attacker, f"\0{name}")
    datagram = unix(attacker, f"\0{name}-d", socket.SOCK_DGRAM)
    policy = [] if network == "default" else [f"--network={network}"]
    attacker.run("25_unix", f"@{name}", f"dgram:@{name}-d", policy=policy)
    attacker.verdict(stream=stream.called(), datagram=datagram.called())


@attack(25, "files", lost=["calls to Unix sockets outside"])
@pytest.mark.parametrize("folder", ["/tmp", "/run", "/var/tmp", "/dev/shm", "home", "outside"])
def test_connects_to_a_socket_by_path(attacker, folder):
    """Where docker, D-Bus, ssh-agent and X11 have theirs."""
    scene = attacker.scene
    folder = {"home": str(scene.home), "outside": str(scene.outside)}.get(folder, folder)
    name = f"{folder}/b-{secrets.token_hex(4)}"
    with working_directory(folder):  # a socket's path has 107 bytes at most
        stream = unix_at(attacker, name, socket.SOCK_STREAM)
        datagram = unix_at(attacker, name + "d", socket.SOCK_DGRAM)
    short = os.path.relpath(name, scene.workdir) if len(name) > 90 else name
    attacker.run("25_unix", short, f"dgram:{short}d")
    attacker.verdict(stream=stream.called(), datagram=datagram.called())


@attack(25, "files")
def test_connects_to_a_socket_in_a_folder_that_may_only_be_read(attacker, request):
    """A read-only mount does not stop connect: docs/threat-model.md names it among what
    belljar does not do. The day a kernel can, this says so."""
    not_promised(attacker, request)
    scene = attacker.scene
    name = f"{scene.outside}/b"
    with working_directory(scene.outside):
        stream = unix_at(attacker, name, socket.SOCK_STREAM)
    attacker.run("25_unix", name, policy=[f"--allow-read={scene.outside}"], may_refuse=True)
    attacker.verdict(stream=stream.called())


def not_promised(attacker, request) -> None:
    if not attacker.is_control:
        request.applymarker(pytest.mark.xfail(reason="not promised: see docs/threat-model.md"))


def unix_at(attacker, path: str, kind: int) -> jars.Listener:
    listener = jars.Listener(socket.AF_UNIX, kind, os.path.basename(path))
    os.chmod(path, 0o777)
    attacker.scene.identity.own(path)
    attacker.scene.on_exit(listener.close)
    attacker.scene.on_exit(lambda: os.path.exists(path) and os.unlink(path))
    return listener


@contextlib.contextmanager
def working_directory(path):
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


# ----------------------------------------------------- 25: descriptors of the caller


@attack(25, "files")
def test_uses_inherited_descriptors(attacker):
    scene = attacker.scene
    folder = os.open(scene.home, os.O_RDONLY | os.O_DIRECTORY)
    secret = os.open(scene.home / ".ssh/id_rsa", os.O_RDONLY)
    ours, theirs = socket.socketpair()
    high = fcntl.fcntl(folder, fcntl.F_DUPFD, 500)
    fds = (folder, secret, theirs.fileno(), high)
    try:
        run = attacker.run("25_inherited", ".ssh/id_rsa", pass_fds=fds)
    finally:
        for fd in (folder, secret, high):
            os.close(fd)
        ours.close()
        theirs.close()
    attacker.verdict(findings(run), text=scene.ssh_key in run.stdout)


@attack(25, "files")
def test_walks_from_a_directory_as_standard_input(attacker):
    scene = attacker.scene
    folder = os.open(scene.home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        run = attacker.run("25_stdin_dir", ".ssh/id_rsa", stdin=folder, may_refuse=True)
    finally:
        os.close(folder)
    attacker.verdict(findings(run) or {"openat": "refused"}, text=scene.ssh_key in run.stdout)


@attack(25, "network")
@pytest.mark.parametrize("network", ["none", "loopback"])
def test_turns_a_socket_as_standard_input_elsewhere(attacker, network):
    first = jars.Listener(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
    second = jars.Listener(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
    attacker.scene.on_exit(first.close)
    attacker.scene.on_exit(second.close)
    with socket.create_connection(first.address) as connected:
        attacker.run(
            "25_stdin_socket", str(second.port), stdin=connected,
            policy=[f"--network={network}"], may_refuse=True,
        )  # fmt: skip
    attacker.verdict(reached=second.called())


@attack(25, "files", lost=["can be opened again"])
def test_opens_standard_input_again_to_write(attacker):
    """The caller gave a file to read from and one to append to, no more."""
    scene = attacker.scene
    source = scene.file(scene.outside / "source.txt", "mine\n", mode=0o666)
    log = scene.file(scene.outside / "log.txt", "belljar-secret-in-the-log\n", mode=0o666)
    with open(source, "rb") as stdin, open(log, "ab") as stderr:
        run = attacker.run("25_reopen", stdin=stdin, stderr=stderr, may_refuse=True)
    attacker.verdict(
        wrote=source.read_text() != "mine\n",
        read="belljar-secret-in-the-log" in run.stdout,
    )


@attack(25, "files")
def test_changes_metadata_of_standard_input(attacker, request):
    """Line 7 of the list, through a descriptor that the caller gave to be read: its owner
    may change it, and docs/threat-model.md names it among what belljar does not do."""
    not_promised(attacker, request)
    scene = attacker.scene
    source = scene.file(scene.outside / "source.txt", "mine\n", mode=0o644)
    before = jars.snapshot(source)
    with open(source, "rb") as stdin:
        run = attacker.run("25_stdin_metadata", stdin=stdin, may_refuse=True)
    attacker.verdict(findings(run) or {"fchmod": "refused"}, changed=before != jars.snapshot(source))


# ------------------------------------------------------------ 26: socket families

ROOT_FAMILIES = [
    "packet", "packet_dgram", "raw_icmp", "raw_tcp", "raw_icmp6", "xdp", "key", "can", "smc",
    "bluetooth", "tipc", "rds", "qipcrtr", "netlink_audit", "netlink_netfilter",
]  # fmt: skip
NO_SUCH_FAMILY = ["EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT"]


@attack(26, "syscalls")
def test_makes_sockets_nobody_needs(attacker):
    run = attacker.run("26_families")
    attacker.verdict(findings(run), root_only=ROOT_FAMILIES, absent=NO_SUCH_FAMILY)


@attack(26, "network")
def test_makes_sockets_nobody_needs_without_a_network(attacker):
    run = attacker.run("26_families", "route-too", policy=["--network=none"])
    attacker.verdict(findings(run), root_only=ROOT_FAMILIES, absent=NO_SUCH_FAMILY)


# ------------------------------------------------------------- 27: shared memory

LIBC = ctypes.CDLL("libc.so.6", use_errno=True)
LIBC.shmat.restype = ctypes.c_void_p
IPC_CREAT, IPC_RMID, IPC_EXCL = 0o1000, 0, 0o2000


@attack(27, "processes", lost=["System V memory of the host"])
def test_finds_memory_the_host_shares(attacker):
    scene = attacker.scene
    secret = "belljar-secret-" + secrets.token_hex(8)
    key = int(secrets.token_hex(3), 16) + 1
    segment = LIBC.shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0o666)
    semaphore = LIBC.semget(key, 1, IPC_CREAT | IPC_EXCL | 0o666)
    queue = LIBC.msgget(key, IPC_CREAT | IPC_EXCL | 0o666)
    scene.on_exit(LIBC.shmctl, segment, IPC_RMID, None)
    scene.on_exit(LIBC.semctl, semaphore, 0, IPC_RMID)
    scene.on_exit(LIBC.msgctl, queue, IPC_RMID, None)
    address = LIBC.shmat(segment, None, 0)
    ctypes.memmove(address, secret.encode() + b"\0", len(secret) + 1)
    LIBC.shmdt(ctypes.c_void_p(address))

    name = f"/belljar-{secrets.token_hex(6)}"
    path = f"/dev/shm{name}"
    with open(path, "w") as file:
        file.write(secret)
    scene.on_exit(os.unlink, path)
    os.chmod(path, 0o666)
    before = os.umask(0)
    mq = LIBC.mq_open(name.encode(), os.O_RDWR | os.O_CREAT, 0o666, None)
    os.umask(before)
    assert mq >= 0
    scene.on_exit(LIBC.mq_unlink, name.encode())
    scene.on_exit(os.close, mq)
    LIBC.mq_send(mq, secret.encode(), len(secret), 0)

    run = attacker.run("27_shared_memory", str(key), str(segment), name)
    attacker.verdict(findings(run), text=secret in run.stdout)


@attack(27, "processes", lost=["System V memory of the host"])
def test_leaves_shared_memory_behind(attacker):
    key = int(secrets.token_hex(3), 16) + 1
    attacker.run("27_leave_memory", str(key))
    segment, semaphore = LIBC.shmget(key, 0, 0), LIBC.semget(key, 0, 0)
    queue = LIBC.msgget(key, 0)
    LIBC.shmctl(segment, IPC_RMID, None)
    LIBC.semctl(semaphore, 0, IPC_RMID)
    LIBC.msgctl(queue, IPC_RMID, None)
    attacker.verdict(segment=segment >= 0, semaphore=semaphore >= 0, queue=queue >= 0)


# ---------------------------------------------------------------- 28: the terminal


@attack(28, "syscalls")
def test_types_into_the_callers_terminal(attacker):
    master, slave = pty.openpty()
    tty.setraw(slave)
    attacker.scene.on_exit(os.close, master)
    attacker.scene.on_exit(os.close, slave)
    os.fchmod(slave, 0o666)
    attacker.scene.identity.own(os.ttyname(slave))
    output = attacker.scene.file("output", mode=0o666)

    # A session whose terminal this is, as a shell's would be. Its output goes to a file, so
    # that what is waiting on the terminal afterwards was typed.
    def session():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    for with_output in (True, False):
        stdout = slave if with_output else open(output, "wb")
        process = attacker.runner.start(
            [attacker.bring("28_terminal")], stdin=slave, stdout=stdout, stderr=slave,
            start_new_session=False, preexec_fn=session,
        )  # fmt: skip
        try:
            process.wait(timeout=15 * jars.SLOWER)
        except subprocess.TimeoutExpired:
            process.kill()
            pytest.fail("did not end")
        if not with_output:
            stdout.close()
    text = os.read(master, 65536).decode()
    waiting = struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, b"\0" * 4))[0]
    said = jars.Run(["28_terminal"], process.returncode, text, output.read_text(), None, 0)
    assert "done" in text, said
    attacker.verdict(findings(said), typed=waiting > 0)


# A person's shell: it has the terminal, and starts the command in the background.
SHELL = """
import subprocess, sys
give = lambda name: None if sys.argv[1] == name else subprocess.DEVNULL
subprocess.run(sys.argv[2:], process_group=0, stdin=give("stdin"), stderr=give("stderr"))
"""


@attack(28, "files")
@pytest.mark.parametrize("way", ["tty", "stdin", "stderr"])
def test_reads_what_is_typed_from_the_background(attacker, way):
    if not attacker.is_control:
        attacker.runner.refused_if_expected()
    master, slave = pty.openpty()
    attacker.scene.on_exit(os.close, master)
    attacker.scene.on_exit(os.close, slave)
    attacker.scene.identity.own(os.ttyname(slave))
    report = attacker.scene.spare("report.json")
    inner = attacker.runner.argv([attacker.bring("28_keys"), way], [], report)
    shell = ["/usr/bin/python3", "-I", "-c", SHELL, way, *inner]

    def session():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        attacker.scene.identity.command(shell), stdin=slave, stdout=subprocess.PIPE, stderr=slave,
        cwd=attacker.scene.workdir, env=attacker.runner.environment(), preexec_fn=session,
    )  # fmt: skip
    attacker.scene.on_exit(process.stdout.close)
    attacker.scene.on_exit(process.kill)
    assert process.stdout.readline() == b"ready\n"
    os.write(master, b"typed-in-confidence\n")
    out = process.stdout.read()
    process.wait(timeout=15)
    run = jars.Run(shell, process.returncode, out.decode(), "", None, 0)
    assert "done" in run.stdout, run
    attacker.verdict(findings(run), read="typed-in-confidence" in run.stdout)
