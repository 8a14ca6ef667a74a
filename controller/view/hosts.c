#include "controller/view/hosts.h"

#include "common/json_write.h"
#include "common/mem.h"

static void write_labels(struct json_writer *w, const struct msg_host *facts)
{
    json_write_object(w, "labels");
    for (size_t i = 0; i < facts->labels.count; i++) {
        const char *text = facts->labels.items[i], *equals = strchr(text, '=');
        char *key = equals ? mem_strndup(text, (size_t)(equals - text)) : mem_strdup(text);
        json_write_string(w, key, equals ? equals + 1 : "");
        free(key);
    }
    json_write_close(w);
}

static void write_host(struct json_writer *w, const struct fleet_info *a)
{
    const struct msg_host *facts = a->facts;
    json_write_object(w, NULL);
    json_write_string(w, "name", a->name);
    json_write_bool(w, "connected", a->connected);
    json_write_string(w, "state", fleet_state_name(a->state));
    json_write_string(w, "job", msg_text(a->job)[0] != '\0' ? a->job : NULL);
    json_write_string(w, "address", msg_text(facts->address)[0] ? facts->address : a->address);
    json_write_string(w, "hostname", msg_text(facts->hostname));
    json_write_string(w, "boot_id", msg_text(facts->boot_id));
    json_write_string(w, "cpu_model", msg_text(facts->cpu_model));
    json_write_u64(w, "cpus", facts->cpus);
    json_write_u64(w, "memory_bytes", facts->memory_bytes);
    json_write_string(w, "kernel", msg_text(facts->kernel));
    json_write_string(w, "os", msg_text(facts->os));
    json_write_string(w, "build", a->build);
    json_write_string(w, "libraries", msg_text(facts->libraries)[0] ? facts->libraries : NULL);
    write_labels(w, facts);
    json_write_close(w);
}

enum err hosts_write_json(const struct fleet *f, struct buf *out)
{
    struct json_writer w;
    json_write_init(&w, out, 0);
    json_write_object(&w, NULL);
    json_write_string(&w, "format", "splitbench-hosts/1");
    json_write_array(&w, "hosts");
    for (size_t i = 0; i < fleet_count(f); i++) {
        struct fleet_info a;
        fleet_get(f, i, &a);
        write_host(&w, &a);
    }
    json_write_close(&w);
    json_write_close(&w);
    return json_write_end(&w);
}
