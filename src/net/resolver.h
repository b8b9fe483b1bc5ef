/* SPDX-License-Identifier: Apache-2.0
 *
 * Names to addresses for the runtime itself: hosts file, then DNS, nothing else
 * (spec/containment.md 3.5). On c-ares.
 *
 * Three outcomes that are never merged: addresses (possibly none), the name does not exist, nobody
 * answered. A resolver belongs to one thread, which waits on its descriptors with its own epoll.
 */
#pragma once

#include "base/error.h"

#include <netinet/in.h>
#include <stdint.h>

enum resolve_status {
    RESOLVED,         /* the name exists; it may have no address of the family */
    RESOLVE_NO_NAME,  /* NXDOMAIN */
    RESOLVE_NO_ANSWER /* deadline, no server */
};

#define RESOLVE_MAX_ADDRESSES 32

struct resolve_answer {
    enum resolve_status status;
    int family; /* AF_INET or AF_INET6 */
    size_t count;
    union {
        struct in_addr v4[RESOLVE_MAX_ADDRESSES];
        struct in6_addr v6[RESOLVE_MAX_ADDRESSES];
    };
};

typedef void resolve_fn (void *ctx, const struct resolve_answer *answer);

struct resolver;

/* Adds its descriptors to <epoll_fd>, tagging them with data.u64 = <tag> | descriptor. */
struct resolver *resolver_new (int epoll_fd, uint64_t tag, struct mur_error **err);
/* Queries still open are answered RESOLVE_NO_ANSWER. */
void resolver_free (struct resolver *r);

/* Starts a lookup; <fn> is called from resolver_process, or at once for a literal or a name of the
 * hosts file. */
void resolver_lookup (struct resolver *r, const char *name, int family, resolve_fn *fn, void *ctx);
/* A descriptor became ready (events as epoll gives them), or -1 for the passing of time alone. */
void resolver_process (struct resolver *r, int fd, uint32_t events);
/* Milliseconds until it wants resolver_process (-1), at most <max_ms>. */
int resolver_timeout_ms (struct resolver *r, int max_ms);

/* Resolves one name now, both families apart, waiting at most five seconds. For use before any
 * thread runs. */
void resolve_now (const char *name, int family, struct resolve_answer *answer);
