/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_gate.h"

#include "base/alloc.h"
#include "base/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define TOKEN_BYTES      32
#define TOKEN_FILE_MAX   256
#define TOKEN_TEXT_LEAST 32

struct ui_gate {
    struct secret *token;
    struct strv hosts; /* "127.0.0.1:4000" */
};

/* --- the token --- */

static struct secret *
fresh_token (void)
{
    unsigned char bytes[TOKEN_BYTES];
    random_bytes (bytes, sizeof bytes);
    char *text = base64url_encode (bytes, sizeof bytes);
    struct secret *token = secret_new (text, strlen (text));
    secret_wipe (text, strlen (text));
    secret_wipe (bytes, sizeof bytes);
    free (text);
    return token;
}

/* A word of the alphabet an address may hold, long enough not to be guessed. */
static bool
is_token (const char *text, size_t len)
{
    size_t words = 0;
    while (words < len &&
           (strchr ("-_", text[words]) ? text[words] != '\0'
                                       : (text[words] >= '0' && text[words] <= '9') ||
                                             (text[words] >= 'a' && text[words] <= 'z') ||
                                             (text[words] >= 'A' && text[words] <= 'Z')))
        words++;
    return words == len && len >= TOKEN_TEXT_LEAST;
}

static struct secret *
read_token (int fd, const char *path, struct mur_error **err)
{
    char text[TOKEN_FILE_MAX];
    struct stat st;
    struct secret *token = NULL;
    if (fstat (fd, &st) < 0 || ! S_ISREG (st.st_mode) || st.st_uid != geteuid () ||
        (st.st_mode & 077)) {
        mur_fail (err, E_IO_002, "%s is no file that this user alone may read", path);
        mur_hint (err, "chmod 600 %s, or name a file that does not exist yet", path);
        return NULL;
    }
    ssize_t len = read (fd, text, sizeof text);
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    if (len > 0 && is_token (text, (size_t)len))
        token = secret_new (text, (size_t)len);
    else
        mur_fail (err, E_IO_003, "%s holds no token: %d or more letters and digits", path,
                  TOKEN_TEXT_LEAST);
    secret_wipe (text, sizeof text);
    return token;
}

static struct secret *
token_of_file (const char *path, struct mur_error **err)
{
    _cleanup_close_ int fd =
        open (path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) {
        fd = open (path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0)
            return read_token (fd, path, err);
    }
    if (fd < 0) {
        mur_fail_errno (err, E_IO_003, "cannot keep the token in %s", path);
        return NULL;
    }
    struct secret *token = fresh_token ();
    size_t len = secret_len (token);
    if (write (fd, secret_reveal (token), len) != (ssize_t)len) {
        mur_fail_errno (err, E_IO_003, "cannot keep the token in %s", path);
        unlink (path);
        secret_free (token);
        return NULL;
    }
    return token;
}

struct ui_gate *
ui_gate_new (const char *token_file, struct mur_error **err)
{
    struct secret *token = token_file ? token_of_file (token_file, err) : fresh_token ();
    if (! token)
        return NULL;
    struct ui_gate *g = x_new0 (struct ui_gate);
    g->token = token;
    return g;
}

void
ui_gate_free (struct ui_gate *g)
{
    if (! g)
        return;
    secret_free (g->token);
    strv_free (&g->hosts);
    free (g);
}

void
ui_gate_set_hosts (struct ui_gate *g, unsigned port, const char *allowed)
{
    static const char *const loopback[] = { "127.0.0.1", "localhost", "[::1]" };
    for (size_t i = 0; i < ARRAY_LEN (loopback); i++)
        strv_printf (&g->hosts, "%s:%u", loopback[i], port);
    if (! allowed)
        return;
    strv_push (&g->hosts, allowed);
    /* A name without a port is meant with ours, and as a proxy writes it for its own. */
    if (! strchr (allowed, ':'))
        strv_printf (&g->hosts, "%s:%u", allowed, port);
}

const struct secret *
ui_gate_token (const struct ui_gate *g)
{
    return g->token;
}

/* --- answers --- */

#define COMMON_HEADS 8

/* Of every answer. Words of models and tools are on this page: nothing but its own files runs, and
 * it sends nothing anywhere else. */
static const struct {
    const char *name, *value;
} common[COMMON_HEADS] = {
    { "content-security-policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for "
      "'script'; trusted-types 'none'" },
    { "x-content-type-options", "nosniff" },
    { "referrer-policy", "no-referrer" },
    { "x-frame-options", "DENY" },
    { "cross-origin-opener-policy", "same-origin" },
    { "cross-origin-resource-policy", "same-origin" },
    { "permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()" },
    { "cache-control", "no-store" },
};

static void
fill_heads (struct http_header heads[COMMON_HEADS + 1], const char *type)
{
    for (size_t i = 0; i < COMMON_HEADS; i++)
        heads[i] =
            (struct http_header){ common[i].name, common[i].value, strlen (common[i].value) };
    heads[COMMON_HEADS] = (struct http_header){ "content-type", type, strlen (type) };
}

void
ui_reply (struct http_exchange *x, int status, const char *type, const char *body, size_t len)
{
    struct http_header heads[COMMON_HEADS + 1];
    fill_heads (heads, type);
    http_reply (x, status, heads, ARRAY_LEN (heads), body, len);
}

void
ui_reply_take (struct http_exchange *x, int status, const char *type, char *body, size_t len)
{
    struct http_header heads[COMMON_HEADS + 1];
    fill_heads (heads, type);
    http_reply_take (x, status, heads, ARRAY_LEN (heads), body, len);
}

void
ui_reply_json (struct http_exchange *x, int status, json_t *value)
{
    char *text = json_text (value, JSON_TEXT_ORDERED);
    json_decref (value);
    ui_reply_take (x, status, "application/json", text, strlen (text));
}

void
ui_reply_error (struct http_exchange *x, int status, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    json_t *value = json_object ();
    json_set_string (value, "error", text);
    ui_reply_json (x, status, value);
}

struct http_stream *
ui_reply_stream (struct http_exchange *x, const char *type, const struct http_stream_source *source,
                 void *ctx)
{
    struct http_header heads[COMMON_HEADS + 1];
    fill_heads (heads, type);
    return http_reply_stream (x, 200, heads, ARRAY_LEN (heads), source, ctx);
}

/* --- the decision --- */

static bool
is_host (const struct ui_gate *g, const char *host)
{
    for (size_t i = 0; i < g->hosts.len; i++)
        if (strcasecmp (g->hosts.items[i], host) == 0)
            return true;
    return false;
}

/* Exactly one Host line of ours; of an Origin, where there is one, the same: a page elsewhere has
 * another, whatever name it made resolve to us. */
static bool
is_addressed (const struct ui_gate *g, const struct http_exchange *x)
{
    size_t hosts, origins, sites;
    const char *host = http_exchange_header (x, "host", &hosts);
    const char *origin = http_exchange_header (x, "origin", &origins);
    const char *site = http_exchange_header (x, "sec-fetch-site", &sites);
    if (hosts != 1 || ! is_host (g, host) || origins > 1 || sites > 1)
        return false;
    if (origin && ! (strncasecmp (origin, "http://", 7) == 0 && is_host (g, origin + 7)) &&
        ! (strncasecmp (origin, "https://", 8) == 0 && is_host (g, origin + 8)))
        return false;
    return ! site || str_eq (site, "same-origin") || str_eq (site, "none");
}

static bool
shows_token (const struct ui_gate *g, const struct http_exchange *x)
{
    size_t count;
    const char *line = http_exchange_header (x, "authorization", &count);
    if (count != 1 || strncasecmp (line, "Bearer ", 7) != 0)
        return false;
    _cleanup_secret_ struct secret *shown = secret_new (line + 7, strlen (line + 7));
    return secret_equal (shown, g->token);
}

/* A form or a beacon of another page sends other types without asking first. */
static bool
is_json (const struct http_exchange *x)
{
    size_t count;
    const char *type = http_exchange_header (x, "content-type", &count);
    size_t len = strlen ("application/json");
    return count == 1 && strncasecmp (type, "application/json", len) == 0 &&
           (type[len] == '\0' || type[len] == ';' || type[len] == ' ');
}

static bool
refuse (struct http_exchange *x, int status)
{
    static const char body[] = "{\"error\":\"refused\"}";
    struct http_header heads[COMMON_HEADS + 1];
    fill_heads (heads, "application/json");
    http_refuse (x, status, heads, ARRAY_LEN (heads), body, sizeof body - 1);
    return false;
}

bool
ui_gate_admits (const struct ui_gate *g, struct http_exchange *x, enum ui_gate_class class)
{
    if (! is_addressed (g, x))
        return refuse (x, 403);
    if (class == UI_GATE_PAGE)
        return true;
    if (! shows_token (g, x))
        return refuse (x, 401);
    return class == UI_GATE_DATA || is_json (x) || refuse (x, 415);
}
