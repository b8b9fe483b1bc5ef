/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/local_servers.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "net/http_fetch.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MS   1500
#define LIST_LIMIT  ((size_t)1 << 20)
#define MOST_MODELS 3

static const struct {
    const char *name;
    const char *address; /* "host:port" */
} servers[] = {
    { "Ollama", "127.0.0.1:11434" },
    { "LM Studio", "127.0.0.1:1234" },
    { "llama.cpp", "127.0.0.1:8080" },
    { "vLLM", "127.0.0.1:8000" },
};

/* Loopback refuses at once where nobody listens. */
static bool
is_listening (const char *address)
{
    const char *colon = strrchr (address, ':');
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons ((uint16_t)atoi (colon ? colon + 1 : "0")) };
    to.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_open = fd >= 0 && connect (fd, (struct sockaddr *)&to, sizeof to) == 0;
    if (fd >= 0)
        close (fd);
    return is_open;
}

/* The answer of GET /v1/models; NULL: it is no such server. Owned. */
static json_t *
models_of (struct http_client *client, const char *address)
{
    _cleanup_free_ char *url = x_asprintf ("http://%s/v1/models", address);
    _cleanup_http_response_ struct http_response response = { 0 };
    struct http_fetch fetch = { .request = { .method = "GET", .url = url },
                                .limit_bytes = LIST_LIMIT,
                                .total_timeout_ms = ANSWER_MS };
    struct mur_error *err = NULL;
    bool is_ok = http_fetch (client, &fetch, &response, NULL, &err) && response.status == 200;
    mur_error_free (err);
    _cleanup_json_ json_t *answer =
        is_ok
            ? json_loadb (response.body.data ? response.body.data : "", response.body.len, 0, NULL)
            : NULL;
    return json_incref (json_object_get (answer, "data"));
}

static void
tell (struct http_client *client, const char *name, const char *address)
{
    _cleanup_json_ json_t *models = is_listening (address) ? models_of (client, address) : NULL;
    if (! json_is_array (models))
        return;
    const char *first = json_get_string (json_array_get (models, 0), "id");
    if (! first) {
        diag_note ("%s answers at http://%s and has no model yet", name, address);
        return;
    }
    diag_note ("%s answers at http://%s: `mur chat --with http://%s --model '%s'` talks to it",
               name, address, address, first);
    _cleanup_buf_ struct buf others = { 0 };
    for (size_t i = 1; i < json_array_size (models) && i <= MOST_MODELS; i++) {
        const char *id = json_get_string (json_array_get (models, i), "id");
        buf_printf (&others, "%s%s", i > 1 ? ", " : "", id ? id : "");
    }
    if (others.len)
        diag_note ("its other models: %s%s", others.data,
                   json_array_size (models) > MOST_MODELS + 1 ? " and more" : "");
}

/* OLLAMA_HOST as Ollama reads it: host, host:port or a URL; only this machine's is asked. Owned. */
static char *
ollama_address (void)
{
    const char *set = getenv ("OLLAMA_HOST");
    if (! set || ! *set)
        return NULL;
    set += str_starts (set, "http://") ? strlen ("http://") : 0;
    size_t len = strcspn (set, ":/");
    unsigned long port = set[len] == ':' ? strtoul (set + len + 1, NULL, 10) : 11434;
    _cleanup_free_ char *host = x_strndup (set, len);
    bool is_here = str_eq (host, "127.0.0.1") || str_eq (host, "localhost") ||
                   str_eq (host, "0.0.0.0") || ! *host;
    return is_here && port && port < 65536 ? x_asprintf ("127.0.0.1:%lu", port) : NULL;
}

void
local_servers_tell (void)
{
    struct http_client *client = http_client_new ();
    _cleanup_free_ char *ollama = ollama_address ();
    for (size_t i = 0; i < ARRAY_LEN (servers); i++)
        tell (client, servers[i].name, i == 0 && ollama ? ollama : servers[i].address);
    http_client_free (client);
}
