"""Files: what is not granted, what is hidden, what is protected, and the modes of all."""

from __future__ import annotations

import os
import shutil
import stat

import jar as jars
import pytest
from arena import attack, findings

# ------------------------------------------------------- 1: outside what is granted


@attack(1, "files")
def test_reads_ssh_key(attacker):
    key = attacker.scene.home / ".ssh/id_rsa"
    (attacker.scene.workdir / "link").symlink_to(key)
    run = attacker.run("01_read", key, "../../.ssh/id_rsa", "link")
    attacker.verdict(findings(run), key=attacker.scene.ssh_key in run.stdout)


@attack(1, "files")
def test_reads_env_above_the_workdir(attacker):
    run = attacker.run("01_read", attacker.scene.project / ".env", "../.env")
    attacker.verdict(findings(run), env=attacker.scene.project_env in run.stdout)


@attack(1, "files")
def test_reads_another_users_home(attacker):
    run = attacker.run("01_read", attacker.scene.neighbour / "diary.txt")
    attacker.verdict(findings(run), diary=attacker.scene.neighbours in run.stdout)


@attack(1, "files", control="root")
def test_reads_password_hashes(attacker):
    run = attacker.run("01_read", "/etc/shadow")
    attacker.verdict(findings(run))


@attack(1, "files")
def test_reads_the_hosts_tmp(attacker):
    secret = "belljar-secret-" + os.urandom(8).hex()
    path = f"/tmp/{secret}"
    with open(path, "w") as file:
        file.write(secret)
    attacker.scene.on_exit(os.unlink, path)
    run = attacker.run("01_read", path)
    attacker.verdict(findings(run))


@attack(1, "files")
def test_writes_outside(attacker):
    scene = attacker.scene
    bashrc = scene.file(scene.home / ".bashrc", "# mine\n", mode=0o666)
    (scene.workdir / "link").symlink_to(scene.outside / "by-link")
    os.chmod(scene.project, 0o777)
    name = f"belljar-test-{os.urandom(6).hex()}"
    shared = [f"{folder}/{name}" for folder in ("/tmp", "/var/tmp", "/dev/shm")]
    roots = [f"{folder}/{name}" for folder in ("/usr/local/bin", "/etc", "/opt", "/root", "/run")]
    for path in shared + roots:
        scene.on_exit(lambda path=path: os.path.lexists(path) and os.unlink(path))
    attacker.run("01_write", bashrc, scene.project / "new", "../new-too", "link", *shared, *roots)
    seen = {
        "bashrc": bashrc.read_text() != "# mine\n",
        "above": (scene.project / "new").exists(),
        "above_by_dots": (scene.project / "new-too").exists(),
        "by_link": (scene.outside / "by-link").exists(),
    }
    attacker.verdict(
        **seen, **{path: os.path.lexists(path) for path in shared + roots}, root_only=roots,
        excused={"/dev/shm is the host's": shared[2:]},
    )  # fmt: skip


# ------------------------------------------------- 2: a hidden file under another name


@attack(2, "exceptions")
@pytest.mark.parametrize("how", ["relative", "absolute", "glob"])
def test_reads_hidden_file_by_another_name(attacker, how):
    scene = attacker.scene
    secret = scene.secret(".env")
    scene.folder("a")
    hide = {"relative": ".env", "absolute": scene.workdir / ".env", "glob": "**/.env"}[how]
    run = attacker.run(
        "02_other_names", ".env", attacker.inside(scene.workdir / ".env"), policy=[f"--hide={hide}"]
    )
    attacker.verdict(findings(run), text=secret in run.stdout, root_only=["by_handle"])


@attack(2, "exceptions")
def test_reads_hidden_file_by_an_earlier_symlink(attacker):
    secret = attacker.scene.secret(".env")
    attacker.scene.folder("a")
    (attacker.scene.workdir / "a/link").symlink_to("../.env")
    run = attacker.run("01_read", "a/link", policy=["--hide=.env"])
    attacker.verdict(text=secret in run.stdout)


@attack(2, "exceptions")
def test_reads_hidden_file_by_an_earlier_hard_link(attacker):
    secret = attacker.scene.secret(".env")
    os.link(attacker.scene.workdir / ".env", attacker.scene.workdir / "innocent.txt")
    run = attacker.run("01_read", "innocent.txt", policy=["--hide=.env"], may_refuse=True)
    attacker.verdict(text=secret in run.stdout)


@attack(2, "exceptions")
def test_reads_what_a_hidden_symlink_leads_to(attacker):
    secret = attacker.scene.secret("config/real.env")
    (attacker.scene.workdir / ".env").symlink_to("config/real.env")
    run = attacker.run("01_read", ".env", "config/real.env", policy=["--hide=.env"], may_refuse=True)
    attacker.verdict(text=secret in run.stdout)


@attack(2, "exceptions")
def test_reads_hidden_file_after_moving_its_folder(attacker):
    secret = attacker.scene.secret("sub/deep/.env")
    run = attacker.shell(
        "mv sub moved; mv sub/deep deep; cat sub/deep/.env moved/deep/.env deep/.env",
        policy=["--hide=sub/deep/.env"],
    )
    attacker.verdict(text=secret in run.stdout)


@attack(2, "exceptions")
def test_reads_below_a_hidden_folder(attacker):
    secret = attacker.scene.secret("secrets/deep/key.pem")
    run = attacker.shell(
        "cat secrets/deep/key.pem; cd secrets/deep && cat key.pem; cat /proc/self/cwd/secrets/deep/key.pem;"
        "mv secrets s; cat s/deep/key.pem; cp -r secrets copy; cat copy/deep/key.pem",
        policy=["--hide=secrets"],
    )
    attacker.verdict(text=secret in run.stdout)


@attack(2, "exceptions")
def test_reads_files_hidden_by_a_glob(attacker):
    first = attacker.scene.secret("key.pem")
    second = attacker.scene.secret("sub/other.pem")
    run = attacker.shell(
        "find . -name '*.pem' -exec cat {} +; cat key.pem sub/other.pem", policy=["--hide=**/*.pem"]
    )
    attacker.verdict(first=first in run.stdout, second=second in run.stdout)


# -------------------------------- 3 and 4: protected paths, there or not there yet

HOOKS = ".git/hooks"
ON_MISSING = ["create", "renamed_over_parent", "linked_parent"]
ON_NO_HOOKS = [
    "create", "moved_parent", "exchanged_parent", "linked_parent", "linked_dir",
]  # fmt: skip
ON_HOOKS = [
    "create", "truncated", "appended", "through_path_fd", "through_root", "unlinked", "moved_file",
    "replaced_file", "exchanged_file", "moved_dir", "moved_parent", "exchanged_dir",
    "exchanged_parent", "linked_parent", "linked_dir", "hard_link", "mode", "times", "remounted",
]  # fmt: skip


# What is not there yet cannot be protected: belljar warns of it, and in this mode refuses.
STRICT = "--sandbox=on"


def tampered(attacker, way: str, policy: str, folder: str = HOOKS, mode: str = "--sandbox=auto") -> None:
    target = attacker.scene.workdir / folder
    before = jars.snapshot(target)
    attacker.run("04_tamper", way, folder, policy=[f"--protect={policy}", mode], may_refuse=mode == STRICT)
    after = jars.snapshot(target)
    attacker.verdict(changed=before != after)


def plant_repository(scene, at: str = ".") -> None:
    scene.file(f"{at}/.git/HEAD", "ref: refs/heads/main\n")
    scene.file(f"{at}/.git/hooks/pre-commit", "#!/bin/sh\ntrue\n", mode=0o755)


@attack(3, "exceptions")
@pytest.mark.parametrize("way", ON_MISSING)
def test_creates_protected_hooks_where_there_is_no_repository(attacker, way):
    tampered(attacker, way, HOOKS, mode=STRICT)


@attack(3, "exceptions")
@pytest.mark.parametrize("way", ON_NO_HOOKS)
def test_creates_protected_hooks_where_there_are_none(attacker, way):
    attacker.scene.file(".git/HEAD", "ref: refs/heads/main\n")
    tampered(attacker, way, HOOKS, mode=STRICT)


@attack(3, "exceptions")
@pytest.mark.parametrize("there", ["missing", "existing"])
def test_writes_protected_file(attacker, there):
    scene = attacker.scene
    if there == "existing":
        scene.file("belljar.toml", "# theirs\n")
    before = jars.snapshot(scene.workdir / "belljar.toml")
    attacker.shell(
        "echo x >> belljar.toml; echo y > mine; mv -f mine belljar.toml; ln -sf mine belljar.toml;"
        "rm -f belljar.toml; echo z > belljar.toml; true",
        policy=["--protect=belljar.toml", *([STRICT] if there == "missing" else [])],
        may_refuse=there == "missing",
    )
    attacker.verdict(changed=before != jars.snapshot(scene.workdir / "belljar.toml"))


@attack(4, "exceptions")
@pytest.mark.parametrize("way", ON_HOOKS)
def test_changes_protected_hooks(attacker, way):
    plant_repository(attacker.scene)
    tampered(attacker, way, HOOKS)


@attack(4, "exceptions")
def test_changes_protected_hook_by_an_earlier_hard_link(attacker):
    scene = attacker.scene
    plant_repository(scene)
    os.link(scene.workdir / ".git/hooks/pre-commit", scene.workdir / "linked-before")
    target = scene.workdir / ".git/hooks/pre-commit"
    before = target.read_bytes()
    attacker.run(
        "04_tamper", "earlier_hard_link", HOOKS, policy=[f"--protect={HOOKS}"], may_refuse=True
    )
    attacker.verdict(changed=before != target.read_bytes())


@attack(4, "exceptions", control="root")
def test_mounts_over_protected_hooks(attacker):
    plant_repository(attacker.scene)
    attacker.runner.prefix = ("/usr/bin/unshare", "--mount", "--propagation=private")
    run = attacker.run("04_tamper", "mounted_over", HOOKS, policy=[f"--protect={HOOKS}"])
    attacker.verdict(findings(run))


@attack(4, "exceptions")
@pytest.mark.parametrize("policy", ["sub/repo/.git/hooks", "**/.git/hooks"])
@pytest.mark.parametrize(
    "way", ["create", "moved_parent", "moved_top", "exchanged_top", "linked_parent"]
)
def test_changes_protected_hooks_of_a_nested_repository(attacker, way, policy):
    plant_repository(attacker.scene, "sub/repo")
    tampered(attacker, way, policy, "sub/repo/.git/hooks")


@attack(4, "exceptions")
def test_replaces_a_git_file_by_a_repository_with_hooks(attacker):
    scene = attacker.scene
    scene.file(".git", "gitdir: elsewhere\n")
    attacker.shell(
        "rm -f .git; mv .git away; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; true",
        policy=[f"--protect={HOOKS}", STRICT],
        may_refuse=True,
    )
    attacker.verdict(hook=(scene.workdir / ".git/hooks/pre-commit").exists())


@attack(4, "exceptions")
def test_points_a_protected_git_file_elsewhere(attacker):
    scene = attacker.scene
    scene.file(".git", "gitdir: elsewhere\n")
    attacker.shell(
        "echo 'gitdir: evil' > .git; echo 'gitdir: evil' > mine; mv -f mine .git; true",
        policy=["--protect=.git"],
    )
    attacker.verdict(pointed=(scene.workdir / ".git").read_text() != "gitdir: elsewhere\n")


@attack(4, "exceptions")
def test_changes_hooks_behind_a_symlink(attacker):
    """`.git` is a symlink: what is protected is where it leads to, and the link."""
    scene = attacker.scene
    plant_repository(scene, "real")
    (scene.workdir / ".git").symlink_to("real/.git")
    before = jars.snapshot(scene.workdir / HOOKS)
    attacker.shell(
        "echo x >> .git/hooks/pre-commit; echo x >> real/.git/hooks/pre-commit;"
        "mkdir -p evil/hooks; echo x > evil/hooks/pre-commit; ln -sfn evil .git; true",
        policy=[f"--protect={HOOKS}"],
        may_refuse=True,
    )
    attacker.verdict(changed=before != jars.snapshot(scene.workdir / HOOKS))


# --------------------------------------------- 6 and 7: across the border of a grant


@attack(6, "files")
@pytest.mark.parametrize(
    "way",
    ["linked", "linked_from_fd", "moved_in", "moved_over", "linked_out", "exchanged", "symlinked"],
)
@pytest.mark.parametrize("grant", ["ungranted", "readable"])
def test_brings_an_outside_file_in(attacker, way, grant):
    scene = attacker.scene
    notes = scene.file(scene.outside / "notes.txt", "mine\n", mode=0o666)
    before = jars.snapshot(scene.outside)
    policy = [f"--allow-read={scene.outside}"] if grant == "readable" else []
    attacker.run("06_link_in", way, notes, policy=policy)
    attacker.verdict(changed=before != jars.snapshot(scene.outside))


@attack(7, "files", lost=["changes of mode, owner, times and attributes"])
@pytest.mark.parametrize("grant", ["ungranted", "readable"])
def test_changes_metadata_outside(attacker, grant):
    scene = attacker.scene
    notes = scene.file(scene.outside / "notes.txt", "mine\n", mode=0o666)
    before = jars.snapshot(scene.outside)
    policy = [f"--allow-read={scene.outside}"] if grant == "readable" else []
    run = attacker.run("07_metadata", notes, policy=policy)
    attacker.verdict(
        findings(run), absent=["ENOSYS"], changed=before != jars.snapshot(scene.outside)
    )


@attack(7, "files", control="root")
def test_changes_metadata_of_system_files(attacker):
    """As root outside this would be real: there a file made for it stands in."""
    program = "/usr/bin/env"
    if attacker.is_control:
        program = attacker.scene.file(attacker.scene.outside / "env", "x", mode=0o666)
    before = jars.snapshot(program)
    run = attacker.run("07_metadata", program)
    attacker.verdict(findings(run), absent=["ENOSYS"], changed=before != jars.snapshot(program))


# ------------------------------------------------------------ 8: names and sizes


@attack(8, "files")
def test_lists_trees_that_are_not_granted(attacker):
    scene = attacker.scene
    scene.file(scene.home / "unguessable-name", "x" * 424_241)
    run = attacker.run("08_list", scene.home, scene.home / "unguessable-name", scene.project, "../..")
    attacker.verdict(
        name="unguessable-name" in run.stdout, size="size 424241" in run.stdout, ssh=".ssh" in run.stdout,
        excused={"stops neither stat": ["size"]},
    )  # fmt: skip


@attack(8, "exceptions")
def test_lists_hidden_folder(attacker):
    scene = attacker.scene
    scene.file("secrets/unguessable-name", "x" * 424_241)
    scene.file("top-secret", "x" * 424_243)
    run = attacker.run(
        "08_list", "secrets", "secrets/unguessable-name", "top-secret",
        policy=["--hide=secrets", "--hide=top-secret"],
    )  # fmt: skip
    attacker.verdict(
        name="unguessable-name" in run.stdout,
        size="size 424241" in run.stdout,
        file_size="size 424243" in run.stdout,
    )


# ------------------------------------------------ 9: other processes, through /proc


@attack(9, "processes")
def test_looks_into_other_processes(attacker):
    scene = attacker.scene
    bystander = jars.Bystander(scene)
    run = attacker.run("09_scan_proc", scene.home / ".ssh/id_rsa")
    attacker.verdict(
        findings(run),
        absent=["none"] if scene.identity.uid else [],
        environ_of_bystander=bystander.secret in run.stdout,
        file_through_root=scene.ssh_key in run.stdout,
        sees_bystander=f"sees {bystander.pid}\n" in run.stdout,
        excused={"sees the host's": ["sees_bystander"]},
    )


@attack(9, "environment")
def test_sees_the_callers_environment(attacker):
    secret = "belljar-secret-" + os.urandom(8).hex()
    run = attacker.shell(
        "env; cat /proc/self/environ /proc/1/environ /proc/$PPID/environ /proc/$$/environ 2>&1;"
        "for p in /proc/[0-9]*; do cat $p/environ; done 2>/dev/null; true",
        env={"AWS_SECRET_ACCESS_KEY": secret, "BELLJAR_TOKEN": secret, "LD_PRELOAD_SECRET": secret},
    )
    attacker.verdict(environment=secret in run.stdout)


# ------------------------------------------------------------------ 10: devices


@attack(10, "files")
def test_makes_and_opens_devices(attacker):
    scene = attacker.scene
    try:
        os.mknod(scene.workdir / "node", stat.S_IFCHR | 0o666, os.makedev(1, 7))
        os.chmod(scene.workdir / "node", 0o666)
    except PermissionError:
        # In an unprivileged container nobody can plant one.
        assert not attacker.is_control
    run = attacker.run("10_devices")
    found = findings(run)
    made = [
        entry.name for entry in os.scandir(scene.workdir)
        if entry.name.startswith("made") and not entry.is_file(follow_symlinks=False)
    ]  # fmt: skip
    attacker.verdict(
        found,
        absent=["ENOENT", "ENXIO", "ENODEV", "EBUSY"],
        root_only=set(found) - {"open_planted_node"} | {"made"},
        excused={"nor the use of a device file": ["open_planted_node"]},
        made=bool(made),
    )


# ------------------------------------------------------------------- 11: mounts


@attack(11, "syscalls", control="root")
@pytest.mark.parametrize("program", ["11_mounts", "11_new_mounts"])
def test_mounts(attacker, program):
    attacker.runner.prefix = ("/usr/bin/unshare", "--mount", "--propagation=private")
    run = attacker.run(program)
    attacker.verdict(findings(run), absent=["ENOSYS"])


# --------------------------------------------------------- 12: set-id and file caps


def set_id_files(folder) -> list[str]:
    return [
        os.path.join(where, name)
        for where, _, names in os.walk(folder)
        for name in names
        if os.lstat(os.path.join(where, name)).st_mode & (stat.S_ISUID | stat.S_ISGID)
    ]


@attack(12, "files")
def test_makes_set_id_programs(attacker):
    run = attacker.run("12_setid_bits")
    attacker.verdict(
        findings(run), absent=["ENOSYS"], on_the_host=bool(set_id_files(attacker.scene.workdir))
    )


@attack(12, "files")
@pytest.mark.parametrize(
    "script",
    [
        "cp /bin/true x && chmod 6755 x",
        "cp /bin/true x && chmod u+s x",
        "install -m 4755 /bin/true x",
        "cp /bin/true t && /usr/bin/python3 -c 'import os; os.chmod(\"t\", 0o2755)'",
    ],
)
def test_makes_set_id_programs_with_tools(attacker, script):
    attacker.shell(script)
    attacker.verdict(on_the_host=bool(set_id_files(attacker.scene.workdir)))


@attack(12, "files", control="root")
def test_gives_a_program_capabilities(attacker):
    run = attacker.run("12_file_caps")
    held = "security.capability" in os.listxattr(attacker.scene.workdir / "capable")
    attacker.verdict(findings(run), on_the_host=held)


@attack(12, "files")
def test_runs_a_set_uid_root_program(attacker):
    attacker.bring("12_become_root")
    program = attacker.scene.workdir / "12_become_root"
    os.chown(program, 0, 0)
    os.chmod(program, 0o4755)
    run = attacker.run("12_become_root")
    attacker.verdict(findings(run))


# --------------------------------------------------------------- 13: filling up


def spare_folder(attacker, place) -> str:
    """A folder for the program to make there. Where that is the host's place it goes with the test."""
    path = f"{place}/belljar-test-{os.urandom(6).hex()}"
    attacker.scene.on_exit(shutil.rmtree, path, ignore_errors=True)
    return path


# What belljar says where nothing sums up the memory of a jar.
NOT_SUMMED = "limited for each process, but not for all"


@attack(13, "limits", lost=[NOT_SUMMED])
@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
def test_fills_memory_backed_folder(attacker, place):
    if attacker.is_control:
        place = attacker.scene.folder(attacker.scene.base / "fill")
    run = attacker.run("13_fill", spare_folder(attacker, place), "256", "8", policy=["--max-memory-mb=64"], may_end_early=True)
    attacker.verdict(filled="ESCAPED fill" in run.stdout)


@attack(13, "limits")
def test_writes_a_file_larger_than_the_limit(attacker):
    attacker.run("13_fill", ".", "4", "1", policy=["--max-file-sz-mb=1"], may_end_early=True)
    size = (attacker.scene.workdir / "filler-0").stat().st_size
    attacker.verdict(too_large=size > 1 << 20)


@attack(13, "limits", lost=[NOT_SUMMED])
@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
def test_uses_up_inodes(attacker, place):
    place = spare_folder(attacker, "/dev/shm" if attacker.is_control else place)
    run = attacker.run(
        "13_inodes", place, "40000", policy=["--max-memory-mb=64"], may_end_early=True
    )
    attacker.verdict(made="ESCAPED inodes" in run.stdout)


# ----------------------------------------------- 14: what is not a file, for us to read


@attack(14, "files")
def test_report_to_a_fifo_hangs(attacker):
    fifo = attacker.scene.spare("fifo")
    os.mkfifo(fifo, 0o666)
    attacker.scene.identity.own(fifo)
    run = attacker.shell(
        'test -z "$1" || echo hello > "$1"', fifo if attacker.is_control else "",
        report=fifo, timeout=5, may_end_early=True, may_refuse=True,
    )  # fmt: skip
    attacker.verdict(hung=run.hung)


@attack(14, "files")
@pytest.mark.parametrize("kind", ["fifo", "socket", "endless"])
def test_configuration_that_is_no_file_hangs(attacker, kind):
    """A guest can leave anything under the name of our configuration."""
    path = attacker.scene.workdir / "belljar.toml"
    if kind == "fifo":
        os.mkfifo(path, 0o666)
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o666)
    else:
        path.symlink_to("/dev/zero")
    script = "cat belljar.toml > /dev/null" if attacker.is_control else "true"
    run = attacker.shell(script, timeout=5, may_end_early=True, may_refuse=True)
    # A socket does not hang `cat`: it is an error there, and may be one here.
    attacker.verdict(hung=run.hung or (attacker.is_control and kind == "socket"))


# -------------------------------------------------------------------- 15: odd names

ODD = {
    "newline": b"new\nline",
    "escape": b"esc\x1b[31mred\x07",
    "not_utf8": b"bad\xff\xfe\x80",
    "star": b"star*",
    "question": b"what?[ab]",
    "dash": b"--profile=open",
    "quotes": b"quote\"'\\back",
    "comma": b"comma,colon:equals=",
    "blank": b" blank ",
    "longest": b"x" * 255,
    "braces": b"{a,b}",
}


@attack(15, "exceptions")
@pytest.mark.parametrize("name", ODD.values(), ids=ODD.keys())
def test_reads_hidden_file_with_an_odd_name(attacker, name):
    path = os.path.join(os.fsencode(attacker.scene.workdir), name)
    secret = attacker.scene.secret(os.fsdecode(path))
    run = attacker.run(
        "01_read", os.fsdecode(b"./" + name), policy=["--hide=" + os.fsdecode(name)]
    )
    attacker.verdict(text=secret in run.stdout)


@attack(15, "exceptions")
@pytest.mark.parametrize("name", ODD.values(), ids=ODD.keys())
def test_changes_protected_file_with_an_odd_name(attacker, name):
    path = os.fsdecode(os.path.join(os.fsencode(attacker.scene.workdir), name))
    file = attacker.scene.file(path, "mine\n")
    attacker.run(
        "01_write", os.fsdecode(b"./" + name), policy=["--protect=" + os.fsdecode(name)]
    )
    attacker.verdict(changed=file.read_text() != "mine\n")


@attack(15, "files", control="")
@pytest.mark.parametrize("flag", ["--hide", "--protect", "--allow-read", "--report", "--profile", "-C"])
def test_odd_name_steers_the_terminal(attacker, flag):
    """No control: it is about our own messages. What a person is shown has no bytes that steer."""
    odd = "/nonexistent/" + os.fsdecode(b"a\x1b]0;title\x07\x1b[2Jb\rc\nd\x9b31m\xff")
    policy = [flag, odd] if flag == "-C" else [f"{flag}={odd}"]
    run = attacker.command(["/bin/true"], policy=policy, may_refuse=True)
    said = run.stderr.encode(errors="surrogateescape")
    assert not any(byte in said for byte in (b"\x1b", b"\x07", b"\r", b"\x9b", b"\xff")), run
    assert b"c\nd" not in said, run


@attack(15, "files", control="")
@pytest.mark.parametrize("flag", ["--hide", "--protect", "--allow-read", "--report", "-C"])
def test_path_that_is_too_long(attacker, flag):
    """No control: there is nothing to reach. It is refused or means nothing; it does not crash."""
    long = "/" + "x" * 200 + "/" + "y" * 4096
    policy = [flag, long] if flag == "-C" else [f"{flag}={long}"]
    run = attacker.command(["/bin/true"], policy=policy, may_refuse=True)
    assert run.exit in (0, jars.OWN_FAILURE), run
