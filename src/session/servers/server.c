/* SPDX-License-Identifier: Apache-2.0
 *
 * A server's life: made, opened in the era it speaks, looked at for drift, ended.
 */
#include "session/servers/server.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "mcp/definitions.h"
#include "mcp/post.h"
#include "session/servers/server_internal.h"
#include "session/servers/server_request.h"
#include "trace/lines/writer.h"

#include <string.h>

#define PROBE_MS  5000 /* for an answer to `server/discover` */
#define QUIET_MS  300  /* without news of its list */
#define PAGES_MAX 100

struct mcp_server *
server_new (const struct server_setup *setup)
{
    struct mcp_server *s = x_new0 (struct mcp_server);
    s->setup = *setup;
    s->way = setup->remote.url ? &server_by_http : &server_by_pipes;
    s->io.in_fd = s->io.out_fd = s->io.err_fd = s->io.wake_fd = s->io.pidfd = s->io.log_fd = -1;
    s->next_id = 1;
    pthread_mutex_init (&s->opening, NULL);
    pthread_mutex_init (&s->lock, NULL);
    condition_init (&s->changed);
    return s;
}

void
server_free (struct mcp_server *s)
{
    if (! s)
        return;
    pthread_mutex_lock (&s->lock);
    s->is_over = true;
    pthread_mutex_unlock (&s->lock);
    server_end (s);
    mcp_client_clear (&s->client);
    strv_free (&s->drift);
    strv_free (&s->unsendable);
    server_line_clear (&s->line);
    buf_free (&s->io.tail);
    free (s->io.death);
    pthread_cond_destroy (&s->changed);
    pthread_mutex_destroy (&s->lock);
    pthread_mutex_destroy (&s->opening);
    free (s);
}

/* --- the end --- */

void
server_end_begin (struct mcp_server *s)
{
    pthread_mutex_lock (&s->lock);
    if (s->state == SERVER_UP) {
        s->state = SERVER_ENDING;
        s->io.ending_ms = clock_monotonic_ms ();
        s->way->wake (s);
    }
    pthread_mutex_unlock (&s->lock);
}

void
server_end (struct mcp_server *s)
{
    server_end_begin (s);
    pthread_mutex_lock (&s->opening);
    pthread_mutex_lock (&s->lock);
    bool is_anew = s->state == SERVER_UP; /* who waited for its end has started it since */
    pthread_mutex_unlock (&s->lock);
    if (! is_anew)
        server_settle (s);
    pthread_mutex_unlock (&s->opening);
}

void
server_kill (struct mcp_server *s)
{
    pthread_mutex_lock (&s->lock);
    s->is_over = true;
    server_condemn (s, E_MCP_001, "the session ends");
    pthread_mutex_unlock (&s->lock);
}

/* --- opening --- */

const struct strv *
server_unsendable (const struct mcp_server *s)
{
    return &s->unsendable;
}

const struct mcp_client *
server_client (const struct mcp_server *s)
{
    return &s->client;
}

struct opening {
    struct mcp_server *s;
    struct cancel *cancel;
    uint64_t until_ms;
};

static uint64_t
left (const struct opening *o)
{
    uint64_t now = clock_monotonic_ms ();
    return now < o->until_ms ? o->until_ms - now : 1;
}

static bool
fail_version (const struct mcp_server *s, char *said, struct mur_error **err)
{
    _cleanup_free_ char *taken = said;
    return mur_fail (err, E_MCP_006, "server %s speaks %s, which murmur does not", s->setup.name,
                     taken);
}

/* *error: what it answered instead. */
static bool
open_legacy (struct opening *o, json_t **error, struct mur_error **err)
{
    struct mcp_server *s = o->s;
    struct server_ask ask = { .method = "initialize",
                              .params = mcp_client_initialize_params (&s->client),
                              .idle_ms = left (o),
                              .cap_ms = left (o),
                              .cancel = o->cancel,
                              .error = error };
    _cleanup_json_ json_t *result = server_request (s, &ask, err);
    char *said = NULL;
    if (! result)
        return false;
    if (! mcp_client_take_initialize (&s->client, result, &said))
        return fail_version (s, said, err);
    pthread_mutex_lock (&s->lock);
    server_send_call (s, 0, "notifications/initialized", NULL);
    pthread_mutex_unlock (&s->lock);
    return true;
}

/* Some answer whatever they do not know with an empty result. */
static bool
is_discovery (const json_t *result)
{
    const json_t *versions = json_object_get (result, "supportedVersions");
    return json_is_array (versions) && ! mcp_client_names_legacy (versions);
}

/* *error: what it answered instead; *status: of HTTP, when it failed with one. */
static bool
open_modern (struct opening *o, uint64_t wait_ms, json_t **error, int *status,
             struct mur_error **err)
{
    struct mcp_server *s = o->s;
    struct server_ask ask = { .method = "server/discover",
                              .params = mcp_client_discover_params (&s->client),
                              .idle_ms = wait_ms,
                              .cap_ms = wait_ms,
                              .cancel = o->cancel,
                              .error = error };
    _cleanup_json_ json_t *result = server_request (s, &ask, err);
    char *said = NULL;
    *status = ask.status;
    if (! result)
        return false;
    if (! is_discovery (result)) {
        *error = json_pack ("{s:i, s:s}", "code", MCP_NO_METHOD, "message", "no discovery");
        return false;
    }
    return mcp_client_take_discover (&s->client, result, &said) || fail_version (s, said, err);
}

/* A process that was spoken to in the wrong tongue is not spoken to again. */
static bool
start_anew (struct opening *o, struct mur_error **err)
{
    pthread_mutex_lock (&o->s->lock);
    server_condemn (o->s, E_MCP_001, "it gave no answer");
    pthread_mutex_unlock (&o->s->lock);
    server_settle (o->s);
    memset (o->s->deaths_ms, 0, sizeof o->s->deaths_ms);
    return o->s->way->start (o->s, err);
}

static bool
fail_answer (const struct mcp_server *s, const char *method, const json_t *error,
             struct mur_error **err)
{
    _cleanup_free_ char *words = mcp_error_words (error);
    return mur_fail (err, E_MCP_005, "server %s refused %s: %s", s->setup.name, method, words);
}

static bool
initialize (struct opening *o, struct mur_error **err)
{
    _cleanup_json_ json_t *error = NULL;
    return open_legacy (o, &error, err) || (error && fail_answer (o->s, "initialize", error, err));
}

static json_t *
supported (const json_t *error)
{
    return json_object_get (json_object_get (error, "data"), "supported");
}

/* What it said of versions, when it said that. */
static bool
take_versions (struct opening *o, const json_t *error, struct mur_error **err)
{
    _cleanup_json_ json_t *named = json_pack ("{s:O?}", "supportedVersions", supported (error));
    char *said = NULL;
    return mcp_client_take_discover (&o->s->client, named, &said) || fail_version (o->s, said, err);
}

/* Of one far away: that it was reached and understood nothing says that it is of the older era. */
static bool
may_be_legacy (const struct mcp_server *s, const json_t *error, int status)
{
    return ! s->setup.remote.url || error || (status >= 400 && status < 500);
}

static bool
find_era (struct opening *o, struct mur_error **err)
{
    _cleanup_json_ json_t *error = NULL;
    _cleanup_error_ struct mur_error *why = NULL;
    uint64_t half = left (o) / 2, wait_ms = half < PROBE_MS ? half : PROBE_MS;
    int status = 0;
    if (o->s->setup.remote.url)
        wait_ms = left (o);
    if (open_modern (o, wait_ms, &error, &status, &why))
        return true;
    if (error && mcp_client_is_version_error (error) &&
        ! mcp_client_names_legacy (supported (error)))
        return take_versions (o, error, err);
    if (why &&
        (why->code == E_MCP_006 || why->code == E_MCP_009 || ! may_be_legacy (o->s, error, status)))
        return mur_propagate (err, steal_ptr (&why));
    if (cancel_is_raised (o->cancel))
        return false;
    bool is_there = error || o->s->setup.remote.url;
    return (is_there || start_anew (o, err)) && initialize (o, err);
}

/* --- its tools --- */

static bool
add_page (const struct mcp_server *s, const json_t *result, json_t *tools, struct mur_error **err)
{
    const json_t *page = json_object_get (result, "tools");
    const size_t before = json_array_size (tools);
    size_t i;
    json_t *tool;
    if (! json_is_array (page))
        return mur_fail (err, E_MCP_005, "server %s: its list of tools is none", s->setup.name);
    json_array_foreach (page, i, tool)
    {
        const char *name = json_get_string (tool, "name");
        const json_t *known = before && name ? mcp_definition_find (tools, name) : NULL;
        if (! name)
            return mur_fail (err, E_MCP_005, "server %s: a tool without a name", s->setup.name);
        if (! known || ! json_equal (known, tool)) /* a page that is sent again adds nothing */
            json_array_append (tools, tool);
    }
    return json_array_size (tools) <= MCP_TOOLS_MAX ||
           mur_fail (err, E_MCP_005, "server %s lists more than %d tools", s->setup.name,
                     MCP_TOOLS_MAX);
}

static json_t *
list_pages (struct opening *o, struct mur_error **err)
{
    struct mcp_server *s = o->s;
    _cleanup_json_ json_t *tools = json_array ();
    _cleanup_strv_ struct strv cursors = { 0 };
    strv_free (&s->unsendable);
    for (unsigned page = 0; page < PAGES_MAX; page++) {
        json_t *params = json_object ();
        if (cursors.len)
            json_set_string (params, "cursor", cursors.items[cursors.len - 1]);
        struct server_ask ask = { .method = "tools/list",
                                  .params = mcp_client_params (&s->client, params, 0),
                                  .idle_ms = left (o),
                                  .cap_ms = left (o),
                                  .cancel = o->cancel };
        _cleanup_json_ json_t *result = server_request (s, &ask, err);
        if (! result || ! add_page (s, result, tools, err))
            return NULL;
        const char *next = json_get_string (result, "nextCursor");
        if (! next || strv_contains (&cursors, next))
            break;
        strv_push (&cursors, next);
    }
    if (s->setup.remote.url) {
        json_t *all = tools;
        tools = mcp_tools_over_http (all, &s->unsendable);
        json_decref (all);
    }
    return mcp_definitions_sorted (tools);
}

static bool
is_quiet (struct mcp_server *s, uint64_t until_ms)
{
    uint64_t now = clock_monotonic_ms ();
    return now >= until_ms || (now >= s->list_ms + QUIET_MS);
}

/* Until it has said nothing of its list for a moment. */
static void
await_quiet (struct opening *o)
{
    struct mcp_server *s = o->s;
    pthread_mutex_lock (&s->lock);
    if (s->list_ms + QUIET_MS < clock_monotonic_ms ())
        s->list_ms = clock_monotonic_ms ();
    while (! is_quiet (s, o->until_ms) && s->state == SERVER_UP && ! cancel_is_raised (o->cancel)) {
        uint64_t at = s->list_ms + QUIET_MS;
        struct timespec ts = { (time_t)(at / 1000), (long)(at % 1000) * 1000000 };
        pthread_cond_timedwait (&s->changed, &s->lock, &ts);
    }
    s->has_new_list = false;
    pthread_mutex_unlock (&s->lock);
}

json_t *
server_list_tools (struct mcp_server *s, struct cancel *cancel, struct mur_error **err)
{
    struct opening o = { s, cancel, clock_monotonic_ms () + s->setup.startup_ms };
    await_quiet (&o);
    return list_pages (&o, err);
}

/* --- drift --- */

static bool
is_offered (const struct mcp_server *s, const char *tool)
{
    for (size_t i = 0; s->setup.offered && s->setup.offered[i]; i++)
        if (strcmp (s->setup.offered[i], tool) == 0)
            return true;
    return ! s->setup.offered;
}

static void
find_drift (struct mcp_server *s, const json_t *live)
{
    size_t i;
    json_t *pinned;
    strv_free (&s->drift);
    json_array_foreach (s->setup.pinned->tools, i, pinned)
    {
        const char *name = json_get_string (pinned, "name");
        const char *what = is_offered (s, name) ? mcp_definition_change (pinned, live) : NULL;
        if (what)
            strv_printf (&s->drift, "%s.%s", name, what);
    }
}

/* What differs at first may come right: some servers offer their tools bit by bit. */
static json_t *
look_for_drift (struct opening *o, struct mur_error **err)
{
    json_t *live = list_pages (o, err);
    if (live)
        find_drift (o->s, live);
    if (! live || ! o->s->drift.len)
        return live;
    json_decref (live);
    await_quiet (o);
    live = list_pages (o, err);
    if (live)
        find_drift (o->s, live);
    return live;
}

bool
server_may_call (struct mcp_server *s, const char *tool, struct mur_error **err)
{
    const char *changed = NULL;
    for (size_t i = 0; i < s->drift.len; i++) {
        const char *item = s->drift.items[i];
        const char *field = strrchr (item, '.');
        size_t len = (size_t)(field - item);
        bool is_it = strlen (tool) == len && memcmp (item, tool, len) == 0;
        bool is_gone = strcmp (field, ".gone") == 0;
        if (is_it && is_gone)
            return mur_fail (err, E_MCP_004, "server %s no longer has %s", s->setup.name, tool);
        if (! is_gone && (is_it || ! s->setup.drops_drift) && ! changed)
            changed = item;
    }
    if (! changed)
        return true;
    mur_fail (err, E_MCP_003, "server %s: %s is not what was reviewed", s->setup.name, changed);
    return mur_hint (err,
                     "mur mcp diff %s shows the difference; until it is reviewed nothing of "
                     "it is called",
                     s->setup.artifact);
}

/* --- the whole --- */

static bool
may_start (struct mcp_server *s, struct mur_error **err)
{
    uint64_t first = s->deaths_ms[SERVER_DEATHS - 1];
    if (s->is_over)
        return mur_fail (err, E_MCP_001, "server %s: the session ends", s->setup.name);
    if (! first || clock_monotonic_ms () - first > SERVER_DEATHS_MS)
        return true;
    _cleanup_free_ char *tail = server_stderr_tail (s);
    mur_fail (err, E_MCP_001,
              "server %s ended %d times within a minute, the last time because %s; it is not "
              "started again yet%s%s",
              s->setup.name, SERVER_DEATHS, s->io.death, *tail ? ". It wrote: " : "", tail);
    return false;
}

/* As it was reviewed; of one far away nobody holds the version. */
static bool
speak (struct opening *o, struct mur_error **err)
{
    struct mcp_server *s = o->s;
    bool is_modern = s->setup.pinned->era == MCP_MODERN;
    _cleanup_json_ json_t *error = NULL;
    int status;
    if (s->setup.is_unknown || (s->setup.remote.url && is_modern))
        return find_era (o, err);
    if (is_modern ? open_modern (o, left (o), &error, &status, err) : open_legacy (o, &error, err))
        return true;
    if (error && s->setup.remote.url)
        return find_era (o, err);
    return error && fail_answer (s, is_modern ? "server/discover" : "initialize", error, err);
}

/* It tells of its changes, or may ask outside of any call's own stream, as older ones do. */
static bool
has_news (const struct mcp_server *s)
{
    const json_t *tools = json_object_get (s->client.capabilities, "tools");
    bool may_ask = s->client.asks && s->client.revision->era == MCP_LEGACY;
    return may_ask || json_is_true (json_object_get (tools, "listChanged"));
}

static void
listen (struct mcp_server *s)
{
    pthread_mutex_lock (&s->lock);
    if (has_news (s) && s->state == SERVER_UP)
        s->way->listen (s);
    pthread_mutex_unlock (&s->lock);
}

static bool
open_process (struct opening *o, struct mur_error **err)
{
    struct mcp_server *s = o->s;
    uint64_t began = clock_monotonic_ms ();
    server_settle (s);
    if (! may_start (s, err) || ! s->way->start (s, err) || ! speak (o, err))
        return false;
    listen (s);
    _cleanup_json_ json_t *live = s->setup.is_unknown ? json_array () : look_for_drift (o, err);
    if (! live)
        return false;
    struct trace_writer *trace = s->setup.trace ? *s->setup.trace : NULL;
    if (trace)
        TRACE (trace, NULL, mcp_server_start, .artifact = s->setup.artifact,
               .era = s->client.revision->era == MCP_MODERN ? "modern" : "legacy",
               .version = s->client.revision->name, .startup_ms = clock_monotonic_ms () - began,
               .tools = json_array_size (live), .drift = s->drift.items);
    pthread_mutex_lock (&s->lock);
    s->is_opened = s->state == SERVER_UP;
    pthread_mutex_unlock (&s->lock);
    return true;
}

/* What was started and could not be opened is ended: the next call begins anew. */
static bool
give_up (struct mcp_server *s)
{
    pthread_mutex_lock (&s->lock);
    server_condemn (s, E_MCP_001, "it could not be opened");
    pthread_mutex_unlock (&s->lock);
    server_settle (s);
    return false;
}

static void
listen_again (struct mcp_server *s)
{
    pthread_mutex_lock (&s->lock);
    if (s->line.is_deaf && s->state == SERVER_UP)
        s->way->listen (s);
    pthread_mutex_unlock (&s->lock);
}

static bool
open_or_look (struct opening *o, struct mur_error **err)
{
    struct mcp_server *s = o->s;
    pthread_mutex_lock (&s->lock);
    bool is_open = s->state == SERVER_UP && s->is_opened, has_new_list = s->has_new_list;
    pthread_mutex_unlock (&s->lock);
    if (! is_open)
        return open_process (o, err) || give_up (s);
    listen_again (s);
    if (! has_new_list || s->setup.is_unknown)
        return true;
    await_quiet (o);
    _cleanup_json_ json_t *live = look_for_drift (o, err);
    return live != NULL;
}

bool
server_open (struct mcp_server *s, struct cancel *cancel, struct mur_error **err)
{
    pthread_mutex_lock (&s->opening);
    struct opening o = { s, cancel, clock_monotonic_ms () + s->setup.startup_ms };
    bool is_open = open_or_look (&o, err);
    pthread_mutex_unlock (&s->opening);
    return is_open;
}

/* --- a call --- */

json_t *
server_call (struct mcp_server *s, struct server_ask *ask, const json_t *members,
             struct mur_error **err)
{
    for (bool is_second = false;; is_second = true) {
        _cleanup_error_ struct mur_error *why = NULL;
        ask->method = "tools/call";
        struct mcp_client as = s->client;
        as.asks &= ~ask->withholds;
        ask->params = mcp_client_params (&as, json_copy ((json_t *)(uintptr_t)members), 0);
        json_t *result = server_request (s, ask, &why);
        if (result || is_second || ! ask->is_unserved || cancel_is_raised (ask->cancel)) {
            if (why)
                mur_propagate (err, steal_ptr (&why));
            return result;
        }
        if (! server_open (s, ask->cancel, err) ||
            ! server_may_call (s, json_get_string (members, "name"), err))
            return NULL;
        ask->is_unserved = false;
    }
}
