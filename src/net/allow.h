/* SPDX-License-Identifier: Apache-2.0
 *
 * Allow rules: which hosts a guest may address (spec/containment.md 3.1).
 *
 * Always true: a host compares exactly, in lower case; there are no wildcards; an empty list
 * matches nothing.
 */
#pragma once

#include "base/error.h"

#define ALLOW_ANY_PORT (-1)

struct allow_rule {
    char *text;   /* the entry as written, trimmed: for reports */
    char *scheme; /* "http", "https", or NULL for any */
    char *host;   /* lower case; an IPv6 literal keeps its brackets */
    int port;     /* ALLOW_ANY_PORT, or 0..65535 */
};

/* What keeps an allowed host closed for a time. From any thread; it must not wait. */
struct allow_hold {
    bool (*is_held) (void *ctx, const char *host, int port);
    void *ctx;
};

/* Who hears of what no rule, or a hold, let through. From any thread; it must not wait. */
struct allow_listener {
    void (*refused) (void *ctx, const char *host, int port); /* port 0: a name was asked for */
    void *ctx;
};

struct allow_list {
    struct allow_rule *rules;
    size_t len;
    size_t cap;
    const struct allow_hold *hold;  /* borrowed; NULL: nothing is */
    struct allow_listener listener; /* its function NULL: nobody */
};

/* Reads one entry and appends its rule. Fails with E-CAP-001 quoting the entry and saying what is
 * wrong with it. */
bool allow_list_add (struct allow_list *list, const char *entry, struct mur_error **err);
/* Tells the list's listener, if there is one. */
void allow_tell_refused (const struct allow_list *list, const char *host, int port);
/* True when <hold> (may be NULL) keeps the host closed now. */
bool allow_is_held (const struct allow_hold *hold, const char *host, int port);
void allow_list_free (struct allow_list *list);
#define _cleanup_allow_list_ _cleanup_ (allow_list_free)

/* True when some rule matches. <host> in any case; <port> is the target's port, defaulted from the
 * scheme by the caller. */
bool
allow_list_matches (const struct allow_list *list, const char *scheme, const char *host, int port);
/* The same for a whole authority "[userinfo@]host[:port]" as a guest gives it. NULL, empty or
 * malformed matches nothing. */
bool allow_list_matches_authority (const struct allow_list *list, const char *scheme,
                                   const char *authority);

/* True when every request <narrower> matches is also matched by <ceiling>. */
bool allow_rule_covers (const struct allow_rule *ceiling, const struct allow_rule *narrower);
bool allow_list_covers (const struct allow_list *ceiling, const struct allow_rule *narrower);
