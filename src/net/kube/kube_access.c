/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kube/kube_access.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/fdio.h"
#include "manifest/text/yaml.h"
#include "manifest/text/yaml_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define ACCOUNT    "/var/run/secrets/kubernetes.io/serviceaccount"
#define FILE_BYTES ((size_t)1 << 20)

void
kube_access_clear (struct kube_access *a)
{
    char *const all[] = {
        a->server, a->namespace, a->ca, a->cert, a->key, a->token, a->token_file
    };
    for (size_t i = 0; i < ARRAY_LEN (all); i++) {
        if (all[i])
            explicit_bzero (all[i], strlen (all[i]));
        free (all[i]);
    }
    *a = (struct kube_access){ 0 };
}

/* A small text file, owned; NULL with E-KUB-001. */
static char *
read_file (const char *path, struct mur_error **err)
{
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct buf text = { 0 };
    if (fd >= 0 && fd_read_all (fd, FILE_BYTES, &text))
        return buf_steal (&text);
    mur_fail_errno (err, E_KUB_001, "cannot read %s", path);
    buf_free (&text);
    return NULL;
}

/* --- a kubeconfig --- */

struct kubeconfig {
    const char *path;
    struct yaml_node *root;
};

static const char *
text_of (const struct yaml_node *map, const char *key)
{
    const struct yaml_node *n = map ? yaml_get (map, key) : NULL;
    return n && yaml_is_scalar (n) && n->kind != YAML_NULL && *n->text ? n->text : NULL;
}

static struct yaml_node *
map_of (const struct yaml_node *map, const char *key)
{
    struct yaml_node *n = map ? yaml_get (map, key) : NULL;
    return n && n->kind == YAML_MAP ? n : NULL;
}

/* clusters, contexts and users are lists of {name, <what>: {...}}. */
static struct yaml_node *
named (const struct kubeconfig *c, const char *list, const char *what, const char *name,
       struct mur_error **err)
{
    const struct yaml_node *all = yaml_get (c->root, list);
    for (uint32_t i = 0; name && all && all->kind == YAML_LIST && i < all->len; i++)
        if (all->items[i]->kind == YAML_MAP && str_eq (text_of (all->items[i], "name"), name)) {
            struct yaml_node *found = map_of (all->items[i], what);
            if (found)
                return found;
        }
    mur_fail (err, E_KUB_001, "%s has no %s named %s", c->path, what,
              name ? name : "(none is set)");
    return NULL;
}

/* <key>-data in base64, else the file that <key> names, beside the kubeconfig when it is relative.
 */
static bool
read_pem (const struct kubeconfig *c, const struct yaml_node *map, const char *key, char **out,
          struct mur_error **err)
{
    _cleanup_free_ char *data_key = x_asprintf ("%s-data", key);
    const char *data = text_of (map, data_key), *path = text_of (map, key);
    if (data) {
        size_t len;
        *out = (char *)base64_decode (data, strlen (data), &len);
        return *out || mur_fail (err, E_KUB_001, "%s: %s is not base64", c->path, data_key);
    }
    if (! path)
        return true;
    const char *slash = strrchr (c->path, '/');
    _cleanup_free_ char *beside =
        *path == '/' || ! slash ? x_strdup (path)
                                : x_asprintf ("%.*s/%s", (int)(slash - c->path), c->path, path);
    *out = read_file (beside, err);
    return *out != NULL;
}

static bool
read_user (const struct kubeconfig *c, const struct yaml_node *user, struct kube_access *out,
           struct mur_error **err)
{
    static const char *const unsupported[] = { "exec", "auth-provider", "username" };
    for (size_t i = 0; i < ARRAY_LEN (unsupported); i++)
        if (yaml_get (user, unsupported[i])) {
            mur_fail (err, E_KUB_001,
                      "%s logs in by %s: no program is started for a login, give it a token or "
                      "a client certificate",
                      c->path, unsupported[i]);
            return mur_hint (err, "or let kubectl log in: `kubectl proxy`, and a kubeconfig whose "
                                  "server is http://127.0.0.1:8001");
        }
    const char *token = text_of (user, "token"), *file = text_of (user, "tokenFile");
    out->token = token ? x_strdup (token) : NULL;
    out->token_file = file && ! token ? x_strdup (file) : NULL;
    return read_pem (c, user, "client-certificate", &out->cert, err) &&
           read_pem (c, user, "client-key", &out->key, err);
}

static bool
read_cluster (const struct kubeconfig *c, const struct yaml_node *cluster, struct kube_access *out,
              struct mur_error **err)
{
    const char *server = text_of (cluster, "server");
    if (! server || (! str_starts (server, "https://") && ! str_starts (server, "http://")))
        return mur_fail (err, E_KUB_001, "%s: the cluster's server is not an http or https address",
                         c->path);
    if (yaml_get (cluster, "insecure-skip-tls-verify"))
        return mur_fail (err, E_KUB_001,
                         "%s: insecure-skip-tls-verify is not honoured: give the cluster's "
                         "certificate-authority",
                         c->path);
    size_t len = strlen (server);
    while (len && server[len - 1] == '/')
        len--;
    out->server = x_strndup (server, len);
    return read_pem (c, cluster, "certificate-authority", &out->ca, err);
}

static bool
read_kubeconfig (const char *path, struct kube_access *out, struct mur_error **err)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct kubeconfig c = { path, yaml_read_file (arena, path, E_KUB_001, err) };
    if (! c.root)
        return false;
    const struct yaml_node *context =
        named (&c, "contexts", "context", text_of (c.root, "current-context"), err);
    const struct yaml_node *cluster =
        context ? named (&c, "clusters", "cluster", text_of (context, "cluster"), err) : NULL;
    const struct yaml_node *user =
        cluster ? named (&c, "users", "user", text_of (context, "user"), err) : NULL;
    if (! user || ! read_cluster (&c, cluster, out, err) || ! read_user (&c, user, out, err))
        return false;
    const char *namespace = text_of (context, "namespace");
    out->namespace = x_strdup (namespace ? namespace : "default");
    return true;
}

/* --- a pod's own account --- */

static bool
read_account (const char *host, struct kube_access *out, struct mur_error **err)
{
    const char *port = getenv ("KUBERNETES_SERVICE_PORT");
    bool is_v6 = strchr (host, ':') != NULL;
    out->server = x_asprintf ("https://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
                              port && *port ? port : "443");
    out->token_file = x_strdup (ACCOUNT "/token");
    out->ca = read_file (ACCOUNT "/ca.crt", err);
    out->namespace = out->ca ? read_file (ACCOUNT "/namespace", err) : NULL;
    if (out->namespace)
        out->namespace[strcspn (out->namespace, "\r\n")] = '\0';
    return out->namespace != NULL;
}

/* KUBECONFIG may name several; the first that is there, else the first. Owned. */
static char *
first_there (const char *list)
{
    const char *at = list;
    while (*at) {
        size_t len = strcspn (at, ":");
        _cleanup_free_ char *one = x_strndup (at, len);
        if (*one && access (one, F_OK) == 0)
            return steal_ptr (&one);
        at += len + (at[len] == ':');
    }
    return x_strndup (list, strcspn (list, ":"));
}

bool
kube_access_read (const char *kubeconfig, struct kube_access *out, struct mur_error **err)
{
    *out = (struct kube_access){ 0 };
    const char *host = getenv ("KUBERNETES_SERVICE_HOST"), *home = getenv ("HOME");
    const char *named = kubeconfig ? kubeconfig : getenv ("KUBECONFIG");
    bool is_read;
    if (! kubeconfig && host && *host) {
        is_read = read_account (host, out, err);
    } else if (named && *named) {
        _cleanup_free_ char *one = kubeconfig ? x_strdup (named) : first_there (named);
        is_read = read_kubeconfig (one, out, err);
    } else {
        _cleanup_free_ char *usual = x_asprintf ("%s/.kube/config", home ? home : "");
        is_read = read_kubeconfig (usual, out, err);
    }
    if (! is_read)
        kube_access_clear (out);
    return is_read;
}
