/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the HTTP client share: a resolver of its own (names ending .test resolve to
 * what a test needs, answers come with the next processing), a transfer that is looked at, and
 * scripts of servers.
 */
#pragma once

#include "net/http_client.h"
#include "net/http_fetch.h"
#include "tests/unit/net/loop_server.h"
#include "tests/unit/testing.h"

#include <pthread.h>
#include <stdatomic.h>

extern atomic_uint lookups; /* that the resolver was asked for */

struct seen {
    pthread_mutex_t lock;
    int status;
    struct buf head, body;
    size_t room; /* how many body bytes are taken before the first refusal */
    unsigned refusals, ends, readies;
    enum http_failure failure;
    char *detail;
};

struct log {
    atomic_int requests;
    char head[4096];
    char body[4096];
    atomic_size_t sent;
    atomic_bool may_go_on;
};

extern const struct http_events events; /* of a transfer whose ctx is a struct seen */

/* Looks again every few milliseconds: a condition may also hold on what a server script counts. */
#define wait_until(s, condition)                                                                   \
    do {                                                                                           \
        uint64_t until = clock_monotonic_ms () + 10000;                                            \
        bool is_met = false;                                                                       \
        while (! is_met && clock_monotonic_ms () < until) {                                        \
            pthread_mutex_lock (&(s)->lock);                                                       \
            is_met = (condition);                                                                  \
            pthread_mutex_unlock (&(s)->lock);                                                     \
            if (! is_met)                                                                          \
                usleep (2000);                                                                     \
        }                                                                                          \
        if (! is_met)                                                                              \
            fail_msg ("never came: %s", #condition);                                               \
    } while (0)

void seen_init (struct seen *s);
void seen_free (struct seen *s);
char *url_of (const struct loop_server *server, const char *path);
/* Runs one request to its end. */
void run_request (struct http_client *c, const struct http_request *request, struct seen *seen);
enum http_failure get (struct http_client *c, const char *url, int *status);
void keep (struct log *log, const struct buf *head, const struct buf *body);
void answer_all (void *ctx, int fd, int number);
void redirect (void *ctx, int fd, int number);
void read_and_say_nothing (void *ctx, int fd, int number);
void send_head_and_stall (void *ctx, int fd, int number);
