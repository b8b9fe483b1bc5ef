/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of registered sessions. One that finished stays for a while, so that its state can be
 * asked for and its id is not used again; the oldest are forgotten.
 */
#pragma once

#include "manifest/capsule/capsule.h"

#include <sys/types.h>

enum job_state {
    JOB_RUNNING,
    JOB_COMPLETE,
    JOB_FAILED,
};

struct job {
    char *session_id;
    char *parent; /* session id, NULL for a top-level one */
    char *name;
    enum job_state state;
    uint32_t depth;                    /* delegation levels left below it */
    pid_t pid;                         /* who registered it, 0: not known */
    char start[24];                    /* of that process */
    uint64_t registered_ms;            /* monotonic */
    uint64_t finished;                 /* the how-manieth to finish, from 1 */
    struct capsule_manifest *manifest; /* dropped when it finishes */
};

/* Open-addressed by session id, a power of two. */
struct job_table {
    struct job **slots; /* NULL: free */
    size_t count, size;
    uint64_t running;  /* in JOB_RUNNING */
    uint64_t finished; /* so many have */
    size_t kept;       /* of those, in the table */
};

/* NULL when it is not known. Borrowed. */
struct job *job_table_find (const struct job_table *t, const char *session_id);
/* Takes a running one over. */
void job_table_add (struct job_table *t, struct job *j);
/* Counts it as finished. */
void job_table_finish (struct job_table *t, struct job *j, enum job_state state);
void job_table_clear (struct job_table *t);
