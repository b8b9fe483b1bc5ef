/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the referee's cluster side share: the Jobs as last heard of.
 *
 * Always true: everything here is touched under the referee's lock; a call to the API server is
 * made without it.
 */
#pragma once

#include "base/ids.h"
#include "base/keys/ed25519.h"
#include "net/kube/kube.h"
#include "roost/fleet.h"
#include "roost/referee_internal.h"

#define FLEET_START_S      60 /* from a pod's start to its registration */
#define FLEET_ANSWER_BYTES ((size_t)64 << 10)

enum placed_state {
    PLACED_QUEUED,   /* no pod of it has started */
    PLACED_STARTING, /* its pod has, and has not registered */
    PLACED_RUNNING,  /* registered */
    PLACED_ENDED,
};

/* How it ended. */
struct placed_end {
    char *status; /* "ok", "error", "crashed", "terminated"; NULL: it has not */
    char *detail; /* NULL: nothing to say */
    char *answer; /* what the child answered, at most FLEET_ANSWER_BYTES; NULL: nothing */
    uint64_t answer_bytes, duration_ms;
    char *job_fault;      /* what its Job says of it, until the pod has; NULL: nothing */
    uint64_t job_over_ms; /* Unix: since when */
};

struct placed_pod {
    char *name, *uid, *ip; /* NULL: not known yet */
    uint64_t started_ms;   /* Unix; 0: not yet */
    char *fault;           /* why it ended, in words; NULL: well, or it has not */
    char *wait; /* what keeps it from running, in the cluster's words; NULL: nothing is said */
    bool is_over;
};

/* A formation, as the Job of its entry tells of it. */
struct fleet_team {
    char id[ID_LEN + 1];   /* the same for the same Job, whoever reads it */
    struct roster *roster; /* NULL: the fault says why */
    char **sha256;         /* of each member, as it was deployed */
    uint64_t deadline_s;   /* from the start of the entry's pod; 0: none */
    bool is_looked_at;     /* admitted and launched, or at fault */
    bool is_launched;      /* each peer has got its Job */
    char *code, *fault;    /* why it does not come up; NULL: it does */
};

/* Its place in a formation, where it has one. */
struct placed_seat {
    char *member, *formation; /* NULL: of none */
    char *entry;              /* a peer's: the Job of its entry */
    struct fleet_team *team;  /* an entry's */
    uint64_t let_go_ms;       /* a peer's, Unix: since when its formation is over; 0: it is not */
    bool is_claimed;          /* its pod is the only one, though it has not registered */
};

/* One session that is a Job: a child, a member of a formation, or a root somebody else created. */
struct placed {
    char *job, *uid;             /* uid NULL until the server has said it */
    char delegation[ID_LEN + 1]; /* "": a root */
    char *root;                  /* name of the root's Job */
    char *parent;                /* session id; NULL: a root */
    char *name, *version;
    char *session; /* NULL until registered */
    struct placed_seat seat;
    uint32_t depth;
    enum placed_state state;
    uint64_t created_ms, registered_ms; /* Unix */
    struct placed_pod pod;
    struct placed_end end;
    uint64_t news;          /* grows with what its parent should hear of */
    char *doom;             /* why its Job is to be deleted; NULL: it is not */
    bool is_deleted;        /* the server was told, or has told us */
    bool was_asked_for;     /* by its parent, of this process */
    bool is_failed;         /* its doom is a failure of its start */
    uint64_t ended_ms;      /* Unix: since when it is over and deleted; 0: it is not */
    bool is_to_be_restored; /* registered before this process began */
    bool is_new;            /* being created: the server need not have it yet */
    unsigned round;         /* of the list it was last seen in */
};

struct fleet {
    struct fleet_options options;
    char *namespace;
    struct kube *kube;
    struct referee *referee;
    unsigned char mac_key[TOKEN_KEY_LEN];
    unsigned char sign_key[ED25519_KEY_LEN], verify_key[ED25519_KEY_LEN];
    struct cancel *cancel;
    pthread_t job_watch, pod_watch, tender;
    unsigned threads; /* of the three, that run */
    /* Under the referee's lock. */
    pthread_cond_t changed;
    struct placed **items;
    size_t len, cap;
    unsigned round;
    bool jobs_listed, pods_listed;
    bool is_restored;    /* and what they tell of sessions of before is taken up */
    unsigned waiting;    /* requests that wait for news */
    uint64_t started_ms; /* monotonic */
};

/* --- finding; under the lock --- */

/* A peer of the formation whose entry is this Job. */
struct placed *fleet_find_member (const struct fleet *f, const char *entry, const char *member);
struct placed *fleet_find_job (const struct fleet *f, const char *job);
struct placed *fleet_find_session (const struct fleet *f, const char *session);
struct placed *fleet_find_delegation (const struct fleet *f, const char *delegation);
/* A new one, kept. */
struct placed *fleet_add (struct fleet *f, const char *job);
void fleet_placed_free (struct placed *p);
/* Takes one out that never came to be. */
void fleet_remove (struct fleet *f, struct placed *p);

/* --- changing; under the lock --- */

/* Whoever waits looks again. */
void fleet_tell (struct fleet *f, struct placed *p);
/* Its Job is to go; the first reason stays. */
void fleet_doom (struct fleet *f, struct placed *p, const char *why);
/* It is over, once: its room is free and its children are doomed. <detail> may be NULL. */
void fleet_end (struct fleet *f, struct placed *p, const char *status, const char *detail);
/* The reservation of an unregistered child, by the hex of its delegation. */
void fleet_reserve (struct fleet *f, const struct placed *p);
void fleet_unreserve (struct fleet *f, const struct placed *p);

/* "host:port" of the door of one that runs; NULL: none is known. Owned. */
char *fleet_address (const struct placed *p);

/* --- doors; owned --- */

/* What all sessions of a root share, and the name one has there: of tokens for doors. */
char *fleet_formation (const struct fleet *f, const struct placed *p);
char *fleet_member (const struct placed *p);

/* --- paths; owned --- */

char *fleet_path (const struct fleet *f, const char *kind, const char *name);
