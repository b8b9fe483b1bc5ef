/* SPDX-License-Identifier: Apache-2.0
 *
 * Child capsules: starting one with an approval of mur-roost, and its handle.
 *
 * A child is a process of its own. It lives as long as its handle, or until it ends by itself;
 * there is no detaching. Should the process that holds the handle die by any means, the child
 * learns it through its lifeline and winds down. The lines it writes to its stderr go to this
 * process's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mur_error;
struct mur_child;

/* What a launch needs. Everything is borrowed for the call; what may be NULL says so. */
struct mur_child_launch {
    /* the one-use token of mur-roost: goes to the child's stdin and nowhere else */
    const char *approval;
    const char *capsule;            /* full name, <scope>/<name> */
    const char *version;            /* exact */
    const char *parent_records_dir; /* absolute, exists: the work folder is made below it */
    const char *roost_url;          /* the daemon the approval came from */
    /* Names of this process's environment the child receives, in order; NULL-terminated, may be
     * NULL. Names the runtime owns are passed over. */
    const char *const *env_allow;
    const char *spawner;            /* MURMUR_SPAWNER's text, compact JSON; NULL: no lineage */
    const char *formation_id;       /* NULL: none */
    uint64_t inherited_deadline_ms; /* Unix milliseconds; 0: none */
    uint64_t readiness_timeout_ms;  /* from the process's start; 0: 180 000 */
    /* The child begins with a copy of this folder (absolute, canonical); NULL: with an empty one.
     */
    const char *snapshot_source;
    uint64_t snapshot_limit_bytes; /* what the copy's files may come to */
    /* mur-roost started the child on another machine: the process only stands for it, and the
     * approval is what it asks after it with. */
    bool is_remote;
};

/* Makes the lifeline, then the work folder, starts `mur run`, hands the approval over and waits
 * until the child has said it is ready. The program is MURMUR_MUR_BINARY, when set and not empty,
 * else this process's own image.
 * Returns the handle, or NULL with *err set (owned by the caller): E-RUN-050 when a link stands
 * where the folder belongs, E-RUN-013 when the copy would pass its limit, E-IO-003 for everything
 * else; then no process, no zombie and no folder is left. No message holds the approval. MT-Safe
 * env. */
struct mur_child *mur_child_launch (const struct mur_child_launch *launch, struct mur_error **err);

/* Ends the child (mur_child_end) and frees the handle. NULL is fine. MT-Safe race:c. */
void mur_child_free (struct mur_child *c);

/* --- what is known of a child for as long as its handle lives; all strings are borrowed --- */

/* Of its process, until it is reaped. MT-Safe. */
pid_t mur_child_pid (const struct mur_child *c);
/* What it was started with, NULL-terminated, argv[0] first. MT-Safe. */
const char *const *mur_child_argv (const struct mur_child *c);
/* The same of its environment: "NAME=value", in order. MT-Safe. */
const char *const *mur_child_environment (const struct mur_child *c);
/* "ses_...". MT-Safe. */
const char *mur_child_session_id (const struct mur_child *c);
/* "http://host:port" of its A2A door; "": it bound none. MT-Safe. */
const char *mur_child_url (const struct mur_child *c);
/* The token of that door; NULL: an open door. MT-Safe. */
const char *mur_child_door_token (const struct mur_child *c);
/* "frm_..."; NULL: none. MT-Safe. */
const char *mur_child_formation_id (const struct mur_child *c);
/* The folder it works in, absolute. MT-Safe. */
const char *mur_child_workdir (const struct mur_child *c);
/* The folder of its records, absolute, checked. MT-Safe. */
const char *mur_child_records_dir (const struct mur_child *c);
/* What the copy of the parent's folder came to, compact JSON; NULL: there was none. MT-Safe. */
const char *mur_child_snapshot_report (const struct mur_child *c);
/* A descriptor of its work folder, opened without following a link; the handle's. MT-Safe. */
int mur_child_workdir_fd (const struct mur_child *c);
/* The same of its records. MT-Safe. */
int mur_child_records_fd (const struct mur_child *c);
/* The last lines it wrote to stderr, at most 20, joined by newlines. Waits up to 5 s for the
 * stream's end when the child has exited. Owned: freed with free(3). MT-Safe. */
char *mur_child_stderr_tail (struct mur_child *c);

/* Whether it has exited; never blocks. Then *status, unless status is NULL, is that of waitpid(2),
 * or -1 when it could not be learnt. MT-Safe. */
bool mur_child_has_exited (struct mur_child *c, int *status);
/* Whether it was told to end by us and has not been reaped yet. MT-Safe. */
bool mur_child_is_being_ended (struct mur_child *c);
/* Sends SIGTERM, once, unless it has exited. Never blocks. Call it for several children first and
 * mur_child_end for each then: they share one grace of 5 s. MT-Safe. */
void mur_child_begin_ending (struct mur_child *c);
/* Begins ending, waits, sends SIGKILL 5 s after the child's own SIGTERM, reaps, closes the
 * lifeline. Returns when it is reaped; at once when another thread is at it already, or it was
 * reaped before. MT-Safe. */
void mur_child_end (struct mur_child *c);

#ifdef __cplusplus
}
#endif
