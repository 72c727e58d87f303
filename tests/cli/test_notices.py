"""What a person is told before the guest starts."""

from __future__ import annotations

import jar as jars
import pytest


@pytest.fixture
def plain(scene):
    return jars.Jar(scene)


OPEN = 'without --profile starts from "open"'


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--deny-net"], "--deny-net " + OPEN + ": all your files stay readable and writable "
                         "(for the default jar without a network: --network=none)"),
        (["--deny-env"], "--deny-env " + OPEN + ": all your files stay readable and writable "
                         "(to start from the default jar: --profile=developer)"),
        (["--deny-net", "--deny-write"], "--deny-write " + OPEN + ": all your files stay readable (to"),
        (["--allow-write=made"], "--allow-write " + OPEN + ": all your files stay readable (to"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_deny_without_a_profile_says_what_stays_open(plain, flags, says):
    run = plain.run(["true"], policy=flags)
    assert run.exit == 0 and says in run.stderr, run
    assert "--timeout" not in run.stderr
    assert plain.run(["true"], policy=["--quiet", *flags]).stderr == ""
    assert plain.run(["true"], policy=["--profile=open", *flags]).stderr.count("starts from") == 0


@pytest.mark.parametrize("flags", [["--deny-all"], ["--deny-read"], ["--network=none"], ["--allow-read=."]])
@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_nothing_is_said_where_files_are_denied(plain, flags):
    assert plain.run(["true"], policy=flags).stderr == ""


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_hide_of_nothing_is_said(plain, scene):
    scene.file(".env")
    scene.file("key")
    assert "--hide=.evn: nothing there to hide" in plain.run(["true"], policy=["--hide=.evn"]).stderr
    assert plain.run(["true"], policy=["--hide=.env"]).stderr == ""
    assert plain.run(["true"], policy=["--hide=*.none"]).stderr == ""
    scene.file("belljar.toml", '[sandbox]\nhide = ["gone"]\n')
    assert plain.run(["true"]).stderr == ""


@pytest.mark.parametrize("identity", ["user"], indirect=True)
@pytest.mark.parametrize("flag", ["--hide", "--extra-read"])
def test_a_list_with_commas_is_said_to_be_none(plain, scene, flag):
    scene.file(".env")
    scene.file("key")
    run = plain.run(["true"], policy=[f"{flag}=.env,key"])
    assert f"{flag}=.env,key: there is no such path; repeat the flag for each path" in run.stderr
    scene.file(".env,key")
    assert plain.run(["true"], policy=[f"{flag}=.env,key"]).stderr == ""


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_what_is_granted_and_not_there_is_said(plain, scene):
    for flag in ("--extra-write", "--allow-write"):
        run = plain.run(["true"], policy=["--profile=developer", f"{flag}=typo/x"])
        assert run.exit == 0 and run.stderr.endswith(f"{flag}=typo/x: is not there, and is made as a folder\n"), run
    scene.folder("there")
    assert plain.run(["true"], policy=["--profile=developer", "--extra-write=there"]).stderr == ""


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_variable_that_is_not_set_is_said(plain):
    for flag in ("--extra-env", "--allow-env"):
        for name, said in (("API_KYE", True), ("API_*Y", False), ("API_KEY", False), ("XYZ_*", True)):
            run = plain.run(["true"], policy=["--profile=developer", f"{flag}={name}"], env={"API_KEY": "1"})
            assert (f"{flag}={name}: no such variable is set" in run.stderr) == said, run
