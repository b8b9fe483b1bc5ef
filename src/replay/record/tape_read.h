/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.jsonl read back: what a session was given from outside, each thing at its place
 * (docs/spec/records.md 14).
 *
 * Always true: a tape of another format, or one that is not what its own end says, is refused; a
 * torn last line is where the session was killed.
 */
#pragma once

#include "replay/record/record.h"
#include "replay/tape/tape.h"

/* A body in its line, or under its digest. */
struct rec_body {
    const char *text, *sha; /* both NULL: there is none */
    size_t len;
};

struct rec_env {
    const char *artifact, *name, *value; /* value NULL: it was withheld */
};

struct rec_http {
    const char *method, *url;
    bool is_refused;
    struct rec_body sent, got;
    int status;
    json_t *headers; /* [[name, value]]; NULL: no answer came */
    size_t *chunks;
    size_t chunk_count;
    const char *error; /* NULL: none */
};

struct rec_guest {
    const char *place;
    struct buf clock;
    struct rec_http *http;
    size_t http_count, http_cap;
};

struct rec_tree {
    size_t task, call;
    uint64_t turn;
    bool is_start; /* of the task */
    const char *sha;
    uint64_t left_out;
    const char **names; /* of what was left out, the first of them */
    size_t name_count;
};

struct rec_input {
    size_t task, call;
    uint64_t turn;
    struct rec_body prompt, reply;
    bool has_timed_out;
};

/* What happened between a session and its harness, in its order. */
enum rec_harness_what {
    REC_HARNESS_LINE,  /* it wrote a line: <text>; <made>: the driver's events of it */
    REC_HARNESS_CALL,  /* it called <name> with <text>; <made>: what it was answered */
    REC_HARNESS_TOLD,  /* it was written <text> */
    REC_HARNESS_WORD,  /* a person, or a rule, said <text>: <is_good> yes, or an answer */
    REC_HARNESS_WHATS, /* none */
};

struct rec_harness_item {
    enum rec_harness_what what;
    uint64_t n; /* of a call: joins it with its answer */
    const char *name;
    struct rec_body text, made;
    bool is_good, is_refused; /* is_refused: gates let the call not pass */
};

#define REC_COUNTS 5 /* input, output, cache read, cache creation, thinking */

/* One run of a harness. */
struct rec_harness {
    size_t task;
    const char *version, *session_id; /* version NULL: not known */
    const char *work;                 /* the work folder; texts that are compared have its name */
    bool is_resume;
    uint64_t used[REC_COUNTS]; /* tokens that its session had used before, where it counts so */
    struct rec_body system, tools, told, plan; /* told: the text of its task */
    struct rec_harness_item *items;
    size_t count, cap;
    struct {
        bool is_set, has_code, was_killed;
        int code, signal;
        const char *cause;
        struct rec_body errors, made;
    } end;
};

struct rec_tape {
    const char *url, *arch;
    unsigned char seed[TAPE_SEED_BYTES];
    struct rec_body murmur_md;
    struct rec_env *env;
    size_t env_count;
    struct rec_guest *guests;
    size_t guest_count, guest_cap;
    struct rec_tree *trees;
    size_t tree_count, tree_cap;
    struct rec_input *inputs;
    size_t input_count, input_cap;
    struct rec_harness *harness;
    size_t harness_count, harness_cap;
    struct strv bodies; /* digests of all bodies it names */
    bool is_whole;
};

/* Reads replay.jsonl beside the trace of <r>; true without one. E-RPL-004. */
bool tape_read (struct record *r, struct mur_error **err);

bool rec_body_is_set (const struct rec_body *b);
/* E-RPL-004 */
bool record_fetch (const struct record *r, const struct rec_body *b, struct buf *out,
                   struct mur_error **err);
/* What was at a place; NULL: nothing. */
const struct rec_guest *record_guest (const struct record *r, const char *place);
/* The reply number <n> of a task. */
const struct rec_input *record_input (const struct record *r, size_t task, size_t n);
/* How the files of a task were before a turn (its start: turn 0). NULL: not recorded. */
const struct rec_tree *record_tree_before (const struct record *r, size_t task, uint64_t turn);
/* As they were seen after a call, NULL: not seen. */
const struct rec_tree *
record_tree_after (const struct record *r, size_t task, uint64_t turn, size_t call);
