/* SPDX-License-Identifier: Apache-2.0
 *
 * The served session as the files of this folder share it.
 */
#pragma once

#include "door/tasks/registry.h"
#include "mcp/request_state.h"
#include "session/served/held.h"
#include "session/served/served.h"
#include "session/state/call.h"
#include "session/state/person.h"

struct stdio_server;
struct watched;

/* What clients look after, of all of them. */
struct served_watch {
    pthread_mutex_t lock; /* a leaf: may be taken under a transport's */
    pthread_cond_t changed;
    struct watched *all;
    unsigned count;
    pthread_t thread;
    bool is_running, is_over, has_new_tools;
    bool lists;      /* somebody hears when other resources are listed */
    char *list_mark; /* what they were when they were last looked at */
    unsigned looks;
};

struct served {
    struct session *s;
    const struct exported_mcp *exported;
    struct mcp_service service;
    struct task task; /* whose calls these are, in the trace */
    bool has_begun;   /* task_start is written; under the loop lock, like the rest */
    uint64_t calls;   /* the turn of the next one */
    uint64_t started_ms;
    bool is_stdio;     /* whoever started the session is its one client */
    int in_fd, out_fd; /* -1: handed on, or none */
    struct stdio_server *stdio;
    struct held_calls held;
    struct served_watch watch;
    unsigned char state_key[MCP_STATE_KEY_LEN]; /* of requestStates, for this session */
    bool is_authenticated; /* the door is: who comes over stdio is its operator */
    _Atomic uint64_t told; /* the generation of the tools the door's clients were told of */
};

/* --- served_run.c --- */

/* What is run of a call. Borrowed. */
struct served_call {
    const char *name;
    const json_t *arguments, *id;
    const char *traceparent;
    struct cancel *cancel;
    const struct call_listener *listener; /* NULL: nobody hears how far it is */
    const struct asked_client *client;    /* NULL: nobody can be asked */
};
/* Runs it like a model's, in the task all served calls belong to. */
void served_call_run (struct served *v, const struct served_call *c, struct call_outcome *o);
/* Where the client's own trace is, as it says in the request's _meta; NULL: it does not. */
const char *served_traceparent (const struct mcp_call *call);
/* served_calls.c: functions of the service. */
mcp_serve_fn served_tools_list, served_tools_call;
/* served_answer.c: what a client of that revision is answered of a call that is over. */
void served_answer (struct served *v, const char *tool, const struct mcp_revision *revision,
                    const struct call_outcome *o, struct mcp_answer *answer);
/* served_texts.c */
mcp_serve_fn served_resources_list, served_resources_read, served_resource_templates,
    served_skills_list, served_skills_get;
/* The skill behind a tool's place, or NULL. Under the loop lock. */
const struct staged_artifact *served_skill_at (const struct served *v, size_t i);
/* An exported file by its address or path, as the contents of a resource (a new value). */
bool
served_read_file (struct served *v, const char *uri, json_t **file_contents, struct mcp_answer *no);
/* What is exported: objects with a path. A new array, or NULL. */
json_t *served_files_listed (struct served *v, struct cancel *cancel);
/* What a resource is now, to be compared; owned. NULL: nothing served can be called so. */
char *served_resource_mark (struct served *v, const char *uri);
/* Which resources are listed now, to be compared; owned. */
char *served_list_mark (struct served *v);
/* served_watch.c */
void served_watch_init (struct served_watch *w);
void served_watch_destroy (struct served_watch *w);
bool served_resource_watch (void *ctx, const char *uri, struct mcp_answer *no);
void served_resource_unwatch (void *ctx, const char *uri);
void served_list_watch (void *ctx);
/* The session's tools changed: clients are told, by a thread of its own. */
void served_watch_tools (struct session *s);
/* Nobody is told any more. */
void served_watch_end (struct served *v);
/* served_prompts.c */
mcp_serve_fn served_prompts_list, served_prompts_get, served_complete;
/* Refuses a prompt that is called like a skill. E-MCP-010. */
bool served_check_prompts (const struct session *s, const struct exported_mcp *m,
                           struct mur_error **err);
/* ask.c: a task for the capsule's own agent, and what came of it. */
void served_ask (struct served *v, const struct mcp_call *call, struct mcp_answer *answer);
json_t *served_ask_tool (const struct served *v);
/* served_tasks.c */
mcp_serve_fn served_tasks_get, served_tasks_update, served_tasks_cancel;

/* --- ask_told.c: <task> is a task object of the door, with its artifacts --- */

/* Who asks, for the registry. Borrowed from the call. */
struct caller ask_caller (const struct served *v, const struct mcp_call *call);
/* "completed", "input-required" ... */
const char *ask_state (const json_t *task);
/* The result of a call; <hint> (may be NULL) stands below its answer. A new value. */
json_t *ask_outcome (const json_t *task, const char *hint);
/* True when the client knows tasks as handles. */
bool ask_takes_handles (const struct mcp_call *call);
/* "working", "input_required", "completed", "cancelled". */
const char *ask_status (enum task_state state);
/* A new object: taskId, status, times; kept as long as the session. */
json_t *ask_handle (const json_t *task, enum task_state state);
json_t *ask_handle_of (const char *id, const char *status, const char *updated_at);

/* --- ask_input.c --- */

/* What the client is to be asked: the inputRequests of a task that waits. A new object. */
json_t *ask_input_requests (const json_t *task);
/* What goes back to the task, from inputResponses or from one elicitation's result. Owned; NULL:
 * they do not answer it. */
char *ask_responses_text (const json_t *task, const json_t *responses);
char *ask_answer_text (const json_t *task, const json_t *response);
/* What a call is to be repeated with. */
struct ask_wanted {
    const char *subject; /* what the state names */
    json_t *requests;    /* taken over */
    uint64_t life_ms;    /* of the state */
};
/* Answers the call with input_required and a state of its own. */
void ask_want_input (const struct served *v, const struct mcp_call *call,
                     const struct ask_wanted *w, struct mcp_answer *answer);
/* The subject a call's requestState names. Owned; NULL with *answer: it is none of this call's. */
char *
ask_resumed_task (const struct served *v, const struct mcp_call *call, struct mcp_answer *answer);
/* Asks a legacy client that can while the call runs: the elicitation's result, a new value, or
 * NULL. */
json_t *ask_legacy_client (const struct mcp_call *call, const json_t *task);
/* served_changes.c */
const struct mcp_service *served_service (const struct served *v);
/* Grows when the tools a client may see have changed. */
uint64_t served_generation (struct served *v);
/* After a call: clients at the door are told when it changed the tools. */
void served_tell_changes (struct served *v);

/* --- stdio.c --- */

/* Serves one client on two descriptors, taken over. <ended> is called once, on the server's thread,
 * when the client is gone. E-IO-003. */
struct stdio_server *
stdio_server_start (struct served *v, int in_fd, int out_fd, void (*ended) (void *ctx), void *ctx,
                    struct mur_error **err);
/* Tells the client once that the tools are others now. From any thread; NULL is fine. */
void stdio_server_tell_tools (struct stdio_server *x);
/* Tells the client that other resources are listed. From any thread; NULL is fine. */
void stdio_server_tell_resources (struct stdio_server *x);
/* A resource that somebody may look after has changed. From any thread; NULL is fine. */
void stdio_server_tell_resource (struct stdio_server *x, const char *uri);
/* Ends calls under way and waits for them. */
void stdio_server_stop (struct stdio_server *x);
