/* SPDX-License-Identifier: Apache-2.0
 *
 * Serving a record to a session that runs again, and finding where the two part
 * (docs/spec/records.md 14).
 *
 * Always true: what is served is found by its place and by nothing else; what is not in the record
 * is a verdict, never a guess; the first difference stays the first. Thread-safe: asynchronous
 * hooks ask from threads of their own.
 */
#pragma once

#include "replay/record/record.h"

enum play_source {
    PLAY_RECORDED, /* served, and what was asked must be what was asked then */
    PLAY_SERVED,   /* served by place, whatever is asked (the model alone) */
    PLAY_RERUN,    /* run again on recorded inputs and compared (tools, hooks) */
    PLAY_LIVE,
};

struct play_modes {
    enum play_source model, tools, hooks;
    bool goes_on;   /* past a difference */
    bool each_turn; /* each turn is asked live and compared, then goes on as recorded */
    bool has_from, has_until;
    const char *const *without;     /* tools that are not offered, NULL-terminated; NULL: none */
    size_t from_task;               /* ordinal */
    uint64_t from_turn, until_turn; /* turn numbers of that task */
};

/* What runs now, for the cause of a difference. Borrowed strings are copied. */
struct play_facts {
    const char *mur_version, *arch, *manifest_sha, *manifest_text, *prompt_sha, *lock_sha;
    const struct rec_artifact *artifacts;
    size_t artifact_count;
};

enum play_verdict {
    PLAY_SAME,
    PLAY_DIVERGED,
    PLAY_INCOMPLETE, /* the record ends before the session did */
    PLAY_FORKED,     /* it left the record, and nothing after that was compared */
    PLAY_ASKED,      /* a model answered for real: what it says is no sameness */
};

struct play_difference {
    size_t task;
    uint64_t turn;
    bool has_call;
    size_t call;
    const char *part; /* "system", "tools", "message", "request", "call", "tool_input", ... */
    size_t message;   /* of part "message": its index; of "harness_*": the line, from 1 */
    char *pointer;    /* JSON pointer, "" for a whole text */
    size_t offset;    /* first byte that differs */
    char *recorded_sha, *now_sha;   /* NULL: there is none */
    char *recorded_text, *now_text; /* around that byte; NULL: there is none */
    char *cause;
};

struct play_turn {
    size_t task;
    uint64_t turn;
    enum play_source source; /* of its answer */
    bool is_same;
    char *decision;    /* "tool_call", "end_turn", "error" */
    char *now;         /* what a live model decided in its place; NULL: none was asked */
    struct strv calls; /* names of its calls */
};

/* Where an answer, or what came of a call, is to come from. */
enum play_answer {
    PLAY_ANSWER,   /* *model holds it */
    PLAY_ASK,      /* the model is asked for real */
    PLAY_COMPARE,  /* the same, and *model is what goes on */
    PLAY_CANCELED, /* the task was cancelled here */
    PLAY_REFUSED,  /* a spend ceiling refused the call */
    PLAY_STOP,     /* there is nothing at this place, or it is not what was asked: *err is set */
};

struct player;

/* <record> is borrowed. */
struct player *player_new (const struct record *record, const struct play_modes *modes);
void player_free (struct player *p);
DEFINE_CLEANUP (struct player, player_free)

const struct record *player_record (const struct player *p);
const struct play_modes *player_modes (const struct player *p);
/* Somebody outside may be asked: the model, or what tools ask. */
bool player_is_live (const struct player *p);
/* A smaller run does not offer that tool. */
bool player_leaves_away (const struct player *p, const char *tool);
void player_set_facts (struct player *p, const struct play_facts *now);

/* The running task, NULL between two. */
const struct rec_task *player_task (const struct player *p);

/* --- what came of it --- */

enum play_verdict player_verdict (const struct player *p);
/* "same", "diverged", "incomplete", "forked", "live". */
const char *play_verdict_name (enum play_verdict verdict);
/* The first difference, NULL: none. Borrowed. */
const struct play_difference *player_difference (const struct player *p);
const struct play_turn *player_turns (const struct player *p, size_t *count);
struct play_counts {
    uint64_t answers, calls, tasks, live_calls, differences, network_attempts;
};
struct play_counts player_counts (const struct player *p);
/* A guest wanted to reach out and was refused. */
void player_note_network (struct player *p);
/* Commands that came to something else, a line each. */
const struct strv *player_unpromised (const struct player *p);
/* What the record lacked, a line each. */
const struct strv *player_missing (const struct player *p);
