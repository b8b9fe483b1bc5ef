/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server is, for the files that wall it in, pump it, open it and ask it.
 *
 * One lock guards everything below it; the pump's thread alone touches the streams.
 */
#pragma once

#include "base/condition.h"
#include "mcp/lines.h"
#include "net/allow.h"
#include "session/servers/server.h"

#define SERVER_TAIL_MAX  8192 /* of its standard error */
#define SERVER_LOG_MAX   ((size_t)1 << 20)
#define SERVER_LINE_MAX  MCP_MESSAGE_MAX
#define SERVER_NOISE_MAX ((uint64_t)1 << 20) /* bytes of standard output that are no message */
#define PROGRESS_STEPS   16                  /* told at once; of more the last ones */
#define SERVER_DEATHS    3                   /* within */
#define SERVER_DEATHS_MS 60000

struct server_walls {
    struct arena *arena;
    struct confinement_spec spec;
    struct allow_list network;
    struct confinement *confinement;
    struct strv closure;            /* libraries its tree needs beside its interpreter's */
    const char *tree, *path, *name; /* of the tree; the interpreter; as it was called */
    struct strv env;
};

struct pending {
    struct pending *next;
    int64_t id;
    json_t *result, *error; /* owned; one of them once it is done */
    bool is_done;
    uint64_t heard_ms; /* of the last progress */
    double progress;
    uint64_t progress_count;
    struct progress_step {
        double at, total;
        char *message;       /* owned, may be NULL */
    } steps[PROGRESS_STEPS]; /* not yet told to who listens */
    size_t step_count;
    json_t *said;                /* its messages, not yet told: params of each; NULL: none */
    struct mcp_message question; /* of the server, for who waits here to answer */
    struct server_ask *ask;
    struct mur_error *failure; /* why it is done without either; NULL: its server ended */
    int status;                /* the HTTP status it failed with; 0: none */
    bool is_unserved;          /* it reached the server, which has not begun with it */
};

enum server_state {
    SERVER_DOWN,
    SERVER_UP,     /* its process runs */
    SERVER_ENDING, /* its input is closed, or it was killed */
};

/* The process that runs, or ran last. */
struct server_process {
    pid_t pid;
    int pidfd, in_fd, out_fd, err_fd, wake_fd;
    struct mcp_lines lines;
    struct buf queue; /* what is to be written */
    struct buf tail;  /* of its standard error */
    int log_fd;
    size_t logged;
    uint64_t noise_lines, noise_bytes;
    uint64_t ending_ms; /* when its input was closed; 0: it was not */
    bool has_term;
    char *death; /* why it ended, in words; NULL: it runs */
    enum diag_code death_code;
};

struct exchange;

/* What is under way with a server far away. */
struct server_line {
    struct exchange *exchanges;
    struct cancel *stopping; /* raised when it is condemned: its thread waits for nobody then */
    char *session_id;        /* of a legacy one; NULL: none */
    bool is_deaf;            /* nothing is listened to that should be */
    bool is_mute;            /* it has nothing to listen to */
};

/* How a server is reached; a row for each way. All but start are called under the lock. */
struct server_way {
    bool (*start) (struct mcp_server *s, struct mur_error **err);
    /* A message, taken over; <id> 0 and no method: an answer. */
    void (*send) (struct mcp_server *s, int64_t id, const char *method, const json_t *params,
                  char *text);
    /* Nobody waits for that request any more. */
    void (*drop) (struct mcp_server *s, int64_t id, const char *reason);
    void (*wake) (struct mcp_server *s);
    void (*kill) (struct mcp_server *s);
    /* Opens what tells of changes, once more when it broke. */
    void (*listen) (struct mcp_server *s);
};
extern const struct server_way server_by_pipes, server_by_http;

struct mcp_server {
    const struct server_way *way;
    struct server_setup setup;
    struct server_walls walls;
    bool has_walls;

    pthread_mutex_t opening; /* who starts it, and nobody else */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum server_state state;
    bool is_over;   /* nothing is started any more */
    bool is_opened; /* its era is known and its tools were looked at */
    struct mcp_client client;
    struct strv drift;
    struct strv unsendable;            /* names of tools that cannot be called over HTTP */
    bool has_new_list;                 /* it said that its tools changed */
    uint64_t list_ms;                  /* when */
    uint64_t deaths_ms[SERVER_DEATHS]; /* that nobody asked for, the newest first */

    struct server_process io;
    struct server_line line;
    pthread_t thread; /* the pump */
    bool has_thread;
    struct pending *pending;
    int64_t next_id;
};

/* --- server_walls.c --- */

/* Makes them unless they are there. */
bool server_walls_make (struct mcp_server *s, struct mur_error **err);
void server_walls_free (struct server_walls *w);

/* --- server_state.c --- */

/* Sends a request, or (id 0) a notification. Under the lock, like the rest. */
void server_send_call (struct mcp_server *s, int64_t id, const char *method, const json_t *params);
/* Sends an answer; taken over. */
void server_send_answer (struct mcp_server *s, char *text);
/* What is waited for under that id, or NULL. */
struct pending *server_find_pending (struct mcp_server *s, const json_t *id);
/* It runs no more, after an end that was asked for or not: whoever waits is told. */
void server_gone (struct mcp_server *s, bool was_asked);
/* What is wiped before each start, whatever is started. */
void server_begin_life (struct mcp_server *s);
/* Starts the thread that speaks with it. */
bool server_start_thread (struct mcp_server *s, void *(*pump) (void *), struct mur_error **err);
/* Says why it is ended, once, and has everything of it killed. Under the lock. */
void
server_condemn (struct mcp_server *s, enum diag_code code, const char *fmt, ...) _printf_ (3, 4);
/* Lines of its standard error kept for reports. Owned. */
char *server_stderr_tail (struct mcp_server *s);

/* Waits for the thread of one that is gone, and lets go of its walls. Not under the lock. */
void server_settle (struct mcp_server *s);

/* --- remote.c --- */

void server_line_clear (struct server_line *line);

/* --- server_messages.c --- */

/* One line of its output. Under the lock. */
void server_take_line (struct mcp_server *s, const char *line, size_t len);
