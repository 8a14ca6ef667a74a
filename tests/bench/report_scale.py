"""Makes a large store of a small one: report_scale.py STORE ROUNDS JOBS

Of the newest job's real attempts, runs and hosts it makes a job "large" of ROUNDS rounds, 2 targets and 50 numbers of
connections, every window with a copy of a real result (its raw output, histogram and all), and JOBS finished jobs of
20 windows without results.
"""
import itertools
import json
import sqlite3
import sys

CONNECTIONS = range(1, 51)
TARGETS = 2

store, rounds, jobs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
db = sqlite3.connect(store)
db.row_factory = sqlite3.Row
db.execute("PRAGMA synchronous = OFF")


def rows(sql, *values):
    return [dict(r) for r in db.execute(sql, values)]


def insert(table, row):
    """The new row's id, for tables that have one."""
    names = ", ".join(row)
    return db.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", [*row.values()]).lastrowid


def without_id(row, **changes):
    return {k: v for k, v in row.items() if k != "id"} | changes


job = rows("SELECT * FROM jobs ORDER BY created_wall_ns DESC LIMIT 1")[0]
old = job["id"]
attempts = rows("SELECT * FROM attempts WHERE job = ? AND valid", old)
loads = {a["id"]: rows("SELECT * FROM loads WHERE id = ?", a["load"])[0] for a in attempts}
statuses = {a["id"]: rows("SELECT * FROM load_statuses WHERE load = ?", a["load"]) for a in attempts}
runs = rows("SELECT * FROM target_runs WHERE job = ? ORDER BY id", old)

experiment = json.loads(job["experiment_json"])
experiment["workloads"] = experiment["workloads"][:1]
experiment["workloads"][0]["connections"] = [*CONNECTIONS]
experiment["design"]["rounds"] = rounds
windows = rounds * TARGETS * len(CONNECTIONS)
text = json.dumps(experiment)
insert("jobs", job | {"id": "large", "experiment_json": text, "windows_total": windows,
                      "created_wall_ns": job["created_wall_ns"] + 10**12})
hosts = [insert("hosts", without_id(h, job="large")) for h in rows("SELECT * FROM hosts WHERE job = ?", old)]
source = itertools.cycle(attempts)
window = 0
for round_number in range(rounds):
    for slot in range(TARGETS):
        run = insert("target_runs", without_id(runs[slot], job="large", target=slot, round=round_number, slot=slot))
        for host in hosts:
            insert("target_run_hosts", {"run": run, "host": host})
        for _ in CONNECTIONS:
            a = next(source)
            load = insert("loads", without_id(loads[a["id"]]))
            for s in statuses[a["id"]]:
                insert("load_statuses", s | {"load": load})
            insert("attempts", without_id(a, job="large", window=window, attempt=1, run=run, load=load))
            window += 1

for number in range(jobs):
    name = f"job-{number:05}"
    insert("jobs", job | {"id": name, "experiment_json": text, "windows_total": 20,
                          "created_wall_ns": job["created_wall_ns"] - number - 1})
    for w in range(20):
        insert("attempts", without_id(attempts[0], job=name, window=w, attempt=1, run=None, load=None))
db.commit()
db.close()
print(f"{windows} windows in one job, {jobs} jobs of 20 windows")
