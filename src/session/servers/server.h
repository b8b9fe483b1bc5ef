/* SPDX-License-Identifier: Apache-2.0
 *
 * One server of tools, opened when it is first asked something and ended with whoever holds it: a
 * process in walls of its own, spoken to over its standard input and output, or a program far away,
 * spoken to over HTTP.
 *
 * Always true: never two processes of one server at once; what it writes never blocks it and never
 * grows us beyond a bound; whatever it does costs a call one clear error; when its leader is gone,
 * everything it started is killed. Of a server far away only its own address is spoken to.
 */
#pragma once

#include "base/cancel.h"
#include "manifest/capsule/capsule.h"
#include "mcp/client.h"
#include "mcp/pinned.h"
#include "sandbox/run/confinement.h"

struct gateway;
struct http_client;
struct trace_writer;

/* Where a server far away is, and what is shown to it. Everything is borrowed. */
struct server_remote {
    const char *url; /* NULL: it is a process */
    struct http_client *http;
    struct gateway *gateway;   /* its key goes into each request; NULL: a login, if there is one */
    struct redactor *redactor; /* learns the login's tokens; may be NULL */
};

struct server_setup;
struct server_ask;

/* Fills in what is made only for a server that is started: tree, env, gateway_port. */
struct server_maker {
    bool (*prepare) (void *ctx, struct server_setup *setup, struct mur_error **err); /* or NULL */
    void *ctx;
};

/* What of this machine and the net is open to it. */
struct server_reach {
    struct str_list network;  /* entries of an allow list */
    struct str_list programs; /* it may start beside its interpreter */
};

/* Everything is borrowed for the server's life. Paths are absolute and canonical. */
struct server_setup {
    const char *name;                /* as people call it */
    const char *artifact;            /* its full name */
    const struct mcp_pinned *pinned; /* what is started; its tools may be unknown yet */
    bool is_unknown;                 /* its era and tools are to be found out */
    const char *tree;                /* where the package's tree lies */
    const char *const *args;         /* NULL-terminated */
    const char *const *env;          /* NAME=value beside PATH, HOME and LANG; NULL-terminated */
    const char *log_path;            /* receives its standard error; NULL: nothing does */
    const char *dir;                 /* its private folder, made when it is first started */
    const char *work;                /* where it works; NULL: a private folder */
    const char *const *protected;    /* of the work folder, read only; NULL-terminated or NULL */
    const char *session_id;
    enum confinement_tier tier;
    enum session_space space;
    bool cgroup_is_optional;
    struct cap_resources resources;
    struct server_reach reach;
    unsigned gateway_port; /* of 127.0.0.1 outside; 0: none */
    struct server_remote remote;
    uint64_t startup_ms;
    bool drops_drift;           /* else one changed tool refuses all */
    const char *const *offered; /* names of tools whose drift matters; NULL-terminated or NULL:
                                   all that are pinned */
    unsigned asks;              /* of mcp_input: what it may ask for */
    struct trace_writer *const *trace; /* where the lines go; NULL or *NULL: nowhere */
    struct server_maker maker;
};

struct mcp_server;

struct mcp_server *server_new (const struct server_setup *setup);
/* Ends it first. */
void server_free (struct mcp_server *s);
DEFINE_CLEANUP (struct mcp_server, server_free)
/* Asks it to end and sees to it: its input is closed, then SIGTERM, then everything is killed. */
void server_end (struct mcp_server *s);
/* The same in two halves, so that several end at once. */
void server_end_begin (struct mcp_server *s);
/* Kills everything of it at once, and starts nothing any more. Any thread. */
void server_kill (struct mcp_server *s);

/* Starts it unless it runs. E-MCP-001, 002, 005, 006, what confining it may fail with. */
bool server_open (struct mcp_server *s, struct cancel *cancel, struct mur_error **err);
/* What it said of itself, once open. Borrowed. */
const struct mcp_client *server_client (const struct mcp_server *s);
/* Names of tools it listed that cannot be called over HTTP. Borrowed. */
const struct strv *server_unsendable (const struct mcp_server *s);
/* What it offers now, sorted and as it is pinned. A new array, or NULL with *err. */
json_t *server_list_tools (struct mcp_server *s, struct cancel *cancel, struct mur_error **err);

/* False when the drift forbids a call of this tool: E-MCP-003, E-MCP-004. */
bool server_may_call (struct mcp_server *s, const char *tool, struct mur_error **err);
/* A call of a tool with the members of its parameters (borrowed); ask->params is filled in here.
 * Where the server lost the session it is opened once anew, and asked again. */
json_t *server_call (struct mcp_server *s, struct server_ask *ask, const json_t *members,
                     struct mur_error **err);
