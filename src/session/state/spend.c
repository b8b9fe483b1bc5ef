/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/spend.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/json.h"
#include "home/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#define LEDGER_KEPT_DAYS 30
#define DAY_MS           86400000ull

struct ledger {
    int dir_fd;
    int fd;          /* of today's file */
    uint64_t day;    /* UTC days since 1970 */
    uint64_t offset; /* bytes of it already added up */
    uint64_t total;
};

struct spend_meter {
    pthread_mutex_t lock; /* a leaf */
    char *session_id;
    uint64_t ceiling, machine_ceiling;
    uint64_t used;
    uint64_t reserved;
    bool is_open;
    bool is_latched;
    struct spend_refusal latched;
    bool has_ledger;
    bool is_ledger_reported;
    struct ledger ledger;
};

const char *
spend_limit_name (enum spend_limit limit)
{
    return limit == SPEND_MACHINE ? "machine" : "session";
}

/* --- the machine ledger --- */

static void
day_file (uint64_t day, char out[32])
{
    char text[25];
    clock_rfc3339 (day * DAY_MS, text);
    snprintf (out, 32, "%.10s.jsonl", text);
}

static void
ledger_prune (int dir_fd, uint64_t today)
{
    char oldest[32];
    day_file (today > LEDGER_KEPT_DAYS ? today - LEDGER_KEPT_DAYS : 0, oldest);
    int copy = fcntl (dir_fd, F_DUPFD_CLOEXEC, 3);
    _cleanup_closedir_ DIR *dir = copy >= 0 ? fdopendir (copy) : NULL;
    if (! dir) {
        if (copy >= 0)
            close (copy);
        return;
    }
    for (struct dirent *e; (e = readdir (dir));)
        if (strlen (e->d_name) == strlen (oldest) && strcmp (e->d_name, oldest) < 0)
            unlinkat (dir_fd, e->d_name, 0);
}

static bool
ledger_open_day (struct ledger *l, uint64_t day, struct mur_error **err)
{
    char name[32];
    day_file (day, name);
    int fd = openat (l->dir_fd, name, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;
    if (fd < 0 || fstat (fd, &st) != 0 || ! S_ISREG (st.st_mode)) {
        mur_fail_errno (err, E_RUN_026, "cannot open the spend ledger ~/.murmur/spend/%s", name);
        if (fd >= 0)
            close (fd);
        return false;
    }
    if ((st.st_mode & 07777) != 0600)
        (void)fchmod (fd, 0600);
    if (l->fd >= 0)
        close (l->fd);
    l->fd = fd;
    l->day = day;
    l->offset = 0;
    l->total = 0;
    return true;
}

static uint64_t
line_tokens (const char *line, size_t len)
{
    _cleanup_json_ json_t *value = json_loadb (line, len, 0, NULL);
    uint64_t input = 0, output = 0;
    if (! json_is_object (value) || ! json_get_u64 (value, "input_tokens", &input) ||
        ! json_get_u64 (value, "output_tokens", &output))
        return 0;
    return input + output;
}

/* Adds up the whole lines after the offset; a torn last line waits. */
static bool
ledger_read (struct ledger *l, struct mur_error **err)
{
    uint64_t today = clock_unix_ms () / DAY_MS;
    if (today != l->day && ! ledger_open_day (l, today, err))
        return false;
    struct stat st;
    if (fstat (l->fd, &st) != 0)
        return mur_fail_errno (err, E_RUN_026, "cannot read the spend ledger");
    if ((uint64_t)st.st_size <= l->offset)
        return true;
    size_t left = (size_t)((uint64_t)st.st_size - l->offset);
    _cleanup_buf_ struct buf text = { 0 };
    char *to = buf_reserve (&text, left);
    ssize_t n = pread (l->fd, to, left, (off_t)l->offset);
    if (n < 0)
        return mur_fail_errno (err, E_RUN_026, "cannot read the spend ledger");
    for (char *line = to, *end = to + n, *stop;
         line < end && (stop = memchr (line, '\n', (size_t)(end - line))); line = stop + 1) {
        l->total += line_tokens (line, (size_t)(stop - line));
        l->offset += (uint64_t)(stop - line) + 1;
    }
    return true;
}

static bool
ledger_append (struct spend_meter *m, uint64_t input, uint64_t output, struct mur_error **err)
{
    if (! ledger_read (&m->ledger, err))
        return false;
    char time[25];
    clock_rfc3339 (clock_unix_ms (), time);
    _cleanup_buf_ struct buf line = { 0 };
    buf_printf (
        &line,
        "{\"ts\":\"%s\",\"session_id\":\"%s\",\"input_tokens\":%llu,\"output_tokens\":%llu}\n",
        time, m->session_id, (unsigned long long)input, (unsigned long long)output);
    if (! fd_write_all (m->ledger.fd, line.data, line.len))
        return mur_fail_errno (err, E_RUN_026, "cannot append to the spend ledger");
    return true;
}

static bool
ledger_open (struct ledger *l, struct mur_error **err)
{
    l->fd = -1;
    l->dir_fd = home_open_dir ("spend", err);
    if (l->dir_fd < 0) {
        if (err && *err)
            (*err)->code = E_RUN_026;
        return false;
    }
    uint64_t today = clock_unix_ms () / DAY_MS;
    ledger_prune (l->dir_fd, today);
    return ledger_open_day (l, today, err) && ledger_read (l, err);
}

/* After staging the ledger never fails a session. */
static void
report_ledger (struct spend_meter *m, const struct mur_error *why)
{
    if (m->is_ledger_reported)
        return;
    m->is_ledger_reported = true;
    diag_plain_warning ("%s", why->message);
}

/* --- the meter --- */

struct spend_meter *
spend_meter_new (const char *session_id, uint64_t session_ceiling, uint64_t machine_ceiling,
                 struct mur_error **err)
{
    _cleanup_ (spend_meter_freep) struct spend_meter *m = x_new0 (struct spend_meter);
    pthread_mutex_init (&m->lock, NULL);
    m->session_id = x_strdup (session_id);
    m->ceiling = session_ceiling;
    m->machine_ceiling = machine_ceiling;
    m->ledger.fd = m->ledger.dir_fd = -1;
    if (machine_ceiling) {
        m->has_ledger = true;
        if (! ledger_open (&m->ledger, err))
            return NULL;
    }
    return steal_ptr (&m);
}

void
spend_meter_free (struct spend_meter *m)
{
    if (! m)
        return;
    if (m->ledger.fd >= 0)
        close (m->ledger.fd);
    if (m->ledger.dir_fd >= 0)
        close (m->ledger.dir_fd);
    pthread_mutex_destroy (&m->lock);
    free (m->session_id);
    free (m);
}

static bool
fits (uint64_t used, uint64_t reserved, uint64_t requested, uint64_t ceiling)
{
    return used <= ceiling && reserved <= ceiling - used && requested <= ceiling - used - reserved;
}

static bool
admit_locked (struct spend_meter *m, uint64_t requested, struct spend_refusal *refusal)
{
    if (m->is_latched) {
        *refusal = m->latched;
        refusal->requested = requested;
        return false;
    }
    if (m->ceiling && ! fits (m->used, m->reserved, requested, m->ceiling)) {
        m->is_latched = true;
        m->latched =
            (struct spend_refusal){ SPEND_SESSION, m->ceiling, m->used + m->reserved, requested };
        *refusal = m->latched;
        return false;
    }
    if (m->has_ledger) {
        _cleanup_error_ struct mur_error *err = NULL;
        if (! ledger_read (&m->ledger, &err))
            report_ledger (m, err);
        if (! fits (m->ledger.total, m->reserved, requested, m->machine_ceiling)) {
            *refusal = (struct spend_refusal){ SPEND_MACHINE, m->machine_ceiling,
                                               m->ledger.total + m->reserved, requested };
            return false;
        }
    }
    m->reserved += requested;
    m->is_open = true;
    return true;
}

bool
spend_admit (struct spend_meter *m, uint64_t input, uint64_t output, struct spend_refusal *refusal)
{
    pthread_mutex_lock (&m->lock);
    bool ok = admit_locked (m, input + output, refusal);
    pthread_mutex_unlock (&m->lock);
    return ok;
}

void
spend_settle (struct spend_meter *m, uint64_t input, uint64_t output)
{
    pthread_mutex_lock (&m->lock);
    m->used += input + output;
    if (m->has_ledger && (input || output)) {
        _cleanup_error_ struct mur_error *err = NULL;
        if (! ledger_append (m, input, output, &err))
            report_ledger (m, err);
    }
    m->reserved = 0;
    m->is_open = false;
    pthread_mutex_unlock (&m->lock);
}

bool
spend_charge (struct spend_meter *m, uint64_t input, uint64_t output, struct spend_refusal *refusal)
{
    if (input || output)
        spend_settle (m, input, output);
    struct spend_totals t;
    spend_totals (m, &t);
    bool is_session = t.ceiling && t.used >= t.ceiling;
    bool is_machine = t.machine_ceiling && t.machine_used >= t.machine_ceiling;
    if (! is_session && ! is_machine)
        return true;
    *refusal = is_session
                   ? (struct spend_refusal){ SPEND_SESSION, t.ceiling, t.used, 0 }
                   : (struct spend_refusal){ SPEND_MACHINE, t.machine_ceiling, t.machine_used, 0 };
    return false;
}

void
spend_release (struct spend_meter *m)
{
    spend_settle (m, 0, 0);
}

bool
spend_is_open (struct spend_meter *m)
{
    pthread_mutex_lock (&m->lock);
    bool open = m->is_open;
    pthread_mutex_unlock (&m->lock);
    return open;
}

void
spend_totals (struct spend_meter *m, struct spend_totals *out)
{
    pthread_mutex_lock (&m->lock);
    if (m->has_ledger) {
        _cleanup_error_ struct mur_error *err = NULL;
        if (! ledger_read (&m->ledger, &err))
            report_ledger (m, err);
    }
    *out = (struct spend_totals){ m->used, m->ceiling, m->ledger.total, m->machine_ceiling };
    pthread_mutex_unlock (&m->lock);
}
