/* SPDX-License-Identifier: Apache-2.0
 *
 * The system-call filter of every native subprocess (spec/containment.md 9).
 *
 * Default is EPERM; the allow list is data; socket families and the flags of clone decide on the
 * argument. What the session has no namespace for is closed here instead. The program is compiled
 * once a session in the parent (libseccomp allocates) and only loaded in the child.
 */
#pragma once

#include "base/error.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct syscall_filter {
    struct sock_filter *code;   /* owned; asks the runtime about the calls it is told of */
    struct sock_filter *silent; /* owned; the same length, refuses them without asking */
    unsigned short len;
    bool is_told;              /* the two differ */
    bool is_logged;            /* load with SECCOMP_FILTER_FLAG_LOG */
    struct sock_filter *guard; /* owned; NULL: none */
    unsigned short guard_len;
};

/* Which sockets of the internet a command can have. */
enum internet_sockets {
    INTERNET_OF_NAMESPACE, /* any: its network namespace has the walls */
    INTERNET_GIVEN,        /* TCP over IPv4, made by the runtime and bound to the loopback device */
    INTERNET_NONE,
};

/* What a session's commands are given beside the list. */
struct syscall_surface {
    bool allows_unix_sockets; /* capabilities.network.unix_sockets */
    enum internet_sockets internet;
    bool reads_interfaces;  /* netlink sockets that tell of its own network namespace */
    bool has_own_ipc;       /* else IPC calls are refused */
    bool has_own_processes; /* else calls that change another process are refused */
    bool reads_attributes;  /* files outside are not there: extended attributes can be read */
};

/* Compiles the filter. E-IO-003 when libseccomp refuses. */
bool syscall_filter_compile (const struct syscall_surface *surface, struct syscall_filter *program,
                             struct mur_error **err);
/* Adds that no signal reaches <pids>, their groups, or every process at once, by whichever call:
 * for a session without a process namespace. E-IO-003. */
bool syscall_filter_guard (struct syscall_filter *program, const pid_t *pids, size_t count,
                           struct mur_error **err);
void syscall_filter_free (struct syscall_filter *program);

/* Loads it into this process. Async-signal-safe; no_new_privs must be set. Returns 0 or -1 with
 * errno. *listener: a descriptor of this process by which the runtime hears of refused calls, -1
 * where it cannot; NULL: nobody is to hear. */
int syscall_filter_load (const struct syscall_filter *program, int *listener);

/* Answers one call that waits at a readable listener: gives a socket (INTERNET_GIVEN), refuses
 * (EPERM) any other and adds it to *told, a bit for each name of syscall_filter_told. False: the
 * listener is of no more use. */
bool syscall_filter_answer (int listener, uint64_t *told);

/* Calls the runtime is told of, at most 64. NULL-terminated. */
extern const char *const syscall_filter_told[];

/* The tables, for the test that they are disjoint. NULL-terminated. */
extern const char *const syscall_filter_allowed[];

extern const char *const syscall_filter_denied[];

/* What personality may be asked for. */
#define SYSCALL_FILTER_PERSONALITIES 9
extern const uint32_t syscall_filter_personalities[SYSCALL_FILTER_PERSONALITIES];
