/* SPDX-License-Identifier: Apache-2.0
 *
 * A recorded session as a replay needs it: what it was given from outside, each thing in its place
 * (docs/spec/records.md 14).
 *
 * The place of a model's answer is its task, turn and who asked; that of a call its task, turn and
 * number in the turn. Made from trace.jsonl, and from replay.jsonl beside it where there is one.
 * Always true: everything lives in the record's arena; bodies stay in their files until asked for.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>
#include <stdint.h>

/* The messages of a request, as what was added to the request before it. */
struct rec_messages {
    const struct rec_messages *before; /* NULL: nothing is taken from an earlier one */
    size_t kept;                       /* how many of it are the first of these */
    const char **added;                /* digests */
    size_t added_count;
};

struct rec_model {
    const char *event_id;
    uint64_t turn;
    const char *origin; /* "hook:<name>"; NULL: the agent loop */
    size_t number;      /* among those of one origin and turn */
    /* NULL where the line has none: a call that failed. */
    const char *system_sha, *tools_sha, *response_sha;
    struct rec_messages messages;
    bool has_messages;
    const char *decision, *tool_name;
    const char *model;           /* that was asked; NULL: the session's */
    uint64_t max_tokens;         /* 0: not known */
    const char *driver_config;   /* compact JSON; NULL: not known */
    const char *continuation_id; /* replay.jsonl; NULL: none, or not known */
    uint32_t attempts;
    uint64_t charged_tokens; /* by attempts that were tried again */
    /* A call that failed for good. */
    const char *error_code, *error, *retry_stopped;
    int provider_status;
};
struct rec_models {
    struct rec_model *items;
    size_t count, cap;
};

struct rec_shell {
    const char *binary, *command, *work_id,
        *resource_limit; /* work_id: it went to the background */
    int exit_code;
    uint64_t stdout_bytes, stderr_bytes, duration_ms, grace_ms;
};

struct rec_call {
    uint64_t turn;
    size_t number; /* in its turn */
    const char *name, *id, *input;
    bool is_skill;    /* its text is in the artifact, not here */
    bool is_left_out; /* of a smaller run: what came of it is served, whatever else runs again */
    bool is_refused;  /* a person said no: <answer> to <rules>, and nothing ran */
    const char *rules, *answer;
    bool has_output;
    const char *output;
    size_t output_len;
    bool is_ok;
    uint64_t duration_ms;
    const struct rec_shell *shell; /* NULL: no command was run */
    const char *error, *state_effect, *resource_id;
};
struct rec_calls {
    struct rec_call *items;
    size_t count, cap;
};

struct rec_check {
    const char *outcome; /* "passed", "failed", "timed_out", ... */
    bool has_exit_code, has_reopened;
    int exit_code;
};
struct rec_checks {
    struct rec_check *items;
    size_t count, cap;
};

struct rec_refusal {
    uint64_t turn;
    const char *limit, *origin;
    uint64_t ceiling, used, requested;
};
struct rec_refusals {
    struct rec_refusal *items;
    size_t count, cap;
};

struct rec_control {
    uint64_t turn;
    const char *name, *value; /* compact JSON */
};
struct rec_controls {
    struct rec_control *items;
    size_t count, cap;
};

struct rec_end {
    bool is_ended;
    const char *status; /* task_end.exit_status */
    uint64_t turns;
    const char *canceled_phase; /* NULL: it was not */
    bool has_canceled_turn;
    uint64_t canceled_turn;
};

struct rec_task {
    size_t ordinal;
    const char *id, *context_id, *source, *origin;
    bool is_trusted;
    uint64_t parts_bytes;
    const char *text_sha; /* of its raw text; NULL: taken from its first request */
    size_t seed_count;    /* messages a hook put before the conversation */
    struct rec_models models;
    struct rec_calls calls;
    struct rec_checks checks;
    struct rec_refusals refusals;
    struct rec_controls controls; /* settings that came into force */
    size_t continued;             /* times outcomes of hand-offs came in */
    uint64_t pending_charge;      /* of retries whose call has no line yet */
    struct rec_end end;
    bool has_harness;
    bool has_background; /* a command went to the background */
};

/* An artifact as it ran. */
struct rec_artifact {
    const char *name, *version, *role, *sha256;
};

/* What ran. Strings are NULL where the trace does not say. */
struct rec_code {
    const char *mur_version, *arch, *manifest_sha, *manifest_path, *lock_sha, *prompt_sha;
    const char *prompt_source; /* "manifest", "cli", "none" */
    const char *launch_model;  /* in place of the manifest's; NULL: that one */
    uint64_t launch_ceiling;   /* tokens of the session, the same; 0: that one */
    struct rec_artifact *artifacts;
    size_t artifact_count;
};

struct rec_tape;

/* A session that this one started. */
struct rec_child {
    const char *session_id, *records_dir;
};

/* Whose member it was, and whom it might call. */
struct rec_formation {
    const char *id, *member; /* NULL: of none */
    const char **callees;
    size_t callee_count;
};

struct record {
    struct arena *arena;
    char *dir; /* holds trace.jsonl, blobs/ */
    const char *session_id, *model, *context_id;
    struct rec_formation formation;
    const char *capture; /* "none", "meta", "content"; NULL: an older trace */
    const char *url;     /* guests were told; NULL: not known */
    struct rec_code code;
    struct rec_task *tasks;
    size_t task_count, task_cap;
    bool is_complete;      /* session_end was read */
    const char *ending;    /* session_end.exit_status */
    const char *replay_of; /* it is a replay itself */
    struct rec_child *children;
    size_t child_count, child_cap;
    const char *fence_word; /* ends of fences bear it; NULL: not known */
    void (*free_tape) (struct rec_tape *tape);
    struct rec_tape *tape;   /* tape_read.h; NULL: there is no replay.jsonl */
    const char *asked_rules; /* of the approval that was asked for last */
};

void record_free (struct record *r);
DEFINE_CLEANUP (struct record, record_free)
#define _cleanup_record_ _cleanup_ (record_freep)

/* A harness had the conversation of one of its tasks. */
bool record_has_harness (const struct record *r);
/* The string copied into the record's arena; NULL stays NULL. */
const char *record_keep (struct record *r, const char *text);
/* The model call at a place, or NULL. <origin> NULL: the agent loop's. */
const struct rec_model *
record_model (const struct rec_task *t, const char *origin, uint64_t turn, size_t number);
const struct rec_call *record_call (const struct rec_task *t, uint64_t turn, size_t number);
/* The digests of a request's messages, in order; freed with free (). */
const char **record_messages (const struct rec_model *m, size_t *count);

/* The body of that digest, checked against it. E-RPL-004: missing, altered, or no file. */
bool
record_body (const struct record *r, const char *sha256, struct buf *out, struct mur_error **err);
