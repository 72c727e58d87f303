"""A host without user namespaces, made of one with them: where a jar has no mounts of its own."""

from __future__ import annotations

import functools
import subprocess

import jar as jars

# No further user namespace can be made here: a private one, in which that is so, and in it
# another with the caller's own uid again.
POOR_HOST = """
echo 1 > /proc/sys/user/max_user_namespaces || exit 99
uid=$1 gid=$2; shift 2
exec unshare --user --map-user="$uid" --map-group="$gid" -- "$@"
"""


@functools.cache
def _can_be_made(identity: jars.Identity) -> bool:
    return subprocess.run(identity.command([*_way_in(identity), "/bin/true"])).returncode == 0


def _way_in(identity: jars.Identity) -> list[str]:
    ids = [str(identity.uid), str(identity.gid)]
    return ["/usr/bin/unshare", "--user", "--map-root-user", "/bin/sh", "-c", POOR_HOST, "sh", *ids]


def brought(identity: jars.Identity, argv: list[str]) -> list[str]:
    """The command that runs this one on such a host."""
    assert _can_be_made(identity) or jars.ACCEPTS  # a poor host is taken as it is
    return [*_way_in(identity), *argv] if _can_be_made(identity) else argv


class PoorJar(jars.Jar):
    def brought(self, argv):
        return brought(self.identity, argv)


# What no such host has, and what is tried there does not need.
ACCEPTED = [f"--accept-degraded={loss}" for loss in ("network", "processes", "limits", "exceptions")]
