/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_summary.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#define HELD        4
#define READ_BYTES  65536
#define MOST_POINTS 2000 /* turns shown in a chart: the newest */
#define MOST_NAMES  500

struct summary {
    char *path;
    ino_t ino;
    int fd;
    struct buf line; /* not whole yet */
    uint64_t used_ms, bytes;
    uint64_t turns, calls, refused, tokens_in, tokens_out, provider_in, provider_out, cached;
    json_t *tools, *commands, *capsules, *points;
};

struct ui_summaries {
    pthread_mutex_t lock;
    struct summary held[HELD];
};

struct ui_summaries *
ui_summaries_new (void)
{
    struct ui_summaries *s = x_new0 (struct ui_summaries);
    pthread_mutex_init (&s->lock, NULL);
    for (size_t i = 0; i < HELD; i++)
        s->held[i].fd = -1;
    return s;
}

static void
summary_clear (struct summary *m)
{
    if (m->fd >= 0)
        close (m->fd);
    free (m->path);
    buf_free (&m->line);
    json_decref (m->tools);
    json_decref (m->commands);
    json_decref (m->capsules);
    json_decref (m->points);
    *m = (struct summary){ .fd = -1 };
}

void
ui_summaries_free (struct ui_summaries *s)
{
    if (! s)
        return;
    for (size_t i = 0; i < HELD; i++)
        summary_clear (&s->held[i]);
    pthread_mutex_destroy (&s->lock);
    free (s);
}

/* --- lines --- */

static void
count_name (json_t *names, const char *name)
{
    if (! name || (! json_object_get (names, name) && json_object_size (names) >= MOST_NAMES))
        return;
    json_int_t so_far = json_integer_value (json_object_get (names, name));
    json_object_set_new (names, name, json_integer (so_far + 1));
}

/* As the session itself counts, and mur trace show; what the provider counted stands beside it. */
static void
take_inference (struct summary *m, const json_t *event)
{
    uint64_t turn = m->turns, n[5] = { 0 };
    static const char *const keys[] = { "input_tokens", "output_tokens", "input_tokens_actual",
                                        "output_tokens_actual", "cached_tokens" };
    bool has_failed = str_eq (json_get_string (event, "decision"), "error");
    if (has_failed && json_object_get (event, "max_output_tokens"))
        return;
    (void)json_get_u64 (event, "turn", &turn);
    for (size_t i = 0; i < ARRAY_LEN (keys); i++)
        (void)json_get_u64 (event, keys[i], &n[i]);
    m->turns += ! json_object_get (event, "origin") &&
                (! has_failed || json_object_get (event, "input_tokens"));
    m->tokens_in += n[0];
    m->tokens_out += n[1];
    m->provider_in += n[2];
    m->provider_out += n[3];
    m->cached += n[4];
    if (json_array_size (m->points) >= MOST_POINTS)
        json_array_remove (m->points, 0);
    json_array_append_new (
        m->points, json_pack ("[I,I,I]", (json_int_t)turn, (json_int_t)n[0], (json_int_t)n[1]));
}

static void
take_delegation (struct summary *m, const json_t *event)
{
    count_name (m->capsules, json_get_string (event, "capsule"));
}

static void
take_refusal (struct summary *m, const json_t *event)
{
    (void)event;
    m->refused++;
}

static const struct {
    const char *type;
    void (*take) (struct summary *m, const json_t *event);
} taken[] = {
    { "inference", take_inference },           { "delegation_start", take_delegation },
    { "call_denied", take_refusal },           { "network_refused", take_refusal },
    { "command_refused", take_refusal },       { "tool_input_refused", take_refusal },
    { "protected_path_denied", take_refusal }, { "workdir_path_refused", take_refusal },
    { "spend_ceiling_reached", take_refusal }, { "task_rejected", take_refusal },
    { "control_refused", take_refusal },
};

/* Most lines are calls, and only their name is wanted: it stands before anything a model wrote. A
 * name with an escape in it is left to the parser. Owned; NULL: it was not found so. */
static char *
plain_name (const char *line, size_t len, const char *key)
{
    _cleanup_free_ char *opening = x_asprintf ("\"%s\":\"", key);
    const char *at = memmem (line, len, opening, strlen (opening));
    at = at ? at + strlen (opening) : NULL;
    const char *end = at ? memchr (at, '"', (size_t)(line + len - at)) : NULL;
    return end && ! memchr (at, '\\', (size_t)(end - at)) ? x_strndup (at, (size_t)(end - at))
                                                          : NULL;
}

static void
take_call (struct summary *m, const char *line, size_t len, const char *key, json_t *names)
{
    m->calls++;
    _cleanup_free_ char *name = plain_name (line, len, key);
    _cleanup_json_ json_t *event = name ? NULL : json_loadb (line, len, 0, NULL);
    count_name (names, name ? name : json_get_string (event, key));
}

static const struct {
    const char *type, *key;
    bool is_command;
} calls[] = { { "tool_call", "tool_name", false },
              { "shell", "binary", true },
              { "shell_detached", "binary", true } };

static void
take_line (struct summary *m, const char *line, size_t len)
{
    static const char opening[] = "{\"event_type\":\"";
    size_t skip = sizeof opening - 1;
    if (len < skip || memcmp (line, opening, skip) != 0)
        return;
    const char *type = line + skip, *quote = memchr (type, '"', len - skip);
    size_t type_len = quote ? (size_t)(quote - type) : 0;
    for (size_t i = 0; i < ARRAY_LEN (calls); i++)
        if (strlen (calls[i].type) == type_len && memcmp (type, calls[i].type, type_len) == 0) {
            take_call (m, line, len, calls[i].key, calls[i].is_command ? m->commands : m->tools);
            return;
        }
    for (size_t i = 0; i < ARRAY_LEN (taken); i++) {
        size_t name = strlen (taken[i].type);
        if (name != type_len || memcmp (type, taken[i].type, name) != 0)
            continue;
        _cleanup_json_ json_t *event = json_loadb (line, len, 0, NULL);
        if (event)
            taken[i].take (m, event);
        return;
    }
}

static void
read_on (struct summary *m)
{
    char piece[READ_BYTES];
    for (ssize_t n; (n = read (m->fd, piece, sizeof piece)) > 0;) {
        m->bytes += (uint64_t)n;
        for (const char *at = piece, *end = piece + n; at < end;) {
            const char *stop = memchr (at, '\n', (size_t)(end - at));
            size_t len = (size_t)((stop ? stop : end) - at);
            if (! stop || m->line.len)
                buf_append (&m->line, at, len);
            if (! stop)
                break;
            take_line (m, m->line.len ? m->line.data : at, m->line.len ? m->line.len : len);
            buf_truncate (&m->line, 0);
            at = stop + 1;
        }
    }
}

/* --- asked --- */

static json_t *
summary_json (const struct summary *m)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = { { "turns", m->turns },
                    { "calls", m->calls },
                    { "refused", m->refused },
                    { "tokens_in", m->tokens_in },
                    { "tokens_out", m->tokens_out },
                    { "provider_in", m->provider_in },
                    { "provider_out", m->provider_out },
                    { "cached", m->cached } };
    json_t *answer = json_object ();
    for (size_t i = 0; i < ARRAY_LEN (numbers); i++)
        json_set_u64 (answer, numbers[i].key, numbers[i].value);
    json_object_set_new (answer, "tools", json_deep_copy (m->tools));
    json_object_set_new (answer, "commands", json_deep_copy (m->commands));
    json_object_set_new (answer, "capsules", json_deep_copy (m->capsules));
    json_object_set_new (answer, "points", json_deep_copy (m->points));
    return answer;
}

static struct summary *
summary_of (struct ui_summaries *s, const char *path, int fd, const struct stat *st)
{
    struct summary *place = &s->held[0];
    for (size_t i = 0; i < HELD; i++) {
        if (str_eq (s->held[i].path, path)) {
            place = &s->held[i];
            break;
        }
        if (s->held[i].used_ms < place->used_ms)
            place = &s->held[i];
    }
    bool is_same = str_eq (place->path, path) && place->ino == st->st_ino &&
                   (uint64_t)st->st_size >= place->bytes;
    if (is_same) {
        close (fd);
        return place;
    }
    summary_clear (place);
    *place = (struct summary){ .path = x_strdup (path),
                               .ino = st->st_ino,
                               .fd = fd,
                               .tools = json_object (),
                               .commands = json_object (),
                               .capsules = json_object (),
                               .points = json_array () };
    return place;
}

json_t *
ui_summary (struct ui_summaries *s, const char *path)
{
    struct stat st;
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat (fd, &st) < 0 || ! S_ISREG (st.st_mode)) {
        if (fd >= 0)
            close (fd);
        return NULL;
    }
    pthread_mutex_lock (&s->lock);
    struct summary *m = summary_of (s, path, fd, &st);
    m->used_ms = clock_monotonic_ms ();
    read_on (m);
    json_t *answer = summary_json (m);
    pthread_mutex_unlock (&s->lock);
    return answer;
}
