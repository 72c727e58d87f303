"""The tools of a Unix system: processes, files, archives, version control, compilers."""

from __future__ import annotations

import hashlib
import re

import jar as jars
import pytest

# ---------------------------------------------------------------------- processes


def finds_itself_not(jar) -> bool:
    """In a pid namespace with the host's /proc, which belljar names as a loss, ps is lost too."""
    run = jar.run(["ps"])
    return run.exit == 1 and "lookup self" in run.stderr and jar.said("so the guest sees the host's")


def test_ps(jar, need):
    need("ps")
    if finds_itself_not(jar):
        return
    rows = [line.split(None, 1) for line in jar.ok(["ps", "-eo", "pid=,args="]).splitlines()]
    assert rows[0][0] == "1"
    assert "ps -eo pid=,args=" in [args for _, args in rows]


def test_ps_aux(jar, need):
    need("ps")
    if finds_itself_not(jar):
        return
    out = jar.shell("id -un; sleep 5 & sleep 0.2; ps aux; kill $!")
    name = out.split()[0]
    seen = re.search(r"^(\S+) .* sleep 5$", out, re.MULTILINE)[1]
    assert seen.rstrip("+") == name[: len(seen.rstrip("+"))]  # not a number; a long one is cut


def test_free(jar, need):
    need("free")
    assert int(re.search(r"^Mem:\s+(\d+)", jar.ok(["free"]), re.MULTILINE)[1]) > 100_000


def test_uptime(jar, need):
    need("uptime")
    assert "load average:" in jar.ok(["uptime"])


def test_top(jar, need):
    need("top")
    out = jar.ok(["top", "-b", "-n1"])
    assert re.search(r"PID\s+USER", out)
    assert re.search(r"\btop$", out, re.MULTILINE)


def test_five_thousand_orphans_are_reaped(jar, bring):
    many = 5000 // jars.SLOWER
    out = jar.ok([bring("orphans"), str(many)], timeout=55)
    if jar.said("the guest can see and signal", "sees the host's"):
        assert f"orphans {many} " in out  # the host's own processes are there too
    else:
        assert out == f"orphans {many} processes 2 zombies 0 init alive\n"


def test_nproc_and_cpuinfo(jar):
    assert int(jar.ok(["nproc"])) >= 1
    assert "processor" in jar.ok(["cat", "/proc/cpuinfo"])


# -------------------------------------------------------------------------- files


def test_files_can_be_linked_moved_locked_and_changed(jar, scene):
    out = jar.shell("""
mkdir -p a b; echo text >a/file
ln a/file b/hard; ln -s ../a/file b/soft; mv a/file b/moved; cat b/hard b/moved
chmod 700 b/moved; stat -c %a b/moved; touch -d @1000000000 b/moved; stat -c %Y b/moved
mkfifo b/fifo; { echo through >b/fifo & }; cat b/fifo
flock b/moved echo locked
cp -a b c; cmp b/moved c/moved; truncate -s 5M c/sparse; stat -c %s c/sparse
rm -r a b; ls
""")
    assert out.split() == "text text 700 1000000000 through locked 5242880 c".split()
    assert (scene.workdir / "c/moved").stat().st_uid == jar.identity.uid


def test_tar(jar, scene):
    scene.file("tree/deep/er/file", "content\n", mode=0o640)
    scene.file("tree/run", "#!/bin/sh\necho ran\n", mode=0o755)
    out = jar.shell("""
ln -s run tree/link; touch -d @1000000000 tree/run
tar -czf tree.tgz tree; mkdir out; tar -xzf tree.tgz -C out
cd out/tree; stat -c %a deep/er/file; stat -c %Y run; readlink link; ./link
diff -r ../../tree . && echo same
""")
    assert out.split() == ["640", "1000000000", "run", "ran", "same"]


def test_tar_made_outside_by_the_caller(jar, scene):
    scene.file("from/file", "content\n")
    outside = jars.Outside(scene)
    assert outside.run(["tar", "-cf", "made.tar", "from"]).exit == 0
    assert jar.shell("mkdir to; tar -xf made.tar -C to; cat to/from/file") == "content\n"
    assert outside.run(["rm", "-r", "to", "from"]).exit == 0


def test_rsync(jar, need, scene):
    need("rsync")
    for number in range(50):
        scene.file(f"source/{number % 5}/{number}", f"{number}\n" * number)
    out = jar.shell("""
rsync -a --delete source/ copy/; diff -r source copy && echo same
echo more >>source/1/1; rm source/2/2; rsync -ai --delete source/ copy/ | sort; diff -r source copy && echo same
""")
    assert out.splitlines()[0] == out.splitlines()[-1] == "same"
    assert re.search(r"^\*deleting\s+2/2$", out, re.MULTILINE)
    assert re.search(r"^>f\S+ 1/1$", out, re.MULTILINE)


def test_find(jar, scene):
    for number in range(300):
        scene.file(f"tree/{number % 10}/{number}.txt", f"{number}\n")
    out = jar.shell("""
find tree -type f -name '*.txt' | wc -l; find tree -name '1?.txt' -exec cat {} + | sort -n | tr '\\n' ' '
find tree -type f -print0 | xargs -0 -n 50 -P 4 cat | wc -l; find tree -delete; ls
""")
    assert out.split() == ["300", *map(str, range(10, 20)), "300"]


def test_sort_with_temporary_files(jar, scene, unsorted):
    text, digest = unsorted
    scene.file("big", text)
    out = jar.shell("LC_ALL=C sort -S 4M big | sha256sum; ls ${TMPDIR:-/tmp} | wc -l", timeout=55)
    assert out.split() == [digest, "-", "0"]


def test_dd_of_a_large_file(jar):
    out = jar.shell("head -c 200M /dev/zero >zeros; sha256sum <zeros; rm zeros")
    assert out.split()[0] == hashlib.sha256(bytes(200 << 20)).hexdigest()


# ---------------------------------------------------------------------------- git

COMMITTER = "-c user.name=Guest -c user.email=guest@example.com -c init.defaultBranch=main"


def test_git_init_commit_clone(jar, need, scene):
    need("git")
    out = jar.shell(f"""
git {COMMITTER} init -q repo; cd repo; echo one >file; git add file; git {COMMITTER} commit -qm first
git status --porcelain; cd ..; git clone -q repo copy; cd copy; cat file
echo two >>file; git {COMMITTER} commit -qam second; git {COMMITTER} push -q origin HEAD:refs/heads/other
git -C ../repo log --format=%s other; git -C ../repo gc -q; git -C ../repo fsck
""")
    assert out.split() == ["one", "second", "first"]
    after = jars.Outside(scene).run(["git", "-C", "repo", "log", "--format=%s", "other"])
    print(after)
    assert (after.exit, after.stdout) == (0, "second\nfirst\n")


def test_git_in_a_repository_of_the_callers(jar, need, scene):
    need("git")
    outside = jars.Outside(scene)
    script = f"git {COMMITTER} init -q && echo one >file && git add file && git {COMMITTER} commit -qm first"
    assert outside.run(["sh", "-c", script]).exit == 0
    run = jar.run(["sh", "-ec", f"git status --short; echo two >>file; git {COMMITTER} commit -qam second"])
    assert (run.exit, run.stdout) == (0, "")
    assert "dubious" not in run.stderr
    after = outside.run(["sh", "-c", "git log --format=%s; git status --short; git fsck"])
    print(after)
    assert (after.exit, after.stdout.split()) == (0, ["second", "first"])


# ---------------------------------------------------------------------- compilers


@pytest.mark.heavy
def test_gcc_and_make(jar, need, scene):
    need("gcc", "make")
    scene.file("main.c", '#include <stdio.h>\nint twice(int);\nint main(void) { printf("%d\\n", twice(21)); }\n')
    scene.file("twice.c", "int twice(int n) { return 2 * n; }\n")
    scene.file("Makefile", "CFLAGS = -O2 -pipe\nprogram: main.o twice.o\n\tgcc -o $@ $^\n")
    out = jar.shell("make -s -j4; ./program; touch twice.c; make | head -n 1; ./program")
    assert out.split("\n")[0] == out.split("\n")[2] == "42"
    assert "twice.c" in out


@pytest.mark.heavy
def test_java(jar, need, scene):
    need("javac", "java")
    scene.file("Hello.java", """
import java.util.stream.*;
public class Hello {
  public static void main(String[] a) throws Exception {
    byte[][] kept = new byte[64][];
    for (int i = 0; i < 64; i++) kept[i] = new byte[1 << 20];
    Thread t = new Thread(() -> System.out.println("thread"));
    t.start(); t.join();
    System.out.println(IntStream.range(0, 100000).parallel().sum() + " " + kept.length);
  }
}
""")
    out = jar.shell("javac Hello.java; java Hello", timeout=55)  # the default heap: a quarter of the machine
    assert out == "thread\n704982704 64\n"


@pytest.mark.heavy
def test_cargo(jar, need, scene):
    need("cargo")
    scene.file("Cargo.toml", '[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2021"\n')
    scene.file("src/main.rs", 'fn main() { println!("{}", (1..=10).sum::<u32>()); }\n')
    out = jar.shell("cargo build --offline --quiet; ./target/debug/hello", timeout=55)
    assert out == "55\n"


@pytest.mark.heavy
def test_node(jar, need, scene):
    need("node")
    scene.file("program.js", """
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
if (!isMainThread) {
  Atomics.add(new Int32Array(workerData), 0, 7);
  parentPort.postMessage('done');
} else {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536 });
  memory.grow(255);
  new Uint8Array(memory.buffer)[16777215] = 42;
  // (module (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
  const code = Uint8Array.from([0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11]);
  WebAssembly.instantiate(code).then(async ({ instance }) => {
    const shared = new SharedArrayBuffer(4);
    await Promise.all([1, 2, 3, 4].map(() => new Promise((end, fail) =>
      new Worker(__filename, { workerData: shared }).on('message', end).on('error', fail))));
    const child = require('child_process').execFileSync('echo', ['child']).toString().trim();
    const nets = Object.keys(require('os').networkInterfaces()).includes('lo');
    console.log(new Uint8Array(memory.buffer)[16777215], instance.exports.add(40, 2), new Int32Array(shared)[0], child, nets);
  });
}
""")
    assert jar.ok(["node", "program.js"]) == "42 42 28 child true\n"


@pytest.mark.heavy
def test_npm_install_of_a_local_tarball(jar, need, scene):
    need("npm", "tar")
    scene.file("package/package.json", '{"name": "answer", "version": "1.0.0", "bin": {"answer": "cli.js"}}')
    scene.file("package/index.js", "module.exports = 42;\n")
    scene.file("package/cli.js", "#!/usr/bin/env node\nconsole.log('cli', require('./index'));\n", mode=0o755)
    scene.file("project/package.json", '{"name": "project", "version": "1.0.0", "scripts": {"test": "answer"}}')
    out = jar.shell(
        "tar -czf answer-1.0.0.tgz package; cd project; npm install --offline --no-audit --no-fund ../answer-1.0.0.tgz >&2;"
        "node -p \"require('answer')\"; npm test --silent",
        timeout=55,
    )
    assert out == "42\ncli 42\n"
