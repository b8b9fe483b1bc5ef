/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command is, for the files that make, supervise and log it.
 *
 * One lock guards the list and every command's fields but its immutable ones. A command belongs to
 * the list until it is COMMAND_EXITED.
 */
#pragma once

#include "sandbox/run/command.h"
#include "sandbox/run/confinement.h"
#include "sandbox/run/disk_floor.h"

#include <pthread.h>
#include <stdatomic.h>

struct stream {
    struct command_stream s;
    int fd; /* our end of the pipe, -1 once closed */
};

/* What a command is given to read. */
struct command_input {
    int fd; /* -1 once everything was written */
    struct buf bytes;
    size_t at;
};

/* In the background. */
struct command_log {
    int fd; /* -1: in the foreground */
    uint64_t bytes, header_bytes;
    bool is_cut;
    struct buf tail; /* at least the last COMMAND_KEPT_BYTES */
};

struct command {
    atomic_uint refs;
    struct commands *all;
    struct command *next;
    char *line;
    pid_t pid;
    int pidfd;
    enum command_state state;
    bool leader_is_gone; /* seen, not yet reaped */
    struct stream streams[2];
    struct command_input input;
    uint64_t started_ms, deadline_ms; /* of DRAINING and KILLING */
    uint64_t duration_ms;
    int exit_code, signal_number;
    bool was_stopped;
    enum command_leftover leftover;
    struct occupancy occupancy;
    const char *resource_limit;
    command_exit_fn *on_exit; /* NULL: nobody asked */
    void *on_exit_ctx;
    struct command_log log;
    uint64_t refused_calls; /* as syscall_filter_answer */
};

struct commands {
    struct confinement *confinement;
    struct fs_root *records;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct command *running;
    struct call_watch *calls; /* listeners of refused calls */
    struct disk_floor floor;
    int epoll_fd, wake_fd;
    pthread_t thread;
    bool has_thread, is_ending;
};

/* The group exists at least as long as its unreaped leader. Under the lock. */
bool command_signal_group (const struct command *c, int signal_number);
