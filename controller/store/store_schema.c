#include "common/buf.h"
#include "controller/store/store_db.h"

/* Of a generator's result, as the first release had them; `known` is what it said of its figures. */
#define LOADS_COLUMNS(known)                                                                                 \
    " id INTEGER PRIMARY KEY,"                                                                               \
    " generator TEXT NOT NULL,"                                                                              \
    " window_start_ns INTEGER NOT NULL,"                                                                     \
    " window_end_ns INTEGER NOT NULL,"                                                                       \
    " scheduled INTEGER NOT NULL, ok INTEGER NOT NULL, failed INTEGER NOT NULL,"                             \
    " in_flight INTEGER NOT NULL, never_sent INTEGER NOT NULL,"                                              \
    " warmup_scheduled INTEGER NOT NULL, warmup_ok INTEGER NOT NULL, warmup_failed INTEGER NOT NULL,"        \
    " warmup_in_flight INTEGER NOT NULL, warmup_never_sent INTEGER NOT NULL,"                                \
    " requests_sent INTEGER" known ", responses INTEGER" known ", body_bytes INTEGER" known ","              \
    " wire_in_bytes INTEGER" known ", wire_out_bytes INTEGER" known ", short_bodies INTEGER" known ","       \
    " unanswered INTEGER" known ","                                                                          \
    " latency_hist BLOB NOT NULL," /* text: base64 of HdrHistogram V2, compressed */                         \
    " cpu_user_ns INTEGER" known ", cpu_system_ns INTEGER" known ", rss_bytes_max INTEGER" known ","         \
    " raw TEXT NOT NULL) STRICT;"
#define LOADS_1 LOADS_COLUMNS(" NOT NULL")
#define LOADS_3 LOADS_COLUMNS("")

/*
 * What the first release wrote. It never changes: a new file begins as one of schema 1 and takes every step
 * below, so that it cannot differ from one that was brought up. Times are ns: *_wall_ns since 1970 UTC,
 * others monotonic on the host that measured. NULL = not known.
 */
static const char schema_1[] =
    "CREATE TABLE jobs ("
    " id TEXT PRIMARY KEY,"
    " name TEXT NOT NULL,"
    " state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),"
    " mode TEXT NOT NULL CHECK (mode IN ('run', 'verify')),"
    " cause TEXT NOT NULL,"
    " exit_code INTEGER NOT NULL,"
    " placement TEXT NOT NULL CHECK (placement IN ('split-hosts', 'split-cpus', 'shared')),"
    " created_wall_ns INTEGER NOT NULL,"
    " started_wall_ns INTEGER NOT NULL," /* 0 = not yet */
    " ended_wall_ns INTEGER NOT NULL,"   /* 0 = not yet */
    " experiment_json TEXT NOT NULL,"    /* resolved, byte for byte */
    " base_dir TEXT NOT NULL,"
    " windows_total INTEGER NOT NULL) STRICT;"

    /* A host's part in a job. Another machine (or the same after a reboot) is another row: what was measured
     * before keeps its own. The newest row of (job, role, ordinal) counts. */
    "CREATE TABLE hosts ("
    " id INTEGER PRIMARY KEY,"
    " job TEXT NOT NULL REFERENCES jobs (id),"
    " role TEXT NOT NULL,"
    " ordinal INTEGER NOT NULL,"
    " agent TEXT NOT NULL,"
    " hostname TEXT NOT NULL,"
    " boot_id TEXT NOT NULL,"
    " kernel TEXT NOT NULL,"
    " os TEXT NOT NULL,"
    " cpu_model TEXT NOT NULL,"
    " address TEXT NOT NULL,"
    " cpus INTEGER NOT NULL,"
    " cpu_list TEXT NOT NULL,"
    " memory_bytes INTEGER NOT NULL,"
    " labels TEXT NOT NULL," /* key=value, one a line */
    " put_wall_ns INTEGER NOT NULL) STRICT;"
    "CREATE INDEX hosts_by_part ON hosts (job, role, ordinal, id);"

    /* One start of a target; with fresh_process window there are several in a round. */
    "CREATE TABLE target_runs ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " job TEXT NOT NULL REFERENCES jobs (id),"
    " target INTEGER NOT NULL,"
    " round INTEGER NOT NULL,"
    " slot INTEGER NOT NULL,"
    " ok INTEGER NOT NULL,"
    " error TEXT NOT NULL,"
    " failed_check TEXT NOT NULL,"
    " startup_ns INTEGER NOT NULL,"
    " rss_before_bytes INTEGER NOT NULL,"
    " rss_after_bytes INTEGER," /* NULL until it has ended */
    " started_wall_ns INTEGER NOT NULL,"
    " placement TEXT NOT NULL," /* of the job at that moment */
    " log BLOB) STRICT;"
    "CREATE INDEX target_runs_by_job ON target_runs (job);"

    /* The machines a target run was measured on. */
    "CREATE TABLE target_run_hosts ("
    " run INTEGER NOT NULL REFERENCES target_runs (id),"
    " host INTEGER NOT NULL REFERENCES hosts (id),"
    " PRIMARY KEY (run, host)) STRICT, WITHOUT ROWID;"

    /* A generator's result, complete. */
    "CREATE TABLE loads (" LOADS_1 "CREATE TABLE load_errors ("
    " load INTEGER NOT NULL REFERENCES loads (id),"
    " position INTEGER NOT NULL,"
    " phase TEXT NOT NULL,"
    " cause TEXT NOT NULL,"
    " count INTEGER NOT NULL,"
    " sample TEXT NOT NULL,"
    " PRIMARY KEY (load, position)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE load_statuses ("
    " load INTEGER NOT NULL REFERENCES loads (id),"
    " position INTEGER NOT NULL,"
    " status INTEGER NOT NULL,"
    " count INTEGER NOT NULL,"
    " PRIMARY KEY (load, position)) STRICT, WITHOUT ROWID;"

    /* Every attempt of every window. A window is present once: at most one attempt of it is final. */
    "CREATE TABLE attempts ("
    " id INTEGER PRIMARY KEY,"
    " job TEXT NOT NULL REFERENCES jobs (id),"
    " window INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL CHECK (attempt > 0),"
    " run INTEGER REFERENCES target_runs (id),"
    " valid INTEGER NOT NULL CHECK (valid IN (0, 1)),"
    " final INTEGER NOT NULL CHECK (final IN (0, 1)),"
    " gate TEXT NOT NULL,"
    " reason TEXT NOT NULL,"
    " started_wall_ns INTEGER NOT NULL,"
    " load INTEGER REFERENCES loads (id),"
    " server_cpu_s REAL,"
    " server_cpu_cores REAL,"
    " generator_cpu_s REAL,"
    " generator_cpu_cores REAL,"
    " foreign_cpu_cores_server REAL,"
    " foreign_cpu_cores_load REAL,"
    " own_cpu_cores REAL,"
    " dead_ns INTEGER NOT NULL,"
    " CHECK (final OR NOT valid),"
    " UNIQUE (job, window, attempt)) STRICT;"
    "CREATE UNIQUE INDEX attempts_final ON attempts (job, window) WHERE final;"

    /* Results that came after their controller had gone: kept and counted, never part of a figure. */
    "CREATE TABLE late_events ("
    " id INTEGER PRIMARY KEY,"
    " agent TEXT NOT NULL,"
    " incarnation TEXT NOT NULL," /* 64 random bits, hexadecimal */
    " number INTEGER NOT NULL,"
    " answers INTEGER NOT NULL,"
    " job TEXT NOT NULL," /* as the agent says: it need not exist here */
    " kind TEXT NOT NULL,"
    " code TEXT NOT NULL,"
    " text TEXT NOT NULL,"
    " log BLOB,"
    " load INTEGER REFERENCES loads (id),"
    " came_wall_ns INTEGER NOT NULL,"
    " UNIQUE (agent, incarnation, number)) STRICT;"
    "CREATE INDEX late_events_by_job ON late_events (job);"

    "CREATE TABLE lines ("
    " job TEXT NOT NULL REFERENCES jobs (id),"
    " number INTEGER NOT NULL," /* 1, 2, ... */
    " said_wall_ns INTEGER NOT NULL,"
    " text TEXT NOT NULL,"
    " PRIMARY KEY (job, number)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE tokens ("
    " hash BLOB PRIMARY KEY,"
    " role TEXT NOT NULL CHECK (role IN ('agent', 'operator')),"
    " expires_wall_ns INTEGER NOT NULL,"
    " used_wall_ns INTEGER NOT NULL DEFAULT 0," /* 0 = not yet */
    " used_by TEXT NOT NULL DEFAULT '') STRICT;"

    "CREATE TABLE certificates ("
    " serial TEXT PRIMARY KEY,"
    " name TEXT NOT NULL,"
    " role TEXT NOT NULL CHECK (role IN ('agent', 'operator', 'controller')),"
    " issued_wall_ns INTEGER NOT NULL,"
    " revoked_wall_ns INTEGER NOT NULL DEFAULT 0) STRICT;" /* 0 = good */
    "CREATE INDEX certificates_by_name ON certificates (name);"

    "PRAGMA application_id = 0x53504c42;";

/* A figure that the generator does not know is NULL: SQLite takes a NOT NULL back only with the whole table.
 */
static const char figures_may_be_unknown[] =
    "CREATE TABLE loads_3 (" LOADS_3 "INSERT INTO loads_3 SELECT * FROM loads;"
    "DROP TABLE loads;"
    "ALTER TABLE loads_3 RENAME TO loads;";

/* Each line stands alone. */
static const char schema_4[] =
    "ALTER TABLE jobs ADD COLUMN nonce TEXT NOT NULL DEFAULT '';"     /* of its SUBMIT; '' = it had none */
    "ALTER TABLE tokens ADD COLUMN made_by TEXT NOT NULL DEFAULT '';" /* '' = not known */
    "ALTER TABLE tokens ADD COLUMN made_wall_ns INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE tokens ADD COLUMN revoked_wall_ns INTEGER NOT NULL DEFAULT 0;" /* 0 = good */
    "ALTER TABLE late_events ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;"      /* about, of what it says */
    "CREATE TABLE late_refused (" /* late results that were not kept */
    " agent TEXT PRIMARY KEY,"
    " count INTEGER NOT NULL,"
    " last_wall_ns INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "ALTER TABLE jobs ADD COLUMN run INTEGER NOT NULL DEFAULT 1;"; /* grows with each resume */

/* [version]: what makes a file of that schema one of the next, but for the columns of new figures; NULL:
 * nothing else. */
static const char *const steps[STORE_SCHEMA_VERSION] = {
    [0] = schema_1,
    [1] = "ALTER TABLE hosts ADD COLUMN libraries TEXT NOT NULL DEFAULT '';", /* '' = not known */
    [2] = figures_may_be_unknown,
    [3] = schema_4,
};

/* The column of each figure; those of schema 1 stand in its text. */
static const struct figure_column {
    const char *table;
    const char *name;
    const char *type;
    unsigned since;
} figure_columns[] = {
#define X(NAME, name, number, since, ...) {"loads", #name, "INTEGER", since},
    FIGURE_LOAD_LIST(X)
#undef X
#define X(NAME, name, number, since, ...) {"attempts", "server_" #name, "INTEGER", since},
        FIGURE_TREE_LIST(X)
#undef X
#define X(name, since, ...) {"attempts", #name, "REAL", since},
            FIGURE_WINDOW_LIST(X)
#undef X
};

#define SQL_BYTES_MAX (64u * 1024u)

char *store_upgrade_sql(unsigned version)
{
    struct buf sql;
    buf_init(&sql, SQL_BYTES_MAX);
    must(buf_append_text(&sql, steps[version] != NULL ? steps[version] : "") == ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(figure_columns); i++) {
        const struct figure_column *f = &figure_columns[i];
        if (f->since > 1 && f->since == version + 1)
            must(buf_printf(&sql, "ALTER TABLE %s ADD COLUMN %s %s;", f->table, f->name, f->type) == ERR_OK);
    }
    must(buf_printf(&sql, "PRAGMA user_version = %u;", version + 1) == ERR_OK);
    return buf_take(&sql);
}

/* What a table of an older schema lacks, but for figures. A view has no rowid of its own. */
static const struct disguise {
    unsigned since;
    const char *sql;
} disguises[] = {
    {2, "CREATE TEMP VIEW hosts AS SELECT *, '' AS libraries FROM main.hosts;"},
    {4, "CREATE TEMP VIEW jobs AS SELECT rowid, *, '' AS nonce, 1 AS run FROM main.jobs;"},
    {4, "CREATE TEMP VIEW tokens AS SELECT *, '' AS made_by, 0 AS made_wall_ns, 0 AS revoked_wall_ns"
        " FROM main.tokens;"},
};

/* Temporary views, which SQLite finds before the file's own tables of their names. */
char *store_disguise_sql(unsigned version)
{
    static const char *const tables[] = {"loads", "attempts"};
    struct buf sql;
    buf_init(&sql, SQL_BYTES_MAX);
    must(buf_append_text(&sql, "PRAGMA temp_store = MEMORY;") == ERR_OK); /* there may be nowhere to write */
    for (size_t i = 0; i < ARRAY_LEN(disguises); i++)
        if (version < disguises[i].since)
            must(buf_append_text(&sql, disguises[i].sql) == ERR_OK);
    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        must(buf_printf(&sql, "CREATE TEMP VIEW %s AS SELECT *", tables[t]) == ERR_OK);
        for (size_t i = 0; i < ARRAY_LEN(figure_columns); i++)
            if (figure_columns[i].since > version && strcmp(figure_columns[i].table, tables[t]) == 0)
                must(buf_printf(&sql, ", NULL AS %s", figure_columns[i].name) == ERR_OK);
        must(buf_printf(&sql, " FROM main.%s;", tables[t]) == ERR_OK);
    }
    return buf_take(&sql);
}
