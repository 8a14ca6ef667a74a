#!/usr/bin/env python3
"""Do the tests notice when the product is wrong? Changes one token of one product file at a time (an operator, a
boolean, a returned error, a 0 or 1, a dropped !), and runs the tests until one fails.
    tests/support/check_mutants.py --n 200 --seed 1 [--jobs 2] [--e2e] [FILE...]
Works on a copy of the tree, in build-mutants; the seed decides which changes are tried. A change that does not compile,
or compiles to the same object, does not count. A test notices when it fails, or does not end, twice running. Exit
status 1 when fewer than nine of ten changes are noticed.

What is changed may be what ends processes, removes directories or opens connections. So a test runs as a lab animal: it
sees no process, no network and no cgroup but its own, and can write to the copy, /tmp and /run of its own alone.
"""
import argparse
import glob
import hashlib
import json
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import threading
import time

PRODUCT = ("common", "proto", "agent", "controller")
AIM = 0.9
# Scripts that try something else than the product, or bring a whole base system.
NOT_THE_PRODUCT = {"build_needs", "fresh_machine", "layers", "man_pages", "mixed_releases", "mutants"}
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "&&": "||", "||": "&&",
         "true": "false", "false": "true", "0": "1", "1": "0", "!": ""}
TOKEN = re.compile(r"""(?P<skip>/\*.*?\*/ | //[^\n]* | ^[ \t]*\#(?:\\\n|[^\n])* | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*')
    | (?P<word>[A-Za-z_]\w*) | (?P<number>\d[\w.]*) | (?P<mark>->|\+\+|--|<<=?|>>=?|[-+*/%&|^=!<>]=|&&|\|\||[^\s\w])""", re.X | re.S | re.M)
# $1: the copy of the tree. Nothing but it, /tmp and /run can be written; 8 GB of memory, files of 4 GB.
# $2: a cgroup made for this, which becomes the root of all that is seen of cgroups; empty where none can be made.
CAGE = """set -e
mount --bind "$1" /mnt
for dir in /tmp /run; do mount -t tmpfs -o size=1g tmpfs $dir; done
if [ -n "$2" ]; then
    awk '$3 ~ /^cgroup/ { print $2 }' /proc/mounts | sort -r | xargs -n 1 umount -l
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
mount -o remount,ro,bind /
ip link set lo up
ulimit -v 8388608
ulimit -f 8388608
cd /mnt
shift 2
exec "$@" """
ENTER = """[ -z "$0" ] || echo 0 >"$0/cgroup.procs"; exec "$@" """


def changes_in(path, text):
    """(path, offset, old, new) of each token that can be changed."""
    tokens = [m for m in TOKEN.finditer(text) if m.lastgroup != "skip"]
    for i, m in enumerate(tokens[1:-1], 1):
        before, word, after = tokens[i - 1].group(), m.group(), tokens[i + 1].group()
        if re.fullmatch(r"ERR_[A-Z_]+", word) and word != "ERR_OK" and before in ("return", "?", ":", "="):
            yield path, m.start(), word, "ERR_OK"
        elif word in ("+", "-") and not re.search(r"[\w)\]]$", before):
            continue  # a sign
        elif (before, after) == ("{", "}"):
            continue  # {0}: what is there only to be overwritten
        elif word in SWAPS:
            yield path, m.start(), word, SWAPS[word]


class Lab:
    """The copy of the tree and its builds, one directory for each job."""

    def __init__(self, jobs):
        self.root = os.path.realpath("build-mutants")
        self.tree = os.path.join(self.root, "tree")
        self.copy_tree()
        os.chdir(self.tree)  # from here on nobody reads the checkout, which may change
        self.cgroup = own_cgroup() and f"{own_cgroup()}/mutants-{os.getpid()}"
        self.builds = [f"build-{i}" for i in range(jobs)]
        for build in self.builds:
            if self.make(build, f"-j{os.cpu_count()}", "test-build"):
                sys.exit(f"check-mutants: the tree does not build: see {self.root}/{build}.log")
        self.tests = {}  # name -> seconds it takes
        self.links = {}  # name -> the objects it is made of, as paths of sources without .c
        for path in glob.glob("tests/unit/test_*.c") + glob.glob("tests/sim/sim_*.c"):
            name = os.path.basename(path)[:-2]
            with open(f"{self.tree}/{self.builds[0]}/tests/{name}.d", encoding="utf-8") as f:
                self.links[name] = set(re.findall(rf": {self.builds[0]}/(.*)\.o$", f.read(), re.M))

    def copy_tree(self):
        """What did not change keeps its time, so that make builds only what did."""
        wanted = set()
        for folder, inner, names in os.walk("."):
            inner[:] = [d for d in inner if d != ".git" and not (folder == "." and d.startswith("build"))]
            for path in (os.path.join(folder, n) for n in names):
                wanted.add(path)
                to = os.path.join(self.tree, path)
                if not os.path.exists(to) or read_bytes(path) != read_bytes(to):
                    os.makedirs(os.path.dirname(to), exist_ok=True)
                    shutil.copy(path, to)
        for path in glob.glob("**/*.[ch]", root_dir=self.tree, recursive=True):
            if not path.startswith("build-") and os.path.join(".", path) not in wanted:
                os.remove(os.path.join(self.tree, path))

    def make(self, build, *targets):
        """The exit status. Without debug information, so that the same code is the same object."""
        with open(f"{self.root}/{build}.log", "w", encoding="utf-8") as log:
            return subprocess.call(["make", "-C", self.tree, f"O={build}", "CFLAGS=-O2 -g0", *targets],
                                   stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "MAKEFLAGS": ""})

    def object_of(self, build, path):
        return os.path.join(self.tree, build, path[:-2] + ".o")

    def run(self, build, program, limit_s):
        """Whether the program succeeds, in the cage."""
        cgroup = self.cgroup and f"{self.cgroup}-{build}"
        if cgroup:
            os.makedirs(cgroup, exist_ok=True)
        cage = ["sh", "-c", ENTER, cgroup, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--net",
                "--ipc", "--cgroup"] + ["--map-root-user"] * (os.geteuid() != 0)
        env = {**os.environ, "SPLITBENCH_BIN": f"/mnt/{build}/bin", "SPLITBENCH_TOOLS": f"/mnt/{build}/tests"}
        with open(f"{self.root}/{build}.test.log", "w", encoding="utf-8") as log:
            try:
                return subprocess.run([*cage, "sh", "-c", CAGE, "cage", self.tree, cgroup, program], stdin=subprocess.DEVNULL, stdout=log,
                                      stderr=subprocess.STDOUT, env=env, timeout=limit_s, check=False).returncode == 0
            except subprocess.TimeoutExpired:
                return False
            finally:
                remove_cgroup(cgroup)

    def program_of(self, build, test):
        return f"{build}/tests/{test}" if test in self.links else f"tests/e2e/{test}.sh"

    def time_tests(self, scripts):
        """Those that fail on the tree as it is cannot notice anything. What was timed before, and is the same, is not again."""
        if not self.run(self.builds[0], "true", 60):
            log = read(f"{self.root}/{self.builds[0]}.test.log")
            sys.exit(f"check-mutants: cannot shut a test in (as root, or a user who may make namespaces): {log}")
        book = f"{self.root}/times.json"
        known = json.loads(read(book)) if os.path.exists(book) else {}
        for test in sorted(self.links) + scripts:
            program = self.program_of(self.builds[0], test)
            made_of = hashlib.sha256(read_bytes(os.path.join(self.tree, program))).hexdigest()
            began = time.monotonic()
            if known.get(test, ["", 0])[0] == made_of:
                self.tests[test] = known[test][1]
            elif self.run(self.builds[0], program, 600):
                self.tests[test] = time.monotonic() - began
                known[test] = [made_of, self.tests[test]]
                write_bytes(book, json.dumps(known).encode())
            else:
                print(f"  left out: {test} fails without any change", flush=True)
        if not self.tests:
            sys.exit(f"check-mutants: no test passes: see {self.root}/{self.builds[0]}.test.log")

    def starts_programs(self, test):
        """A test that starts build/bin/... can notice what it does not link."""
        return any("SPLITBENCH_" in read(f"{source}.c") for source in self.links[test] if source.startswith("tests/"))

    def tests_of(self, path):
        """The tests that can notice a change of that file, the likeliest first and then the quickest."""
        stem = path[:-2]
        names = ("test_" + os.path.basename(stem), "test_" + "_".join(stem.split("/")[-2:]))

        def rank(test):
            if test not in self.links:
                return 4
            if test in names:
                return 0
            if stem in self.links[test]:
                return 1 if f'"{stem}.h"' in read(glob.glob(f"tests/*/{test}.c")[0]) else 2
            return 3 if self.starts_programs(test) else None

        ranked = [(rank(test), seconds, test) for test, seconds in self.tests.items()]
        return [(r, test) for r, _, test in sorted(r for r in ranked if r[0] is not None)]

    def compile(self, change):
        """The object of a changed file; None when the compiler refuses it, or it is the same code."""
        path, offset, old, new = change
        build, text = self.builds[0], read(path)
        source, target = os.path.join(self.tree, path), self.object_of(build, path)
        times, sound = os.stat(source), read_bytes(target)
        built = os.stat(target)
        with open(source, "w", encoding="utf-8") as f:
            f.write(text[:offset] + new + text[offset + len(old):])
        bad = self.make(build, f"{build}/{path[:-2]}.o")
        changed = None if bad else read_bytes(target)
        for name, data, at in ((source, text.encode(), times), (target, sound, built)):
            with open(name, "wb") as f:
                f.write(data)
            os.utime(name, ns=(at.st_atime_ns, at.st_mtime_ns))
        return None if changed == sound else changed

    def who_notices(self, build, path, changed):
        """The first test that fails with that object in the place of the file's own; None when none does."""
        target = self.object_of(build, path)
        sound = read_bytes(target)
        write_bytes(target, changed)
        try:
            all_built = False
            for rank, test in self.tests_of(path):
                if rank < 2 and not all_built:
                    bad = self.make(build, f"{build}/tests/{test}")
                elif not all_built:
                    bad, all_built = self.make(build, "test-build"), True
                ask = (build, self.program_of(build, test), 10 + 5 * self.tests[test])
                if bad or not (self.run(*ask) or self.run(*ask)):
                    return "the linker" if bad else test
        finally:
            write_bytes(target, sound)
        return None


def own_cgroup():
    """The directory of the cgroup that this process is in; empty when it may make none there."""
    mounted = re.search(r"^\S+ (\S+) cgroup2 ", read("/proc/mounts"), re.M)
    own = re.search(r"^0::(.*)$", read("/proc/self/cgroup"), re.M)
    return mounted.group(1) + own.group(1).rstrip("/") if mounted and own and os.geteuid() == 0 else ""


def remove_cgroup(top):
    """With all below it. Its processes are killed, and take a moment to be gone."""
    deadline = time.monotonic() + 5
    while top and os.path.isdir(top) and time.monotonic() < deadline:
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                time.sleep(0.01)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def write_bytes(path, data):
    with open(path, "wb") as f:
        f.write(data)


def pick(lab, files, n, seed):
    """Up to n (change, object) that count, in an order that the seed decides."""
    every = [c for path in files for c in changes_in(path, read(path))]
    random.Random(seed).shuffle(every)
    picked = []
    for change in every:
        if len(picked) == n:
            break
        changed = lab.compile(change)
        if changed is not None:
            picked.append((change, changed))
    return picked


def told(change):
    path, offset, old, new = change
    text = read(path)
    line = text.count("\n", 0, offset) + 1
    return f"{path}:{line}: '{old}' -> '{new}'  in: {text.splitlines()[line - 1].strip()}"


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("--n", type=int, default=200)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--jobs", type=int, default=2)
    ask.add_argument("--e2e", action="store_true")
    ask.add_argument("files", nargs="*")
    asked = ask.parse_args()

    lab = Lab(asked.jobs)
    files = asked.files or sorted(p for d in PRODUCT for p in glob.glob(f"{d}/**/*.c", recursive=True))
    scripts = sorted(os.path.basename(p)[:-3] for p in glob.glob("tests/e2e/*.sh")) if asked.e2e else []
    lab.time_tests([s for s in scripts if s not in NOT_THE_PRODUCT])
    picked = pick(lab, files, asked.n, asked.seed)
    if not picked:
        sys.exit("check-mutants: nothing to change in these files")
    left = queue.SimpleQueue()
    for i, one in enumerate(picked):
        left.put((i, *one))
    who = {}
    print(f"{len(picked)} changes, seed {asked.seed}, {len(lab.tests)} tests", flush=True)

    def work(build):
        while True:
            try:
                i, change, changed = left.get_nowait()
            except queue.Empty:
                return
            who[i] = lab.who_notices(build, change[0], changed)
            print(f"  {who[i] or 'NOBODY':28} {told(change)}", flush=True)

    workers = [threading.Thread(target=work, args=(build,)) for build in lab.builds]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if len(who) != len(picked):
        sys.exit("check-mutants: did not come to its end")
    unnoticed = [told(picked[i][0]) for i in sorted(who) if who[i] is None]
    if unnoticed:
        print("\nNothing notices:")
        print("\n".join(f"  {u}" for u in unnoticed))
    print(f"{len(picked) - len(unnoticed)} noticed of {len(picked)}")
    return 0 if len(picked) - len(unnoticed) >= AIM * len(picked) else 1


sys.exit(main())
