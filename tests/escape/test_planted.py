"""What a guest leaves behind for the next run to follow: symlinks, folders moved away."""

from __future__ import annotations

import os
import pathlib
import time

import jar as jars
import pytest
from arena import attack, findings

# ------------------------------------------------------------- 5: symlinks left behind


@attack(5, "files")
@pytest.mark.parametrize("variable", ["PATH", "VIRTUAL_ENV", "PYTHONPATH", "program"])
def test_plants_a_toolchain(attacker, variable):
    """A variable names a folder of the workdir. The guest makes it a symlink to the keys."""
    scene = attacker.scene
    keys = scene.home / ".ssh"
    scene.folder(".venv")
    attacker.shell('ln -s "$1" .venv/bin', keys)
    folder = scene.workdir / ".venv/bin"
    if variable == "program":  # its prefix is found by the program's folder
        scene.folder(".venv/lib")
        attacker.shell('rm .venv/bin; rmdir .venv/lib .venv; ln -s "$1" .venv', scene.home)
        scene.folder(scene.home / "bin")
        scene.folder(scene.home / "lib")
    env = {"PATH": f"{folder}:{jars.SYSTEM_PATH}"} if variable in ("PATH", "program") else {variable: str(folder)}
    run = attacker.run("01_read", keys / "id_rsa", env=env)
    attacker.verdict(findings(run), key=scene.ssh_key in run.stdout)


@attack(5, "files")
def test_plants_a_toolchain_that_leads_above(attacker):
    """By a name that is not the home's, the home is still the home."""
    scene = attacker.scene
    other = scene.base / "elsewhere"
    other.symlink_to(scene.home)
    run = attacker.run("01_read", scene.home / ".ssh/id_rsa", env={"GOPATH": str(other)})
    attacker.verdict(findings(run), key=scene.ssh_key in run.stdout)


READ_EVERYWHERE = (
    'cat "$1/id_rsa" id_rsa c/id_rsa "$HOME/id_rsa" "$HOME/shown" /tmp/id_rsa "$XDG_CACHE_HOME/id_rsa"; true'
)


@attack(5, "files")
@pytest.mark.parametrize(
    "flag", ["--cache=c", "--home=c", "--tmp=c", "-Cc", "--extra-read=c", "--extra-write=c",
             "--credential=c/id_rsa:~/shown"],
)  # fmt: skip
def test_plants_what_a_flag_names(attacker, flag):
    scene = attacker.scene
    attacker.shell('ln -s "$1" c', scene.home / ".ssh")
    run = attacker.shell(READ_EVERYWHERE, scene.home / ".ssh", policy=[flag], may_refuse=True)
    attacker.verdict(key=scene.ssh_key in run.stdout)


@attack(5, "files")
@pytest.mark.parametrize("flag", ["--cache", "--home", "--tmp", "--extra-read", "--extra-write"])
def test_plants_what_a_flag_names_in_another_folder(attacker, flag):
    scene = attacker.scene
    policy = [f"--extra-write={scene.outside}"]
    attacker.shell('ln -s "$1" "$2/c"', scene.home / ".ssh", scene.outside, policy=policy)
    policy.append(f"{flag}={scene.outside / 'c'}")
    run = attacker.shell(READ_EVERYWHERE, scene.home / ".ssh", policy=policy, may_refuse=True)
    attacker.verdict(key=scene.ssh_key in run.stdout)


@attack(5, "files")
def test_plants_where_a_folder_would_be_made(attacker):
    """A missing folder is made before the guest starts: not outside, by way of a symlink."""
    scene = attacker.scene
    attacker.shell('ln -s "$1" c', scene.home / ".ssh")
    attacker.shell(
        "mkdir -p c/new/deep; sleep 0.3", policy=["--extra-write=c/new/deep"], may_refuse=True
    )
    run = attacker.runs[-1]
    attacker.verdict(made=(scene.home / ".ssh/new").exists() or (not attacker.is_control and run.exit == 0))


@attack(5, "files")
def test_removes_a_folder_outside(attacker):
    """What belljar made and removes again is not removed elsewhere."""
    scene = attacker.scene
    empty = scene.folder(scene.outside / "b")
    attacker.shell(
        'mkdir -p a; rmdir a/b; mv a moved; rmdir a moved; ln -s "$1" a; test -d a/b && rmdir "$1/b"; true',
        scene.outside,
        policy=["--extra-write=a/b"],
    )
    attacker.verdict(removed=not empty.exists())


@pytest.mark.parametrize("flag", ["--cache=c", "--tmp=c", "--extra-read=c", "--extra-write=c"])
def test_a_symlink_that_stays_inside_is_followed(jar, flag):
    jar.scene.folder("real")
    (jar.scene.workdir / "c").symlink_to("real")
    run = jar.run(["/bin/true"], policy=[flag])
    assert run.exit == 0, run


@attack(5, "files", profiles=("developer",))
@pytest.mark.parametrize("line", ['extra_fs_read = ["c"]', 'workdir = "c"'])
def test_changes_a_symlink_between_look_and_use(attacker, line):
    """An untrusted belljar.toml names a folder of the workdir; a guest that runs makes it lead out."""
    scene = attacker.scene
    scene.folder("c")
    scene.file("belljar.toml", f"[sandbox]\n{line}\n")
    (scene.workdir / "c2").symlink_to(scene.home / ".ssh")
    flipper = attacker.start("05_flip", "c", "c2", policy=[f"-C{scene.workdir}"])
    scene.on_exit(flipper.kill)
    time.sleep(0.3)
    stolen = False
    began = time.monotonic()
    while not stolen and time.monotonic() - began < (3 if attacker.is_control else 6):
        command = ["/bin/cat", "c/id_rsa"] if attacker.is_control else ["/bin/cat", scene.home / ".ssh/id_rsa"]
        runner = attacker.runner if attacker.is_control else jars.Jar(scene)
        run = runner.run(command)
        stolen = scene.ssh_key in run.stdout
    attacker.runs.append(run)
    attacker.verdict(key=stolen)


# ----------------------------------------------- hidden now, and in the next run as well


@attack(2, "exceptions")
@pytest.mark.parametrize("hide", ["sub/deep/.env", "**/.env"])
@pytest.mark.parametrize("how", ["mv sub moved", "mv sub/deep moved", "chmod 0 sub/deep", "chmod 0 sub"])
def test_moves_what_is_hidden_away_for_the_next_run(attacker, how, hide):
    secret = attacker.scene.secret("sub/deep/.env")
    policy = [f"--hide={hide}"]
    attacker.shell(f"{how}; true", policy=policy)
    run = attacker.shell(
        "chmod 755 sub sub/deep; cat sub/deep/.env moved/deep/.env moved/.env; true",
        policy=policy,
        may_refuse=True,
    )
    attacker.verdict(text=secret in run.stdout)


@attack(2, "exceptions")
def test_points_the_way_to_what_is_hidden_elsewhere(attacker):
    secret = attacker.scene.secret("real/.env")
    attacker.scene.folder("other")
    (attacker.scene.workdir / "sub").symlink_to("real")
    policy = ["--hide=sub/.env"]
    attacker.shell("ln -sfn other sub; true", policy=policy)
    run = attacker.shell("cat real/.env; true", policy=policy, may_refuse=True)
    attacker.verdict(text=secret in run.stdout)


# ---------------------------------------------------------- shown by more than one path

READ_ALL_VIEWS = 'cat .env sub/.env "$1/sub/.env" "$HOME/sub/.env" "$HOME/.env" /tmp/.env /tmp/sub/.env; true'


@attack(2, "exceptions")
@pytest.mark.parametrize("again", ["--home=.", "--tmp=sub", "--tmp=.", "--extra-read=.", "--extra-read=sub", "--cache=sub"])
@pytest.mark.parametrize("hide", ["sub/.env", "**/.env", "sub"])
def test_reads_what_is_hidden_where_its_tree_is_shown_again(attacker, again, hide):
    secret = attacker.scene.secret("sub/.env")
    run = attacker.shell(
        READ_ALL_VIEWS, attacker.scene.workdir, policy=[f"--hide={hide}", again], may_refuse=True
    )
    attacker.verdict(text=secret in run.stdout)


@attack(2, "exceptions")
@pytest.mark.parametrize("again", ["--home=.", "--tmp=sub", "--tmp=.", "--extra-write=."])
def test_changes_what_is_protected_where_its_tree_is_shown_again(attacker, again):
    file = attacker.scene.file("sub/hook", "good\n")
    # Outside only the file itself: these other paths are the host's own there.
    paths = ["sub/hook"]
    if not attacker.is_control:
        paths += [attacker.scene.workdir / "sub/hook", attacker.scene.home / "sub/hook", "/home/sandbox/sub/hook",
                  "/tmp/hook", "/tmp/sub/hook"]  # fmt: skip
    attacker.shell(
        'for f; do echo bad > "$f"; mv "$f" "$f.old"; case "$f" in */sub/hook) mv "${f%/*}" "${f%/*}2";; esac; done; true',
        *paths, policy=["--protect=sub/hook", again], may_refuse=True,
    )  # fmt: skip
    attacker.verdict(changed=not file.exists() or file.read_text() != "good\n")


@attack(2, "exceptions")
def test_reads_files_of_a_hidden_folder_by_an_earlier_hard_link(attacker):
    secret = attacker.scene.secret("secrets/deep/key.pem")
    os.link(attacker.scene.workdir / "secrets/deep/key.pem", attacker.scene.workdir / "innocent.txt")
    run = attacker.run("01_read", "innocent.txt", policy=["--hide=secrets"], may_refuse=True)
    attacker.verdict(text=secret in run.stdout)


@attack(4, "exceptions")
def test_changes_what_is_protected_beside_what_is_hidden(attacker):
    """The folders above a hidden file are held in place, which must not make them writable."""
    scene = attacker.scene
    scene.secret("a/b/.env")
    file = scene.file("a/b/hook", "good\n")
    attacker.shell("echo bad > a/b/hook; true", policy=["--hide=a/b/.env", "--protect=a"])
    attacker.verdict(changed=file.read_text() != "good\n")


@pytest.mark.parametrize("order", [("secrets", "secrets/key"), ("secrets/key", "secrets")])
def test_what_lies_in_a_hidden_folder_may_be_hidden_too(jar, order):
    text = jar.scene.secret("secrets/key")
    run = jar.run(["/bin/cat", "secrets/key"], policy=[f"--hide={path}" for path in order])
    lost = any("hide and protect need mounts" in loss for loss in jar.losses())
    assert lost or (run.exit == 1 and text not in run.stdout), run


# ------------------------------------------------------------------ 43: belljar's own


@attack(43, "files")
@pytest.mark.parametrize("there", [True, False])
def test_writes_the_configuration_in_a_home_that_is_granted(attacker, there):
    scene = attacker.scene
    config = scene.home / ".config/belljar/config.toml"
    if there:
        scene.file(config, "")
    attacker.shell(
        'cd "$1" || exit; mkdir -p .config/belljar .local/state/belljar; mv .config other;'
        " mkdir -p .config/belljar; echo '[sandbox]' > .config/belljar/config.toml;"
        " echo x > .local/state/belljar/trusted; true",
        scene.home if attacker.is_control or attacker.setting != "public-bot" else "/workspace",
        policy=[f"-C{scene.home}"],
    )
    written = config.exists() and config.read_text() != ""
    trust = (scene.home / ".local/state/belljar/trusted").exists()
    attacker.verdict(config=written, trust=trust, loss="is belljar's own, lies in what is granted")
    if not attacker.is_control and not there and not written:
        assert not (scene.home / ".config").exists(), "made for this, and left behind"


# ---------------------------------------------------------------------- 8: the report


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_report_follows_a_folder_that_was_replaced(jar, when):
    """No control: it is belljar that writes. The report is where the folder was, or nowhere."""
    keys = jar.scene.home / ".ssh"
    jar.scene.folder("out")
    replace = ["/bin/sh", "-c", f'mv out old; ln -s "{keys}" out']
    if when == "before":
        jar.run(replace)
    run = jar.run(["/bin/true"] if when == "before" else replace, report=pathlib.Path("out/x.json"))
    assert not (keys / "x.json").exists(), run
    if when == "meanwhile":
        assert (jar.scene.workdir / "old/x.json").exists(), run
    else:
        assert run.exit == jars.OWN_FAILURE and "leads out" in run.stderr, run


def test_report_does_not_write_through_a_hard_link(jar):
    mine = jar.scene.file("mine.txt", "mine\n")
    run = jar.run(["/bin/ln", "-f", "mine.txt", "report.json"], report=jar.scene.workdir / "report.json")
    assert run.exit == 0 and run.report, run
    assert mine.read_text() == "mine\n"
