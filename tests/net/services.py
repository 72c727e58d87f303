"""What the hosts of the world serve, and what they saw.

    7     echo, TCP and UDP
    9     reads to the end, then says how much came and its digest
    19    reads a number and sends as many bytes
    22    ssh, with a git repository
    80    HTTP; 443 HTTPS: greetings, git, a package registry each for pip and npm
    2100  speaks first, then echoes lines
    4430  HTTPS that asks every client for a second hello
    4431  HTTPS with TLS 1.2, whose clients may start over
    6379  Redis
    7000  counts connections and resets them; counts datagrams
    7001  resets after the first byte

Every host but `closed.example` serves all of it; `h2.example` has another 443, for HTTP/2.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import http.server
import io
import json
import os
import pathlib
import selectors
import shutil
import socket
import ssl
import struct
import subprocess
import tarfile
import threading
import time
import urllib.parse
import zipfile
from collections import Counter

import jar as jars
import names
from network import Network, bound

ECHO, DIGEST, SOURCE, HTTP, HTTPS, BANNER, REDIS, COUNT, RESET = 7, 9, 19, 80, 443, 2100, 6379, 7000, 7001
HTTPS_RETRY, HTTPS_OLD = 4430, 4431
MAY_START_OVER = 0x100  # SSL_OP_ALLOW_CLIENT_RENEGOTIATION, which Python has no name for
PATTERN = bytes(range(251)) * 4177  # about a mebibyte that no power of two repeats
NO_HOST = ("127.0.0.1", "::1", "0.0.0.0", "::", *names.HERE, names.CLOSED, names.UNREACHABLE, names.BLACK_HOLE)


@dataclasses.dataclass
class Call:
    """One connection, or one datagram, as the one who was called saw it."""

    service: str
    address: str
    port: int
    data: bytes = b""  # its first bytes
    server_names: list[str | None] = dataclasses.field(default_factory=list)  # one of each TLS hello
    requests: list[tuple[str, list[str]]] = dataclasses.field(default_factory=list)  # line, hosts


class Services:
    def __init__(self, network: Network, account: jars.Identity):
        self.network = network
        self.folder = network.folder
        self.calls: list[Call] = []
        self.counts: Counter[str] = Counter()  # connections to port 7000, by address
        self.datagrams: Counter[str] = Counter()  # the same for UDP
        self.account = account.account
        every = {address for addresses in names.ADDRESSES.values() for address in addresses} - {*NO_HOST}
        every = {address for address in every if not address.startswith(("::ffff:", "64:ff9b::"))}
        self.hosts = sorted(every | {names.FROM_HOSTS})
        self.certificates = Certificates(self.folder)
        self.repository = make_repository(self.folder / "git/project.git", account)
        self.packages = Packages()

        plain = [host for host in self.hosts if host not in (names.HTTP2, names.HTTP2_OTHER)]
        self._serve("http", HTTP, self._http)
        for port in (HTTPS, HTTPS_RETRY, HTTPS_OLD):
            self._serve("https", port, self._https, plain)
        self._serve("echo", ECHO, echo)
        self._serve("digest", DIGEST, digest)
        self._serve("source", SOURCE, source)
        self._serve("banner", BANNER, banner)
        self._serve("reset", RESET, reset)
        self._serve("count", COUNT, None)
        self._serve_datagrams()
        self._start_http2()
        self._start_redis()
        self._start_ssh(account)

    # ------------------------------------------------------------- what they saw

    def mark(self) -> int:
        return len(self.calls)

    def since(self, mark: int, *addresses: str, service: str | None = None) -> list[Call]:
        """The calls since then, to these addresses; to any when none is named."""
        return [
            call for call in self.calls[mark:]
            if (not addresses or call.address in addresses) and service in (None, call.service)
        ]  # fmt: skip

    # ----------------------------------------------------------------- in threads

    def _serve(self, service: str, port: int, handler, hosts=None) -> None:
        waiting = selectors.DefaultSelector()
        with self.network.world():
            for host in hosts or self.hosts:
                listener = bound(host, port)
                listener.listen(1024)
                waiting.register(listener, selectors.EVENT_READ, host)
        threading.Thread(target=self._accept, args=(waiting, service, port, handler), daemon=True).start()

    def _accept(self, waiting, service, port, handler) -> None:
        while True:
            for key, _ in waiting.select():
                try:
                    connection, peer = key.fileobj.accept()
                except OSError:  # the caller has gone again
                    continue
                if handler is None:
                    self.counts[key.data] += 1
                    abort(connection)
                    continue
                call = Call(service, key.data, port)
                self.calls.append(call)
                threading.Thread(target=self._handle, args=(handler, connection, call), daemon=True).start()

    @staticmethod
    def _handle(handler, connection: socket.socket, call: Call) -> None:
        # Callers break off as they like; nothing here depends on it.
        with contextlib.suppress(OSError, ValueError), connection:
            connection.settimeout(30)
            handler(connection, call)

    def _serve_datagrams(self) -> None:
        waiting = selectors.DefaultSelector()
        with self.network.world():
            for host in self.hosts:
                for port in (ECHO, COUNT):
                    made = bound(host, port, socket.SOCK_DGRAM)
                    waiting.register(made, selectors.EVENT_READ, (host, port))

        def serve():
            while True:
                for key, _ in waiting.select():
                    host, port = key.data
                    with contextlib.suppress(OSError):
                        data, caller = key.fileobj.recvfrom(65536)
                        if port == COUNT:
                            self.datagrams[host] += 1
                            continue
                        self.calls.append(Call("udp", host, port, data))
                        key.fileobj.sendto(b"echo " + data, caller)

        threading.Thread(target=serve, daemon=True).start()

    def _http(self, connection: socket.socket, call: Call) -> None:
        call.data = connection.recv(256, socket.MSG_PEEK)
        WebHandler(connection, call, self)

    def _https(self, connection: socket.socket, call: Call) -> None:
        call.data = connection.recv(4096, socket.MSG_PEEK)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificates.chain, self.certificates.key)
        context.set_alpn_protocols(["http/1.1"])
        if call.port == HTTPS_RETRY:  # a group of which no client sends a key at first
            context.set_ecdh_curve("secp521r1")
        if call.port == HTTPS_OLD:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.options |= MAY_START_OVER

        def named(_, name, __):
            call.server_names.append(name)

        context.sni_callback = named
        with context.wrap_socket(connection, server_side=True) as secure:
            WebHandler(secure, call, self)

    # --------------------------------------------------------- packaged programs

    def _start_http2(self) -> None:
        files = self.folder / "http2"
        files.mkdir()
        (files / "index.html").write_text("hello over two\n")
        for host in (names.HTTP2, names.HTTP2_OTHER):
            self.network.start_server([
                "/usr/sbin/nghttpd", f"--address={host}", f"--htdocs={files}", str(HTTPS),
                os.fspath(self.certificates.key), os.fspath(self.certificates.chain),
            ])  # fmt: skip
        self.wait(names.HTTP2, HTTPS)
        self.wait(names.HTTP2_OTHER, HTTPS)

    def _start_redis(self) -> None:
        # The server is the same program as this one, in a package that starts no service.
        self.network.start_server([
            "/bin/bash", "-c", 'exec -a redis-server /usr/bin/redis-check-rdb "$@"', "bash",
            "--port", str(REDIS), "--save", "", "--protected-mode", "no", "--bind", *names.ALPHA, *names.BETA,
        ])  # fmt: skip
        self.wait(names.ALPHA[0], REDIS)

    def _start_ssh(self, account: jars.Identity) -> None:
        for name in ("host_key", "ssh_key"):
            made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.fspath(self.folder / name)]
            subprocess.run(made, check=True)
        host_key = self.folder / "dropbear_key"
        subprocess.run(
            ["dropbearconvert", "openssh", "dropbear", self.folder / "host_key", host_key],
            check=True, capture_output=True,
        )  # fmt: skip
        ports = []
        for address in (*names.ALPHA, *names.BETA):
            ports += ["-p", f"[{address}]:22" if ":" in address else f"{address}:22"]
        # The account's home is covered, for the server only: nobody's keys are touched.
        script = (
            'mount -t tmpfs -o mode=755,uid="$1" tmpfs "$2" && mkdir -m 700 "$2/.ssh" && '
            'cp "$3" "$2/.ssh/authorized_keys" && chmod 600 "$2/.ssh/authorized_keys" && '
            'chown -R "$1" "$2/.ssh" && shift 3 && exec "$@"'
        )
        home = os.path.expanduser(f"~{account.account}")
        self.network.start_server([
            "/usr/bin/unshare", "--mount", "--propagation=private", "/bin/sh", "-c", script, "sh",
            str(account.uid), home, os.fspath(self.folder / "ssh_key.pub"),
            "/usr/sbin/dropbear", "-F", "-E", "-s", "-j", "-k", "-r", os.fspath(host_key), "-P", "", *ports,
        ])  # fmt: skip
        self.wait(names.ALPHA[0], 22)

    def wait(self, address: str, port: int) -> None:
        end = time.monotonic() + 10
        while True:
            try:
                with self.network.here(), socket.create_connection((address, port), timeout=1):
                    return
            except OSError:
                if time.monotonic() > end:
                    raise RuntimeError(f"nothing listens on {address}:{port}") from None
                time.sleep(0.05)


# -------------------------------------------------------------------- small servers


def abort(connection: socket.socket) -> None:
    """Ends it with a reset, which leaves no port waiting."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def echo(connection: socket.socket, call: Call) -> None:
    while data := connection.recv(1 << 16):
        call.data = call.data or data[:256]
        connection.sendall(data)


def digest(connection: socket.socket, call: Call) -> None:
    seen, length = hashlib.sha256(), 0
    while data := connection.recv(1 << 18):
        call.data = call.data or data[:256]
        seen.update(data)
        length += len(data)
    connection.sendall(f"{length} {seen.hexdigest()}\n".encode())


def source(connection: socket.socket, call: Call) -> None:
    with connection.makefile("rb") as stream:
        call.data = stream.readline(32)
    left = int(call.data)
    while left > 0:
        connection.sendall(PATTERN[: min(left, len(PATTERN))])
        left -= min(left, len(PATTERN))


def banner(connection: socket.socket, call: Call) -> None:
    connection.sendall(f"220 {call.address} is ready\r\n".encode())
    echo(connection, call)


def reset(connection: socket.socket, call: Call) -> None:
    call.data = connection.recv(1)
    abort(connection)


class WebHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def __init__(self, connection: socket.socket, call: Call, services: Services):
        self.call, self.services = call, services
        super().__init__(connection, (call.address, call.port), None)

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        self.call.requests.append((self.requestline, self.headers.get_all("Host") or []))
        path = urllib.parse.urlsplit(self.path)
        if path.path == "/deaf":  # as some servers are: the body is the next request
            self._answer(200, "text/plain", b"no body read\n")
            return
        if path.path == "/status/101":  # as some applications answer, without another protocol
            self.send_response(101)
            self.end_headers()
            return
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else self._chunks()
        if path.path.startswith("/git/"):
            self._git(path, body)
            return
        found = self.services.packages.find(path.path, self.headers.get("Host") or "")
        if path.path == "/":
            found = ("text/plain", f"hello from {self.headers.get('Host')} at {self.call.address}\n".encode())
        elif path.path == "/resolve":  # what DNS over HTTPS does
            found = ("application/dns-message", names.BETA[0].encode())
        elif path.path == "/echo":
            found = ("application/octet-stream", body)
        if found is None:
            self._answer(404, "text/plain", b"no such page\n")
        else:
            self._answer(200, *found)

    do_POST = do_HEAD = do_PUT = do_DELETE = do_GET  # noqa: N815

    def _answer(self, status: int, kind: str, body: bytes, extra=()) -> None:
        self.send_response(status)
        for name, value in extra:
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _chunks(self) -> bytes:
        body = b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        return body

    def _git(self, path: urllib.parse.SplitResult, body: bytes) -> None:
        variables = {
            "PATH": jars.SYSTEM_PATH,
            "GIT_PROJECT_ROOT": os.fspath(self.services.folder / "git"),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": path.path.removeprefix("/git"),
            "QUERY_STRING": path.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], input=body, env=variables, capture_output=True)
        head, _, page = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        status = int(fields.pop("Status", "200").split()[0])
        self._answer(status, fields.pop("Content-Type", "text/plain"), page, fields.items())


# ---------------------------------------------------------------------- what they serve


class Certificates:
    """One authority, and one certificate for every name there is."""

    def __init__(self, folder: pathlib.Path):
        self.authority, authority_key = folder / "ca.pem", folder / "ca.key"
        self.chain, self.key = folder / "server.pem", folder / "server.key"
        new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        subprocess.run(
            [*new, "-days", "2", "-subj", "/CN=belljar test authority", "-keyout", authority_key,
             "-out", self.authority, "-addext", "basicConstraints=critical,CA:TRUE",
             "-addext", "keyUsage=critical,keyCertSign"],
            check=True, capture_output=True,
        )  # fmt: skip
        plain = [name for name in (*names.ADDRESSES, *names.ALIASES, "from-hosts.example") if "\0" not in name]
        every = [f"DNS:{name}" for name in plain] + ["DNS:*.rebind.example", "DNS:doh.example"]
        every += [f"IP:{address}" for address in (*names.ALPHA, *names.BETA)]
        subprocess.run(
            [*new, "-days", "2", "-subj", "/CN=server", "-CA", self.authority, "-CAkey", authority_key,
             "-keyout", self.key, "-out", self.chain, "-addext", "basicConstraints=critical,CA:FALSE",
             "-addext", f"subjectAltName={','.join(every)}"],
            check=True, capture_output=True,
        )  # fmt: skip
        os.chmod(self.authority, 0o644)


def make_repository(bare: pathlib.Path, account: jars.Identity) -> pathlib.Path:
    work = bare.with_suffix(".work")
    work.mkdir(parents=True)
    variables = {
        "PATH": jars.SYSTEM_PATH, "HOME": os.fspath(work), "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example", "GIT_COMMITTER_NAME": "t",
        "GIT_COMMITTER_EMAIL": "t@example",
    }  # fmt: skip

    def git(*words):
        subprocess.run(["git", "-C", work, *words], check=True, capture_output=True, env=variables)

    git("init", "--initial-branch=main")
    (work / "greeting.txt").write_text("hello from git\n")
    git("add", ".")
    git("commit", "--message=first")
    git("clone", "--bare", ".", os.fspath(bare))
    shutil.rmtree(work)
    for path in (bare.parent, bare, *bare.rglob("*")):
        account.own(path)  # git trusts no repository of another user's
    return bare


class Packages:
    """tiny-thing 1.0.0, for pip below /simple and for npm below /npm."""

    def __init__(self):
        self.wheel_name = "tiny_thing-1.0.0-py3-none-any.whl"
        self.wheel = self._make_wheel()
        self.tarball = self._make_tarball()

    def find(self, path: str, host: str) -> tuple[str, bytes] | None:
        if path == "/simple/tiny-thing/":
            sha = hashlib.sha256(self.wheel).hexdigest()
            page = f'<!DOCTYPE html><a href="/files/{self.wheel_name}#sha256={sha}">{self.wheel_name}</a>'
            return "text/html", page.encode()
        if path == f"/files/{self.wheel_name}":
            return "application/zip", self.wheel
        if path == "/npm/tiny-thing":
            return "application/json", json.dumps(self._packument(host)).encode()
        if path == "/npm/tiny-thing/-/tiny-thing-1.0.0.tgz":
            return "application/octet-stream", self.tarball
        return None

    def _packument(self, host: str) -> dict:
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(self.tarball).digest()).decode()
        tarball = f"https://{host}/npm/tiny-thing/-/tiny-thing-1.0.0.tgz"
        version = {
            "name": "tiny-thing", "version": "1.0.0", "main": "index.js",
            "dist": {"tarball": tarball, "integrity": integrity},
        }  # fmt: skip
        return {"name": "tiny-thing", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}

    @staticmethod
    def _make_wheel() -> bytes:
        info = "tiny_thing-1.0.0.dist-info"
        files = {
            "tiny_thing.py": "GREETING = 'hello from a wheel'\n",
            f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0.0\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return made.getvalue()

    @staticmethod
    def _make_tarball() -> bytes:
        made = io.BytesIO()
        package = json.dumps({"name": "tiny-thing", "version": "1.0.0", "main": "index.js"})
        with tarfile.open(fileobj=made, mode="w:gz") as archive:
            for name, text in (("package.json", package), ("index.js", "module.exports = 'hello from npm'\n")):
                entry = tarfile.TarInfo(f"package/{name}")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
        return made.getvalue()
