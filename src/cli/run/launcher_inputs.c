/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/launcher_inputs.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/ids.h"
#include "manifest/settings/launcher_keys.h"
#include "spawn/child/lifeline.h"
#include "spawn/report/registration.h"

#include <errno.h>
#include <string.h>

/* The variable without outer blanks, NULL when unset or blank. */
static const char *
variable (const char *name)
{
    const char *value = getenv (name);
    return value && value[strspn (value, " \t\r\n")] ? value : NULL;
}

/* A grant is one short line of visible characters. */
#define GRANT_LIMIT_BYTES 8192

static bool
is_visible (const char *text)
{
    while (*text > ' ' && *text <= '~')
        text++;
    return ! *text;
}

struct secret *
launcher_read_grant (struct mur_error **err)
{
    char line[GRANT_LIMIT_BYTES + 1];
    size_t len = 0;
    ssize_t n = 1;
    /* One byte at a time: what follows the line is not ours. */
    while (len < GRANT_LIMIT_BYTES && (n = read (STDIN_FILENO, line + len, 1)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || line[len] == '\n')
            break;
        len++;
    }
    struct secret *grant = NULL;
    while (len && strchr (" \t\r", line[len - 1]))
        len--;
    line[len] = '\0';
    if (n < 0)
        mur_fail_errno (err, E_IO_003, "--spawn-grant-stdin: cannot read standard input");
    else if (! len)
        registration_refuse (getenv ("MURMUR_ROOST_URL"),
                             "--spawn-grant-stdin found no grant on standard input", err);
    else if (len == GRANT_LIMIT_BYTES || ! is_visible (line))
        registration_refuse (getenv ("MURMUR_ROOST_URL"),
                             "what --spawn-grant-stdin found on standard input is no grant", err);
    else
        grant = secret_new (line, len);
    secret_wipe (line, sizeof line);
    return grant;
}

/* The fault is named, the value never. */
static bool
check_formation_id (const char *id, struct mur_error **err)
{
    static const char form[] = "it must be \"frm_\" followed by 32 hex digits in lower case";
    const char *fault = ! str_starts (id, "frm_")    ? "has another prefix"
                        : strlen (id) != ID_LEN      ? "has another length"
                        : ! id_is_valid (id, "frm_") ? "holds another character"
                                                     : NULL;
    return ! fault || mur_fail (err, E_RUN_044, "MURMUR_FORMATION_ID %s: %s", fault, form);
}

/* Read before .env, so that no file of a project places a session in a formation. */
static bool
read_formation (struct launcher_inputs *in, struct mur_error **err)
{
    const char *id = variable ("MURMUR_FORMATION_ID");
    if (id && ! check_formation_id (id, err))
        return false;
    if (getenv ("MURMUR_FORMATION_PEERS"))
        return mur_fail (err, E_RUN_046,
                         "MURMUR_FORMATION_PEERS is set: only a member's own runtime makes it");
    in->formation_id = id ? x_strdup (id) : NULL;
    struct mur_error *fault = NULL;
    in->membership = membership_take (id, &fault);
    if (fault)
        return mur_propagate (err, fault);
    if (! id && variable ("MURMUR_FORMATION_LIFELINE"))
        return mur_fail (err, E_RUN_046,
                         "MURMUR_FORMATION_LIFELINE is set without MURMUR_FORMATION_ID");
    return lifeline_take (LIFELINE_FORMATION, err);
}

bool
launcher_inputs_read (struct launcher_inputs *in, struct mur_error **err)
{
    if (! spawner_parse (getenv ("MURMUR_SPAWNER"), &in->spawner, err) ||
        ! read_formation (in, err) || ! lifeline_take (LIFELINE_SPAWNER, err) ||
        ! launcher_keys_check (err))
        return false;
    if (in->formation_id && lifeline_fd (LIFELINE_FORMATION) < 0 && ! in->grant)
        diag_warn (DIAG_RUNTIME, W_RUN_007,
                   "MURMUR_FORMATION_ID names %s, but no launcher holds this session's lifeline: "
                   "nothing ends it with the formation",
                   in->formation_id);
    return true;
}

bool
launcher_take_seat (struct launcher_inputs *in, const char *token_file, struct mur_error **err)
{
    if (in->formation_id)
        return mur_fail (err, E_RUN_046,
                         "MURMUR_FORMATION_ID is set: a pod's place in a formation is "
                         "mur-roost's to give");
    in->seat = fleet_seat_take (getenv ("MURMUR_ROOST_URL"), token_file, err);
    if (! in->seat)
        return false;
    in->formation_id = x_strdup (fleet_seat_formation (in->seat));
    in->membership =
        membership_of_channel (fleet_seat_channel (in->seat), in->formation_id, true, err);
    return in->membership != NULL;
}

void
launcher_inputs_clear (struct launcher_inputs *in)
{
    secret_free (in->grant);
    spawner_clear (&in->spawner);
    free (in->formation_id);
    membership_free (in->membership);
    fleet_seat_free (in->seat);
}
