/* SPDX-License-Identifier: Apache-2.0
 *
 * inference.transport: process: a harness program that owns the conversation, driven through a
 * process driver (docs/spec/session.md 6).
 *
 * Always true: the driver is granted nothing; the harness runs outside of every containment class,
 * with an environment built from nothing; it never outlives its run.
 */
#pragma once

/* What the session's tools are served as to a harness. */
#define BRIDGE_NAME "murmur"

#include "host/process_driver.h"
#include "net/server/gateway_door.h"
#include "session/commands/confine.h"
#include "session/state/session.h"

struct harness_memory;

struct harness {
    const struct staged_artifact *driver;
    struct arena *arena;
    struct process_description is;
    char *binary;              /* absolute */
    const char *real_binary;   /* behind all links, which may lie where the walls show nothing */
    const char *path_front;    /* folders before PATH, each with its colon; NULL: none */
    const char *binary_source; /* "inference.command", or whose describe() named it */
    struct harness_memory *memory;
    bool counts_thread; /* what it reports as used is of its whole session, whoever began it */
    struct {
        bool version, billing, usage;
    } warned;         /* said once a launch */
    const char *home; /* private, kept with the conversations of the capsule */
    /* Inside the session's walls (harness_walls.h): */
    struct confine_program program;
    struct strv trees, closure; /* folders it is made of; files it executes to start */
    int bridge_fd;              /* the listener of every run's bridge; -1: each has its own */
    uint16_t bridge_port;
    struct gateway_usage charged; /* of what its provider told; under the lock */
    struct gateway_door *door;    /* to its provider, without a key; NULL: it has its own account */
    pthread_mutex_t lock;         /* a leaf; guards what is below */
    pid_t pid;                    /* of the harness that runs and is not reaped; 0: none */
    int wake_fd;                  /* of the run that is under way; -1: none; under the lock */
    bool is_key_refused;          /* in this run, too often to go on; under the lock */
    uint64_t runs, calls;         /* begun so far, calls through the bridge; under the loop lock */
};
