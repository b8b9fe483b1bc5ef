/* SPDX-License-Identifier: Apache-2.0
 *
 * Tools the runtime answers itself (spec/session.md 8.3): one table. The grant is the manifest's
 * existence: a row whose `exists` says no is not in the inventory.
 *
 * Callers: tool_inventory.c, dispatch.c. A new tool is a row here and a file provided_<name>.c.
 */
#pragma once

#include "session/state/session.h"

struct call_outcome;
struct running_task;

struct provided_tool {
    const char *name;
    const char *description;
    const char *parameters; /* compact JSON with sorted keys; NULL: parameters_of makes it */
    const char *missing;    /* the declaration a refused call lacks: "capabilities.plan.submit" */
    bool (*exists) (const struct session *s);
    /* Answers a call; <input> is the parsed object. */
    void (*call) (struct session *s, struct running_task *task, const json_t *input,
                  struct call_outcome *out);
    /* What depends on the manifest; lives in the session's arena. */
    const char *(*parameters_of) (const struct session *s);
};

extern const struct provided_tool provided_tools[];
extern const size_t provided_tool_count;

/* The row of a name, or NULL. */
const struct provided_tool *provided_find (const char *name);

/* provided_switch_driver.c */
bool switch_driver_is_offered (const struct session *s);
const char *switch_driver_parameters (const struct session *s);
void provided_switch_driver (struct session *s, struct running_task *task, const json_t *input,
                             struct call_outcome *out);

/* provided_delegate.c */
extern const char delegate_description[];
bool delegate_is_offered (const struct session *s);
const char *delegate_parameters (const struct session *s);
void provided_delegate (struct session *s, struct running_task *task, const json_t *input,
                        struct call_outcome *out);

/* provided_members.c */
extern const char end_without_answer_parameters[];
bool members_are_offered (const struct session *s);
const char *call_member_parameters (const struct session *s);
void provided_call_member (struct session *s, struct running_task *task, const json_t *input,
                           struct call_outcome *out);
void provided_end_without_answer (struct session *s, struct running_task *task, const json_t *input,
                                  struct call_outcome *out);

/* provided_pull.c */
extern const char pull_parameters[];
bool pull_is_offered (const struct session *s);
void provided_pull (struct session *s, struct running_task *task, const json_t *input,
                    struct call_outcome *out);
void provided_remove (struct session *s, struct running_task *task, const json_t *input,
                      struct call_outcome *out);

/* provided_peer_files.c */
extern const char share_file_parameters[], fetch_peer_file_parameters[];
bool share_file_is_offered (const struct session *s);
bool fetch_peer_file_is_offered (const struct session *s);
void provided_share_file (struct session *s, struct running_task *task, const json_t *input,
                          struct call_outcome *out);
void provided_fetch_peer_file (struct session *s, struct running_task *task, const json_t *input,
                               struct call_outcome *out);

void provided_session_status (struct session *s, struct running_task *task, const json_t *input,
                              struct call_outcome *out);

/* provided_plan.c */
extern const char plan_parameters[];
bool plan_is_offered (const struct session *s);
void provided_plan (struct session *s, struct running_task *task, const json_t *input,
                    struct call_outcome *out);
