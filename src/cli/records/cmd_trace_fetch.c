/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace fetch`: records of a session that ran on another machine, among those of a work
 * folder.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/ids.h"
#include "cli/line/args.h"
#include "cli/records/commands.h"
#include "home/paths.h"
#include "manifest/settings/secrets_dir.h"
#include "trace/ship/bring_home.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* The folder of the session, made when it is not there. NULL with *err. */
static struct fs_root *
open_records (const char *workdir, const char *session_id, struct mur_error **err)
{
    _cleanup_free_ char *work_root = home_work_root (workdir, ".", err);
    _cleanup_free_ char *group = work_root ? home_records_group (work_root, err) : NULL;
    _cleanup_close_ int group_fd = group ? home_open_records_group (work_root, err) : -1;
    if (group_fd < 0)
        return NULL;
    _cleanup_free_ char *path = x_asprintf ("%s/%s", group, session_id);
    if (mkdirat (group_fd, session_id, 0700) < 0 && errno != EEXIST)
        return mur_fail_errno (err, E_IO_003, "cannot make %s", path), NULL;
    int fd = openat (group_fd, session_id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", path), NULL;
    return fs_root_new (fd, path, NULL, true);
}

static void
say (const struct brought *b, const char *session_id)
{
    out_printf ("%s: %zu part%s of its trace, %zu file%s, %llu bytes; %s%s\n", session_id, b->parts,
                b->parts == 1 ? "" : "s", b->files, b->files == 1 ? "" : "s",
                (unsigned long long)b->bytes, b->is_complete ? "ended " : "",
                b->is_complete ? (b->status ? b->status : "") : "not complete there");
}

struct fetching {
    struct record_store *store;
    const char *store_name, *workdir;
};

/* One session. False without *err: the store has nothing of it. */
static bool
fetch (const struct fetching *f, const char *id, struct brought *out, struct mur_error **err)
{
    _cleanup_ (fs_root_freep) struct fs_root *records = open_records (f->workdir, id, err);
    if (! records)
        return false;
    if (bring_home (f->store, id, records, out, err)) {
        say (out, id);
        return true;
    }
    (void)rmdir (fs_root_path (records)); /* when nothing came */
    return false;
}

/* The session, and with <is_tree> all it started, and they. */
static bool
fetch_all (const struct fetching *f, const char *id, bool is_tree, struct mur_error **err)
{
    _cleanup_strv_ struct strv wanted = { 0 };
    strv_push (&wanted, id);
    for (size_t i = 0; i < wanted.len && (! i || is_tree); i++) {
        struct mur_error *caught = NULL;
        _cleanup_brought_ struct brought brought = { 0 };
        bool is_there = fetch (f, wanted.items[i], &brought, &caught);
        if (caught)
            return mur_propagate (err, caught);
        if (! is_there && ! i)
            return mur_fail (err, E_TRC_002, "%s has nothing of session %s", f->store_name, id);
        if (! is_there)
            out_printf ("%s: nothing of it is there\n", wanted.items[i]);
        for (size_t c = 0; c < brought.children.len; c++)
            if (! strv_contains (&wanted, brought.children.items[c]))
                strv_push (&wanted, brought.children.items[c]);
    }
    return true;
}

int
cmd_trace_fetch (const struct cli_args *args, struct mur_error **err)
{
    const char *id = cli_positional (args, "SESSION");
    if (! id_is_valid (id, "ses_")) {
        mur_fail (err, E_IO_003, "\"%s\" is no full id of a session", id);
        return CLI_FAILED;
    }
    if (! secrets_dir_use (cli_value (args, "--secrets-dir"), err))
        return CLI_FAILED;
    const char *name = cli_positional (args, "STORE");
    _cleanup_record_store_ struct record_store *store = record_store_open (name, err);
    const struct fetching f = { store, name, cli_value (args, "--workdir") };
    return store && fetch_all (&f, id, cli_has (args, "--tree"), err) ? CLI_OK : CLI_FAILED;
}
