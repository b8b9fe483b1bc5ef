/* SPDX-License-Identifier: Apache-2.0
 *
 * The DNS messages egress reads and writes (spec/containment.md 10.4). Pure functions over bytes.
 */
#pragma once

#include "net/allow.h"
#include "net/resolver.h"

#define DNS_TTL_SECONDS 60
#define DNS_MAX_REPLY   (12 + 260 + RESOLVE_MAX_ADDRESSES * 28)

enum dns_code {
    DNS_CODE_NOERROR = 0,
    DNS_CODE_FORMERR = 1,
    DNS_CODE_SERVFAIL = 2,
    DNS_CODE_NXDOMAIN = 3,
    DNS_CODE_REFUSED = 5,
};

enum dns_verdict {
    DNS_IGNORE, /* shorter than a header */
    DNS_FORMERR,
    DNS_REFUSED, /* no rule names it */
    DNS_EMPTY,   /* allowed name, no record of that type here */
    DNS_LOOK_UP,
};

struct dns_query {
    unsigned char header[12];
    char name[256]; /* lower case, no trailing dot */
    uint16_t type;
    size_t question_len; /* bytes after the header */
};

/* AF_INET or AF_INET6 of a query to look up. */
int dns_family (const struct dns_query *query);
/* Writes a reply; <question> points at the query's question section, <answer> may be NULL. Returns
 * its length. */
size_t dns_reply (const struct dns_query *query, const unsigned char *question, enum dns_code code,
                  const struct resolve_answer *answer, unsigned char out[DNS_MAX_REPLY]);

/* Reads one query and decides it against the rules. */
enum dns_verdict dns_decide (const unsigned char *packet, size_t len,
                             const struct allow_list *rules, struct dns_query *query);
