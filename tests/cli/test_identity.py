"""Who the guest is, and whose the files are that it makes."""

from __future__ import annotations

import jar as jars

FIRST_JAR_UID = 1879048192
LARGEST_PID = 1 << 22


def test_guest_is_never_root(scene, identity):
    run = jars.Jar(scene).run(["/usr/bin/id", "-u"])
    assert run.exit == 0, run
    if identity.uid == 0:
        assert FIRST_JAR_UID < int(run.stdout) <= FIRST_JAR_UID + LARGEST_PID
    else:
        assert int(run.stdout) == identity.uid


def test_two_jars_of_root_have_different_uids(scene, identity):
    """While both live: the uid is made from a pid."""
    if identity.uid != 0:
        return  # an ordinary user's jars have the user's own
    jar = jars.Jar(scene)
    first = jar.start(["/bin/sh", "-c", "id -u; read wait"], stdin=jars.subprocess.PIPE)
    uid = first.stdout.readline().strip()
    second = jar.run(["/usr/bin/id", "-u"])
    first.communicate(b"\n", timeout=10)
    assert uid and second.stdout.strip() != uid.decode(), second


def test_files_made_inside_belong_to_the_caller(scene, identity):
    run = jars.Jar(scene).run(["/bin/sh", "-c", "mkdir folder && touch folder/file"])
    assert run.exit == 0, run
    for name in ("folder", "folder/file"):
        assert (scene.workdir / name).stat().st_uid == identity.uid
        assert (scene.workdir / name).stat().st_gid == identity.gid
