/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/readiness.h"

#include "base/alloc.h"
#include "base/ids.h"
#include "base/json.h"
#include "home/paths.h"

#include <limits.h>
#include <string.h>

/* Plain segments only: none empty, none "." or "..". */
static bool
is_plain (const char *path)
{
    while (*path) {
        size_t len = strcspn (path, "/");
        if (len == 0 || (len == 1 && path[0] == '.') ||
            (len == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        path += len;
        if (*path == '/' && ! *++path)
            return false;
    }
    return true;
}

/* The part of <dir> below ~/.murmur/records, or NULL when it is not a session's directory there. */
static const char *
below_records (const char *dir, const char *session_id)
{
    _cleanup_free_ char *records = home_path_below ("records", NULL);
    size_t len = records ? strlen (records) : 0;
    if (! len || strncmp (dir, records, len) != 0 || dir[len] != '/')
        return NULL;
    const char *below = dir + len + 1, *last = strrchr (dir, '/') + 1;
    return is_plain (below) && str_eq (last, session_id) ? below : NULL;
}

/* The directory is the child's word; it is believed only where such a session's records can be. */
static bool
open_records (struct mur_child *c, const char *dir, struct mur_error **err)
{
    if (! dir)
        return mur_fail (err, E_IO_003, "the child in %s carried no records directory", c->workdir);
    size_t len = strlen (dir);
    const char *below = len < PATH_MAX ? below_records (dir, c->session_id) : NULL;
    _cleanup_free_ char *path = below ? x_asprintf ("records/%s", below) : NULL;
    struct mur_error *fault = NULL;
    c->records_fd = path ? home_find_dir (path, &fault) : -1;
    if (c->records_fd < 0) {
        mur_fail (err, E_IO_003, "the child in %s named %.*s as its records directory%s%s",
                  c->workdir, (int)utf8_cut (dir, len, PATH_MAX), dir, fault ? ": " : "",
                  fault ? fault->message : "");
        mur_error_free (fault);
        return false;
    }
    c->records_dir = x_strdup (dir);
    return true;
}

static void
take_address (struct mur_child *c, const json_t *o)
{
    const char *url = json_get_string (o, "url");
    const char *token = json_get_string (json_object_get (o, "tokens"), "operator");
    const char *formation = json_get_string (o, "formation_id");
    c->url = url && *url ? x_asprintf ("http://%s", url) : x_strdup ("");
    if (token && *token)
        c->door_token = secret_new (token, strlen (token));
    if (formation && id_is_valid (formation, "frm_"))
        c->formation_id = x_strdup (formation);
}

bool
readiness_read (struct mur_child *c, char *line, struct mur_error **err)
{
    size_t len = strlen (line);
    _cleanup_json_ json_t *o = json_loadb (line, len, 0, NULL);
    secret_wipe (line, len); /* tokens may be in it */
    if (! json_is_object (o))
        return mur_fail (err, E_IO_003,
                         "the child in %s wrote something other than a readiness line", c->workdir);
    const char *session_id = json_get_string (o, "session_id");
    if (! session_id || ! *session_id)
        return mur_fail (err, E_IO_003, "the readiness line of the child in %s has no session_id",
                         c->workdir);
    c->session_id = x_strdup (session_id);
    if (! open_records (c, json_get_string (o, "records_dir"), err))
        return false;
    take_address (c, o);
    return true;
}
