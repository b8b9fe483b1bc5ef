/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_server.h"

#include "base/alloc.h"
#include "base/ids.h"
#include "cli/ui/ui_capsules.h"
#include "cli/ui/ui_child.h"
#include "cli/ui/ui_page.h"
#include "cli/ui/ui_search.h"
#include "cli/ui/ui_summary.h"
#include "cli/ui/ui_target.h"
#include "cli/ui/ui_trace.h"
#include "net/server/http_server.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BODY_BYTES    ((size_t)1 << 20)
#define MOST_AT_ONCE  16
#define SHOWN_BYTES   ((size_t)256 << 10) /* of a body; the whole is downloaded */
#define WHOLE_BYTES   ((size_t)256 << 20)
#define LIST_FALLBACK 200
#define ROWS_FALLBACK 200
#define CLOSE_MS      300
#define DIFF_MS       60000
#define SCOPE_MS      30000

struct ui_server {
    struct ui_server_parts parts;
    struct ui_traces *traces;
    struct ui_summaries *summaries;
    struct http_server *http;

    pthread_mutex_t lock;
    pthread_cond_t idle;
    unsigned at_work;
    struct ui_searches searches;
};

struct job {
    struct ui_server *server;
    struct http_exchange *x;
    struct ui_target target;
    void (*run) (struct job *j);
};

/* --- one session --- */

static bool
find_place (struct job *j, struct ui_place *place)
{
    if (id_is_valid (j->target.session, "ses_") &&
        ui_world_place (j->server->parts.world, j->target.session, place))
        return true;
    ui_reply_error (j->x, 404, "there is no such session");
    return false;
}

static void
answer_sessions (struct job *j)
{
    _cleanup_free_ char *before = ui_target_query (&j->target, "before");
    uint64_t limit = ui_target_number (&j->target, "limit", LIST_FALLBACK);
    json_t *answer =
        ui_world_sessions (j->server->parts.world, before, limit < 1000 ? limit : 1000);
    json_set_u64 (answer, "schema", 1);
    json_set_bool (answer, "read_only", j->server->parts.is_read_only);
    ui_reply_json (j->x, 200, answer);
}

/* The first line holds the grants; it is shown whole unless somebody made it huge. */
static void
answer_session (struct job *j)
{
    _cleanup_ui_place_ struct ui_place place = { 0 };
    if (! find_place (j, &place))
        return;
    size_t len = 0;
    _cleanup_free_ char *first =
        ui_traces_line (j->server->traces, place.trace_path, 0, (size_t)1 << 20, &len, NULL);
    json_t *answer = json_object ();
    json_set_u64 (answer, "schema", 1);
    json_object_set_new (answer, "session",
                         ui_world_session (j->server->parts.world, j->target.session));
    _cleanup_json_ json_t *start = first ? json_loadb (first, len, 0, NULL) : NULL;
    if (start)
        json_object_set_new (answer, "start", ui_trace_shortened (start, 2000, 500));
    json_t *live = ui_world_live (j->server->parts.world, j->target.session);
    if (live)
        json_object_set_new (answer, "live", live);
    ui_reply_json (j->x, 200, answer);
}

static void
answer_summary (struct job *j)
{
    _cleanup_ui_place_ struct ui_place place = { 0 };
    if (! find_place (j, &place))
        return;
    json_t *summary = ui_summary (j->server->summaries, place.trace_path);
    if (summary)
        ui_reply_json (j->x, 200, summary);
    else
        ui_reply_error (j->x, 404, "its trace cannot be read");
}

static void
answer_rows (struct job *j)
{
    _cleanup_ui_place_ struct ui_place place = { 0 };
    if (! find_place (j, &place))
        return;
    _cleanup_free_ char *kinds = ui_target_query (&j->target, "kinds");
    _cleanup_free_ char *tail = ui_target_query (&j->target, "tail");
    struct ui_rows_query query = { .kinds = kinds,
                                   .from = ui_target_number (&j->target, "from", 0),
                                   .is_tail = tail != NULL,
                                   .limit = ui_target_number (&j->target, "limit", ROWS_FALLBACK) };
    _cleanup_error_ struct mur_error *err = NULL;
    json_t *rows = ui_traces_rows (j->server->traces, place.trace_path, &query, &err);
    if (rows)
        ui_reply_json (j->x, 200, rows);
    else
        ui_reply_error (j->x, 404, "%s", err->message);
}

static void
answer_row (struct job *j)
{
    _cleanup_ui_place_ struct ui_place place = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    size_t len;
    if (! find_place (j, &place))
        return;
    char *line = ui_traces_line (j->server->traces, place.trace_path,
                                 strtoull (j->target.leaf, NULL, 10), SHOWN_BYTES, &len, &err);
    if (line)
        ui_reply_take (j->x, 200, "application/json", line, len);
    else
        ui_reply_error (j->x, 404, "%s", err->message);
}

static bool
is_sha (const char *text)
{
    size_t len = strspn (text, "0123456789abcdef");
    return len == 64 && text[len] == '\0';
}

/* Part of a body as text to be shown, or all of it to be kept: never as anything a browser runs. */
static void
answer_body (struct job *j)
{
    _cleanup_ui_place_ struct ui_place place = { 0 };
    if (! find_place (j, &place))
        return;
    _cleanup_free_ char *whole = ui_target_query (&j->target, "whole");
    _cleanup_free_ char *path = is_sha (j->target.leaf)
                                    ? x_asprintf ("%s/blobs/%s", place.records_dir, j->target.leaf)
                                    : NULL;
    _cleanup_close_ int fd = path ? open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    struct stat st;
    if (fd < 0 || fstat (fd, &st) < 0 || ! S_ISREG (st.st_mode)) {
        ui_reply_error (j->x, 404, "there is no such body: trace.capture decides what is kept");
        return;
    }
    size_t limit = whole ? WHOLE_BYTES : SHOWN_BYTES;
    size_t len = (size_t)st.st_size < limit ? (size_t)st.st_size : limit;
    char *bytes = x_malloc (len + 1);
    ssize_t got = pread (fd, bytes, len, 0);
    ui_reply_take (j->x, (size_t)st.st_size > len ? 206 : 200, "application/octet-stream", bytes,
                   got > 0 ? (size_t)got : 0);
}

static bool
find_named (struct job *j, const char *name, struct ui_place *place)
{
    _cleanup_free_ char *id = ui_target_query (&j->target, name);
    return id && id_is_valid (id, "ses_") && ui_world_place (j->server->parts.world, id, place);
}

static void
answer_diff (struct job *j)
{
    _cleanup_ui_place_ struct ui_place before = { 0 };
    _cleanup_ui_place_ struct ui_place after = { 0 };
    if (! find_named (j, "a", &before) || ! find_named (j, "b", &after)) {
        ui_reply_error (j->x, 404, "a and b are wanted: two sessions");
        return;
    }
    struct ui_child_result r;
    _cleanup_error_ struct mur_error *err = NULL;
    const char *const words[] = { "trace",  "diff", before.trace_path, after.trace_path, "--steps",
                                  "--json", NULL };
    if (! ui_child_run (words, DIFF_MS, ui_acts_stop_fd (j->server->parts.acts), &r, &err)) {
        ui_reply_error (j->x, 500, "%s", err->message);
        return;
    }
    if (r.status == 0 && ! r.is_cut)
        ui_reply (j->x, 200, "application/json", r.out.data ? r.out.data : "", r.out.len);
    else
        ui_reply_error (j->x, 422, "%s", r.err.data ? r.err.data : "they could not be compared");
    ui_child_result_clear (&r);
}

/* --- what may be launched --- */

static void
answer_capsules (struct job *j)
{
    _cleanup_ui_capsules_ struct ui_capsules all = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    if (! ui_capsules_read (j->server->parts.workdir, &all, &err)) {
        ui_reply_error (j->x, 500, "%s", err->message);
        return;
    }
    json_t *answer = json_object ();
    json_set_u64 (answer, "schema", 1);
    json_set_bool (answer, "read_only", j->server->parts.is_read_only);
    json_object_set_new (answer, "capsules", ui_capsules_json (&all));
    ui_reply_json (j->x, 200, answer);
}

/* The report of `mur run --explain-scope`: nothing is started. */
static void
answer_scope (struct job *j)
{
    _cleanup_ui_capsules_ struct ui_capsules all = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_free_ char *id = ui_target_query (&j->target, "capsule");
    bool is_read = ui_capsules_read (j->server->parts.workdir, &all, &err);
    const struct ui_capsule *c = is_read && id ? ui_capsules_find (&all, id) : NULL;
    if (! c) {
        ui_reply_error (j->x, 404, "no such capsule is known here");
        return;
    }
    struct ui_child_result r;
    _cleanup_free_ char *manifest = x_asprintf ("%s/murmur.yaml", c->folder);
    const char *const of_folder[] = { "run", "--explain-scope", "--manifest", manifest, NULL };
    const char *const of_store[] = { "run",   "--explain-scope",   "--capsule",
                                     c->name, "--capsule-version", c->version,
                                     NULL };
    if (! ui_child_run (c->text || c->why_not ? of_folder : of_store, SCOPE_MS,
                        ui_acts_stop_fd (j->server->parts.acts), &r, &err)) {
        ui_reply_error (j->x, 500, "%s", err->message);
        return;
    }
    json_t *answer = json_object ();
    json_set_u64 (answer, "status", (uint64_t)r.status);
    json_set_string_n (answer, "output", r.out.data ? r.out.data : "", r.out.len);
    json_set_string_n (answer, "errors", r.err.data ? r.err.data : "", r.err.len);
    ui_child_result_clear (&r);
    ui_reply_json (j->x, 200, answer);
}

static void
answer_act (struct job *j)
{
    if (j->target.session && ! id_is_valid (j->target.session, "ses_"))
        ui_reply_error (j->x, 404, "there is no such session");
    else
        ui_act (j->server->parts.acts, j->x, j->target.session, j->target.view);
}

/* --- which answers what --- */

static const struct {
    const char *view;
    bool has_leaf;
    void (*run) (struct job *j);
} session_views[] = { { "", false, answer_session },
                      { "rows", false, answer_rows },
                      { "row", true, answer_row },
                      { "body", true, answer_body },
                      { "summary", false, answer_summary } };

static const struct {
    const char *name;
    void (*run) (struct job *j);
} plain_views[] = { { "sessions", answer_sessions },
                    { "diff", answer_diff },
                    { "capsules", answer_capsules },
                    { "scope", answer_scope } };

static void (*run_of (const struct ui_target *t, bool is_post)) (struct job *j)
{
    if (is_post)
        return ui_act_exists (t->view, t->session != NULL) && ! t->leaf ? answer_act : NULL;
    for (size_t i = 0; t->session && i < ARRAY_LEN (session_views); i++)
        if (str_eq (session_views[i].view, t->view) &&
            session_views[i].has_leaf == (t->leaf != NULL))
            return session_views[i].run;
    for (size_t i = 0; ! t->session && i < ARRAY_LEN (plain_views); i++)
        if (str_eq (plain_views[i].name, t->view))
            return plain_views[i].run;
    return NULL;
}

static const struct ui_page_file *
page_file (const char *target)
{
    size_t len = strcspn (target, "?#");
    for (const struct ui_page_file *f = ui_page_files; f->target; f++)
        if (strlen (f->target) == len && strncmp (f->target, target, len) == 0)
            return f;
    return NULL;
}

static void
answer_page (struct http_exchange *x, const struct ui_page_file *file)
{
    static const char missing[] =
        "mur was built without the parts of its page, which come from a package registry.\n"
        "Where that can be reached: scripts/bootstrap web, then make build.\n";
    if (ui_page_has_parts)
        ui_reply (x, 200, file->type, file->bytes, file->len);
    else
        ui_reply (x, 503, "text/plain; charset=utf-8", missing, sizeof missing - 1);
}

/* --- requests --- */

static void
end_job (struct job *j)
{
    struct ui_server *s = j->server;
    ui_target_clear (&j->target);
    free (j);
    pthread_mutex_lock (&s->lock);
    s->at_work--;
    pthread_cond_signal (&s->idle);
    pthread_mutex_unlock (&s->lock);
}

static void *
run_job (void *ctx)
{
    struct job *j = ctx;
    j->run (j);
    end_job (j);
    return NULL;
}

/* Hands it to a thread; too many at once is said. */
static void
begin_job (struct ui_server *s, struct http_exchange *x, struct ui_target *target,
           void (*run) (struct job *j))
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_mutex_lock (&s->lock);
    bool has_room = s->at_work < MOST_AT_ONCE;
    s->at_work += has_room;
    pthread_mutex_unlock (&s->lock);
    if (! has_room) {
        ui_reply_error (x, 503, "too much is asked at once: try again");
        return;
    }
    struct job *j = x_new0 (struct job);
    *j = (struct job){ s, x, *target, run };
    *target = (struct ui_target){ 0 };
    http_hold_briefly (x);
    pthread_attr_init (&small);
    pthread_attr_setdetachstate (&small, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize (&small, (size_t)1 << 20);
    if (pthread_create (&thread, &small, run_job, j) != 0) {
        ui_reply_error (x, 503, "no thread for this");
        end_job (j);
    }
    pthread_attr_destroy (&small);
}

static bool
is_post (const struct http_exchange *x)
{
    return str_eq (http_exchange_method (x), "POST");
}

static size_t
on_head (void *ctx, struct http_exchange *x)
{
    struct ui_server *s = ctx;
    const char *method = http_exchange_method (x);
    bool is_page = ! str_starts (http_exchange_target (x), "/api/");
    enum ui_gate_class class = is_post (x) ? UI_GATE_ACT : is_page ? UI_GATE_PAGE : UI_GATE_DATA;
    if (! ui_gate_admits (s->parts.gate, x, class))
        return 0;
    if (! is_post (x) && ! str_eq (method, "GET") && ! str_eq (method, "HEAD"))
        ui_reply_error (x, 405, "GET and POST are answered");
    return is_post (x) ? BODY_BYTES : 0;
}

static void
on_request (void *ctx, struct http_exchange *x)
{
    struct ui_server *s = ctx;
    const char *target = http_exchange_target (x);
    const struct ui_page_file *file = is_post (x) ? NULL : page_file (target);
    if (file) {
        answer_page (x, file);
        return;
    }
    if (! str_starts (target, "/api/")) {
        ui_reply_error (x, 404, "there is nothing at this address");
        return;
    }
    struct ui_target t = { 0 };
    bool is_read = ui_target_read (&t, target);
    void (*run) (struct job *) = is_read ? run_of (&t, is_post (x)) : NULL;
    _cleanup_free_ char *text =
        is_read && ! is_post (x) && str_eq (t.view, "search") ? ui_target_query (&t, "q") : NULL;
    if (run)
        begin_job (s, x, &t, run);
    else if (is_read && ! t.session && ! is_post (x) && str_eq (t.view, "stream"))
        ui_hub_stream (s->parts.hub, x);
    else if (text && *text && strlen (text) <= 1000)
        ui_search_stream (&s->searches, s->parts.world, x, text);
    else
        ui_reply_error (x, 404, "there is nothing at this address");
    ui_target_clear (&t);
}

/* --- outside --- */

struct ui_server *
ui_server_bind (const struct ui_server_parts *parts, unsigned port, struct mur_error **err)
{
    _cleanup_ (ui_server_freep) struct ui_server *s = x_new0 (struct ui_server);
    pthread_mutex_init (&s->lock, NULL);
    pthread_cond_init (&s->idle, NULL);
    pthread_mutex_init (&s->searches.lock, NULL);
    pthread_cond_init (&s->searches.none, NULL);
    s->parts = *parts;
    s->traces = ui_traces_new ();
    s->summaries = ui_summaries_new ();
    struct http_server_limits limits = http_server_default_limits;
    limits.body_bytes = BODY_BYTES;
    s->http = http_server_bind ("127.0.0.1", port, &limits, err);
    if (! s->http && port && (*err)->code == E_RUN_010)
        mur_hint (err, "take another --port, or leave it out for a free one");
    return s->http ? steal_ptr (&s) : NULL;
}

unsigned
ui_server_port (const struct ui_server *s)
{
    return http_server_port (s->http);
}

bool
ui_server_serve (struct ui_server *s, struct mur_error **err)
{
    static const struct http_server_handler handler = { .head = on_head, .request = on_request };
    return http_server_serve (s->http, &handler, s, err);
}

/* What is under way is answered before anything it uses goes away. */
void
ui_server_free (struct ui_server *s)
{
    if (! s)
        return;
    ui_acts_stop (s->parts.acts);
    pthread_mutex_lock (&s->lock);
    while (s->at_work)
        pthread_cond_wait (&s->idle, &s->lock);
    pthread_mutex_unlock (&s->lock);
    http_server_close (s->http, CLOSE_MS);
    ui_searches_wait (&s->searches);
    ui_traces_free (s->traces);
    ui_summaries_free (s->summaries);
    pthread_cond_destroy (&s->idle);
    pthread_mutex_destroy (&s->lock);
    free (s);
}
