"""The names of the tests' own internet, and the server that tells them.

A name has the same answer always, but for two kinds: below `rebind.example` the first
question for an address gets a public one and the later ones a private one; `slow.example`
is answered late, and `silent.example` not at all.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
import time
from collections import Counter

SERVER = "203.0.113.53"

ALPHA = ("203.0.113.10", "2001:db8:a::10")  # what tests allow
BETA = ("203.0.113.20", "2001:db8:a::20")  # what they do not
SHARED = ("203.0.113.30", "2001:db8:a::30")  # one machine, many names
FOUR = "203.0.113.14"
SIX = "2001:db8:a::16"
HTTP2 = "203.0.113.22"
HTTP2_OTHER = "203.0.113.23"
FROM_HOSTS = "203.0.113.77"  # in /etc/hosts only
CLOSED = "203.0.113.97"  # a machine on which nothing listens
UNREACHABLE = "203.0.113.98"  # the way there is known to be gone
BLACK_HOLE = "203.0.113.99"  # nobody answers at all
PRIVATE = "10.20.30.40"
LINK_LOCAL = "169.254.7.7"
METADATA = "169.254.169.254"
UNIQUE_LOCAL = "fd12:3456:789a::40"
HERE = ("198.51.100.1", "2001:db8:51::1")  # the machine on which belljar runs

ADDRESSES: dict[str, tuple[str, ...]] = {
    "alpha.example": ALPHA,
    "beta.example": BETA,
    "four.example": (FOUR,),
    "six.example": (SIX,),
    "shared-a.example": SHARED,
    "shared-b.example": SHARED,
    "h2.example": (HTTP2,),
    "h2-other.example": (HTTP2_OTHER,),
    "closed.example": (CLOSED,),
    "unreachable.example": (UNREACHABLE,),
    "black-hole.example": (BLACK_HOLE,),
    "slow.example": ALPHA,
    # Names that an honest owner would not give.
    "loop.example": ("127.0.0.1", "::1"),
    "any.example": ("0.0.0.0", "::"),
    "private.example": (PRIVATE, UNIQUE_LOCAL),
    "link-local.example": (LINK_LOCAL,),
    "metadata.example": (METADATA,),
    "mapped.example": (f"::ffff:{PRIVATE}",),
    "nat64.example": (f"64:ff9b::{PRIVATE}",),
    "mine.example": HERE,
    "mixed.example": (PRIVATE, ALPHA[0]),
    # For *.wild.example.
    "wild.example": BETA,
    "a.wild.example": ALPHA,
    "b.a.wild.example": ALPHA,
    "evilwild.example": BETA,
    "wild.example.evil.example": BETA,
    "a.wild.example.evil.example": BETA,
    "beta.example\0.wild.example": BETA,
    "beta.example\0a.wild.example": BETA,
    "xn--bcher-kva.example": ALPHA,  # bücher
}  # fmt: skip
ALIASES = {"alias.example": "alpha.example", "alias-private.example": "private.example"}
SLOWLY = 1.0  # seconds
SECRET_TEXT = "belljar-text-record"

A, NS, CNAME, NULL, MX, TXT, AAAA, SRV, SVCB, HTTPS, AXFR, ANY = 1, 2, 5, 10, 15, 16, 28, 33, 64, 65, 252, 255
SAME = b"\xc0\x0c"  # the name of the question
OK, SERVER_FAILURE, NO_SUCH_NAME, REFUSED = 0, 2, 3, 5


def question(name: str | list[bytes], kind: int, *, number: int = 0x1234, options: bytes = b"") -> bytes:
    """A query as a stub resolver sends it. A list of labels may hold what no name should."""
    labels = name if isinstance(name, list) else [part.encode() for part in name.rstrip(".").split(".")]
    packet = struct.pack(">6H", number, 0x0100, 1, 0, 0, 1 if options else 0)
    packet += b"".join(bytes([len(label)]) + label for label in labels) + b"\0" + struct.pack(">2H", kind, 1)
    if options:
        packet += b"\0" + struct.pack(">2HIH", 41, 4096, 0, len(options) + 4)
        packet += struct.pack(">2H", 65001, len(options)) + options
    return packet


def read_name(packet: bytes, at: int) -> tuple[str, int]:
    """No compression: this is for questions."""
    labels = []
    while length := packet[at]:
        labels.append(packet[at + 1 : at + 1 + length].decode("latin-1"))
        at += 1 + length
    return ".".join(labels), at + 1


def read_reply(packet: bytes) -> tuple[int, list[tuple[int, bytes]]]:
    """Its code, and the type and data of each answer."""
    questions, answers = struct.unpack(">2H", packet[4:8])
    at, found = 12, []
    for _ in range(questions):
        at = skip_name(packet, at) + 4
    for _ in range(answers):
        at = skip_name(packet, at)
        kind, length = struct.unpack(">H6xH", packet[at : at + 10])
        found.append((kind, packet[at + 10 : at + 10 + length]))
        at += 10 + length
    return packet[3] & 15, found


def skip_name(packet: bytes, at: int) -> int:
    while packet[at] and packet[at] < 0xC0:
        at += 1 + packet[at]
    return at + (2 if packet[at] else 1)


class NameServer:
    """Notes every question in `asked`: (name, type, "udp" or "tcp"), and as it came in `packets`."""

    def __init__(self, udp: socket.socket, tcp: socket.socket):
        self.asked: list[tuple[str, int, str]] = []
        self.packets: list[bytes] = []
        self._times: Counter[str] = Counter()
        self._udp, self._tcp = udp, tcp
        tcp.listen(64)
        threading.Thread(target=self._serve_udp, daemon=True).start()
        threading.Thread(target=self._serve_tcp, daemon=True).start()

    def _serve_udp(self) -> None:
        while True:
            packet, caller = self._udp.recvfrom(4096)
            threading.Thread(target=self._reply_udp, args=(packet, caller), daemon=True).start()

    def _reply_udp(self, packet: bytes, caller) -> None:
        if reply := self.answer(packet, "udp"):
            self._udp.sendto(reply, caller)

    def _serve_tcp(self) -> None:
        while True:
            connection, _ = self._tcp.accept()
            threading.Thread(target=self._reply_tcp, args=(connection,), daemon=True).start()

    def _reply_tcp(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while head := stream.read(2):
                reply = self.answer(stream.read(int.from_bytes(head, "big")), "tcp")
                if reply:
                    connection.sendall(len(reply).to_bytes(2, "big") + reply)

    def answer(self, packet: bytes, transport: str) -> bytes | None:
        self.packets.append(packet)
        name, end = read_name(packet, 12)
        kind = int.from_bytes(packet[end : end + 2], "big")
        key = name.lower()
        self.asked.append((key, kind, transport))
        if key == "silent.example":
            return None
        if key == "slow.example":
            time.sleep(SLOWLY)
        records, code = self._records(key, kind)
        head = packet[:2] + struct.pack(">5H", 0x8180 | code, 1, len(records), 0, 0)
        return head + packet[12 : end + 4] + b"".join(records)

    def _records(self, name: str, kind: int) -> tuple[list[bytes], int]:
        records = []
        owner = SAME
        if name in ALIASES:
            owner = question(ALIASES[name], A)[12:-4]
            records.append(record(CNAME, owner))
            name = ALIASES[name]
        if kind == TXT:
            return [record(TXT, bytes([len(SECRET_TEXT)]) + SECRET_TEXT.encode())], OK
        if name.endswith(".rebind.example"):
            if kind == A:
                self._times[name] += 1
            addresses = (ALPHA[0],) if self._times[name] <= 1 else (PRIVATE,)
        elif name.endswith(".tunnel.example"):
            addresses = (BETA[0],)
        elif name in ADDRESSES:
            addresses = ADDRESSES[name]
        else:
            return records, NO_SUCH_NAME
        for text in addresses:
            address = ipaddress.ip_address(text)
            if kind in ((A if address.version == 4 else AAAA), ANY):
                records.append(record(A if address.version == 4 else AAAA, address.packed, owner))
        return records, OK


def record(kind: int, data: bytes, owner: bytes = SAME) -> bytes:
    return owner + struct.pack(">2HIH", kind, 1, 0, len(data)) + data
