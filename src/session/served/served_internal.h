/* SPDX-License-Identifier: Apache-2.0
 *
 * The served session as the files of this folder share it.
 */
#pragma once

#include "session/served/served.h"

struct stdio_server;

struct served {
    struct session *s;
    const struct exported_mcp *exported;
    struct mcp_service service;
    struct task task; /* whose calls these are, in the trace */
    bool has_begun;   /* task_start is written; under the loop lock, like the rest */
    uint64_t calls;   /* the turn of the next one */
    uint64_t started_ms;
    int in_fd, out_fd; /* -1: handed on, or none */
    struct stdio_server *stdio;
    bool is_authenticated; /* the door is: who comes over stdio is its operator */
    _Atomic uint64_t told; /* the generation of the tools the door's clients were told of */
};

/* served_calls.c: functions of the service. */
mcp_serve_fn served_tools_list, served_tools_call;
/* served_texts.c */
mcp_serve_fn served_resources_list, served_resources_read, served_resource_templates,
    served_skills_list, served_skills_get;
/* The skill behind a tool's place, or NULL. Under the loop lock. */
const struct staged_artifact *served_skill_at (const struct served *v, size_t i);
/* An exported file by its address or path, as the contents of a resource (a new value). */
bool
served_read_file (struct served *v, const char *uri, json_t **file_contents, struct mcp_answer *no);
/* What is exported: objects with a path. A new array, or NULL. */
json_t *served_files_listed (struct served *v, const struct mcp_call *call);
/* served_prompts.c */
mcp_serve_fn served_prompts_list, served_prompts_get, served_complete;
/* Refuses a prompt that is called like a skill. E-MCP-010. */
bool served_check_prompts (const struct session *s, const struct exported_mcp *m,
                           struct mur_error **err);
/* ask.c: a task for the capsule's own agent, and what came of it. */
void served_ask (struct served *v, const struct mcp_call *call, struct mcp_answer *answer);
json_t *served_ask_tool (const struct served *v);
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
/* Ends calls under way and waits for them. */
void stdio_server_stop (struct stdio_server *x);
