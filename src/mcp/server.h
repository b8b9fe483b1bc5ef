/* SPDX-License-Identifier: Apache-2.0
 *
 * The serving half of MCP, without a transport: a judged request in, an answer out.
 *
 * What is served comes from a service's functions; which thread runs them is the transport's
 * choice. Always true: a list is answered in one page and in an order that does not change by
 * itself; a tool's failure is a result, a request that names nothing is an error.
 */
#pragma once

#include "base/buf.h"
#include "base/cancel.h"
#include "mcp/request.h"

#include <stdint.h>

struct mcp_sink {
    /* Sends a message that belongs to this request before its answer; <text> is taken over. */
    void (*send) (void *ctx, char *text);
    /* Tells how far the call is; <total> 0: unknown, <message> may be NULL. */
    void (*progress) (void *ctx, double at, double total, const char *message);
    /* Asks a legacy client and waits: its result, a new value, or NULL. */
    json_t *(*ask) (void *ctx, const char *method, const json_t *params, uint64_t timeout_ms);
    void *ctx;
};

/* One served request, as a service's function sees it. */
struct mcp_call {
    const struct mcp_request *request;
    const json_t *params;        /* never NULL */
    const char *name;            /* what the method's parameter names; NULL for lists */
    const json_t *arguments;     /* an object; of tools/call */
    const struct mcp_sink *sink; /* NULL: nothing can be sent before the answer */
    struct cancel *cancel;       /* raised when the client wants no answer any more */
};

/* Fills answer->result (owned by it) or refuses with mcp_refuse. */
typedef void mcp_serve_fn (void *ctx, const struct mcp_call *call, struct mcp_answer *answer);

/* What the id of a task begins with that is the call of a tool. */
#define MCP_TASK_OF_CALL "job_"

/* What may change behind a client's back, each with a notification of its own. */
enum mcp_list {
    MCP_LIST_TOOLS,
    MCP_LIST_RESOURCES,
    MCP_LIST_COUNT,
};

struct mcp_service {
    void *ctx;
    const char *name, *version, *instructions; /* the last may be NULL */
    unsigned offers;                           /* of mcp_offer */
    unsigned asks;      /* of mcp_input: what its tools may refuse a client for not declaring */
    bool needs_tasks;   /* a tool may refuse a client that knows no tasks */
    bool tells_changes; /* listChanged */
    /* By method; NULL: there is none. What a list's function puts in result is its array. */
    mcp_serve_fn *tools_list, *tools_call, *resources_list, *resources_read, *prompts_list,
        *prompts_get, *skills_list, *skills_get, *tasks_get, *tasks_update, *tasks_cancel,
        *resource_templates, *complete;
    /* Looks after a resource from now on, as often as it is called. False: *no. NULL: none is. */
    bool (*watch) (void *ctx, const char *uri, struct mcp_answer *no);
    void (*unwatch) (void *ctx, const char *uri);
    /* From now on somebody is told when other resources are listed. NULL: the list stays. */
    void (*watch_list) (void *ctx);
};

/* Serves it; never for MCP_LISTEN and MCP_SUBSCRIBE, which are the transport's. <peer> is opened by
 * `initialize`. */
void mcp_serve (const struct mcp_service *s, struct mcp_peer *peer, const struct mcp_request *r,
                const struct mcp_sink *sink, struct cancel *cancel, struct mcp_answer *answer);
/* {name, version}; owned. */
json_t *mcp_service_info (const struct mcp_service *s);
/* A notification to a subscription, or (NULL) to a legacy peer; <params> is taken over. Owned. */
char *mcp_notice_text (const struct mcp_request *subscription, const char *method, json_t *params);
/* The first message of a subscription: what of the request is honoured; <watched> of the resources
 * it names. Owned. */
char *mcp_listen_acknowledged (const struct mcp_service *s, const struct mcp_request *r,
                               const struct strv *watched);
/* True when this subscription asked for changes of that list. */
bool mcp_listens_for (const struct mcp_request *r, enum mcp_list list);
/* The notification that it changed: to a subscription, or (NULL) to a legacy peer. Owned. */
char *mcp_list_changed_text (const struct mcp_request *subscription, enum mcp_list list);
/* The result that ends a subscription in good order. */
void mcp_listen_end (const struct mcp_request *r, struct mcp_answer *answer);
/* Refuses a client that did not declare the tasks extension. False. */
bool mcp_refuse_taskless (struct mcp_answer *answer, const char *what);
/* A tool's result of one text; owned. */
json_t *mcp_text_result (const char *text, size_t len, bool is_error);
