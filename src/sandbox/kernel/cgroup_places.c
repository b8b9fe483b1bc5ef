/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/cgroup_places.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "sandbox/kernel/mountinfo.h"
#include "sandbox/kernel/service_manager.h"

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_MAX ((size_t)16 << 20)

const char *const cgroup_hierarchy_names[H_COUNT] = {
    [H_MEMORY] = "memory", [H_PIDS] = "pids",       [H_CPU] = "cpu",
    [H_BLKIO] = "blkio",   [H_FREEZER] = "freezer", [H_UNIFIED] = NULL,
};

void
cgroup_places_free (struct cgroup_places *places)
{
    for (int h = 0; h < H_COUNT; h++) {
        free (places->at[h].mount);
        free (places->at[h].own);
    }
}

static bool
list_has (const char *list, const char *word)
{
    size_t len = strlen (word);
    for (const char *at = list; (at = strstr (at, word)); at += len)
        if ((at == list || at[-1] == ',') && (at[len] == '\0' || at[len] == ','))
            return true;
    return false;
}

static void
note_mount (struct cgroup_places *places, const struct mountinfo_line *line)
{
    struct cgroup_place *unified = &places->at[H_UNIFIED];
    if (str_eq (line->type, "cgroup2") && ! unified->mount)
        unified->mount = x_strdup (line->mount_point);
    for (int h = 0; h < H_UNIFIED && str_eq (line->type, "cgroup"); h++)
        if (! places->at[h].mount && list_has (line->super_options, cgroup_hierarchy_names[h]))
            places->at[h].mount = x_strdup (line->mount_point);
}

/* A process that moved to the leaf makes its groups beside it. */
static char *
above_supervisor (const char *own)
{
    static const char leaf[] = "/" CGROUP_SUPERVISOR;
    size_t len = strlen (own);
    while (len >= strlen (leaf) && strncmp (own + len - strlen (leaf), leaf, strlen (leaf)) == 0)
        len -= strlen (leaf);
    return len ? x_strndup (own, len) : x_strdup ("/");
}

/* One line of /proc/self/cgroup: "id:controllers:path". */
static void
note_own (struct cgroup_places *places, char *line)
{
    strsep (&line, ":");
    char *controllers = line ? strsep (&line, ":") : NULL;
    if (! line)
        return;
    if (! *controllers && ! places->at[H_UNIFIED].own)
        places->at[H_UNIFIED].own = above_supervisor (line);
    for (int h = 0; h < H_UNIFIED; h++)
        if (! places->at[h].own && list_has (controllers, cgroup_hierarchy_names[h]))
            places->at[h].own = x_strdup (line);
}

void
cgroup_places_parse (char *mountinfo, char *own, struct cgroup_places *out)
{
    struct mountinfo_line line;
    *out = (struct cgroup_places){ 0 };
    while (mountinfo_next (&mountinfo, &line))
        note_mount (out, &line);
    for (char *at; own && (at = strsep (&own, "\n"));)
        note_own (out, at);
}

static void
read_places (struct cgroup_places *out)
{
    _cleanup_buf_ struct buf mountinfo = { 0 }, own = { 0 };
    (void)fs_read_path ("/proc/self/mountinfo", TEXT_MAX, &mountinfo, NULL);
    (void)fs_read_path ("/proc/self/cgroup", TEXT_MAX, &own, NULL);
    cgroup_places_parse (mountinfo.data, own.data, out);
}

/* A process below a scope of ours already has what the manager would give it. */
static void
ask_for_a_place (void)
{
    struct cgroup_places now;
    if (! service_manager_is_there ())
        return;
    read_places (&now);
    const char *own = now.at[H_UNIFIED].own;
    if (now.at[H_UNIFIED].mount && own && ! strstr (own, "/murmur-"))
        service_manager_give_scope ();
    cgroup_places_free (&now);
}

void
cgroup_places_find (struct cgroup_places *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once (&once, ask_for_a_place);
    read_places (out);
}

unsigned long
cgroup_pid_space (void)
{
    struct stat st;
    return stat ("/proc/self/ns/pid", &st) == 0 ? (unsigned long)st.st_ino : 0;
}
