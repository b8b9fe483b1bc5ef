/* SPDX-License-Identifier: Apache-2.0
 *
 * The DNS messages egress reads and writes (spec/containment.md 10.4). Pure functions over bytes.
 */
#pragma once

#include "net/resolver.h"
#include "sandbox/kernel/egress.h"

#define DNS_TTL_SECONDS 60
#define DNS_MAX_REPLY   (12 + 260 + RESOLVE_MAX_ADDRESSES * 28)

enum dns_code {
    DNS_CODE_NOERROR = 0,
    DNS_CODE_FORMERR = 1,
    DNS_CODE_SERVFAIL = 2,
    DNS_CODE_NXDOMAIN = 3,
    DNS_CODE_REFUSED = 5,
};

/* AF_INET or AF_INET6 of a query to look up. */
int dns_family (const struct dns_query *query);
/* Writes a reply; <question> points at the query's question section, <answer> may be NULL. Returns
 * its length. */
size_t dns_reply (const struct dns_query *query, const unsigned char *question, enum dns_code code,
                  const struct resolve_answer *answer, unsigned char out[DNS_MAX_REPLY]);
