/* SPDX-License-Identifier: Apache-2.0 */
#include "home/running.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/ids.h"
#include "base/json.h"
#include "fs/paths.h"
#include "fs/replace.h"
#include "fs/root.h"
#include "home/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define RECORD_LIMIT_BYTES ((size_t)1 << 20)

/* --- processes --- */

/* Fields 3 (state) and 22 (start time) of /proc/<pid>/stat, counted after the last ')'. */
static bool
read_stat (pid_t pid, char *state, char start[24])
{
    _cleanup_free_ char *path = x_asprintf ("/proc/%ld/stat", (long)pid);
    _cleanup_buf_ struct buf text = { 0 };
    if (! fs_read_path (path, 4096, &text, NULL) || text.len == 0)
        return false;
    char *at = strrchr (text.data, ')');
    if (! at)
        return false;
    char *save = NULL, *field = strtok_r (at + 1, " ", &save);
    if (! field)
        return false;
    *state = *field;
    for (int number = 3; field && number < 22; number++)
        field = strtok_r (NULL, " ", &save);
    if (! field || strlen (field) >= 24)
        return false;
    strcpy (start, field);
    return true;
}

bool
process_start_text (pid_t pid, char out[24])
{
    char state;
    return read_stat (pid, &state, out);
}

enum running_liveness
running_check (pid_t pid, const char *process_start, const char **reason)
{
    const char *unused;
    if (! reason)
        reason = &unused;
    *reason = NULL;
    if (pid < 1 || (kill (pid, 0) != 0 && errno != EPERM)) {
        *reason = "its process is gone";
        return RUNNING_GONE;
    }
    char state = '?', start[24];
    if (! read_stat (pid, &state, start))
        return RUNNING_UNVERIFIED;
    if (state == 'Z' || state == 'X') {
        *reason = "its process has ended";
        return RUNNING_GONE;
    }
    if (! process_start || *process_start == '\0')
        return RUNNING_UNVERIFIED;
    if (strcmp (start, process_start) != 0) {
        *reason = "its process id belongs to another process now";
        return RUNNING_GONE;
    }
    return RUNNING_HELD;
}

bool
running_signal (pid_t pid, const char *process_start, int signal, enum running_liveness *liveness)
{
    *liveness = running_check (pid, process_start, NULL);
    return *liveness == RUNNING_HELD && kill (pid, signal) == 0;
}

/* --- one record --- */

void
running_record_clear (struct running_record *r)
{
    char *const strings[] = {
        r->session_id,     r->url,         r->process_start, r->capsule_name, r->capsule_version,
        r->workdir,        r->records_dir, r->started_at,    r->formation_id, r->formation_member,
        r->launcher_start, r->spawned_by
    };
    for (size_t i = 0; i < ARRAY_LEN (strings); i++)
        free (strings[i]);
    secret_free (r->door_token);
    for (size_t i = 0; i < r->credential_count; i++) {
        free (r->credentials[i].name);
        secret_free (r->credentials[i].token);
    }
    free (r->credentials);
    *r = (struct running_record){ 0 };
}

void
running_record_fill_self (struct running_record *r)
{
    char start[24] = "";
    r->pid = getpid ();
    (void)process_start_text (r->pid, start);
    r->process_start = x_strdup (start);
    _cleanup_close_ int tty = open ("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    r->outlives_launcher = tty < 0;
    struct timespec now;
    struct tm parts;
    clock_gettime (CLOCK_REALTIME, &now);
    gmtime_r (&now.tv_sec, &parts);
    char date[32];
    strftime (date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
    r->started_at = x_asprintf ("%s.%09ld+00:00", date, now.tv_nsec);
}

static json_t *
secret_json (const struct secret *s)
{
    return json_stringn_nocheck (secret_reveal (s), secret_len (s));
}

static json_t *
record_json (const struct running_record *r)
{
    json_t *o = json_object ();
    json_set_string (o, "session_id", r->session_id);
    json_set_string (o, "url", r->url);
    json_object_set_new (o, "pid", json_integer (r->pid));
    json_set_string (o, "process_start", r->process_start);
    json_set_string (o, "capsule_name", r->capsule_name);
    json_set_string (o, "capsule_version", r->capsule_version);
    json_set_string (o, "workdir", r->workdir);
    json_set_string (o, "records_dir", r->records_dir);
    json_set_bool (o, "outlives_launcher", r->outlives_launcher);
    json_set_string (o, "started_at", r->started_at);
    if (r->ends_by_itself)
        json_set_bool (o, "ends_by_itself", true);
    if (r->door_token)
        json_object_set_new (o, "door_token", secret_json (r->door_token));
    if (r->credential_count) {
        json_t *credentials = json_object ();
        for (size_t i = 0; i < r->credential_count; i++)
            json_object_set_new (credentials, r->credentials[i].name,
                                 secret_json (r->credentials[i].token));
        json_object_set_new (o, "credentials", credentials);
    }
    if (r->formation_id)
        json_set_string (o, "formation_id", r->formation_id);
    if (r->formation_member)
        json_set_string (o, "formation_member", r->formation_member);
    if (r->formation_entry)
        json_set_bool (o, "formation_entry", true);
    if (r->formation_lifeline)
        json_set_bool (o, "formation_lifeline", true);
    if (r->launcher_pid) {
        json_t *launcher = json_object ();
        json_object_set_new (launcher, "pid", json_integer (r->launcher_pid));
        json_set_string (launcher, "process_start", r->launcher_start);
        json_object_set_new (o, "formation_launcher", launcher);
    }
    if (r->spawned_by)
        json_set_string (o, "spawned_by", r->spawned_by);
    return o;
}

static bool
write_file (const char *name, const char *text, size_t len, struct mur_error **err)
{
    _cleanup_close_ int dir_fd = home_open_dir ("running", err);
    return dir_fd >= 0 && fs_replace_at (dir_fd, name, text, len, 0600, false, err);
}

bool
running_write (const struct running_record *r, struct mur_error **err)
{
    _cleanup_json_ json_t *record = record_json (r);
    char *text = json_pretty (record, JSON_TEXT_ORDERED);
    _cleanup_free_ char *name = x_asprintf ("%s.json", r->session_id);
    bool is_written = write_file (name, text, strlen (text), err);
    secret_wipe (text, strlen (text)); /* it may hold tokens */
    free (text);
    return is_written || mur_context (err, "the running record was not written");
}

bool
running_write_control (const char *session_id, const struct secret *token, struct mur_error **err)
{
    _cleanup_free_ char *name = x_asprintf ("%s.control", session_id);
    _cleanup_error_ struct mur_error *cause = NULL;
    if (write_file (name, secret_reveal (token), secret_len (token), &cause))
        return true;
    return mur_fail (err, E_RUN_041, "the control token was not written: %s", cause->message);
}

struct secret *
running_read_control (const char *session_id, struct mur_error **err)
{
    _cleanup_free_ char *below = x_asprintf ("running/%s.control", session_id);
    _cleanup_free_ char *path = home_path_below (below, err);
    _cleanup_buf_ struct buf text = { 0 };
    if (! path)
        return NULL;
    if (! fs_read_path (path, 4096, &text, NULL))
        return mur_fail (err, E_RUN_042, "%s has no control surface", session_id), NULL;
    struct secret *token = secret_new (text.data ? text.data : "", text.len);
    secret_wipe (text.data, text.len);
    return token;
}

static void
remove_at (int dir_fd, const char *session_id)
{
    static const char *const endings[] = { "json", "control" };
    for (size_t i = 0; i < ARRAY_LEN (endings); i++) {
        _cleanup_free_ char *name = x_asprintf ("%s.%s", session_id, endings[i]);
        unlinkat (dir_fd, name, 0);
    }
}

void
running_remove (const char *session_id)
{
    _cleanup_close_ int dir_fd = home_find_dir ("running", NULL);
    if (dir_fd >= 0)
        remove_at (dir_fd, session_id);
}

/* --- reading --- */

static bool
take_string (const json_t *o, const char *key, char **out)
{
    const char *text = json_get_string (o, key);
    *out = text ? x_strdup (text) : NULL;
    return text != NULL;
}

/* Absent, null and false read as "not set"; anything else must be a string. */
static bool
take_optional_string (const json_t *o, const char *key, char **out)
{
    const json_t *member = json_object_get (o, key);
    return ! member || json_is_null (member) || take_string (o, key, out);
}

static bool
take_pid (const json_t *o, const char *key, pid_t *out)
{
    const json_t *member = json_object_get (o, key);
    if (! json_is_integer (member))
        return false;
    json_int_t pid = json_integer_value (member);
    *out = pid >= 1 && pid <= INT_MAX ? (pid_t)pid : 0;
    return true;
}

static bool
take_secrets (const json_t *o, struct running_record *r)
{
    const char *token = json_get_string (o, "door_token");
    if (token)
        r->door_token = secret_new (token, strlen (token));
    json_t *credentials = json_object_get (o, "credentials");
    if (! credentials)
        return true;
    if (! json_is_object (credentials))
        return false;
    r->credentials = x_new_array (struct running_credential, json_object_size (credentials) + 1);
    const char *name;
    json_t *value;
    json_object_foreach (credentials, name, value)
    {
        if (! json_is_string (value))
            return false;
        r->credentials[r->credential_count++] = (struct running_credential){
            .name = x_strdup (name),
            .token = secret_new (json_string_value (value), json_string_length (value)),
        };
    }
    return true;
}

static bool
take_formation (const json_t *o, struct running_record *r)
{
    if (! take_optional_string (o, "formation_id", &r->formation_id) ||
        ! take_optional_string (o, "formation_member", &r->formation_member) ||
        ! take_optional_string (o, "spawned_by", &r->spawned_by))
        return false;
    if (r->formation_id && ! id_is_valid (r->formation_id, "frm_"))
        return false;
    if (r->formation_member && r->formation_member[0] == '\0')
        return false;
    r->formation_entry = json_is_true (json_object_get (o, "formation_entry"));
    r->formation_lifeline = json_is_true (json_object_get (o, "formation_lifeline"));
    const json_t *launcher = json_object_get (o, "formation_launcher");
    if (! launcher)
        return true;
    return json_is_object (launcher) && take_pid (launcher, "pid", &r->launcher_pid) &&
           r->launcher_pid > 0 && take_string (launcher, "process_start", &r->launcher_start);
}

static bool
take_record (const json_t *o, struct running_record *r)
{
    const json_t *outlives = json_object_get (o, "outlives_launcher");
    r->outlives_launcher = json_is_true (outlives);
    r->ends_by_itself = json_is_true (json_object_get (o, "ends_by_itself"));
    return json_is_boolean (outlives) && take_string (o, "session_id", &r->session_id) &&
           id_is_valid (r->session_id, "ses_") && take_string (o, "url", &r->url) &&
           take_pid (o, "pid", &r->pid) && take_string (o, "process_start", &r->process_start) &&
           take_string (o, "capsule_name", &r->capsule_name) &&
           take_string (o, "capsule_version", &r->capsule_version) &&
           take_string (o, "workdir", &r->workdir) &&
           take_string (o, "records_dir", &r->records_dir) &&
           take_string (o, "started_at", &r->started_at) && take_secrets (o, r) &&
           take_formation (o, r);
}

/* Whoever names another session in a file of its own name would have that one's record removed. */
static bool
is_named_for (const char *path, const struct running_record *r)
{
    const char *name = strrchr (path, '/') + 1;
    size_t len = strlen (r->session_id);
    return strncmp (name, r->session_id, len) == 0 && str_eq (name + len, ".json");
}

static void
push_path (char ***list, size_t *len, const char *path)
{
    *list = x_reallocarray (*list, *len + 1, sizeof **list);
    (*list)[(*len)++] = x_strdup (path);
}

static void
scan_file (struct running_scan *out, const char *path)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! fs_read_path (path, RECORD_LIMIT_BYTES, &text, NULL)) {
        /* Gone between the listing and now is nothing; anything else cannot be parsed. */
        if (access (path, F_OK) == 0)
            push_path (&out->unreadable, &out->unreadable_len, path);
        return;
    }
    _cleanup_json_ json_t *o =
        json_parse (text.data ? text.data : "", text.len, path, E_IO_003, NULL);
    if (json_is_object (o) && json_get_string (o, "session_id") &&
        ! json_object_get (o, "records_dir")) {
        push_path (&out->older, &out->older_len, path);
        return;
    }
    struct running_entry entry = { 0 };
    if (! json_is_object (o) || ! take_record (o, &entry.record) ||
        ! is_named_for (path, &entry.record)) {
        running_record_clear (&entry.record);
        push_path (&out->unreadable, &out->unreadable_len, path);
        return;
    }
    entry.path = x_strdup (path);
    entry.liveness =
        running_check (entry.record.pid, entry.record.process_start, &entry.gone_reason);
    out->entries = x_reallocarray (out->entries, out->len + 1, sizeof *out->entries);
    out->entries[out->len++] = entry;
}

static int
newest_first (const void *a, const void *b)
{
    const struct running_entry *x = a, *y = b;
    return strcmp (y->record.session_id, x->record.session_id);
}

bool
running_scan (bool creates, struct running_scan *out, struct mur_error **err)
{
    *out = (struct running_scan){ 0 };
    _cleanup_error_ struct mur_error *cause = NULL;
    _cleanup_free_ char *dir_path = home_path_below ("running", err);
    if (! dir_path)
        return false;
    int fd = creates ? home_open_dir ("running", &cause) : home_find_dir ("running", &cause);
    if (fd < 0 && ! cause)
        return true;
    _cleanup_closedir_ DIR *dir = fd >= 0 ? fdopendir (fd) : NULL;
    if (! dir) {
        mur_fail (err, E_RUN_028, "%s cannot be read: %s", dir_path,
                  cause ? cause->message : strerror (errno));
        return mur_hint (err, "%s", cause && cause->hint ? cause->hint : "look at its mode");
    }
    struct dirent *found;
    errno = 0;
    while ((found = readdir (dir))) {
        if (! str_ends (found->d_name, ".json"))
            continue;
        _cleanup_free_ char *path = x_asprintf ("%s/%s", dir_path, found->d_name);
        scan_file (out, path);
        errno = 0;
    }
    if (errno) {
        running_scan_free (out);
        return mur_fail_errno (err, E_RUN_028, "%s cannot be read", dir_path);
    }
    if (out->len)
        qsort (out->entries, out->len, sizeof *out->entries, newest_first);
    return true;
}

void
running_scan_free (struct running_scan *s)
{
    for (size_t i = 0; i < s->len; i++) {
        free (s->entries[i].path);
        running_record_clear (&s->entries[i].record);
    }
    for (size_t i = 0; i < s->unreadable_len; i++)
        free (s->unreadable[i]);
    for (size_t i = 0; i < s->older_len; i++)
        free (s->older[i]);
    free (s->entries);
    free (s->unreadable);
    free (s->older);
    *s = (struct running_scan){ 0 };
}

void
running_prune (const struct running_scan *s)
{
    for (size_t i = 0; i < s->len; i++) {
        const struct running_entry *e = &s->entries[i];
        if (e->liveness != RUNNING_GONE)
            continue;
        unlink (e->path);
        running_remove (e->record.session_id);
    }
    for (size_t i = 0; i < s->unreadable_len; i++)
        unlink (s->unreadable[i]);
}
