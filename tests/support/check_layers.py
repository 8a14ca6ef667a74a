#!/usr/bin/env python3
"""What may stand where in the tree: who includes whom (common <- proto <- {agent, controller} <- tests, each foreign
library behind one door, no circle of folders), guards that are their header's path, comments that name files which
are there. Prints each place that breaks a rule; exit status 1 when there is one.
    tests/support/check_layers.py [TREE]
"""
import fnmatch
import os
import re
import sys

# What is refused; the lines; the files; those that may. A * goes across directories.
REFUSED = [
    ("common/ includes nothing above it", r'#include "(proto|agent|controller|tests)/', ["common/*.[ch]"], []),
    ("proto/ includes only common/", r'#include "(agent|controller|tests)/', ["proto/*.[ch]"], []),
    ("agent/ never includes controller/", r'#include "(controller|tests)/', ["agent/*.[ch]"], []),
    ("controller/ never includes agent/", r'#include "(agent|tests)/', ["controller/*.[ch]"], []),
    ("agent/load/ stands alone on common/", r'#include "(proto/|agent/(?!load/))', ["agent/load/*.[ch]"], []),
    ("only proto/ sees nng and generated types", r"pb-c\.h|<nng/", ["*.[ch]"], ["proto/*", "tests/support/nng_reproducers.c"]),
    ("only common/json.c sees cJSON", r"<cjson/", ["*.[ch]"], ["common/json.c"]),
    ("only controller/store/ sees SQLite", r'<sqlite3|"controller/store/store_db\.h"', ["*.[ch]"],
     ["controller/store/*", "tests/unit/test_store_db.c"]),
    ("Mbed TLS belongs to nng alone", r"<mbedtls/", ["*.[ch]"], []),
    ("OpenSSL is for hashes, identity and the TLS of the generator", r"<openssl/",
     ["common/*.[ch]", "proto/*.[ch]", "agent/*.[ch]", "controller/*.[ch]"],
     ["common/sha256.[ch]", "common/base64.c", "common/libraries.c", "proto/identity/identity*.c",
      "proto/identity/x509*.[ch]", "agent/load/tls*.c"]),
    ("common/ and proto/ never log", r"\blog_(error|warn|info|debug)\(", ["common/*.c", "proto/*.[ch]"], ["common/log.c"]),
]
FOLDERS = "common|proto|agent|controller|tests|docs|deploy"
# In a comment: a path below one of our folders (with * for several), or a lone name with the ending of a source.
NAMED = re.compile(rf"(?<![\w./$}}<-])((?:{FOLDERS})/[\w./*-]*[\w*]|[\w-]+\.(?:[ch]|sh|py|md|proto))\b(?!\()")
C_PIECES = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
SHELL_COMMENT = re.compile(r"(?:^|(?<=\s))#\s.*", re.M)


def files_of(tree):
    """Path below the tree -> text, of all that is not built."""
    found = {}
    for folder, inner, names in os.walk(tree):
        below = os.path.relpath(folder, tree)
        inner[:] = [d for d in inner if d not in (".git", "__pycache__") and not (below == "." and d.startswith("build"))]
        for name in names:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
                found[os.path.normpath(os.path.join(below, name))] = f.read()
    return found


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, p) for p in patterns)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def refused_lines(files):
    for what, pattern, where, but in REFUSED:
        for path in files:
            if matches(path, where) and not matches(path, but):
                for n, line in enumerate(files[path].split("\n"), 1):
                    if re.search(pattern, line):
                        yield path, n, f"{what}: {line.strip()}"


def figures_elsewhere(files):
    """A figure is one row of common/figure_list.h: messages, store, merge and report follow from it and name none. What
    an older store holds, a gate of the same name and a key of the experiment are something else."""
    names = set(re.findall(r"^    X\((?:[A-Z_]+, )?([a-z_]+), ", files.get("common/figure_list.h", ""), re.M))
    name = "|".join(sorted(names - {"body_bytes"})) or "(?!)"
    pattern = re.compile(rf'"(?:{name})"|uint64(?:_t)? (?:{name})\b| (?:{name}) (?:INTEGER|REAL)')
    but = ["controller/store/store_schema.c", "controller/run/gate.h"]
    for path in files:
        if matches(path, ["proto/*", "agent/driver/*", "agent/task/*", "controller/*"]) and not matches(path, but):
            for m in pattern.finditer(files[path]):
                yield path, line_of(files[path], m.start()), f"a figure is one row of common/figure_list.h: {m.group()}"


def stale_guards(files):
    for path in files:
        if path.endswith(".h"):
            guard = re.sub(r"[/.]", "_", path).upper()
            if not re.match(rf"#ifndef {guard}\n#define {guard}\n", files[path]):
                yield path, 1, f"the guard of a header is its path, at its top: {guard}"


def comments(path, text):
    """(line, comment) of a C source, a shell script or the Makefile."""
    if path.endswith((".c", ".h")):
        found = (m for m in C_PIECES.finditer(text) if m.group()[0] == "/")
    elif path.endswith(".sh") or os.path.basename(path) == "Makefile":
        found = SHELL_COMMENT.finditer(text)
    else:
        return
    for m in found:
        for i, line in enumerate(m.group().split("\n")):
            yield line_of(text, m.start()) + i, line


def absent_names(files):
    last = {os.path.basename(f) for f in files}
    folders = {f[:i] for f in files for i in range(len(f)) if f[i] == "/"}

    def is_there(name):
        if "/" not in name:
            return name in last
        if "*" in name:
            return any(fnmatch.fnmatchcase(f, name) for f in files)
        return name in folders or any(f in files for f in (name, name + ".c", name + ".h"))

    for path in files:
        for n, comment in comments(path, files[path]):
            for name in NAMED.findall(comment):
                if not is_there(name):
                    yield path, n, f"a comment names a file that is not there: {name}"


def folder_circles(files):
    """Folders that include themselves by way of another, each in one circle at most, by a shortest way round."""
    includes = {}  # folder -> {folder: (path, line)}
    for path in files:
        if path.endswith((".c", ".h")):
            for m in re.finditer(r'^#include "([^"]+)/[^/"]+"', files[path], re.M):
                includes.setdefault(os.path.dirname(path), {}).setdefault(m.group(1), (path, line_of(files[path], m.start())))
    reported = set()
    for start in sorted(includes):
        ways = [[start]]
        for way in ways:  # breadth first: the list grows while it is read
            for to in includes.get(way[-1], {}):
                if to == start and len(way) > 1 and not reported & set(way):
                    reported |= set(way)
                    steps = [(b, *includes[a][b]) for a, b in zip(way, way[1:] + [start])]
                    told = ", ".join(f"{folder} ({by}:{line})" for folder, by, line in steps)
                    yield *steps[-1][1:], f"folders include each other in a circle: {start} includes {told}"
                elif not any(to in w for w in ways):
                    ways.append(way + [to])


def main():
    tree = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../..")
    files = files_of(tree)
    bad = 0
    for rule in (refused_lines, figures_elsewhere, stale_guards, absent_names, folder_circles):
        for path, line, what in rule(files):
            print(f"{path}:{line}: {what}", file=sys.stderr)
            bad += 1
    return 1 if bad else 0


sys.exit(main())
