/* SPDX-License-Identifier: Apache-2.0 */
#include "session/guests/recording.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/version.h"
#include "manifest/capsule/capsule_entry.h"
#include "replay/play/play_guest.h"
#include "replay/record/tree_restore.h"
#include "session/guests/guest_env.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <pthread.h>
#include <string.h>
#include <sys/utsname.h>

/* How many guests there were at one place. */
struct counted {
    char *place;
    unsigned count;
};

struct recording {
    struct tape *tape;           /* NULL: nothing is written */
    const struct record *played; /* NULL: nothing is played */
    struct tree_look_store *trees;
    char tree[SHA256_HEX_LEN + 1]; /* as it was seen last */
    pthread_mutex_t lock;          /* guards what follows: async hooks */
    struct counted *counted;
    size_t counted_len, counted_cap;
    size_t tasks, call, replies;
    uint64_t turn;
};

/* --- beginning and end --- */

/* Variables whose values another place, time or user would make others. What an artifact's own
 * configuration sets is its manifest's. */
static bool
is_from_outside (const struct session *s, const char *name)
{
    static const char *const names[] = { "MURMUR_SESSION_ID", "MURMUR_CAPSULE_URL",
                                         "MURMUR_INFERENCE_ENDPOINT", "MURMUR_GATEWAY_ENDPOINT",
                                         "MURMUR_FORMATION_PEERS" };
    for (size_t i = 0; i < ARRAY_LEN (names); i++)
        if (strcmp (names[i], name) == 0)
            return true;
    for (size_t i = 0; i < s->policy->env_allow.len; i++)
        if (strcmp (s->policy->env_allow.items[i], name) == 0)
            return true;
    return false;
}

/* {NAME: value or null}: null where a value holds a secret. */
static json_t *
env_json (const struct session *s, const struct strv *env)
{
    json_t *o = json_object ();
    for (size_t i = 0; i < env->len; i++) {
        const char *equals = strchr (env->items[i], '=');
        _cleanup_free_ char *name = x_strndup (env->items[i], (size_t)(equals - env->items[i]));
        _cleanup_free_ char *clean = redactor_apply (s->redactor, equals + 1);
        if (is_from_outside (s, name))
            json_set_string (o, name, strcmp (clean, equals + 1) == 0 ? clean : NULL);
    }
    return o;
}

static void
write_head (struct session *s, struct recording *r, const char *url)
{
    struct utsname host;
    char seed[2 * TAPE_SEED_BYTES + 1];
    json_t *head = json_object (), *env = json_object ();
    _cleanup_buf_ struct buf told = { 0 };
    uname (&host);
    hex_encode (tape_seed (r->tape), TAPE_SEED_BYTES, seed);
    json_set_u64 (head, "format", TAPE_FORMAT);
    json_set_string (head, "mur", MUR_VERSION);
    json_set_string (head, "arch", host.machine);
    json_set_string (head, "seed", seed);
    json_set_string (head, "url", url);
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        if (s->kit.artifacts[i].component)
            json_object_set_new (env, s->kit.artifacts[i].full_name,
                                 env_json (s, &s->kit.artifacts[i].guest.env));
    json_object_set_new (head, "env", env);
    if (fs_read (s->places.runtime, "MURMUR.md", (size_t)1 << 20, &told, NULL))
        tape_put (r->tape, head, "murmur_md", told.data, told.len);
    tape_write (r->tape, "head", head);
}

/* What outside gave the recorded session's guests, given to these. */
static void
give_env (struct session *s, const struct rec_tape *then)
{
    for (size_t i = 0; i < then->env_count; i++) {
        const struct rec_env *e = &then->env[i];
        struct staged_artifact *a = session_artifact_full (s, e->artifact);
        if (a && a->component && is_from_outside (s, e->name))
            guest_env_set (&a->guest.env, e->name, e->value);
    }
}

static bool
give_told (struct session *s, const struct record *then, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! rec_body_is_set (&then->tape->murmur_md))
        return true;
    return record_fetch (then, &then->tape->murmur_md, &text, err) &&
           fs_write (s->places.runtime, "MURMUR.md", text.data, text.len, 0444, true, err);
}

static bool
open_tape (struct session *s, struct recording *r, const char *url, struct mur_error **err)
{
    unsigned char seed[TAPE_SEED_BYTES];
    if (r->played)
        memcpy (seed, r->played->tape->seed, sizeof seed);
    else
        random_bytes (seed, sizeof seed);
    r->tape = tape_new (s->places.records, seed, err);
    if (! r->tape)
        return false;
    write_head (s, r, url);
    return true;
}

static struct tree_look_store *
new_trees (const struct snapshot_block *written)
{
    struct tree_limits limits = { SNAPSHOT_MAX_BYTES, SNAPSHOT_MAX_FILE, NULL, 0 };
    if (written)
        limits = (struct tree_limits){ written->max_bytes.value, written->max_file.value,
                                       (const char *const *)written->exclude.items,
                                       written->exclude.len };
    return tree_store_new (&limits);
}

bool
recording_begin (struct session *s, const char *url, struct mur_error **err)
{
    const struct player *p = s->asked->player;
    const struct record *played = p && player_record (p)->tape ? player_record (p) : NULL;
    bool is_kept = session_capture (s) >= CAPTURE_REPLAY;
    if (! played && ! is_kept)
        return true;
    struct recording *r = s->rooms.recording = x_new0 (struct recording);
    pthread_mutex_init (&r->lock, NULL);
    r->played = played;
    if (played) {
        give_env (s, played->tape);
        if (! give_told (s, played, err))
            return false;
    }
    r->trees = new_trees (s->manifest->trace ? s->manifest->trace->snapshot : NULL);
    return ! is_kept || open_tape (s, r, url, err);
}

void
recording_end (struct session *s)
{
    if (s->rooms.recording)
        tape_close (steal_ptr (&s->rooms.recording->tape));
}

void
recording_free (struct session *s)
{
    struct recording *r = s->rooms.recording;
    if (! r)
        return;
    tape_close (r->tape);
    tree_store_free (r->trees);
    for (size_t i = 0; i < r->counted_len; i++)
        free (r->counted[i].place);
    free (r->counted);
    pthread_mutex_destroy (&r->lock);
    free (r);
    s->rooms.recording = NULL;
}

struct tape *
recording_tape (const struct session *s)
{
    return s->rooms.recording ? s->rooms.recording->tape : NULL;
}

size_t
recording_task_number (const struct session *s)
{
    const struct recording *r = s->rooms.recording;
    return r && r->tasks ? r->tasks - 1 : 0;
}

/* --- files --- */

static void
keep_tree (struct session *s, bool is_start)
{
    struct recording *r = s->rooms.recording;
    struct tree_taken taken;
    if (! r->tape || ! tree_take (r->trees, r->tape, fs_root_fd (s->places.work), &taken))
        return;
    if (is_start || strcmp (r->tree, taken.sha) != 0) {
        json_t *line = json_object (), *left = json_array ();
        json_set_u64 (line, "task", r->tasks - 1);
        if (! is_start) {
            json_set_u64 (line, "turn", r->turn);
            json_set_u64 (line, "call", r->call);
        }
        json_set_string (line, "sha256", taken.sha);
        json_set_u64 (line, "files", taken.files);
        json_set_u64 (line, "bytes", taken.bytes);
        for (size_t i = 0; i < taken.left_out.len; i++)
            json_array_append_new (left, json_string (taken.left_out.items[i]));
        json_object_set_new (line, "left_out", left);
        json_set_u64 (line, "left_out_count", taken.left_out_count);
        tape_write (r->tape, "tree", line);
    }
    memcpy (r->tree, taken.sha, sizeof r->tree);
    tree_taken_clear (&taken);
}

/* --- files of a session that runs again --- */

/* What the folder holds now, <sha> "" when it cannot be told. */
static void
look_at_files (struct session *s, char sha[SHA256_HEX_LEN + 1])
{
    struct recording *r = s->rooms.recording;
    struct tree_taken taken;
    sha[0] = '\0';
    if (tree_take (r->trees, r->tape, fs_root_fd (s->places.work), &taken))
        memcpy (sha, taken.sha, sizeof taken.sha);
    tree_taken_clear (&taken);
}

static void
put_back (struct session *s, const struct rec_tree *then, struct mur_error **err)
{
    struct recording *r = s->rooms.recording;
    char now[SHA256_HEX_LEN + 1];
    look_at_files (s, now);
    if (! str_eq (now, then->sha))
        tree_restore (r->played, then->sha, fs_root_fd (s->places.work), err);
}

/* The folder as it was before a turn. */
static void
restore (struct session *s, size_t task, uint64_t turn)
{
    struct recording *r = s->rooms.recording;
    const struct rec_tree *then = r->played ? record_tree_before (r->played, task, turn) : NULL;
    _cleanup_error_ struct mur_error *err = NULL;
    if (then)
        put_back (s, then, &err);
    if (err)
        diag_error (err);
}

/* A call ran again: it must have left what it left then; what a command left is not promised, and
 * what it left then takes its place. */
static void
compare_files (struct session *s, bool is_promised)
{
    struct recording *r = s->rooms.recording;
    size_t task = r->tasks ? r->tasks - 1 : 0;
    const struct rec_tree *then = record_tree_after (r->played, task, r->turn, r->call);
    char now[SHA256_HEX_LEN + 1];
    _cleanup_error_ struct mur_error *err = NULL;
    if (! then)
        return;
    look_at_files (s, now);
    if (str_eq (now, then->sha))
        return;
    if (is_promised && ! then->left_out) {
        _cleanup_free_ char *path =
            tree_first_change (r->played, then->sha, fs_root_path (s->places.records), now);
        player_files (s->asked->player, r->turn, r->call, path ? path : ".");
    }
    if (! then->left_out &&
        ! tree_restore (r->played, then->sha, fs_root_fd (s->places.work), &err))
        diag_error (err);
}

void
recording_fork (struct session *s, uint64_t turn)
{
    struct recording *r = s->rooms.recording;
    if (r && r->played)
        restore (s, r->tasks ? r->tasks - 1 : 0, turn);
}

/* --- places --- */

void
recording_task (struct session *s)
{
    struct recording *r = s->rooms.recording;
    if (! r)
        return;
    r->tasks++;
    r->turn = 0;
    r->call = 0;
    r->replies = 0;
    if (r->played)
        restore (s, r->tasks - 1, 0);
    keep_tree (s, true);
}

void
recording_call (struct session *s, uint64_t turn)
{
    struct recording *r = s->rooms.recording;
    if (! r)
        return;
    if (r->turn != turn)
        r->call = 0;
    r->turn = turn;
}

void
recording_call_over (struct session *s, bool may_have_written, bool is_promised)
{
    struct recording *r = s->rooms.recording;
    if (! r)
        return;
    if (may_have_written && r->played && player_compares_files (s->asked->player))
        compare_files (s, is_promised);
    if (may_have_written)
        keep_tree (s, false);
    r->call++;
}

static unsigned
count_at (struct recording *r, const char *place)
{
    for (size_t i = 0; i < r->counted_len; i++)
        if (strcmp (r->counted[i].place, place) == 0)
            return r->counted[i].count++;
    x_grow (r->counted, r->counted_len, r->counted_cap);
    r->counted[r->counted_len++] = (struct counted){ x_strdup (place), 1 };
    return 0;
}

char *
recording_place (struct session *s, const struct staged_artifact *a)
{
    struct recording *r = s->rooms.recording;
    if (! r)
        return NULL;
    pthread_mutex_lock (&r->lock);
    _cleanup_free_ char *place =
        a->role == ROLE_TOOL ? x_asprintf ("%zu/%llu/%zu/%s", r->tasks ? r->tasks - 1 : 0,
                                           (unsigned long long)r->turn, r->call, a->full_name)
        : a->role == ROLE_HOOK
            ? x_asprintf ("hook/%s", a->full_name)
            : x_asprintf ("%zu/driver/%s", r->tasks ? r->tasks - 1 : 0, a->full_name);
    char *whole = x_asprintf ("%s#%u", place, count_at (r, place));
    pthread_mutex_unlock (&r->lock);
    return whole;
}

void
recording_key (const struct session *s, const char *place, unsigned char out[32])
{
    const struct recording *r = s->rooms.recording;
    tape_key (r->played ? r->played->tape->seed : tape_seed (r->tape), place, out);
}

/* --- people --- */

void
recording_keep_reply (struct session *s, const char *prompt, const struct recording_reply *reply)
{
    struct recording *r = s->rooms.recording;
    if (! r || ! r->tape)
        return;
    json_t *line = json_object ();
    json_set_u64 (line, "task", r->tasks ? r->tasks - 1 : 0);
    json_set_u64 (line, "turn", r->turn);
    json_set_u64 (line, "call", r->call);
    tape_put (r->tape, line, "prompt", prompt, strlen (prompt));
    if (reply->text)
        tape_put (r->tape, line, "reply", reply->text, strlen (reply->text));
    json_set_bool (line, "timed_out", reply->has_timed_out);
    tape_write (r->tape, "input", line);
}

bool
recording_next_reply (struct session *s, struct recording_reply *out, struct mur_error **err)
{
    struct recording *r = s->rooms.recording;
    const struct rec_input *then =
        r && r->played ? record_input (r->played, r->tasks ? r->tasks - 1 : 0, r->replies) : NULL;
    _cleanup_buf_ struct buf text = { 0 };
    *out = (struct recording_reply){ 0 };
    if (! then)
        return false;
    r->replies++;
    out->has_timed_out = then->has_timed_out;
    if (! rec_body_is_set (&then->reply))
        return true;
    if (! record_fetch (r->played, &then->reply, &text, err))
        return false;
    out->text = x_strndup (text.data ? text.data : "", text.len);
    return true;
}
