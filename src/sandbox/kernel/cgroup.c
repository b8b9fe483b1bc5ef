/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/cgroup.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "sandbox/kernel/block_device.h"
#include "sandbox/kernel/cgroup_nest.h"
#include "sandbox/kernel/cgroup_places.h"
#include "sandbox/kernel/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define HAND_DOWN_MS 2000
#define MAKE_TRIES   3

struct group {
    char *path; /* NULL: not used */
    int dir_fd;
    int join_fd; /* who writes "0" there is in it */
};

struct cgroup_scope {
    bool is_v2; /* controllers come from version 2 */
    struct group groups[H_COUNT];
    int kill_fd;      /* cgroup.kill, or -1 */
    int oom_kills_fd; /* the files that count, or -1: each command looks at them twice */
    int pids_refused_fd;
    enum cgroup_io_status io_status;
    char *io_reason;
};

/* --- small file helpers --- */

static bool
write_at (int dir_fd, const char *name, const char *text)
{
    _cleanup_close_ int fd = openat (dir_fd, name, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && fd_write_all (fd, text, strlen (text));
}

static char *
read_at (int dir_fd, const char *name)
{
    _cleanup_close_ int fd = openat (dir_fd, name, O_RDONLY | O_CLOEXEC);
    struct buf text = { 0 };
    if (fd >= 0 && fd_read_all (fd, 1 << 20, &text))
        return buf_steal (&text);
    buf_free (&text);
    return NULL;
}

/* The number after "<key> " at the start of a line. */
static uint64_t
keyed_number (const char *text, const char *key)
{
    size_t len = strlen (key);
    for (const char *line = text; line && *line; line = strchr (line, '\n'), line += line != NULL)
        if (strncmp (line, key, len) == 0 && line[len] == ' ')
            return strtoull (line + len + 1, NULL, 10);
    return 0;
}

/* --- making the scope --- */

static void
group_close (struct group *g)
{
    if (g->join_fd >= 0)
        close (g->join_fd);
    if (g->dir_fd >= 0)
        close (g->dir_fd);
    g->dir_fd = g->join_fd = -1;
}

/* By hierarchy. Version 1 takes a single thread, which is all of who joins, without the lock over
 * every fork of the host that moving a process waits for: a grace period of 5 to 20 ms. */
static const char *
join_file (int hierarchy)
{
    return hierarchy == H_UNIFIED ? "cgroup.procs" : "tasks";
}

/* Opens what joining needs of a group that was made, and holds it: a sweep leaves a held group
 * alone (sandbox/kernel/cgroup_sweep.c). False with ENOENT when one was quicker. */
static bool
group_hold (struct group *g, const char *path, const char *join)
{
    g->dir_fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (g->dir_fd >= 0) {
        (void)flock (g->dir_fd, LOCK_SH);
        g->join_fd = openat (g->dir_fd, join, O_WRONLY | O_CLOEXEC);
    }
    if (g->join_fd >= 0)
        return true;
    int saved = errno;
    group_close (g);
    rmdir (path);
    errno = saved;
    return false;
}

/* False with ENOENT: the place is not there. */
static bool
group_make_at (struct group *g, const char *path, const char *join)
{
    for (int i = 0; i < MAKE_TRIES; i++) {
        if (mkdir (path, 0755) < 0)
            return false;
        if (group_hold (g, path, join)) {
            g->path = x_strdup (path);
            return true;
        }
        if (errno != ENOENT)
            return false;
    }
    return false;
}

/* Creates <mount><own>/<name>. A path seen from another namespace ("/../x") falls back to the mount
 * point itself. */
static bool
group_make (struct cgroup_scope *s, int hierarchy, const struct cgroup_place *place,
            const char *name)
{
    struct group *g = &s->groups[hierarchy];
    const char *own = place->own && ! strstr (place->own, "/..") ? place->own : "";
    const char *bases[] = { own, "" };
    for (size_t i = 0; i < ARRAY_LEN (bases); i++) {
        _cleanup_free_ char *path =
            x_asprintf ("%s%s/%s", place->mount, str_eq (bases[i], "/") ? "" : bases[i], name);
        if (group_make_at (g, path, join_file (hierarchy)))
            return true;
        if (errno != ENOENT)
            return false;
    }
    return false;
}

static bool
group_set (const struct group *g, const char *file, uint64_t value)
{
    char text[32];
    snprintf (text, sizeof text, "%llu", (unsigned long long)value);
    return write_at (g->dir_fd, file, text);
}

static bool
set_v1_limits (struct cgroup_scope *s, const struct cgroup_limits *l)
{
    if (! group_set (&s->groups[H_MEMORY], "memory.limit_in_bytes", l->memory_bytes) ||
        ! group_set (&s->groups[H_PIDS], "pids.max", l->pids_max) ||
        ! group_set (&s->groups[H_CPU], "cpu.cfs_period_us", 100000) ||
        ! group_set (&s->groups[H_CPU], "cpu.cfs_quota_us", l->cpu_percent * 1000))
        return false;
    /* Memory plus swap: no swap beyond the memory itself. Absent where swap accounting is off. */
    (void)group_set (&s->groups[H_MEMORY], "memory.memsw.limit_in_bytes", l->memory_bytes);
    return true;
}

static bool
set_v2_limits (struct cgroup_scope *s, const struct cgroup_limits *l)
{
    char text[64];
    const struct group *g = &s->groups[H_UNIFIED];
    snprintf (text, sizeof text, "%llu 100000", (unsigned long long)l->cpu_percent * 1000);
    if (! group_set (g, "memory.max", l->memory_bytes) ||
        ! group_set (g, "pids.max", l->pids_max) || ! write_at (g->dir_fd, "cpu.max", text))
        return false;
    (void)group_set (g, "memory.swap.max", 0); /* absent without swap accounting */
    return true;
}

static void
set_io_limit (struct cgroup_scope *s, const struct cgroup_limits *l)
{
    unsigned major_number, minor_number;
    if (l->io_bytes_per_sec == 0)
        return;
    s->io_status = CGROUP_IO_UNAVAILABLE;
    s->io_reason = block_device_of (l->io_path, &major_number, &minor_number);
    if (s->io_reason)
        return;
    unsigned long long rate = l->io_bytes_per_sec;
    char text[128];
    bool is_set;
    if (s->is_v2) {
        snprintf (text, sizeof text, "%u:%u rbps=%llu wbps=%llu", major_number, minor_number, rate,
                  rate);
        is_set = write_at (s->groups[H_UNIFIED].dir_fd, "io.max", text);
    } else {
        int dir = s->groups[H_BLKIO].dir_fd;
        snprintf (text, sizeof text, "%u:%u %llu", major_number, minor_number, rate);
        is_set = dir >= 0 && write_at (dir, "blkio.throttle.read_bps_device", text) &&
                 write_at (dir, "blkio.throttle.write_bps_device", text);
    }
    if (is_set)
        s->io_status = CGROUP_IO_ENFORCED;
    else
        s->io_reason = x_asprintf ("the I/O controller refused the limit for device %u:%u: %s",
                                   major_number, minor_number, strerror (errno));
}

/* The first of the controllers a session needs that is not among those offered, NULL: all are. */
static const char *
lacking_controller (const char *offered)
{
    static const char *const needed[] = { "memory", "pids", "cpu" };
    for (size_t i = 0; i < ARRAY_LEN (needed); i++) {
        _cleanup_free_ char *copy = x_strdup (offered ? offered : "");
        char *rest = copy;
        bool has = false;
        for (char *word; (word = strsep (&rest, " \n"));)
            has |= str_eq (word, needed[i]);
        if (! has)
            return needed[i];
    }
    return NULL;
}

#define CONTROLLERS "+memory +pids +cpu"

/* Lets groups made in <dir> have the controllers. While processes live in it itself that is
 * refused: this one moves to a leaf, and others are waited for. */
static bool
hand_down (int dir, const char *base, struct buf *why)
{
    if (write_at (dir, "cgroup.subtree_control", CONTROLLERS))
        return true;
    if (mkdirat (dir, CGROUP_SUPERVISOR, 0755) < 0 && errno != EEXIST) {
        buf_printf (why, "version 2: cannot create a group in %s: %s", base, strerror (errno));
        return false;
    }
    uint64_t end = clock_monotonic_ms () + HAND_DOWN_MS;
    const struct timespec pause = { .tv_nsec = 20000000 };
    bool is_done = false, is_moved = write_at (dir, CGROUP_SUPERVISOR "/cgroup.procs", "0");
    while (is_moved && ! (is_done = write_at (dir, "cgroup.subtree_control", CONTROLLERS)) &&
           errno == EBUSY && clock_monotonic_ms () < end)
        nanosleep (&pause, NULL);
    if (! is_done)
        buf_printf (why, "version 2: cannot hand the controllers of %s down: %s", base,
                    strerror (errno));
    return is_done;
}

/* Version 2: the controllers must be delegated to where this process is. */
static bool
try_v2 (struct cgroup_scope *s, const struct cgroup_place places[H_COUNT], const char *name,
        const struct cgroup_limits *l, struct buf *why)
{
    const struct cgroup_place *p = &places[H_UNIFIED];
    if (! p->mount) {
        buf_puts (why, "version 2: not mounted");
        return false;
    }
    _cleanup_free_ char *base = x_asprintf ("%s%s", p->mount, p->own ? p->own : "");
    _cleanup_close_ int dir = open (base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_free_ char *offered = dir < 0 ? NULL : read_at (dir, "cgroup.controllers");
    const char *lacking = lacking_controller (offered);
    if (lacking) {
        buf_printf (why, "version 2: %s offers no %s controller", base, lacking);
        return false;
    }
    if (! hand_down (dir, base, why))
        return false;
    (void)write_at (dir, "cgroup.subtree_control", "+io");
    if (! group_make (s, H_UNIFIED, p, name)) {
        buf_printf (why, "version 2: cannot create a group in %s: %s", base, strerror (errno));
        return false;
    }
    s->is_v2 = true;
    if (set_v2_limits (s, l))
        return true;
    buf_printf (why, "version 2: cannot set a limit in %s: %s", s->groups[H_UNIFIED].path,
                strerror (errno));
    return false;
}

static bool
try_v1 (struct cgroup_scope *s, const struct cgroup_place places[H_COUNT], const char *name,
        const struct cgroup_limits *l, struct buf *why)
{
    for (int h = 0; h <= H_CPU; h++) {
        if (! places[h].mount) {
            buf_printf (why, "; version 1: no %s hierarchy", cgroup_hierarchy_names[h]);
            return false;
        }
        if (! group_make (s, h, &places[h], name)) {
            buf_printf (why, "; version 1: cannot create a group in %s: %s", places[h].mount,
                        strerror (errno));
            return false;
        }
    }
    for (int h = H_BLKIO; h < H_COUNT; h++)
        if (places[h].mount)
            (void)group_make (s, h, &places[h], name);
    if (set_v1_limits (s, l))
        return true;
    buf_printf (why, "; version 1: cannot set a limit: %s", strerror (errno));
    return false;
}

static void
remove_groups (struct cgroup_scope *s)
{
    cgroup_nests_remove (s->groups[H_UNIFIED].dir_fd);
    for (int h = 0; h < H_COUNT; h++) {
        group_close (&s->groups[h]);
        if (s->groups[h].path)
            rmdir (s->groups[h].path);
        free (steal_ptr (&s->groups[h].path));
    }
}

static char *
scope_name (const char *session_id)
{
    static atomic_uint next;
    char *name = x_asprintf ("murmur-%s-%d-%u_%lu", session_id, getpid (),
                             atomic_fetch_add (&next, 1), cgroup_pid_space ());
    for (char *c = name; *c; c++)
        if (! ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
               *c == '-' || *c == '_'))
            *c = '-';
    return name;
}

static void
open_counters (struct cgroup_scope *s)
{
    const struct group *memory = &s->groups[s->is_v2 ? H_UNIFIED : H_MEMORY];
    const struct group *pids = &s->groups[s->is_v2 ? H_UNIFIED : H_PIDS];
    s->oom_kills_fd = openat (memory->dir_fd, s->is_v2 ? "memory.events" : "memory.oom_control",
                              O_RDONLY | O_CLOEXEC);
    s->pids_refused_fd = openat (pids->dir_fd, "pids.events", O_RDONLY | O_CLOEXEC);
}

struct cgroup_scope *
cgroup_scope_new (const char *session_id, const struct cgroup_limits *limits,
                  struct mur_error **err)
{
    _cleanup_ (cgroup_places_free) struct cgroup_places found;
    const struct cgroup_place *places = found.at;
    _cleanup_free_ char *name = scope_name (session_id);
    _cleanup_buf_ struct buf why = { 0 };
    struct cgroup_scope *s = x_new0 (struct cgroup_scope);
    for (int h = 0; h < H_COUNT; h++)
        s->groups[h] = (struct group){ NULL, -1, -1 };
    s->kill_fd = s->oom_kills_fd = s->pids_refused_fd = -1;
    cgroup_places_find (&found);
    if (! try_v2 (s, places, name, limits, &why)) {
        remove_groups (s);
        s->is_v2 = false;
        if (! try_v1 (s, places, name, limits, &why)) {
            remove_groups (s);
            free (s);
            mur_fail (err, E_RUN_012, "no control group can hold the commands of this session: %s",
                      why.data);
            mur_hint (err, "delegate the memory, pids and cpu controllers to this user (systemd: "
                           "Delegate=yes), or set resources.cgroup: optional in "
                           "~/.murmur/config.yaml to run with process limits alone");
            return NULL;
        }
    }
    if (s->groups[H_UNIFIED].dir_fd >= 0)
        s->kill_fd = openat (s->groups[H_UNIFIED].dir_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
    open_counters (s);
    set_io_limit (s, limits);
    return s;
}

/* --- using it --- */

int
cgroup_scope_clone_fd (const struct cgroup_scope *s)
{
    return s->groups[H_UNIFIED].dir_fd;
}

int
cgroup_scope_join (const struct cgroup_scope *s)
{
    for (int h = 0; h < H_UNIFIED; h++)
        if (s->groups[h].join_fd >= 0 && write (s->groups[h].join_fd, "0", 1) != 1)
            return -1;
    return 0;
}

/* Signals every process listed in a group. */
static size_t
kill_listed (const struct group *g)
{
    _cleanup_free_ char *text = read_at (g->dir_fd, "cgroup.procs");
    size_t count = 0;
    for (char *at = text, *end; at && *at; at = end + 1) {
        pid_t pid = (pid_t)strtol (at, &end, 10);
        if (end == at)
            break;
        if (pid > 1 && kill (pid, SIGKILL) == 0)
            count++;
        if (! *end)
            break;
    }
    return count;
}

void
cgroup_scope_kill (const struct cgroup_scope *s)
{
    if (s->kill_fd >= 0 && pwrite (s->kill_fd, "1", 1, 0) == 1)
        return;
    /* Without the atomic kill: freeze, so that nothing forks away, signal each, thaw. */
    const struct group *freezer = &s->groups[H_FREEZER];
    const struct group *listed = freezer->dir_fd >= 0 ? freezer : &s->groups[H_PIDS];
    if (listed->dir_fd < 0)
        return;
    if (freezer->dir_fd >= 0)
        (void)write_at (freezer->dir_fd, "freezer.state", "FROZEN");
    for (int round = 0; round < 20 && kill_listed (listed); round++)
        if (freezer->dir_fd >= 0)
            break;
    if (freezer->dir_fd >= 0)
        (void)write_at (freezer->dir_fd, "freezer.state", "THAWED");
}

char *
cgroup_scope_processes (const struct cgroup_scope *s)
{
    for (int h = 0; h < H_COUNT; h++)
        if (s->groups[h].dir_fd >= 0)
            return read_at (s->groups[h].dir_fd, "cgroup.procs");
    return NULL;
}

bool
cgroup_scope_is_empty (const struct cgroup_scope *s)
{
    for (int h = H_COUNT - 1; h >= 0; h--) {
        if (s->groups[h].dir_fd < 0)
            continue;
        /* The unified hierarchy tells of nested groups too. */
        _cleanup_free_ char *events =
            h == H_UNIFIED ? read_at (s->groups[h].dir_fd, "cgroup.events") : NULL;
        if (events)
            return keyed_number (events, "populated") == 0;
        _cleanup_free_ char *text = read_at (s->groups[h].dir_fd, "cgroup.procs");
        return ! text || ! *text;
    }
    return true;
}

static uint64_t
counted (int fd, const char *key)
{
    char text[1024];
    ssize_t n = fd < 0 ? -1 : pread (fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return keyed_number (text, key);
}

struct cgroup_counters
cgroup_scope_counters (const struct cgroup_scope *s)
{
    return (struct cgroup_counters){ counted (s->oom_kills_fd, "oom_kill"),
                                     counted (s->pids_refused_fd, "max") };
}

enum cgroup_io_status
cgroup_scope_io_status (const struct cgroup_scope *s, const char **reason)
{
    *reason = s->io_reason;
    return s->io_status;
}

size_t
cgroup_scope_fds (const struct cgroup_scope *s, int fds[CGROUP_MAX_FDS])
{
    size_t count = 0;
    for (int h = 0; h < H_COUNT; h++) {
        if (s->groups[h].dir_fd >= 0)
            fds[count++] = s->groups[h].dir_fd;
        if (s->groups[h].join_fd >= 0)
            fds[count++] = s->groups[h].join_fd;
    }
    if (s->kill_fd >= 0)
        fds[count++] = s->kill_fd;
    return count;
}

void
cgroup_scope_remove (const struct cgroup_scope *s)
{
    cgroup_nests_remove (s->groups[H_UNIFIED].dir_fd);
    for (int h = 0; h < H_COUNT; h++)
        if (s->groups[h].path)
            rmdir (s->groups[h].path);
}

/* The first word of a file of a group, "" when it cannot be read. Owned. */
static char *
group_word (const struct group *g, const char *file)
{
    char *text = g->dir_fd >= 0 ? read_at (g->dir_fd, file) : NULL;
    if (text)
        text[strcspn (text, " \n")] = '\0';
    return text ? text : x_strdup ("");
}

void
cgroup_scope_memory (const struct cgroup_scope *s, char **limit, char **swap)
{
    if (s->is_v2) {
        *limit = group_word (&s->groups[H_UNIFIED], "memory.max");
        *swap = group_word (&s->groups[H_UNIFIED], "memory.swap.max");
        return;
    }
    *limit = group_word (&s->groups[H_MEMORY], "memory.limit_in_bytes");
    *swap = group_word (&s->groups[H_MEMORY], "memory.memsw.limit_in_bytes");
    if (**swap) {
        unsigned long long both = strtoull (*swap, NULL, 10), memory = strtoull (*limit, NULL, 10);
        free (*swap);
        *swap = x_asprintf ("%llu", both > memory ? both - memory : 0);
    }
}

const char *
cgroup_scope_version (const struct cgroup_scope *s)
{
    return s->is_v2 ? "v2" : "v1";
}

void
cgroup_scope_free (struct cgroup_scope *s)
{
    if (! s)
        return;
    uint64_t end = clock_monotonic_ms () + 2000;
    const struct timespec pause = { .tv_nsec = 2000000 };
    while (! cgroup_scope_is_empty (s) && clock_monotonic_ms () < end) {
        cgroup_scope_kill (s);
        nanosleep (&pause, NULL);
    }
    const int fds[] = { s->kill_fd, s->oom_kills_fd, s->pids_refused_fd };
    for (size_t i = 0; i < ARRAY_LEN (fds); i++)
        if (fds[i] >= 0)
            close (fds[i]);
    remove_groups (s);
    free (s->io_reason);
    free (s);
}
