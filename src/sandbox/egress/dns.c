/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and deciding DNS queries of a session's namespace. See egress.h and dns.h.
 */
#include "sandbox/egress/dns.h"

#include "base/buf.h"

#include <arpa/inet.h>
#include <string.h>

#define TYPE_A    1
#define TYPE_AAAA 28
#define MAX_QUERY 4096

static bool
is_named (const struct allow_list *rules, const char *name)
{
    for (size_t i = 0; i < rules->len; i++)
        if (str_eq (rules->rules[i].host, name))
            return true;
    return false;
}

/* Labels of the question as dotted lower-case text. Returns the bytes read, 0 when malformed. */
static size_t
read_name (const unsigned char *at, size_t left, char name[256])
{
    size_t used = 0, len = 0;
    for (;;) {
        if (used >= left)
            return 0;
        size_t label = at[used++];
        if (label == 0)
            break;
        if (label > 63 || label > left - used ||
            len + label + 1 > 254) /* a pointer has both high bits */
            return 0;
        if (len)
            name[len++] = '.';
        for (size_t i = 0; i < label; i++) {
            unsigned char c = at[used + i];
            if (c == '.' || c < 0x21 || c > 0x7e)
                return 0;
            name[len++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
        }
        used += label;
    }
    name[len] = '\0';
    return used;
}

enum dns_verdict
dns_decide (const unsigned char *packet, size_t len, const struct allow_list *rules,
            struct dns_query *query)
{
    *query = (struct dns_query){ 0 };
    if (len < 12)
        return DNS_IGNORE;
    memcpy (query->header, packet, 12);
    bool is_response = packet[2] & 0x80;
    unsigned questions = (unsigned)packet[4] << 8 | packet[5];
    if (is_response || questions != 1 || len > MAX_QUERY)
        return DNS_FORMERR;
    size_t name_len = read_name (packet + 12, len - 12, query->name);
    if (name_len == 0 || len - 12 - name_len < 4)
        return DNS_FORMERR;
    const unsigned char *tail = packet + 12 + name_len;
    query->type = (uint16_t)(tail[0] << 8 | tail[1]);
    unsigned class = (unsigned)tail[2] << 8 | tail[3];
    query->question_len = name_len + 4;
    struct in_addr v4;
    if (! query->name[0] || inet_pton (AF_INET, query->name, &v4) == 1 ||
        ! is_named (rules, query->name))
        return DNS_REFUSED;
    if (class != 1 || (query->type != TYPE_A && query->type != TYPE_AAAA))
        return DNS_EMPTY;
    return DNS_LOOK_UP;
}

int
dns_family (const struct dns_query *query)
{
    return query->type == TYPE_A ? AF_INET : AF_INET6;
}

static unsigned char *
put16 (unsigned char *at, unsigned value)
{
    at[0] = (unsigned char)(value >> 8);
    at[1] = (unsigned char)value;
    return at + 2;
}

size_t
dns_reply (const struct dns_query *query, const unsigned char *question, enum dns_code code,
           const struct resolve_answer *answer, unsigned char out[DNS_MAX_REPLY])
{
    memcpy (out, query->header, 12);
    out[2] = (unsigned char)(0x80 | (query->header[2] & 0x79)); /* response, same opcode and RD */
    out[3] = (unsigned char)(0x80 | code);                      /* recursion available */
    bool has_question = code != DNS_CODE_FORMERR && query->question_len;
    size_t count = code == DNS_CODE_NOERROR && answer ? answer->count : 0;
    put16 (out + 4, has_question);
    put16 (out + 6, (unsigned)count);
    put16 (out + 8, 0);
    put16 (out + 10, 0);
    unsigned char *at = out + 12;
    if (has_question) {
        memcpy (at, question, query->question_len);
        at += query->question_len;
    }
    for (size_t i = 0; i < count; i++) {
        size_t size = answer->family == AF_INET ? 4 : 16;
        at = put16 (at, 0xc00c); /* the name of the question */
        at = put16 (at, query->type);
        at = put16 (at, 1);
        at = put16 (at, 0);
        at = put16 (at, DNS_TTL_SECONDS);
        at = put16 (at, (unsigned)size);
        memcpy (at,
                answer->family == AF_INET ? (const void *)&answer->v4[i]
                                          : (const void *)&answer->v6[i],
                size);
        at += size;
    }
    return (size_t)(at - out);
}
