/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/census.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "base/json.h"
#include "home/running.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_RECORD (1 << 20)

struct member {
    char *session_id;
    pid_t pid;
    char *process_start;
};

struct census {
    char *running_dir;
    struct member *members;
    size_t len, cap;
};

static void
member_free (struct member *m)
{
    free (m->session_id);
    free (m->process_start);
}

/* What a record needs to be one of ours; an older writer's has no records_dir. */
static bool
parse (const char *text, size_t len, struct member *m)
{
    _cleanup_json_ json_t *o = json_loadb (text, len, 0, NULL);
    const char *session_id = json_get_string (o, "session_id");
    const char *start = json_get_string (o, "process_start");
    uint64_t pid;
    if (! session_id || ! start || ! json_get_string (o, "url") ||
        ! json_get_string (o, "records_dir") || ! json_get_u64 (o, "pid", &pid) || pid == 0 ||
        pid > INT32_MAX)
        return false;
    *m = (struct member){ x_strdup (session_id), (pid_t)pid, x_strdup (start) };
    return true;
}

static bool
read_record (int dir_fd, const char *name, struct member *m)
{
    struct stat st;
    _cleanup_close_ int fd = openat (dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    _cleanup_buf_ struct buf text = { 0 };
    if (fd < 0 || fstat (fd, &st) < 0 || ! S_ISREG (st.st_mode) ||
        ! fd_read_all (fd, MAX_RECORD, &text))
        return false;
    bool is_ours = text.len && parse (text.data, text.len, m);
    if (text.data) /* door tokens were in it */
        explicit_bzero (text.data, text.len);
    return is_ours;
}

/* A start that was not recorded differs from one that can be read now. */
static bool
is_gone (const struct member *m)
{
    const char *reason;
    char start[24];
    if (! *m->process_start && process_start_text (m->pid, start))
        return true;
    return running_check (m->pid, m->process_start, &reason) == RUNNING_GONE;
}

static bool
take_all (struct census *c, DIR *dir, struct census_facts *facts)
{
    for (;;) {
        errno = 0;
        struct dirent *e = readdir (dir);
        if (! e)
            return errno == 0;
        size_t len = strlen (e->d_name);
        struct member m;
        if (len < 5 || strcmp (e->d_name + len - 5, ".json") != 0)
            continue;
        if (! read_record (dirfd (dir), e->d_name, &m)) {
            facts->unreadable++;
        } else if (is_gone (&m)) {
            facts->stale++;
            member_free (&m);
        } else {
            facts->counted++;
            x_grow (c->members, c->len, c->cap);
            c->members[c->len++] = m;
        }
    }
}

struct census *
census_take (const char *running_dir, struct census_facts *facts, struct mur_error **err)
{
    uint64_t start = clock_monotonic_us ();
    *facts = (struct census_facts){ 0 };
    _cleanup_ (census_freep) struct census *c = x_new0 (struct census);
    c->running_dir = x_strdup (running_dir);
    _cleanup_closedir_ DIR *dir = opendir (running_dir);
    if ((! dir && errno != ENOENT) || (dir && ! take_all (c, dir, facts)))
        return mur_fail_errno (err, E_RUN_028, "cannot list %s", running_dir), NULL;
    facts->read_ms = (double)(clock_monotonic_us () - start) / 1000;
    return steal_ptr (&c);
}

void
census_free (struct census *c)
{
    if (! c)
        return;
    for (size_t i = 0; i < c->len; i++)
        member_free (&c->members[i]);
    free (c->members);
    free (c->running_dir);
    free (c);
}

enum census_record
census_look (const struct census *c, const char *session_id)
{
    struct member m;
    if (! id_is_valid (session_id, "ses_"))
        return RECORD_NONE;
    _cleanup_free_ char *path = x_asprintf ("%s/%s.json", c->running_dir, session_id);
    if (! read_record (AT_FDCWD, path, &m))
        return RECORD_NONE;
    enum census_record record = ! str_eq (m.session_id, session_id) ? RECORD_NONE
                                : is_gone (&m)                      ? RECORD_GONE
                                                                    : RECORD_LIVE;
    member_free (&m);
    return record;
}

uint64_t
census_count (struct census *c, bool (*is_known) (void *ctx, const char *session_id), void *ctx)
{
    uint64_t live = 0;
    for (size_t i = 0; i < c->len;) {
        if (is_gone (&c->members[i])) {
            member_free (&c->members[i]);
            c->members[i] = c->members[--c->len];
            continue;
        }
        live += ! is_known (ctx, c->members[i].session_id);
        i++;
    }
    return live;
}
