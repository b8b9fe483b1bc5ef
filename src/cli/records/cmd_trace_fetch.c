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

int
cmd_trace_fetch (const struct cli_args *args, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    _cleanup_brought_ struct brought brought = { 0 };
    const char *id = cli_positional (args, "SESSION");
    if (! id_is_valid (id, "ses_")) {
        mur_fail (err, E_IO_003, "\"%s\" is no full id of a session", id);
        return CLI_FAILED;
    }
    if (! secrets_dir_use (cli_value (args, "--secrets-dir"), err))
        return CLI_FAILED;
    _cleanup_record_store_ struct record_store *store =
        record_store_open (cli_positional (args, "STORE"), err);
    _cleanup_ (fs_root_freep) struct fs_root *records =
        store ? open_records (cli_value (args, "--workdir"), id, err) : NULL;
    if (! records)
        return CLI_FAILED;
    if (bring_home (store, id, records, &brought, &caught)) {
        say (&brought, id);
        return CLI_OK;
    }
    (void)rmdir (fs_root_path (records)); /* when nothing came */
    if (caught)
        mur_propagate (err, caught);
    else
        mur_fail (err, E_TRC_002, "%s has nothing of session %s", cli_positional (args, "STORE"),
                  id);
    return CLI_FAILED;
}
