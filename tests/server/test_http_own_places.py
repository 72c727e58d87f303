"""A server's tokens, audit trail, settings and sockets: no guest of it sees them, though a folder above
is granted."""

from __future__ import annotations

import pytest
import serving

FIND = """
import os
found = ""
for top, folders, names in os.walk({home!r}):
    for name in names:
        try:
            found += open(os.path.join(top, name), errors="replace").read()
        except OSError:
            pass
try:
    open({tokens!r}, "a").write("evil admin evil-token-0123456789abcdef\\n")
except OSError as error:
    pass
print(found)
"""


@pytest.mark.parametrize("grant", ["--extra-read", "--extra-write"])
def test_a_guest_finds_no_token_and_adds_none(scene, grant):
    secret = scene.secret(scene.project / "notes/readable")
    lines = "".join(f"{name} {scopes} {token}\n" for name, (scopes, token) in serving.TOKENS.items())
    tokens = scene.file(scene.project / "state/belljar/tokens", lines, 0o600)
    tokens.parent.chmod(0o700)
    with serving.Server(scene, f"{grant}={scene.project}", own_state=str(scene.project / "state")) as server:
        ann = server.client("ann")
        session = ann.session()
        assert ann.python(session, "1 + 1")["result"] == "2"
        said = ann.python(session, FIND.format(home=str(scene.project), tokens=str(tokens)))["stdout"]
        assert secret in said, "the control: what is granted is read"
        for name, (_, token) in serving.TOKENS.items():
            assert token not in said, f"the guest reads {name}'s token"
        assert '"tool"' not in said, "the guest reads the audit trail"
        assert tokens.read_text() == lines
