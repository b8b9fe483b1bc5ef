/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/sources/install_manifest.h"

#include "artifact/names/platform.h"
#include "artifact/package/judge.h"
#include "artifact/sources/source_fetch.h"
#include "artifact/sources/source_pick.h"
#include "artifact/store/lock_file.h"
#include "artifact/store/lock_resolve.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "manifest/capsule/capsule.h"
#include "manifest/capsule/capsule_entry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define WORKERS_MAX 8

enum entry_state {
    ENTRY_CACHED, /* in the target or the bundled store */
    ENTRY_COPIED, /* in another store: copied into the target */
    ENTRY_FETCHED,
    ENTRY_FAILED,
};

struct entry {
    const char *name, *version; /* borrowed from the manifest */
    const char *declared;       /* its kind there */
    size_t index;               /* in its artifacts */
    enum entry_state state;
    struct install_item item;
    struct source_pick pick;
    struct mur_error *error;
};

struct batch {
    struct install *in;
    struct entry *entries;
    size_t count;
    atomic_size_t next, done;
    atomic_ullong bytes;
    bool shows_progress;
    pthread_mutex_t progress_mutex;
};

static void
batch_clear (struct batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        install_item_clear (&b->entries[i].item);
        source_pick_clear (&b->entries[i].pick);
        if (b->entries[i].error)
            mur_error_free (b->entries[i].error);
    }
    free (b->entries);
    pthread_mutex_destroy (&b->progress_mutex);
}

/* --- where is it --- */

/* Looks through the stores; what is in none is picked at its source. Failures of one entry are kept
 * with it. */
static bool
locate_stored (struct install *in, struct entry *e, bool *is_found)
{
    _cleanup_payload_ struct store_payload payload = { 0 };
    enum store_found found =
        stores_find (in->stores, e->name, e->version, NULL, &payload, &e->error);
    *is_found = found == STORE_FOUND;
    if (found == STORE_FAILED)
        return false;
    if (found == STORE_NOT_FOUND)
        return true;
    bool is_there = payload.kind == STORE_BUNDLED || payload.kind == install_target (in)->kind;
    e->state = is_there ? ENTRY_CACHED : ENTRY_COPIED;
    return install_from_payload (&payload, e->name, e->version, &e->item, &e->error);
}

static void
locate (struct install *in, struct entry *e)
{
    bool is_found;
    e->state = ENTRY_FETCHED;
    if (! locate_stored (in, e, &is_found))
        e->state = ENTRY_FAILED;
    else if (! is_found && ! install_need_registry (in, &e->error))
        e->state = ENTRY_FAILED;
}

/* --- owners and fits --- */

/* True for a refusal that stops the whole install: the scope changed hands, or a component would
 * not run. */
static bool
is_fatal (const struct mur_error *e)
{
    return e->code == E_REG_010 || e->code == E_WIT_LEVEL_001 || e->code == E_CFG_003;
}

static bool
judge (struct install *in, struct entry *e)
{
    if (e->state == ENTRY_FETCHED)
        return remote_pick (in->registry, in->lock, e->name, e->version, platform_host (), &e->pick,
                            &e->error);
    struct lock_pin pin = install_pin_of (&e->item);
    return install_check_owner (in, &e->item, &e->error) &&
           install_check_fit (in, &e->item, &e->error) &&
           install_check_trust (in, &e->item, &e->error) &&
           (in->is_global || lock_check_conflict (in->lock, &pin, &e->error));
}

static bool
judge_all (struct batch *b, struct mur_error **err)
{
    for (size_t i = 0; i < b->count; i++) {
        struct entry *e = &b->entries[i];
        if (e->state != ENTRY_FAILED && ! judge (b->in, e))
            e->state = ENTRY_FAILED;
        if (e->error && is_fatal (e->error))
            return mur_propagate (err, steal_ptr (&e->error));
    }
    return true;
}

/* --- fetching --- */

static bool
fetch (struct install *in, struct entry *e)
{
    if (e->state == ENTRY_FETCHED && ! install_from_pick (in, &e->pick, &e->item, &e->error))
        return false;
    _cleanup_free_ char *odd = package_misdeclared (e->item.package, e->name, e->declared);
    if (odd)
        diag_warn (DIAG_PLAIN, W_REG_005, "%s", odd);
    return install_store (in, &e->item, NULL, &e->error);
}

static void
show_progress (struct batch *b)
{
    if (! b->shows_progress)
        return;
    pthread_mutex_lock (&b->progress_mutex);
    fprintf (stderr, "\r\033[Kinstalling %zu of %zu  %.1f MB", atomic_load (&b->done), b->count,
             (double)atomic_load (&b->bytes) / 1e6);
    fflush (stderr);
    pthread_mutex_unlock (&b->progress_mutex);
}

static void *
work (void *arg)
{
    struct batch *b = arg;
    for (;;) {
        size_t i = atomic_fetch_add (&b->next, 1);
        if (i >= b->count)
            return NULL;
        struct entry *e = &b->entries[i];
        bool moves = e->state == ENTRY_FETCHED || e->state == ENTRY_COPIED;
        if (moves && ! fetch (b->in, e))
            e->state = ENTRY_FAILED;
        else if (moves)
            atomic_fetch_add (&b->bytes, e->item.package->len);
        atomic_fetch_add (&b->done, 1);
        show_progress (b);
    }
}

static void
fetch_all (struct batch *b)
{
    size_t wanted = 0;
    for (size_t i = 0; i < b->count; i++)
        wanted += b->entries[i].state == ENTRY_FETCHED || b->entries[i].state == ENTRY_COPIED;
    size_t workers = wanted < WORKERS_MAX ? wanted : WORKERS_MAX;
    pthread_t threads[WORKERS_MAX];
    size_t started = 0;
    b->shows_progress = wanted > 0 && isatty (STDERR_FILENO);
    while (started + 1 < workers && pthread_create (&threads[started], NULL, work, b) == 0)
        started++;
    work (b);
    for (size_t i = 0; i < started; i++)
        pthread_join (threads[i], NULL);
    if (b->shows_progress)
        fputs ("\r\033[K", stderr);
}

/* --- pins and report --- */

static void
put_indented (struct buf *out, const char *indent, const char *text)
{
    for (const char *at = text; *at;) {
        size_t len = strcspn (at, "\n");
        buf_printf (out, "%s%.*s\n", indent, (int)len, at);
        at += len + (at[len] == '\n');
    }
}

static void
put_failures (struct buf *out, const struct batch *b, size_t failed)
{
    buf_printf (out, "\n%zu of %zu artifact%s failed to install:\n", failed, b->count,
                b->count == 1 ? "" : "s");
    for (size_t i = 0; i < b->count; i++) {
        const struct entry *e = &b->entries[i];
        if (e->state != ENTRY_FAILED)
            continue;
        _cleanup_free_ char *line =
            x_asprintf ("error[%s]: artifacts[%zu]: %s", diag_code_name (e->error->code), e->index,
                        e->error->message);
        buf_printf (out, "\n  %s@%s\n", e->name, e->version);
        put_indented (out, "    ", line);
        if (e->error->hint) {
            _cleanup_free_ char *hint = x_asprintf ("hint: %s", e->error->hint);
            put_indented (out, "      ", hint);
        }
    }
}

static void
put_summary (struct buf *out, const struct batch *b, size_t installed)
{
    unsigned long long bytes = atomic_load (&((struct batch *)b)->bytes);
    buf_printf (out, "installed %zu artifact%s  ", installed, installed == 1 ? "" : "s");
    if (bytes == 0)
        buf_puts (out, "all cached\n");
    else if (bytes < 1000)
        buf_printf (out, "%llu B\n", bytes);
    else if (bytes < 999500)
        buf_printf (out, "%.0f KB\n", (double)bytes / 1e3);
    else
        buf_printf (out, "%.0f MB\n", (double)bytes / 1e6);
}

static void
report (const struct batch *b, size_t failed)
{
    _cleanup_buf_ struct buf out = { 0 };
    size_t installed = b->count - failed;
    if (failed)
        put_failures (&out, b, failed);
    if (failed && installed)
        buf_putc (&out, '\n');
    if (installed && (failed || isatty (STDOUT_FILENO)))
        put_summary (&out, b, installed);
    out_write (out.data ? out.data : "", out.len);
}

static bool
pin_all (struct batch *b, size_t *failed, struct mur_error **err)
{
    *failed = 0;
    for (size_t i = 0; i < b->count; i++) {
        if (b->entries[i].state == ENTRY_FAILED)
            ++*failed;
        else if (! b->in->is_global)
            install_pin (b->in, &b->entries[i].item);
    }
    return b->in->is_global || *failed == b->count || lock_write (b->in->lock, err);
}

static void
precompile_all (struct batch *b)
{
    _cleanup_free_ struct install_item **items = x_new_array (struct install_item *, b->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < b->count; i++)
        if (b->entries[i].state != ENTRY_FAILED)
            items[count++] = &b->entries[i].item;
    install_precompile (b->in, items, count);
}

/* --- the whole --- */

static bool
run_batch (struct batch *b, bool *any_failed, struct mur_error **err)
{
    for (size_t i = 0; i < b->count; i++)
        locate (b->in, &b->entries[i]);
    if (! judge_all (b, err))
        return false;
    fetch_all (b);
    size_t failed;
    if (! pin_all (b, &failed, err))
        return false;
    *any_failed = failed > 0;
    report (b, failed);
    precompile_all (b);
    return true;
}

bool
install_manifest (struct install *in, bool *any_failed, struct mur_error **err)
{
    *any_failed = false;
    _cleanup_free_ char *path = x_asprintf ("%s/murmur.yaml", in->project_root);
    _cleanup_ (capsule_manifest_freep) struct capsule_manifest *m =
        capsule_manifest_read (path, MANIFEST_SECRETLESS, err);
    if (! m)
        return false;
    struct batch b = { .in = in };
    pthread_mutex_init (&b.progress_mutex, NULL);
    b.entries = x_new_array (struct entry, m->artifacts.len + 1);
    for (size_t i = 0; i < m->artifacts.len; i++) {
        const struct artifact_entry *a = &m->artifacts.items[i];
        if (! a->source)
            b.entries[b.count++] = (struct entry){ .name = a->name,
                                                   .version = a->version,
                                                   .declared = artifact_role_name (a->role),
                                                   .index = i };
    }
    bool ok = true;
    if (b.count == 0)
        out_puts ("No artifacts to install.\n");
    else
        ok = run_batch (&b, any_failed, err);
    batch_clear (&b);
    return ok;
}

/* --- a lock with conflict marks --- */

static const char *
wanted_version (void *ctx, const char *name)
{
    const struct capsule_manifest *m = ctx;
    for (size_t i = 0; i < m->artifacts.len; i++)
        if (str_eq (m->artifacts.items[i].name, name))
            return m->artifacts.items[i].version;
    return NULL;
}

bool
install_resolve_lock (struct mur_error **err)
{
    _cleanup_free_ char *root = project_root_find (".");
    if (! root)
        return mur_fail (err, E_IO_001, "no murmur.yaml in this folder or above it");
    _cleanup_free_ char *path = x_asprintf ("%s/murmur.yaml", root);
    _cleanup_ (capsule_manifest_freep) struct capsule_manifest *m =
        capsule_manifest_read (path, MANIFEST_SECRETLESS, err);
    if (! m)
        return false;
    const struct lock_resolution how = { wanted_version, m };
    size_t kept;
    if (! lock_resolve (root, &how, &kept, err))
        return false;
    if (kept)
        out_printf ("murmur.lock: %zu pin%s of both sides kept\n", kept, kept == 1 ? "" : "s");
    else
        diag_note ("murmur.lock has no conflict marks");
    return true;
}
