/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oauth/oauth_store.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/fdio.h"
#include "base/json.h"
#include "fs/replace.h"
#include "home/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER   "oauth"
#define FILE_MAX 262144

void
oauth_grant_free (struct oauth_grant *g)
{
    if (! g)
        return;
    char *texts[] = { g->server,    g->resource, g->issuer,       g->token_endpoint,
                      g->client_id, g->scope,    g->wanted_scope, g->revocation_endpoint };
    for (size_t i = 0; i < ARRAY_LEN (texts); i++)
        free (texts[i]);
    secret_free (g->client_secret);
    secret_free (g->access_token);
    secret_free (g->refresh_token);
    free (g);
}

static char *
file_name (const char *server, const char *ending)
{
    char hex[SHA256_HEX_LEN + 1];
    sha256_hex (server, strlen (server), hex);
    return x_asprintf ("%.32s%s", hex, ending);
}

char *
oauth_store_place (const char *server)
{
    _cleanup_free_ char *name = file_name (server, ".json");
    return x_asprintf ("~/.murmur/" FOLDER "/%s", name);
}

/* --- reading --- */

static struct secret *
secret_of (const json_t *o, const char *key)
{
    const char *text = json_get_string (o, key);
    return text && *text ? secret_new (text, strlen (text)) : NULL;
}

static char *
text_of (const json_t *o, const char *key)
{
    const char *text = json_get_string (o, key);
    return text ? x_strdup (text) : NULL;
}

static struct oauth_grant *
grant_of (const json_t *o)
{
    struct oauth_grant *g = x_new0 (struct oauth_grant);
    const struct {
        const char *key;
        char **to;
    } texts[] = {
        { "server", &g->server },
        { "resource", &g->resource },
        { "issuer", &g->issuer },
        { "token_endpoint", &g->token_endpoint },
        { "revocation_endpoint", &g->revocation_endpoint },
        { "client_id", &g->client_id },
        { "scope", &g->scope },
        { "wanted_scope", &g->wanted_scope },
    };
    for (size_t i = 0; i < ARRAY_LEN (texts); i++)
        *texts[i].to = text_of (o, texts[i].key);
    g->client_secret = secret_of (o, "client_secret");
    g->access_token = secret_of (o, "access_token");
    g->refresh_token = secret_of (o, "refresh_token");
    g->is_basic = json_is_true (json_object_get (o, "is_basic"));
    g->is_named = json_is_true (json_object_get (o, "is_named"));
    (void)json_get_u64 (o, "expires_ms", &g->expires_ms);
    (void)json_get_u64 (o, "lifetime_ms", &g->lifetime_ms);
    return g;
}

static bool
is_whole (const struct oauth_grant *g, const char *server)
{
    return str_eq (g->server, server) && g->resource && g->issuer && g->token_endpoint &&
           g->client_id && g->access_token;
}

static bool
read_text (int dir, const char *name, struct buf *out, bool *is_there, struct mur_error **err)
{
    struct stat st;
    _cleanup_close_ int fd = openat (dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    *is_there = fd >= 0 || errno != ENOENT;
    if (fd < 0)
        return ! *is_there || mur_fail_errno (err, E_IO_003, "cannot read the login %s", name);
    if (fstat (fd, &st) < 0 || ! S_ISREG (st.st_mode) || st.st_uid != geteuid () ||
        (st.st_mode & 077)) {
        mur_fail (err, E_MCP_009, "~/.murmur/" FOLDER "/%s is not a file of yours alone", name);
        return mur_hint (err, "remove it and log in again");
    }
    return fd_read_all (fd, FILE_MAX, out) ||
           mur_fail_errno (err, E_IO_003, "cannot read the login %s", name);
}

struct oauth_grant *
oauth_store_read (const char *server, struct mur_error **err)
{
    _cleanup_close_ int dir = home_find_dir (FOLDER, NULL);
    _cleanup_free_ char *name = file_name (server, ".json");
    _cleanup_buf_ struct buf text = { 0 };
    bool is_there = false;
    if (dir < 0 || ! read_text (dir, name, &text, &is_there, err) || ! is_there)
        return NULL;
    _cleanup_json_ json_t *o = json_loadb (text.data ? text.data : "", text.len, 0, NULL);
    secret_wipe (text.data, text.len);
    _cleanup_ (oauth_grant_freep) struct oauth_grant *g = grant_of (o);
    if (is_whole (g, server))
        return steal_ptr (&g);
    mur_fail (err, E_MCP_009, "the login in ~/.murmur/" FOLDER "/%s is damaged", name);
    mur_hint (err, "remove it and log in again");
    return NULL;
}

/* --- writing --- */

static json_t *
json_of (const struct oauth_grant *g)
{
    const struct {
        const char *key, *text;
    } texts[] = {
        { "server", g->server },
        { "resource", g->resource },
        { "issuer", g->issuer },
        { "token_endpoint", g->token_endpoint },
        { "revocation_endpoint", g->revocation_endpoint },
        { "client_id", g->client_id },
        { "scope", g->scope },
        { "wanted_scope", g->wanted_scope },
        { "client_secret", g->client_secret ? secret_reveal (g->client_secret) : NULL },
        { "access_token", secret_reveal (g->access_token) },
        { "refresh_token", g->refresh_token ? secret_reveal (g->refresh_token) : NULL },
    };
    json_t *o = json_object ();
    for (size_t i = 0; i < ARRAY_LEN (texts); i++)
        if (texts[i].text)
            json_set_string (o, texts[i].key, texts[i].text);
    json_set_bool (o, "is_basic", g->is_basic);
    json_set_bool (o, "is_named", g->is_named);
    json_set_u64 (o, "expires_ms", g->expires_ms);
    json_set_u64 (o, "lifetime_ms", g->lifetime_ms);
    return o;
}

bool
oauth_store_write (const struct oauth_grant *g, struct mur_error **err)
{
    _cleanup_close_ int dir = home_open_dir (FOLDER, err);
    _cleanup_free_ char *name = file_name (g->server, ".json");
    if (dir < 0)
        return false;
    _cleanup_json_ json_t *o = json_of (g);
    char *text = json_pretty (o, JSON_TEXT_ORDERED);
    bool is_kept = fs_replace_at (dir, name, text, strlen (text), 0600, true, err);
    secret_wipe (text, strlen (text));
    free (text);
    return is_kept;
}

bool
oauth_store_remove (const char *server)
{
    _cleanup_close_ int dir = home_find_dir (FOLDER, NULL);
    _cleanup_free_ char *name = file_name (server, ".json");
    return dir >= 0 && unlinkat (dir, name, 0) == 0;
}

int
oauth_store_lock (const char *server, struct mur_error **err)
{
    _cleanup_close_ int dir = home_open_dir (FOLDER, err);
    _cleanup_free_ char *name = file_name (server, ".lock");
    _cleanup_close_ int fd =
        dir < 0 ? -1 : openat (dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (dir >= 0 && (fd < 0 || flock (fd, LOCK_EX) < 0)) {
        mur_fail_errno (err, E_IO_003, "cannot lock the login to %s", server);
        return -1;
    }
    return steal_fd (&fd);
}
