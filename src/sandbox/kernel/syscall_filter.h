/* SPDX-License-Identifier: Apache-2.0
 *
 * The system-call filter of every native subprocess (spec/containment.md 9).
 *
 * Default is EPERM; the allow list is data; socket families decide on the full argument. The
 * program is compiled once a session in the parent (libseccomp allocates) and only loaded in the
 * child.
 */
#pragma once

#include "base/error.h"

#include <linux/filter.h>
#include <stddef.h>

struct syscall_filter {
    struct sock_filter *code; /* owned */
    unsigned short len;
    bool is_logged; /* load with SECCOMP_FILTER_FLAG_LOG */
};

/* Compiles the filter. <allows_unix_sockets>: capabilities.network.unix_sockets. E-IO-003 when
 * libseccomp refuses. */
bool syscall_filter_compile (bool allows_unix_sockets, struct syscall_filter *program,
                             struct mur_error **err);
void syscall_filter_free (struct syscall_filter *program);

/* Loads it into this process. Async-signal-safe; no_new_privs must be set. Returns 0 or -1 with
 * errno. */
int syscall_filter_load (const struct syscall_filter *program);

/* The tables, for the test that they are disjoint. NULL-terminated. */
extern const char *const syscall_filter_allowed[];
extern const char *const syscall_filter_denied[];
