/* SPDX-License-Identifier: Apache-2.0
 *
 * One call of a tool as it was asked for, by the model, a plan or a harness, and what it runs
 * under.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cancel;
struct cgroup_nest;

/* Who hears how far a call is, and what its tool says. Called by the thread that runs it. */
struct call_listener {
    void (*progress) (void *ctx, double at, double total, const char *message);
    void (*message) (void *ctx, const char *level, const char *logger, const json_t *data);
    void *ctx;
    const char *log_level; /* the least it hears, static; NULL: no messages */
};

struct call {
    uint64_t turn;
    const char *id; /* "" when there is none */
    const char *name;
    const json_t *input;
    const char *input_text;         /* its compact JSON */
    const char *input_error;        /* why its input could not be read; NULL: it was */
    size_t input_bytes;             /* as it was written, when that is not the text; else 0 */
    const struct cgroup_nest *nest; /* where its processes run; NULL: anywhere */
    /* Its plan records it and fences the whole report: nothing is fenced here, a missing field is
     * no line of its own, a command is waited for, a result may lie in a file. */
    bool is_plan_step;
    bool is_served;    /* to an MCP client: nothing is fenced, a command is waited for */
    const char *by;    /* whose it is, when it is not the model's by way of us: "harness" (a tool of
                        * its own), "bridge", "client"; NULL */
    char *const *argv; /* of the command a harness says it ran, ended by NULL; NULL */
    const char *script;      /* the line of a shell a harness would run; NULL */
    bool is_harness_asking;  /* nothing runs here: its harness waits for the word */
    bool only_reads;         /* of it: it changes nothing, by its harness's word */
    bool is_asked_anyway;    /* of it: a person is asked even where no rule of approvals says so */
    const char *traceparent; /* of the client that called; NULL */
    const struct call_listener *listener; /* of the client that called; NULL */
    /* Of a caller whose wait may end before the task does; NULL: the task's own cancel. */
    struct cancel *abandon; /* a command goes to the background */
    struct cancel *stop;    /* a tool is stopped */
};
