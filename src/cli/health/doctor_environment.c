/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur doctor`: the variables a launch needs, of this capsule and of every capsule it may start, by
 * name only (spec/artifacts.md 13 "Environment requirements").
 *
 * Of a packed manifest only env.allow and spawn.allow are read. The walk is bounded, a cycle is
 * named once, and what cannot be looked into is said.
 */
#include "artifact/store/store_list.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/text.h"
#include "cli/health/doctor_internal.h"
#include "manifest/text/dotenv.h"
#include "spawn/child/packed.h"

#include <fcntl.h>
#include <string.h>

#define MOST_CAPSULES 256

struct node {
    char *label; /* name@version */
    struct packed packed;
    bool is_open; /* on the path of the walk */
};

struct walk {
    struct doctor *d;
    struct node nodes[MOST_CAPSULES];
    size_t len;
    struct strv cycles;
    struct strv missing;     /* W-REG-002, a sentence each */
    struct strv unreachable; /* E-CAP-015, a sentence each */
};

/* --- reading one capsule --- */

/* The version a spawn would take: the pinned one, else the only one installed. NULL with *why. */
static char *
version_of (const struct doctor *d, const char *name, char **why)
{
    const struct lock_entry *pin = d->lock->exists ? lock_find (d->lock, name) : NULL;
    if (pin)
        return x_strdup (pin->version);
    for (size_t i = 0; i < STORE_COUNT; i++) {
        _cleanup_strv_ struct strv versions = { 0 };
        if (d->stores->at[i].root)
            store_versions (&d->stores->at[i], name, &versions);
        if (versions.len == 1)
            return x_strdup (versions.items[0]);
        if (versions.len > 1) {
            *why = x_asprintf ("%zu versions are installed in the %s store and none is pinned",
                               versions.len, store_kind_name (d->stores->at[i].kind));
            return NULL;
        }
    }
    *why = x_strdup ("it is not installed");
    return NULL;
}

static bool
read_capsule (const struct doctor *d, const char *name, const char *version, struct node *out,
              char **why)
{
    _cleanup_error_ struct mur_error *err = NULL;
    bool is_read = packed_read (d->stores, name, version, &out->packed, &err);
    if (! is_read)
        *why = x_strdup (err->message);
    return is_read;
}

/* --- the walk --- */

static struct node *
find_node (struct walk *w, const char *label)
{
    for (size_t i = 0; i < w->len; i++)
        if (strcmp (w->nodes[i].label, label) == 0)
            return &w->nodes[i];
    return NULL;
}

static void
compare_env (struct walk *w, const struct node *parent, const struct node *child)
{
    for (size_t i = 0; i < child->packed.env_allow.len; i++)
        if (! strv_contains (&parent->packed.env_allow, child->packed.env_allow.items[i]))
            strv_printf (&w->unreachable,
                         "%s\t%s wants %s, which %s does not hold and cannot hand on",
                         child->packed.env_allow.items[i], child->label,
                         child->packed.env_allow.items[i], parent->label);
}

static void visit (struct walk *w, struct node *parent);

static void
visit_child (struct walk *w, struct node *parent, const char *name)
{
    _cleanup_free_ char *why = NULL;
    _cleanup_free_ char *version = version_of (w->d, name, &why);
    _cleanup_free_ char *label = version ? x_asprintf ("%s@%s", name, version) : NULL;
    struct node *known = label ? find_node (w, label) : NULL;
    if (known) {
        compare_env (w, parent, known);
        if (known->is_open)
            strv_printf (&w->cycles, "%s may start %s, which leads back to it", parent->label,
                         label);
        return;
    }
    if (label && w->len == MOST_CAPSULES)
        why = x_asprintf ("more than %d capsules may be started", MOST_CAPSULES);
    struct node *child = &w->nodes[w->len];
    if (why || ! read_capsule (w->d, name, version, child, &why)) {
        strv_printf (&w->missing, "%s: %s", label ? label : name, why);
        return;
    }
    child->label = steal_ptr (&label);
    w->len++;
    compare_env (w, parent, child);
    visit (w, child);
}

static void
visit (struct walk *w, struct node *node)
{
    node->is_open = true;
    for (size_t i = 0; i < node->packed.spawn_allow.len; i++)
        visit_child (w, node, node->packed.spawn_allow.items[i]);
    node->is_open = false;
}

static void
walk_clear (struct walk *w)
{
    for (size_t i = 0; i < w->len; i++) {
        free (w->nodes[i].label);
        packed_clear (&w->nodes[i].packed);
    }
    strv_free (&w->cycles);
    strv_free (&w->missing);
    strv_free (&w->unreachable);
    free (w);
}

/* --- what is set --- */

/* The names the workspace's .env sets; a file that does not parse sets none. */
static void
read_dotenv_names (const char *project, struct strv *names)
{
    _cleanup_free_ char *root = dotenv_root (project);
    _cleanup_free_ char *path = x_asprintf ("%s/.env", root);
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC);
    _cleanup_buf_ struct buf text = { 0 };
    if (fd < 0 || ! fd_read_all (fd, 1024 * 1024, &text) || ! text.len)
        return;
    text_form_normalise (&text);
    _cleanup_dotenv_ struct dotenv file = { 0 };
    if (dotenv_parse (text.data, text.len, path, &file, NULL))
        for (size_t i = 0; i < file.len; i++)
            strv_push (names, file.entries[i].name);
    explicit_bzero (text.data, text.len);
}

static bool
is_control_secret (const struct capsule_manifest *m, const char *name)
{
    for (size_t i = 0; m->control && i < m->control->secrets.len; i++)
        if (strcmp (m->control->secrets.items[i], name) == 0)
            return true;
    return false;
}

/* ${NAME} of gateways that neither the configuration nor a controller answers. */
static void
gateway_names (const struct doctor *d, struct strv *names)
{
    for (size_t i = 0; i < d->manifest->artifacts.len; i++) {
        const struct gateway_block *g = d->manifest->artifacts.items[i].gateway;
        const char *name = g ? g->key_reference : NULL;
        if (! name || is_control_secret (d->manifest, name) || strv_contains (names, name))
            continue;
        const struct secret *value = config_credential (d->config, name);
        if (! value || ! secret_len (value))
            strv_push (names, name);
    }
}

/* --- the block --- */

static void
print_error (struct doctor *d, enum diag_code code, const char *text, char *fix)
{
    d->errors++;
    diag_stderr_line ("[mur doctor] error[%s]: %s (mur explain %s)", diag_code_name (code), text,
                      diag_code_name (code));
    if (strv_contains (&d->fixes, fix))
        free (fix);
    else
        strv_take (&d->fixes, fix);
}

/* Who needs a variable: "sp@0.1.0, local/kid@0.1.0". Owned. */
static char *
needed_by (const struct walk *w, const struct strv *references, const char *name)
{
    _cleanup_strv_ struct strv who = { 0 };
    if (strv_contains (references, name))
        strv_push (&who, w->nodes[0].label);
    for (size_t i = 0; i < w->len; i++)
        if (strv_contains (&w->nodes[i].packed.env_allow, name) &&
            ! strv_contains (&who, w->nodes[i].label))
            strv_push (&who, w->nodes[i].label);
    return strv_join (&who, ", ");
}

static void
print_variable (struct walk *w, const struct strv *references, const struct strv *from_file,
                const char *name)
{
    bool is_set = getenv (name) || strv_contains (from_file, name);
    _cleanup_free_ char *who = needed_by (w, references, name);
    out_printf ("    %s  %s   %s — %s\n", is_set ? "✓" : "✗", name, is_set ? "set    " : "unset  ",
                who);
    w->d->passed += is_set;
    if (is_set)
        return;
    _cleanup_free_ char *text = x_asprintf ("%s is not set; needed by %s", name, who);
    print_error (w->d, E_CAP_014, text, x_asprintf ("export %s", name));
}

static void
print_block (struct walk *w, const struct strv *references)
{
    struct doctor *d = w->d;
    _cleanup_strv_ struct strv names = { 0 }, from_file = { 0 }, labels = { 0 };
    read_dotenv_names (d->project, &from_file);
    for (size_t i = 0; i < references->len; i++)
        strv_push (&names, references->items[i]);
    for (size_t i = 0; i < w->len; i++) {
        strv_push (&labels, w->nodes[i].label);
        for (size_t j = 0; j < w->nodes[i].packed.env_allow.len; j++)
            if (! strv_contains (&names, w->nodes[i].packed.env_allow.items[j]))
                strv_push (&names, w->nodes[i].packed.env_allow.items[j]);
    }
    strv_sort (&names);
    _cleanup_free_ char *capsules = strv_join (&labels, ", ");
    out_printf ("\nEnvironment requirements\n  capsules: %s\n", capsules);
    out_puts (names.len ? "  variables:\n" : "  variables: none\n");
    for (size_t i = 0; i < names.len; i++)
        print_variable (w, references, &from_file, names.items[i]);
    for (size_t i = 0; i < w->cycles.len; i++)
        out_printf ("  cycle: %s\n", w->cycles.items[i]);
    for (size_t i = 0; i < w->unreachable.len; i++) {
        char *item = w->unreachable.items[i], *text = strchr (item, '\t');
        *text++ = '\0';
        out_printf ("  ✗  %s\n", text);
        print_error (d, E_CAP_015, text,
                     x_asprintf ("name %s in the spawner's capabilities.env.allow too, or take it "
                                 "out of the child's",
                                 item));
    }
    for (size_t i = 0; i < w->missing.len; i++) {
        out_printf ("  ⚠ %s\n", w->missing.items[i]);
        d->warnings++;
        diag_warn (DIAG_DOCTOR, W_REG_002, "cannot look into %s", w->missing.items[i]);
    }
}

static bool
is_any_unset (const struct doctor *d, const struct strv *references)
{
    _cleanup_strv_ struct strv from_file = { 0 };
    read_dotenv_names (d->project, &from_file);
    for (size_t i = 0; i < references->len; i++)
        if (! getenv (references->items[i]) && ! strv_contains (&from_file, references->items[i]))
            return true;
    return false;
}

void
doctor_environment (struct doctor *d)
{
    _cleanup_strv_ struct strv references = { 0 };
    gateway_names (d, &references);
    const struct policy *p = d->policy;
    if (! p->spawn_allow.len && ! is_any_unset (d, &references))
        return;
    struct walk *w = x_new0 (struct walk);
    w->d = d;
    struct node *root = &w->nodes[w->len++];
    root->label = x_asprintf ("%s@%s", d->manifest->name, d->manifest->version);
    if (p->spawn_allow.len) {
        for (size_t i = 0; i < p->env_allow.len; i++)
            strv_push (&root->packed.env_allow, p->env_allow.items[i]);
        for (size_t i = 0; i < p->spawn_allow.len; i++)
            strv_push (&root->packed.spawn_allow, p->spawn_allow.items[i]);
    }
    visit (w, root);
    print_block (w, &references);
    walk_clear (w);
}

void
doctor_control_secrets (struct doctor *d)
{
    const struct control *c = d->manifest->control;
    if (! c || ! c->secrets.len)
        return;
    out_puts ("\nControl secrets\n");
    for (size_t i = 0; i < c->secrets.len; i++)
        out_printf ("  %s: given to each running session with `mur control secret %s`\n",
                    c->secrets.items[i], c->secrets.items[i]);
}
