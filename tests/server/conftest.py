"""Clients of other projects, in environments made for them under build/."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import serving  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPENAPI_PACKAGES = ["schemathesis>=4.32,<5", "openapi-spec-validator>=0.9,<1"]
NODE_PACKAGES = [
    "node@22",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/sdk@1",
    "@modelcontextprotocol/client@2",
]


@pytest.fixture(scope="session")
def belljar() -> str:
    return os.path.abspath(os.environ["BELLJAR"])


@contextlib.contextmanager
def alone(name: str):
    """Several workers may want the same thing made."""
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / f"build/{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def node_modules() -> pathlib.Path:
    """A Node that is new enough, the conformance suite and the SDKs."""
    folder = ROOT / "build/mcp-node"
    with alone("mcp-node"):
        parts = (folder / "node_modules/@modelcontextprotocol" / name for name in ("conformance", "sdk", "client"))
        if not all(part.exists() for part in parts):
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(
                ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *NODE_PACKAGES],
                cwd=folder, check=True, timeout=600,
            )  # fmt: skip
    return folder / "node_modules"


@pytest.fixture(scope="session")
def sdk_python() -> str:
    """An interpreter that has the official Python SDK."""
    folder = ROOT / "build/mcp-venv"
    python = folder / "bin/python"
    probe = [python, "-c", "import mcp"]
    with alone("mcp-venv"):
        if not python.exists() or subprocess.run(probe, capture_output=True).returncode != 0:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=120)
            subprocess.run([folder / "bin/pip", "install", "-q", "mcp>=2,<3"], check=True, timeout=600)
    return str(python)


@pytest.fixture(scope="session")
def openapi_tools() -> pathlib.Path:
    """Where schemathesis and a validator of OpenAPI documents are."""
    folder = ROOT / "build/openapi-venv"
    probe = [folder / "bin/python", "-c", "import schemathesis, openapi_spec_validator"]
    with alone("openapi-venv"):
        if not (folder / "bin/python").exists() or subprocess.run(probe, capture_output=True).returncode != 0:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=120)
            subprocess.run([folder / "bin/pip", "install", "-q", *OPENAPI_PACKAGES], check=True, timeout=600)
    return folder / "bin"


@pytest.fixture
def server(scene):
    with serving.Server(scene) as made:
        yield made


@pytest.fixture
def start(scene):
    """Servers with settings of their own."""
    made = []

    def begin(*flags, **options):
        made.append(serving.Server(scene, *flags, **options))
        return made[-1]

    yield begin
    for each in made:
        each.__exit__()


@pytest.fixture
def ann(server):
    return server.client("ann")


@pytest.fixture
def bob(server):
    return server.client("bob")
