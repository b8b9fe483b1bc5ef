/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/record/tape_read.h"

#include "base/alloc.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- places --- */

bool
rec_body_is_set (const struct rec_body *b)
{
    return b->text || b->sha;
}

bool
record_fetch (const struct record *r, const struct rec_body *b, struct buf *out,
              struct mur_error **err)
{
    if (b->sha)
        return record_body (r, b->sha, out, err);
    buf_append (out, b->text ? b->text : "", b->len);
    return true;
}

const struct rec_guest *
record_guest (const struct record *r, const char *place)
{
    for (size_t i = 0; r->tape && i < r->tape->guest_count; i++)
        if (str_eq (r->tape->guests[i].place, place))
            return &r->tape->guests[i];
    return NULL;
}

const struct rec_input *
record_input (const struct record *r, size_t task, size_t n)
{
    for (size_t i = 0; r->tape && i < r->tape->input_count; i++)
        if (r->tape->inputs[i].task == task && n-- == 0)
            return &r->tape->inputs[i];
    return NULL;
}

static bool
is_before (const struct rec_tree *t, size_t task, uint64_t turn)
{
    return t->task < task || (t->task == task && (t->is_start || t->turn < turn));
}

const struct rec_tree *
record_tree_before (const struct record *r, size_t task, uint64_t turn)
{
    const struct rec_tree *found = NULL;
    for (size_t i = 0; r->tape && i < r->tape->tree_count; i++)
        if (is_before (&r->tape->trees[i], task, turn))
            found = &r->tape->trees[i];
    return found;
}

const struct rec_tree *
record_tree_after (const struct record *r, size_t task, uint64_t turn, size_t call)
{
    const struct rec_tree *found = NULL;
    for (size_t i = 0; r->tape && i < r->tape->tree_count; i++) {
        const struct rec_tree *t = &r->tape->trees[i];
        bool is_later = t->task == task && ! t->is_start && t->turn == turn && t->call > call;
        if (! is_later && is_before (t, task, turn + 1))
            found = t;
    }
    return found;
}

/* --- members --- */

static const char *
take_string (struct record *r, const json_t *line, const char *key)
{
    return record_keep (r, json_get_string (line, key));
}

static uint64_t
number_of (const json_t *line, const char *key)
{
    uint64_t value = 0;
    return json_get_u64 (line, key, &value) ? value : 0;
}

static struct rec_body
take_body (struct record *r, const json_t *line, const char *key)
{
    char inline_key[32];
    snprintf (inline_key, sizeof inline_key, "%s_text", key);
    const json_t *text = json_object_get (line, inline_key);
    struct rec_body b = { .sha = take_string (r, line, key) };
    if (b.sha)
        strv_push (&r->tape->bodies, b.sha);
    if (json_is_string (text)) {
        b.len = json_string_length (text);
        b.text = arena_strndup (r->arena, json_string_value (text), b.len);
    }
    return b;
}

static bool
unhex (const char *hex, struct buf *out)
{
    for (; hex && hex[0] && hex[1]; hex += 2) {
        unsigned byte;
        if (sscanf (hex, "%2x", &byte) != 1)
            return false;
        buf_putc (out, (char)byte);
    }
    return hex && ! *hex;
}

/* --- lines --- */

static bool
take_seed (struct rec_tape *t, const char *hex)
{
    _cleanup_buf_ struct buf bytes = { 0 };
    if (! hex || ! unhex (hex, &bytes) || bytes.len != sizeof t->seed)
        return false;
    memcpy (t->seed, bytes.data, sizeof t->seed);
    return true;
}

static void
take_env (struct record *r, const json_t *env)
{
    const char *artifact, *name;
    json_t *values, *value;
    size_t count = 0;
    json_object_foreach ((json_t *)env, artifact, values) count += json_object_size (values);
    r->tape->env = arena_new_array (r->arena, struct rec_env, count + 1);
    json_object_foreach ((json_t *)env, artifact, values) json_object_foreach (values, name, value)
        r->tape->env[r->tape->env_count++] =
        (struct rec_env){ record_keep (r, artifact), record_keep (r, name),
                          record_keep (r, json_string_value (value)) };
}

static bool
take_head (struct record *r, const json_t *line)
{
    struct rec_tape *t = r->tape;
    t->url = take_string (r, line, "url");
    t->arch = take_string (r, line, "arch");
    t->murmur_md = take_body (r, line, "murmur_md");
    take_env (r, json_object_get (line, "env"));
    r->url = t->url;
    return take_seed (t, json_get_string (line, "seed"));
}

static struct rec_guest *
guest_at (struct record *r, const json_t *line)
{
    struct rec_tape *t = r->tape;
    const char *place = json_get_string (line, "place");
    for (size_t i = t->guest_count; place && i > 0; i--)
        if (str_eq (t->guests[i - 1].place, place))
            return &t->guests[i - 1];
    if (! place)
        return NULL;
    x_grow (t->guests, t->guest_count, t->guest_cap);
    t->guests[t->guest_count] = (struct rec_guest){ .place = record_keep (r, place) };
    return &t->guests[t->guest_count++];
}

/* A guest that lives long has a line after each of its calls: they are one reading after another.
 */
static bool
take_guest (struct record *r, const json_t *line)
{
    struct rec_guest *g = guest_at (r, line);
    return g && unhex (json_get_string (line, "clock"), &g->clock);
}

static bool
take_http (struct record *r, const json_t *line)
{
    struct rec_guest *g = guest_at (r, line);
    uint64_t n = number_of (line, "n");
    const json_t *chunks = json_object_get (line, "chunks");
    if (! g || n > 1000000)
        return false;
    while (g->http_count <= n) { /* lines come as exchanges end */
        x_grow (g->http, g->http_count, g->http_cap);
        g->http[g->http_count++] = (struct rec_http){ 0 };
    }
    struct rec_http *h = &g->http[n];
    json_decref (h->headers); /* of a line that said the same number */
    *h = (struct rec_http){
        .method = take_string (r, line, "method"),
        .url = take_string (r, line, "url"),
        .is_refused = json_is_true (json_object_get (line, "refused")),
        .sent = take_body (r, line, "sent"),
        .got = take_body (r, line, "got"),
        .status = (int)number_of (line, "status"),
        .headers = json_deep_copy (json_object_get (line, "headers")),
        .chunks = arena_new_array (r->arena, size_t, json_array_size (chunks) + 1),
        .chunk_count = json_array_size (chunks),
        .error = take_string (r, line, "error"),
    };
    for (size_t i = 0; i < h->chunk_count; i++)
        h->chunks[i] = (size_t)json_integer_value (json_array_get (chunks, i));
    return h->method && h->url;
}

static bool
take_tree (struct record *r, const json_t *line)
{
    struct rec_tape *t = r->tape;
    const json_t *names = json_object_get (line, "left_out");
    x_grow (t->trees, t->tree_count, t->tree_cap);
    struct rec_tree *tree = &t->trees[t->tree_count++];
    *tree = (struct rec_tree){
        .task = number_of (line, "task"),
        .turn = number_of (line, "turn"),
        .call = number_of (line, "call"),
        .is_start = ! json_object_get (line, "turn"),
        .sha = take_string (r, line, "sha256"),
        .left_out = number_of (line, "left_out_count"),
        .names = arena_new_array (r->arena, const char *, json_array_size (names) + 1),
        .name_count = json_array_size (names),
    };
    for (size_t i = 0; i < tree->name_count; i++) {
        const char *name = json_string_value (json_array_get (names, i));
        tree->names[i] = record_keep (r, name ? name : "");
    }
    return sha256_hex_is_valid (tree->sha ? tree->sha : "");
}

static bool
take_input (struct record *r, const json_t *line)
{
    struct rec_tape *t = r->tape;
    x_grow (t->inputs, t->input_count, t->input_cap);
    t->inputs[t->input_count++] = (struct rec_input){
        .task = number_of (line, "task"),
        .turn = number_of (line, "turn"),
        .call = number_of (line, "call"),
        .prompt = take_body (r, line, "prompt"),
        .reply = take_body (r, line, "reply"),
        .has_timed_out = json_is_true (json_object_get (line, "timed_out")),
    };
    return true;
}

/* --- a harness --- */

static struct rec_harness *
last_run (struct rec_tape *t)
{
    return t->harness_count ? &t->harness[t->harness_count - 1] : NULL;
}

static bool
take_harness (struct record *r, const json_t *line)
{
    struct rec_tape *t = r->tape;
    x_grow (t->harness, t->harness_count, t->harness_cap);
    t->harness[t->harness_count++] = (struct rec_harness){
        .task = number_of (line, "task"),
        .version = take_string (r, line, "version"),
        .session_id = take_string (r, line, "session_id"),
        .work = take_string (r, line, "work"),
        .is_resume = json_is_true (json_object_get (line, "resume")),
        .system = take_body (r, line, "system"),
        .tools = take_body (r, line, "tools"),
        .told = take_body (r, line, "told"),
        .plan = take_body (r, line, "plan"),
    };
    const json_t *used = json_object_get (line, "used");
    for (size_t i = 0; i < REC_COUNTS && i < json_array_size (used); i++) {
        json_int_t count = json_integer_value (json_array_get (used, i));
        last_run (t)->used[i] = count > 0 ? (uint64_t)count : 0;
    }
    return last_run (t)->session_id != NULL;
}

static bool
add_item (struct record *r, const json_t *line, enum rec_harness_what what)
{
    struct rec_harness *h = last_run (r->tape);
    if (! h)
        return false;
    x_grow (h->items, h->count, h->cap);
    h->items[h->count++] = (struct rec_harness_item){
        .what = what,
        .n = number_of (line, "n"),
        .name = take_string (r, line, "name"),
        .text = take_body (r, line, "text"),
        .made = take_body (r, line, "made"),
        .is_good = json_is_true (json_object_get (line, "ok")),
    };
    return true;
}

static bool
take_harness_line (struct record *r, const json_t *line)
{
    return add_item (r, line, REC_HARNESS_LINE);
}

static bool
take_harness_call (struct record *r, const json_t *line)
{
    return json_get_string (line, "name") && add_item (r, line, REC_HARNESS_CALL);
}

static bool
take_harness_told (struct record *r, const json_t *line)
{
    return add_item (r, line, REC_HARNESS_TOLD);
}

static bool
take_harness_word (struct record *r, const json_t *line)
{
    return add_item (r, line, REC_HARNESS_WORD);
}

/* Calls overlap: an answer is of the call of its number. */
static bool
take_harness_result (struct record *r, const json_t *line)
{
    struct rec_harness *h = last_run (r->tape);
    uint64_t n = number_of (line, "n");
    for (size_t i = h ? h->count : 0; i > 0; i--) {
        struct rec_harness_item *item = &h->items[i - 1];
        if (item->what != REC_HARNESS_CALL || item->n != n)
            continue;
        item->made = take_body (r, line, "made");
        item->is_good = json_is_true (json_object_get (line, "ok"));
        item->is_refused = json_is_true (json_object_get (line, "refused"));
        return true;
    }
    return false;
}

static bool
take_harness_end (struct record *r, const json_t *line)
{
    struct rec_harness *h = last_run (r->tape);
    if (! h)
        return false;
    h->end.is_set = true;
    h->end.has_code = json_is_integer (json_object_get (line, "code"));
    h->end.code = (int)number_of (line, "code");
    h->end.signal = (int)number_of (line, "signal");
    h->end.was_killed = json_is_true (json_object_get (line, "killed"));
    h->end.cause = take_string (r, line, "cause");
    h->end.errors = take_body (r, line, "errors");
    h->end.made = take_body (r, line, "made");
    return h->end.cause != NULL;
}

static const struct {
    const char *kind;
    bool (*take) (struct record *r, const json_t *line);
} kinds[] = {
    { "head", take_head },
    { "guest", take_guest },
    { "http", take_http },
    { "tree", take_tree },
    { "input", take_input },
    { "harness", take_harness },
    { "harness_line", take_harness_line },
    { "harness_call", take_harness_call },
    { "harness_result", take_harness_result },
    { "harness_told", take_harness_told },
    { "harness_word", take_harness_word },
    { "harness_end", take_harness_end },
};

/* --- the file --- */

static bool
fail_tape (const struct record *r, size_t number, const char *what, struct mur_error **err)
{
    mur_fail (err, E_RPL_004, "%s/" TAPE_FILE ":%zu: %s", r->dir, number, what);
    return mur_hint (err, "the record is not what was written: nothing was replayed");
}

static bool
check_head (const struct record *r, const json_t *line, struct mur_error **err)
{
    uint64_t format = number_of (line, "format");
    if (! str_eq (json_get_string (line, "kind"), "head"))
        return fail_tape (r, 1, "it does not begin with a head", err);
    if (format == TAPE_FORMAT)
        return true;
    mur_fail (err, E_RPL_004, "%s/" TAPE_FILE " is of format %llu, and this mur reads format %d",
              r->dir, (unsigned long long)format, TAPE_FORMAT);
    return mur_hint (err, "replay it with the mur that recorded it, or a newer one");
}

struct reading {
    struct record *record;
    size_t number;
    struct sha256 *digest;
    bool is_over;
};

/* The end vouches for every line before it. */
static bool
take_end (struct reading *x, const json_t *line, struct mur_error **err)
{
    char now[SHA256_HEX_LEN + 1];
    sha256_finish (steal_ptr (&x->digest), now);
    x->digest = sha256_new ();
    x->is_over = true;
    if (number_of (line, "lines") != x->number - 1 ||
        ! str_eq (json_get_string (line, "sha256"), now))
        return fail_tape (x->record, x->number, "lines before it were altered", err);
    x->record->tape->is_whole = true;
    return true;
}

static bool
take_line (struct reading *x, const char *text, size_t len, struct mur_error **err)
{
    struct record *r = x->record;
    _cleanup_json_ json_t *line = json_loadb (text, len, 0, NULL);
    const char *kind = json_get_string (line, "kind");
    x->number++;
    if (! line || text[len - 1] != '\n') { /* torn: nothing may follow */
        x->is_over = true;
        return true;
    }
    if (x->number == 1 && ! check_head (r, line, err))
        return false;
    if (str_eq (kind, "end"))
        return take_end (x, line, err);
    sha256_add (x->digest, text, len);
    for (size_t i = 0; kind && i < ARRAY_LEN (kinds); i++)
        if (strcmp (kinds[i].kind, kind) == 0)
            return kinds[i].take (r, line) || fail_tape (r, x->number, "it cannot be read", err);
    return true;
}

static bool
read_lines (struct record *r, FILE *file, struct mur_error **err)
{
    _cleanup_free_ char *text = NULL;
    size_t cap = 0;
    struct reading x = { .record = r, .digest = sha256_new () };
    bool is_good = true;
    for (ssize_t len; is_good && (len = getline (&text, &cap, file)) > 0;)
        is_good = x.is_over ? fail_tape (r, x.number + 1, "something follows its end", err)
                            : take_line (&x, text, (size_t)len, err);
    char unused[SHA256_HEX_LEN + 1];
    sha256_finish (x.digest, unused);
    return is_good;
}

static void
free_tape (struct rec_tape *t)
{
    for (size_t i = 0; i < t->guest_count; i++) {
        for (size_t k = 0; k < t->guests[i].http_count; k++)
            json_decref (t->guests[i].http[k].headers);
        free (t->guests[i].http);
        buf_free (&t->guests[i].clock);
    }
    free (t->guests);
    free (t->trees);
    free (t->inputs);
    for (size_t i = 0; i < t->harness_count; i++)
        free (t->harness[i].items);
    free (t->harness);
    strv_free (&t->bodies);
    free (t);
}

bool
tape_read (struct record *r, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/" TAPE_FILE, r->dir);
    int fd = open (path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return true;
    _cleanup_fclose_ FILE *file = fd < 0 ? NULL : fdopen (fd, "r");
    if (! file)
        return mur_fail_errno (err, E_RPL_004, "cannot read %s", path);
    r->tape = x_new0 (struct rec_tape);
    r->free_tape = free_tape;
    return read_lines (r, file, err);
}
