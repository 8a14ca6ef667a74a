#!/usr/bin/env python3
"""The published JSON Schema and the program must say the same.

  schema_check.py SPLITBENCH SCHEMA FULL_EXAMPLE EXAMPLE...

Every example is accepted by both. In the full example, each object of the schema gets an unknown key in
turn: the program must refuse it there, and list exactly the keys that the schema has. Then each of VALUES
is put into it in turn: both must accept it, or both refuse it.
"""
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

USED = {"$schema", "$ref", "title", "description", "default", "type", "additionalProperties", "required", "properties",
        "definitions", "propertyNames", "maxProperties", "minProperties", "items", "minItems", "maxItems", "uniqueItems",
        "anyOf", "not", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}

W, T, C = ("workloads", 0), ("targets", 0), ("checks", 0)  # of the full example
NAMES = (["a", "a/b.c_+-9", "/", "a..b", "...", "a" * 128], ["", "-a", "..", "a/../b", "a/.", "ä", "a b", "a" * 129, 1])
DURATIONS = (["10ms", "1.5s", "2m", "${pause}"], ["10", "-1s", "1m30s", "s", "", 10])
VALUES = [  # where, what is right, what is wrong
    (("name",), *NAMES), (T + ("name",), *NAMES), (W + ("name",), *NAMES), (C + ("name",), *NAMES),
    (("design", "order"), ["fixed", "latin-square", "${square}"], ["", "random", 1, None]),
    (("design", "fresh_process"), ["round", "window", "job", "${fresh}"], ["", "never", True]),
    (("design", "rounds"), [2, 1000, "${two}"], [0, 1001, 1.5, "2", -1]),
    (("design", "cooldown"), *DURATIONS), (("design", "gap"), *DURATIONS), (W + ("warmup",), *DURATIONS),
    (W + ("duration",), *DURATIONS), (W + ("timeout",), *DURATIONS), (T + ("stop_grace",), *DURATIONS),
    (T + ("ready", "timeout"), *DURATIONS),
    (W + ("connections",), [2, 100000, [2, 100000], ["${two}", 4], "${two}"], [0, 100001, [], [2, 2], "2", [0], 1.5, {}]),
    (W + ("threads",), [1, 2, "${two}"], [0, 1025, "2", 1.5]),
    (W + ("request", "method"), ["GET", "M-SEARCH", "A_B"], ["", "get", "X1", "A B", "CONNECT", 1]),
    (W + ("request", "path"), ["/", "/a?b=%20&c=[1]", "${where}"], ["", "a", "/a b", "/a#b", "/ä", 1]),
    (W + ("request", "headers"), [{}, {"X-a_1": "b"}], [{"": "a"}, {"A B": "c"}, {"a": 1}, {"a=b": "c"}, []]),
    (W + ("request", "body"), [], ["the second one"]),
    (W + ("expect", "body_bytes"), [0, 1 << 50, "${port}"], [-1, (1 << 50) + 1, "1", 1.5]),
    (C + ("expect", "status"), [100, 599, "${status}"], [99, 600, "200"]),
    (C + ("expect", "body"), ["", "a", {"exact": ""}, {"contains": "a"}], [{}, {"contains": ""}, {"exact": "a", "contains": "a"}, 1]),
    (C + ("expect", "headers"), [{}, {"A": {"contains": "b"}}], [{"": "a"}, {"A B": "c"}, {"a": 1}]),
    (T + ("cpus",), ["0", "0-3,8"], ["", "a", "0-", "0,", "1 2"]),
    (T + ("port",), [1, 65535, "${port}"], [0, 65536, "80", 1.5]),
    (T + ("ready",), [{"tcp": 1}, {"http": "/", "port": 1}, {}], [{"tcp": 1, "port": 1}, {"tcp": 1, "http": "/"}, {"http": "x"}, []]),
    (T + ("env",), [{}, {"A_1": ""}], [{"1A": "x"}, {"A": 1}, {"A-B": "x"}]),
    (T + ("labels",), [{}, {"a.b/c-d": "x"}], [{"": "x"}, {"a b": "x"}, {"a": ""}, {"a": 1}, ["a=b"]]),
    (T + ("start",), [["a", ""]], ["a", [], [1]]),
    (T + ("build",), [[["a"]]], [[], ["a"], "a", [[]]]),
    (("gates", "errors"), [0, 10**12, "${two}"], [-1, 10**12 + 1, 1.5]),
    (("gates", "foreign_cpu"), [0.1, 4096, "${two}"], [0, 4097, -1, "1"]),
    (("gates", "generator_cpu"), [0.1, 1], [0, 1.1, "1"]),
    (("gates", "retries"), [0, 100, "${two}"], [-1, 101, 0.5]),
    (("roles", "load", "count"), [1, 2, "${two}"], [0, 65, "2"]),
    (("vars", "more"), ["x", 1, 1.5, True], [None, [], {}]),
]


def load(path):
    text = open(path, encoding="utf-8").read()
    plain = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda m: m.group(1) or " ", text, flags=re.S)
    return json.loads(plain)


def is_type(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def faults(schema, value, root, path="$"):
    """What the schema has against the value; only the keywords it uses, and it may use no others."""
    unknown = set(schema) - USED
    assert not unknown, f"keyword {unknown} is not known to this test"
    found = []
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            target = target[part]
        found += faults(target, value, root, path)
    types = schema.get("type", [])
    if types and not any(is_type(value, t) for t in ([types] if isinstance(types, str) else types)):
        return found + [f"{path}: is no {types}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: is none of {schema['enum']}")
    if "anyOf" in schema and all(faults(s, value, root, path) for s in schema["anyOf"]):
        found.append(f"{path}: fits no alternative")
    if "not" in schema and not faults(schema["not"], value, root, path):
        found.append(f"{path}: fits what it must not")
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1 << 30):
            found.append(f"{path}: length")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            found.append(f"{path}: pattern {schema['pattern']}")
    if is_type(value, "number"):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value) or \
                value <= schema.get("exclusiveMinimum", value - 1):
            found.append(f"{path}: range")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 1 << 30):
            found.append(f"{path}: number of elements")
        if schema.get("uniqueItems") and len({json.dumps(v) for v in value}) != len(value):
            found.append(f"{path}: an element is there twice")
        for i, v in enumerate(value):
            found += faults(schema.get("items", {}), v, root, f"{path}[{i}]")
    if isinstance(value, dict):
        found += [f"{path}.{k}: is missing" for k in schema.get("required", []) if k not in value]
        if not schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", 1 << 30):
            found.append(f"{path}: number of members")
        for k, v in value.items():
            if "propertyNames" in schema:
                found += faults(schema["propertyNames"], k, root, f"{path}.{k} (key)")
            other = schema.get("additionalProperties", {})
            inner = schema.get("properties", {}).get(k, other)
            found += [f"{path}.{k}: unknown key"] if inner is False else faults(inner, v, root, f"{path}.{k}")
    return found


def closed_objects(schema, value, root, steps=()):
    """(path in the value, keys) of every object there whose keys the schema lists."""
    if "$ref" in schema:
        yield from closed_objects(root["definitions"][schema["$ref"].rsplit("/", 1)[1]], value, root, steps)
    for alternative in schema.get("anyOf", []):
        if not faults(alternative, value, root):
            yield from closed_objects(alternative, value, root, steps)
    if isinstance(value, list):
        for i, v in enumerate(value):
            yield from closed_objects(schema.get("items", {}), v, root, steps + (i,))
    if isinstance(value, dict):
        if schema.get("additionalProperties") is False:
            yield steps, set(schema["properties"])
        for k, v in value.items():
            inner = schema.get("properties", {}).get(k, schema.get("additionalProperties", {}))
            if isinstance(inner, dict):
                yield from closed_objects(inner, v, root, steps + (k,))


def plan(program, path):
    return subprocess.run([program, "plan", path], capture_output=True, text=True)


def main():
    program, schema_path, full_path, *examples = sys.argv[1:]
    root = load(schema_path)
    bad = []
    for path in [full_path] + examples:
        bad += [f"{path}: {f}" for f in faults(root, load(path), root)]
        run = plan(program, path)
        if run.returncode != 0:
            bad.append(f"{path}: refused: {run.stderr}")
    full = load(full_path)
    seen = set()
    for steps, keys in closed_objects(root, full, root):
        probe = copy.deepcopy(full)
        inner = probe
        for s in steps:
            inner = inner[s]
        inner["qqqqqqqqqqqqqqqqqqqq"] = 1
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump(probe, f)
            f.flush()
            run = plan(program, f.name)
        said = re.search(r"qqqqqqqqqqqqqqqqqqqq: unknown key; allowed: (.*)", run.stderr)
        if run.returncode != 2 or not said or set(said.group(1).split(", ")) != keys:
            bad.append(f"{steps}: schema has {sorted(keys)}, program says {run.stderr}")
        seen |= keys
    full["vars"].update(square="latin-square", fresh="round", two=2, status=200)
    tried = 0
    for steps, right, wrong in VALUES:
        for value in right + wrong:
            probe = copy.deepcopy(full)
            inner = probe
            for s in steps[:-1]:
                inner = inner[s]
            inner[steps[-1]] = value
            with tempfile.TemporaryDirectory() as place:
                shutil.copy(full_path, place)  # what its `files` name
                with open(os.path.join(place, "probe.json"), "w") as f:
                    json.dump(probe, f)
                run = plan(program, f.name)
            found = faults(root, probe, root)
            tried += 1
            if bool(found) != (value in wrong) or (run.returncode != 0) != (value in wrong):
                bad.append(f"{steps} = {value!r}: the schema says {found}, the program {run.stderr}")
    for name in ("start", "cpus", "body_bytes", "contains", "warmup", "retries", "fresh_process", "count", "timeout"):
        if name not in seen:
            bad.append(f"no object with {name} was tried: the full example is not full")
    if not faults(root, {"name": "x"}, root):
        bad.append("the schema accepts a file without targets")
    print("\n".join(bad) or f"{1 + len(examples)} examples, {len(seen)} keys, {tried} values: schema and program agree")
    return 1 if bad else 0


sys.exit(main())
