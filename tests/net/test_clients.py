"""Real clients reach the host that is allowed, and are told at once about another.

Nothing is configured in the guest but which authority to trust: no proxy, no resolver.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
from collections.abc import Callable

import names
import pytest
from services import HTTPS_OLD, HTTPS_RETRY
from wired import Wired, assert_explained, decisions

CLIENTS = pathlib.Path(__file__).parent / "clients"
SOON = 3.0  # seconds that a denied run may take beyond what the client needs to start


@dataclasses.dataclass(frozen=True)
class Client:
    name: str
    command: Callable[[Wired, str], list[str]]  # that fetches something from a host
    expects: str  # what it prints then
    env: Callable[[Wired], dict[str, str]] = lambda wired: {}
    port: int | None = None  # to be named in the rule
    allowed: str = "alpha.example"
    other: str = "beta.example"
    by_url: bool = False  # takes any host

    def rule(self, host: str) -> str:
        return host if self.port is None else f"{host}:{self.port}"


def brought(wired: Wired, name: str) -> str:
    return os.fspath(wired.scene.file(name, (CLIENTS / name).read_bytes()))


def in_shell(script: str, *words: str) -> list[str]:
    return ["/bin/sh", "-ec", script, "sh", *words]


def git_over_https(wired: Wired, host: str) -> list[str]:
    return in_shell('git clone -q "$1" "$2" && cat "$2/greeting.txt"', f"https://{host}/git/project.git", f"of-{host}")


def git_over_ssh(wired: Wired, host: str) -> list[str]:
    key = wired.scene.file("key", (wired.services.folder / "ssh_key").read_bytes(), mode=0o600)
    ssh = f"ssh -F none -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=known_hosts -i {key}"
    url = f"ssh://{wired.services.account}@{host}{wired.services.repository}"
    script = 'GIT_SSH_COMMAND="$3" git clone -q "$1" "$2" && cat "$2/greeting.txt"'
    return in_shell(script, url, f"of-{host}", ssh)


def redis(wired: Wired, host: str) -> list[str]:
    return in_shell('redis-cli -h "$1" SET greeting "hello from redis" && redis-cli -h "$1" GET greeting', host)


def pip(wired: Wired, host: str) -> list[str]:
    # It tries again five times, waiting longer each time; how long is not belljar's doing.
    return [
        "/usr/bin/python3", "-m", "pip", "install", "--disable-pip-version-check", "--no-cache-dir",
        "--retries=0", "--no-deps", f"--target=of-{host}", f"--cert={wired.authority}",
        f"--index-url=https://{host}/simple/", "tiny-thing",
    ]  # fmt: skip


def npm(wired: Wired, host: str) -> list[str]:
    # As with pip: two more tries, ten seconds apart.
    script = (
        'mkdir "$2" && cd "$2" && npm install --no-audit --no-fund --no-update-notifier --fetch-retries=0 '
        '--cache=./cache --cafile="$3" --registry="$1" tiny-thing && node -p \'require("tiny-thing")\''
    )
    return in_shell(script, f"https://{host}/npm/", f"of-{host}", wired.authority)


def java(wired: Wired, host: str) -> list[str]:
    wired.scene.file("Fetch.class", JAVA_CLASS.read_bytes())
    return ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", ".", "Fetch", f"https://{host}/", wired.authority]


def go(wired: Wired, host: str) -> list[str]:
    wired.scene.file("fetch-go", GO_PROGRAM.read_bytes(), mode=0o755)
    return ["./fetch-go", f"https://{host}/"]


def musl(wired: Wired, host: str) -> list[str]:
    wired.scene.file("fetch-musl", MUSL_PROGRAM.read_bytes(), mode=0o755)
    return ["./fetch-musl", host, "80"]


GREETING = "hello from"
ALL = [
    Client("curl", lambda wired, host: ["curl", "-sS", "--cacert", wired.authority, f"https://{host}/"],
           GREETING, by_url=True),
    Client("curl-plain", lambda wired, host: ["curl", "-sS", f"http://{host}/"], GREETING, by_url=True),
    Client("curl-http2", lambda wired, host: ["curl", "-sS", "--http2", "--write-out", "version %{http_version}",
                                              "--cacert", wired.authority, f"https://{host}/"],
           "version 2", allowed="h2.example", other="h2-other.example"),
    Client("wget", lambda wired, host: ["wget", "-q", "-O-", "--tries=1", f"--ca-certificate={wired.authority}",
                                        f"https://{host}/"], GREETING, by_url=True),
    Client("git-https", git_over_https, "hello from git", lambda wired: {"GIT_SSL_CAINFO": wired.authority}),
    Client("git-ssh", git_over_ssh, "hello from git", port=22),
    Client("node", lambda wired, host: ["node", brought(wired, "fetch.mjs"), f"https://{host}/"], GREETING,
           lambda wired: {"NODE_EXTRA_CA_CERTS": wired.authority}, by_url=True),
    Client("urllib", lambda wired, host: ["/usr/bin/python3", brought(wired, "fetch_urllib.py"), f"https://{host}/",
                                          wired.authority], GREETING, by_url=True),
    Client("requests", lambda wired, host: ["/usr/bin/python3", brought(wired, "fetch_requests.py"),
                                            f"https://{host}/", wired.authority], GREETING, by_url=True),
    Client("go", go, GREETING, lambda wired: {"SSL_CERT_FILE": wired.authority}, by_url=True),
    Client("java", java, GREETING, by_url=True),
    Client("redis", redis, "hello from redis", port=6379),
    Client("npm", npm, "hello from npm"),
    Client("pip", pip, "Successfully installed tiny-thing-1.0.0"),
    Client("musl", musl, GREETING, by_url=True),
]  # fmt: skip


@pytest.fixture(params=ALL, ids=lambda client: client.name)
def client(request, need):
    build(request.param.name, need, request)
    return request.param


@pytest.fixture(params=[one for one in ALL if one.by_url], ids=lambda client: client.name)
def by_url(request, need):
    build(request.param.name, need, request)
    return request.param


GO_PROGRAM = JAVA_CLASS = MUSL_PROGRAM = pathlib.Path()  # made when first asked for


def build(name: str, need, request) -> None:
    global GO_PROGRAM, JAVA_CLASS, MUSL_PROGRAM
    # The session's own folder, not the test's.
    folder = request.getfixturevalue("tmp_path_factory").getbasetemp()
    if name == "go" and not GO_PROGRAM.is_file():
        GO_PROGRAM = folder / "fetch-go"
        tool = need("go")
        subprocess.run(
            [tool, "build", "-o", GO_PROGRAM, CLIENTS / "fetch.go"], cwd=folder, check=True,
            env=os.environ | {"CGO_ENABLED": "0", "GO111MODULE": "off", "GOFLAGS": "", "GOTOOLCHAIN": "local"},
        )  # fmt: skip
    elif name == "java" and not JAVA_CLASS.is_file():
        JAVA_CLASS = folder / "Fetch.class"
        subprocess.run([need("javac"), "-d", folder, CLIENTS / "Fetch.java"], check=True)
    elif name == "musl" and not MUSL_PROGRAM.is_file():
        MUSL_PROGRAM = folder / "fetch-musl"
        flags = ["-std=gnu11", "-static", "-O1", "-Wall", "-Wextra"]
        subprocess.run([need("musl-gcc"), *flags, "-o", MUSL_PROGRAM, CLIENTS / "fetch.c"], check=True)


def test_reaches_the_allowed_host(wired, client):
    run = wired.run(client.command(wired, client.allowed), client.rule(client.allowed), env=client.env(wired))
    assert run.exit == 0 and client.expects in run.stdout
    made = decisions(run, client.allowed, allowed=True)
    assert any(event["rule"] == client.rule(client.allowed) for event in made), made


def test_is_told_at_once_of_another_host(wired, client):
    command = client.command(wired, client.other)
    control = wired.control(command, env=client.env(wired))
    assert control.exit == 0 and client.expects in control.stdout, "does not work without belljar either"
    wired.control(["/bin/rm", "-rf", f"of-{client.other}"])

    mark = wired.services.mark()
    run = wired.run(command, client.rule(client.allowed), env=client.env(wired))
    # Not 125: the guest failed, and not belljar.
    assert run.exit not in (0, 125)
    assert run.seconds < control.seconds + SOON, "took its time"
    assert not wired.services.since(mark, *names.ADDRESSES[client.other])
    assert_explained(run, client.other)


@pytest.mark.parametrize("host", ["four.example", "six.example"])
def test_reaches_a_host_with_one_family_only(wired, by_url, host):
    run = wired.run(by_url.command(wired, host), host, env=by_url.env(wired))
    assert run.exit == 0 and f"hello from {host} at {names.ADDRESSES[host][0]}" in run.stdout


@pytest.mark.parametrize("port", [HTTPS_RETRY, HTTPS_OLD], ids=["second-hello", "tls-1.2"])
@pytest.mark.parametrize("name", ["curl", "node", "urllib", "go", "java"])
def test_tls_of_every_kind_passes(wired, need, request, name, port):
    client = next(one for one in ALL if one.name == name)
    build(name, need, request)
    mark = wired.services.mark()
    run = wired.run(client.command(wired, f"alpha.example:{port}"), f"alpha.example:{port}", env=client.env(wired))
    assert run.exit == 0 and GREETING in run.stdout
    hellos = 2 if port == HTTPS_RETRY else 1
    assert [call.server_names for call in wired.services.since(mark) if call.port == port][-1] == (
        ["alpha.example"] * hellos
    )


RESUMES = """
set -e
# openssl ends when its input does, so that stays open until a line that tells of the end is there.
until_there() { for _ in $(seq 200); do if grep -qs -- "$1" "$2"; then break; fi; sleep 0.1; done; }
talk() { rm -f said; { cat first; until_there "$4" "$5"; } | timeout 20 openssl s_client -connect "$1:$2" -servername "$1" $3 > said 2>&1; cat said; }
printf 'first\\n' > first
printf 'early\\n' > early
talk "$1" "$2" "-sess_out session $3" "BEGIN SSL SESSION" session
echo ---- again
talk "$1" "$2" "-sess_in session $3 $4" "Verify return code" said
"""


@pytest.mark.parametrize(("version", "more", "expects"), [
    ("-tls1_2", "", "Reused, TLSv1.2"), ("-tls1_3", "", "Reused, TLSv1.3"),
    ("-tls1_3", "-early_data early", "Early data was accepted"),
], ids=["1.2", "1.3", "early-data"])  # fmt: skip
def test_tls_is_resumed(wired, network, services, need, version, more, expects):
    port = 4440
    server = network.start_server([
        need("openssl"), "s_server", "-accept", f"{names.ALPHA[0]}:{port}", "-key", services.certificates.key,
        "-cert", services.certificates.chain, "-early_data", "-quiet",
    ])  # fmt: skip
    try:
        services.wait(names.ALPHA[0], port)
        script = in_shell(RESUMES, "alpha.example", str(port), version, more)
        assert expects in wired.ok(script, f"alpha.example:{port}").partition("---- again")[2]
    finally:
        server.kill()
        server.wait()


def test_no_proxy_is_set(wired):
    variables = wired.ok(["/usr/bin/env"], "alpha.example").lower()
    assert "proxy" not in variables


@pytest.mark.parametrize("profile", ["restricted", "public-bot", "open", "trusted-maintenance"])
def test_reaches_the_allowed_host_in_every_profile(wired, profile):
    command = ["/usr/bin/curl", "-sS", "http://alpha.example/"]
    assert GREETING in wired.ok(command, "alpha.example", profile=profile)
    run = wired.run(["/usr/bin/curl", "-sS", "http://beta.example/"], "alpha.example", profile=profile)
    assert run.exit not in (0, 125)
    assert_explained(run, "beta.example")


def test_a_package_manager_needs_only_its_registry(wired):
    """As the manual has it: everything denied but what the installation needs."""
    wired.scene.folder("node_modules")
    wired.scene.file("package.json", '{"dependencies": {"tiny-thing": "1.0.0"}}')
    command = [
        "npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--no-package-lock", "--fetch-retries=0",
        "--registry=https://alpha.example/npm/", f"--cafile={wired.authority}", "--cache=/tmp/npm-cache",
    ]  # fmt: skip
    policy = ["--deny-all", "--allow-read=.", "--allow-write=./node_modules"]
    assert "added 1 package" in wired.ok(command, "alpha.example", profile=None, policy=policy)
    assert (wired.scene.workdir / "node_modules/tiny-thing/index.js").is_file()
