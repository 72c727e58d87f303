"""The description of the server against tools that others made to read such descriptions."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest
import serving
from test_http_skills import upload, zipped

LONG = os.environ.get("BELLJAR_LONG") == "1"
SECONDS = 600 if LONG else 25
CONFIG = pathlib.Path(__file__).with_name("schemathesis.toml")
# Calls end soon, and sessions that were made at random go again before there are too many.
SESSION = (
    'python_timeout = "2s"\nshell_timeout = "2s"\nmax_timeout = "2s"\nidle = "30s"\nreap_every = "1s"\nmax_sessions = 2000'
)
SERVER = "max_sessions_per_token = 1000"
# Streams without an end, and a protocol that has its own conformance suite.
NOT_FUZZED = ["--exclude-path=/v1/events", "--exclude-path=/mcp"]


def test_the_document_is_valid_openapi(server, openapi_tools, tmp_path):
    document = tmp_path / "openapi.json"
    document.write_bytes(server.client(None).get("/openapi.json").body)
    check = [openapi_tools / "python", "-m", "openapi_spec_validator", "--schema=3.1", "--validation-errors=all"]
    good = subprocess.run([*check, document], capture_output=True, text=True, timeout=120)
    assert good.returncode == 0, good.stdout + good.stderr
    # The control: the validator does find what is wrong.
    document.write_text(document.read_text().replace('"required":true', '"required":"yes"'))
    assert subprocess.run([*check, document], capture_output=True, timeout=120).returncode != 0


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_requests_made_from_the_document_are_answered_as_it_says(start, openapi_tools, tmp_path):
    """schemathesis: no 5xx, no status that is not listed, no answer that is not as described."""
    server = start(config=SERVER, session=SESSION)
    token = serving.TOKENS["boss"][1]
    skill = "---\nname: plots\ndescription: draws\n---\n"
    assert upload(server.client("boss"), zipped({"SKILL.md": skill})).status == 201
    done = subprocess.run(
        [
            openapi_tools / "schemathesis", f"--config-file={CONFIG}", "--no-color", "run",
            f"http://127.0.0.1:{server.port}/openapi.json", f"--header=Authorization: Bearer {token}",
            f"--max-time={SECONDS}", "--request-timeout=60", "--continue-on-failure", "--generation-database=none",
            "--suppress-health-check=all",
            *NOT_FUZZED, *([] if LONG else ["--seed=1"]),
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS + 300,
    )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-5000:]
    assert " generated, " in done.stdout and server.process.poll() is None
