#include "agent/process/supervisor_msg.h"

#include "common/mem.h"

/* A supervisor runs the very file its agent runs, but a wrong descriptor could be anything. */
#define MSG_MAGIC 0x73625301u

static enum err put(struct buf *b, const void *data, size_t len)
{
    return buf_append(b, data, len);
}

static enum err put_text(struct buf *b, const char *text)
{
    if (text == NULL)
        text = "";
    uint32_t len = (uint32_t)strnlen(text, SUPERVISOR_MSG_BYTES_MAX);
    enum err e = put(b, &len, sizeof len);
    return e != ERR_OK ? e : put(b, text, len + 1u);
}

static enum err put_vector(struct buf *b, char *const *vector, uint32_t count_max)
{
    uint32_t count = 0;
    size_t bytes = 0;
    for (; vector != NULL && vector[count] != NULL; count++) {
        bytes += strlen(vector[count]) + 1;
        if (count == count_max || bytes > LIMIT_COMMAND_BYTES)
            return ERR_TOO_BIG;
    }
    enum err e = put(b, &count, sizeof count);
    for (uint32_t i = 0; e == ERR_OK && i < count; i++)
        e = put_text(b, vector[i]);
    return e;
}

/* The fixed part: every number, whatever the type. A packet is read by one process that knows the layout. */
struct fixed {
    uint32_t magic;
    uint32_t type;
#define X(wire, own, name) wire name;
    SUPERVISOR_NUMBER_LIST(X)
#undef X
};

enum err supervisor_msg_encode(const struct supervisor_msg *m, struct buf *out)
{
    struct fixed f = {
        .magic = MSG_MAGIC,
        .type = m->type,
#define X(wire, own, name) .name = (wire)m->name,
        SUPERVISOR_NUMBER_LIST(X)
#undef X
    };
    enum err e = put(out, &f, sizeof f);
    if (e == ERR_OK)
        e = put_text(out, m->text);
    if (m->type != SUPERVISOR_START || e != ERR_OK)
        return e;
    const char *const texts[] = {m->dir, m->cpus, m->leaf, m->log_path, m->out_path};
    for (size_t i = 0; e == ERR_OK && i < ARRAY_LEN(texts); i++)
        e = put_text(out, texts[i]);
    if (e == ERR_OK)
        e = put_vector(out, m->argv, LIMIT_ARGV_COUNT);
    if (e == ERR_OK)
        e = put_vector(out, m->env, LIMIT_ENV_COUNT);
    return e;
}

struct cursor {
    const char *at;
    size_t left;
};

static bool get(struct cursor *c, void *out, size_t len)
{
    if (c->left < len)
        return false;
    memcpy(out, c->at, len);
    c->at += len;
    c->left -= len;
    return true;
}

static bool get_text(struct cursor *c, const char **out)
{
    uint32_t len = 0;
    if (!get(c, &len, sizeof len) || c->left <= len || c->at[len] != '\0' || strlen(c->at) != len)
        return false;
    *out = c->at;
    c->at += len + 1u;
    c->left -= len + 1u;
    return true;
}

static bool get_vector(struct cursor *c, char ***out, uint32_t count_max)
{
    uint32_t count = 0;
    if (!get(c, &count, sizeof count) || count > count_max)
        return false;
    char **vector = mem_zalloc(count + 1u, sizeof *vector);
    *out = vector;
    for (uint32_t i = 0; i < count; i++) {
        const char *text = NULL;
        if (!get_text(c, &text))
            return false;
        vector[i] = mem_strdup(text);
    }
    return true;
}

static bool get_start(struct cursor *c, struct supervisor_msg *m)
{
    const char **const texts[] = {&m->dir, &m->cpus, &m->leaf, &m->log_path, &m->out_path};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (!get_text(c, texts[i]))
            return false;
    }
    return get_vector(c, &m->argv, LIMIT_ARGV_COUNT) && get_vector(c, &m->env, LIMIT_ENV_COUNT);
}

enum err supervisor_msg_decode(const void *data, size_t len, struct supervisor_msg *m)
{
    struct cursor c = {.at = data, .left = len};
    struct fixed f;
    *m = (struct supervisor_msg){0};
    if (!get(&c, &f, sizeof f) || f.magic != MSG_MAGIC || f.type < SUPERVISOR_START ||
        f.type > SUPERVISOR_EXITED || f.error >= ERR_COUNT)
        return ERR_INVALID;
    *m = (struct supervisor_msg)
    {
        .type = (enum supervisor_msg_type)f.type,
#define X(wire, own, name) .name = (own)f.name,
        SUPERVISOR_NUMBER_LIST(X)
#undef X
    };
    bool good = get_text(&c, &m->text);
    if (good && m->type == SUPERVISOR_START)
        good = get_start(&c, m);
    if (good && c.left == 0)
        return ERR_OK;
    supervisor_msg_fini(m);
    return ERR_INVALID;
}

static void free_vector(char ***vector)
{
    for (char **p = *vector; p != NULL && *p != NULL; p++)
        free(*p);
    free(*vector);
    *vector = NULL;
}

void supervisor_msg_fini(struct supervisor_msg *m)
{
    free_vector(&m->argv);
    free_vector(&m->env);
}
