/* SPDX-License-Identifier: Apache-2.0
 *
 * What every target's files are made of: the arguments of `mur` there, and the files themselves.
 */
#include "base/alloc.h"
#include "deploy/deploy_internal.h"

#include <ctype.h>

/* A word as it is to arrive: a cluster puts values for $(NAME), and $ for $$. */
static json_t *
literal (const struct deploy_facts *f, const char *word)
{
    _cleanup_buf_ struct buf out = { 0 };
    for (const char *c = word; *c; c++) {
        if (*c == '$' && f->fills_in)
            buf_putc (&out, '$');
        buf_putc (&out, *c);
    }
    return json_stringn (out.len ? out.data : "", out.len);
}

/* What the cluster fills in: where the pod is, for its agent card. */
static void
add_own_address (json_t *a)
{
    _cleanup_free_ char *url = x_asprintf ("http://$(" DEPLOY_POD_IP "):%d", DEPLOY_PORT);
    json_array_append_new (a, json_string ("--public-url"));
    json_array_append_new (a, json_string (url));
}

/* Of the entry of a formation whose peers are elsewhere: as a launcher beside it would start it. */
static json_t *
entry_arguments (const struct deploy_request *r)
{
    const struct roster *roster = r->formation->roster;
    const struct roster_member *m = &roster->members[roster->entry];
    return json_pack ("[ssssssssssss]", "run", "--capsule", m->capsule, "--capsule-version",
                      m->version, "--capsule-sha256", r->formation->sha256[roster->entry],
                      "--lifecycle-task-acceptance", r->task ? "single" : "queue",
                      "--lifecycle-after-task", r->task ? "exit" : "sleep", "--fleet-member");
}

json_t *
deploy_arguments (const struct deploy_facts *f, const char *capsule, const char *work,
                  const char *keys)
{
    const struct deploy_request *r = f->request;
    _cleanup_free_ char *manifest = x_asprintf ("%s/murmur.yaml", capsule);
    bool is_spread = r->formation && r->formation->is_spread;
    json_t *a = is_spread ? entry_arguments (r)
                          : json_pack ("[sss]", "run", r->formation ? "--roster" : "--manifest",
                                       r->formation ? work : manifest);
    _cleanup_free_ char *port = x_asprintf ("%u", f->port);
    bool is_reached = r->door != DEPLOY_DOOR_NONE || r->roost_url;
    const char *const pairs[][2] = { { "--workdir", deploy_is_in_one_pod (r) ? NULL : work },
                                     { "--bind", is_reached ? "0.0.0.0" : NULL },
                                     { "--port", f->is_port_ours ? port : NULL },
                                     { "--fleet-token",
                                       r->roost_url ? DEPLOY_TOKEN "/token" : NULL },
                                     { "--secrets-dir", f->keys.len ? keys : NULL },
                                     { "--public-url", r->public_url },
                                     { "--records-store", r->records_store },
                                     { "--deadline", is_spread ? NULL : r->deadline },
                                     { "--task", r->task } };
    for (size_t i = 0; i < ARRAY_LEN (pairs); i++)
        for (size_t n = 0; pairs[i][1] && n < 2; n++)
            json_array_append_new (a, literal (f, pairs[i][n]));
    if (r->roost_url && ! r->public_url)
        add_own_address (a);
    return a;
}

struct buf *
deploy_file_new (struct deploy_files *files, const char *name)
{
    x_grow (files->items, files->len, files->cap);
    files->items[files->len] = (struct deploy_file){ .name = x_strdup (name) };
    return &files->items[files->len++].text;
}

void
deploy_file_object (struct deploy_files *files, json_t *object)
{
    _cleanup_json_ json_t *taken = object;
    _cleanup_free_ char *name =
        x_asprintf ("%s.yaml", json_string_value (json_object_get (taken, "kind")));
    for (char *c = name; *c; c++)
        *c = (char)tolower ((unsigned char)*c);
    for (size_t i = 0; i < files->len; i++)
        if (str_eq (files->items[i].name, name)) { /* another of its kind */
            free (name);
            name = x_asprintf ("%s-%s.yaml", json_string_value (json_object_get (taken, "kind")),
                               json_get_string (json_object_get (taken, "metadata"), "name"));
            for (char *c = name; *c; c++)
                *c = (char)tolower ((unsigned char)*c);
        }
    deploy_yaml (deploy_file_new (files, name), taken);
}

json_t *
deploy_as_account (json_t *object, const char *role)
{
    json_object_set_new (object, "automountServiceAccountToken", json_false ());
    if (role)
        json_object_set_new (json_object_get (object, "metadata"), "annotations",
                             json_pack ("{s:s}", "eks.amazonaws.com/role-arn", role));
    return object;
}
