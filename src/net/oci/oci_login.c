/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oci/oci_login.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/json.h"
#include "fs/paths.h"
#include "net/oci/oci_helper.h"

#include <errno.h>
#include <string.h>

#define CONFIG_MAX ((size_t)1 << 20)

void
oci_login_clear (struct oci_login *l)
{
    free (l->user);
    if (l->secret)
        secret_free (l->secret);
    *l = (struct oci_login){ 0 };
}

/* --- where it is kept --- */

static void
add_below (struct strv *paths, const char *variable, const char *below)
{
    const char *dir = getenv (variable);
    if (dir && dir[0] == '/')
        strv_printf (paths, "%s%s", dir, below);
}

/* The files of docker and podman, the one that was asked for first. */
static void
config_paths (struct strv *paths)
{
    add_below (paths, "REGISTRY_AUTH_FILE", "");
    const char *docker = getenv ("DOCKER_CONFIG");
    if (docker && docker[0])
        strv_printf (paths, "%s/config.json", docker);
    else
        add_below (paths, "HOME", "/.docker/config.json");
    add_below (paths, "XDG_RUNTIME_DIR", "/containers/auth.json");
}

/* The names one host is kept under. */
static void
host_keys (const char *host, struct strv *keys)
{
    static const char *const schemes[] = { "https", "http" };
    static const char *const ends[] = { "", "/", "/v1/", "/v2/" };
    strv_push (keys, host);
    for (size_t i = 0; i < ARRAY_LEN (schemes) * ARRAY_LEN (ends); i++)
        strv_printf (keys, "%s://%s%s", schemes[i / ARRAY_LEN (ends)], host,
                     ends[i % ARRAY_LEN (ends)]);
    if (str_eq (host, "docker.io"))
        strv_push (keys, "https://index.docker.io/v1/");
}

/* The names podman keeps a repository and what it lies below under, the closest first. */
static void
repository_keys (const char *host, const char *repository, struct strv *keys)
{
    for (size_t len = strlen (repository); len > 0;) {
        strv_printf (keys, "%s/%.*s", host, (int)len, repository);
        while (len > 0 && repository[len - 1] != '/')
            len--;
        len -= len > 0;
    }
}

/* --- what stands in the file --- */

static bool
take_pair (const char *auth, struct oci_login *out)
{
    size_t len;
    unsigned char *plain = base64_decode (auth, strlen (auth), &len);
    char *text = (char *)plain;
    char *colon = text ? strchr (text, ':') : NULL;
    if (colon) {
        out->user = x_strndup (text, (size_t)(colon - text));
        out->secret = secret_new (colon + 1, strlen (colon + 1));
    }
    if (plain)
        secret_wipe (plain, len);
    free (plain);
    return colon != NULL;
}

static bool
take_entry (const json_t *entry, struct oci_login *out)
{
    const char *token = json_get_string (entry, "identitytoken");
    const char *auth = json_get_string (entry, "auth");
    const char *user = json_get_string (entry, "username");
    const char *password = json_get_string (entry, "password");
    if (token && *token) {
        out->secret = secret_new (token, strlen (token));
        out->is_identity_token = true;
        return true;
    }
    if (auth && *auth)
        return take_pair (auth, out);
    if (! user || ! password || ! *user)
        return true;
    out->user = x_strdup (user);
    out->secret = secret_new (password, strlen (password));
    return true;
}

/* Whom a file is asked for. */
struct wanted {
    const char *host;
    struct strv host_keys, repository_keys;
};

static void
wanted_clear (struct wanted *w)
{
    strv_free (&w->host_keys);
    strv_free (&w->repository_keys);
}

/* The helper that keeps this host; NULL: none, which an empty name says as well. Borrowed. */
static const char *
helper_of (const json_t *config, const struct strv *keys)
{
    const json_t *helpers = json_object_get (config, "credHelpers");
    const char *helper = NULL;
    for (size_t i = 0; ! helper && i < keys->len; i++)
        helper = json_get_string (helpers, keys->items[i]);
    if (! helper)
        helper = json_get_string (config, "credsStore");
    return helper && *helper ? helper : NULL;
}

static bool
find_entry (const json_t *config, const struct strv *keys, const char *path, struct oci_login *out,
            struct mur_error **err)
{
    const json_t *auths = json_object_get (config, "auths");
    for (size_t i = 0; ! out->secret && i < keys->len; i++) {
        const json_t *entry = json_object_get (auths, keys->items[i]);
        if (entry && ! take_entry (entry, out))
            return mur_fail (err, E_REG_012, "%s: auths[\"%s\"].auth is no user:password in base64",
                             path, keys->items[i]);
    }
    return true;
}

static bool
find_in (const json_t *config, const struct wanted *w, const char *path, struct oci_login *out,
         struct mur_error **err)
{
    const struct strv *keys = &w->host_keys;
    const char *helper = helper_of (config, keys);
    const char *asked = str_eq (w->host, "docker.io") ? keys->items[keys->len - 1] : w->host;
    if (! find_entry (config, &w->repository_keys, path, out, err))
        return false;
    if (! out->secret && helper && ! oci_helper_ask (helper, asked, out, err))
        return mur_context (err, "%s", path);
    return find_entry (config, keys, path, out, err);
}

static bool
find_in_file (const char *path, const struct wanted *w, struct oci_login *out,
              struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_error_ struct mur_error *caught = NULL;
    if (! fs_read_path (path, CONFIG_MAX, &text, &caught)) {
        bool is_absent = caught->code == E_IO_001 || caught->errno_value == ENOTDIR;
        return is_absent || mur_fail (err, E_REG_012, "%s", caught->message);
    }
    if (! text.data || strspn (text.data, " \t\r\n") == text.len)
        return true; /* made, and nothing written: docker takes it for none as well */
    _cleanup_json_ json_t *config = json_parse (text.data, text.len, path, E_REG_012, err);
    bool ok = config && find_in (config, w, path, out, err);
    secret_wipe (text.data, text.len);
    return ok;
}

bool
oci_login_find (const char *host, const char *repository, struct oci_login *out,
                struct mur_error **err)
{
    _cleanup_strv_ struct strv paths = { 0 };
    _cleanup_ (wanted_clear) struct wanted w = { .host = host };
    *out = (struct oci_login){ 0 };
    config_paths (&paths);
    host_keys (host, &w.host_keys);
    repository_keys (host, repository, &w.repository_keys);
    for (size_t i = 0; ! out->secret && i < paths.len; i++)
        if (! find_in_file (paths.items[i], &w, out, err)) {
            oci_login_clear (out);
            return false;
        }
    return true;
}

char *
oci_login_basic (const struct oci_login *l)
{
    if (! l->user || ! l->secret || l->is_identity_token)
        return NULL;
    char *pair = x_asprintf ("%s:%s", l->user, secret_reveal (l->secret));
    char *encoded = base64_encode (pair, strlen (pair));
    char *value = x_asprintf ("Basic %s", encoded);
    secret_wipe (pair, strlen (pair));
    secret_wipe (encoded, strlen (encoded));
    free (pair);
    free (encoded);
    return value;
}
