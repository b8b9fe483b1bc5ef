/* SPDX-License-Identifier: Apache-2.0
 *
 * An embedder of include/murmur/child.h for the tests: launches real children and holds their
 * handles. One JSON object a line on stdin is a command, one JSON object a line on stdout its
 * answer; the end of stdin frees what is left.
 *
 *   {"do":"launch", ...}      every member of struct mur_child_launch by its name
 *   {"do":"exited","child":N} {"do":"is-ending"} {"do":"begin"} {"do":"end"} {"do":"free"}
 *   {"do":"set","name":...,"value":...}   a variable of this process's own environment
 */
#include "murmur/child.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define CHILDREN_MAX 1024

static struct mur_child *children[CHILDREN_MAX];
static size_t child_count;

static json_t *
strings_json (const char *const *items)
{
    json_t *list = json_array ();
    for (size_t i = 0; items[i]; i++)
        json_array_append_new (list, json_string (items[i]));
    return list;
}

static json_t *
child_json (size_t number)
{
    const struct mur_child *c = children[number];
    json_t *o = json_object ();
    json_set_u64 (o, "child", number);
    json_set_u64 (o, "pid", (uint64_t)mur_child_pid (c));
    json_object_set_new (o, "argv", strings_json (mur_child_argv (c)));
    json_object_set_new (o, "environment", strings_json (mur_child_environment (c)));
    json_set_string (o, "session_id", mur_child_session_id (c));
    json_set_string (o, "url", mur_child_url (c));
    json_set_string (o, "door_token", mur_child_door_token (c));
    json_set_string (o, "formation_id", mur_child_formation_id (c));
    json_set_string (o, "workdir", mur_child_workdir (c));
    json_set_string (o, "records_dir", mur_child_records_dir (c));
    json_set_string (o, "snapshot_report", mur_child_snapshot_report (c));
    return o;
}

static json_t *
launch (const json_t *o)
{
    const json_t *allow = json_object_get (o, "env_allow");
    const char *names[64] = { NULL };
    for (size_t i = 0; i < json_array_size (allow) && i + 1 < ARRAY_LEN (names); i++)
        names[i] = json_string_value (json_array_get (allow, i));
    struct mur_child_launch l = {
        .approval = json_get_string (o, "approval"),
        .capsule = json_get_string (o, "capsule"),
        .version = json_get_string (o, "version"),
        .parent_records_dir = json_get_string (o, "parent_records_dir"),
        .roost_url = json_get_string (o, "roost_url"),
        .env_allow = names,
        .spawner = json_get_string (o, "spawner"),
        .formation_id = json_get_string (o, "formation_id"),
        .snapshot_source = json_get_string (o, "snapshot_source"),
    };
    json_get_u64 (o, "inherited_deadline_ms", &l.inherited_deadline_ms);
    json_get_u64 (o, "readiness_timeout_ms", &l.readiness_timeout_ms);
    json_get_u64 (o, "snapshot_limit_bytes", &l.snapshot_limit_bytes);
    _cleanup_error_ struct mur_error *err = NULL;
    struct mur_child *c = child_count < CHILDREN_MAX ? mur_child_launch (&l, &err) : NULL;
    if (! c)
        return json_pack ("{s:s, s:s}", "code", err ? diag_code_name (err->code) : "", "error",
                          err ? err->message : "no place for another child");
    children[child_count] = c;
    return child_json (child_count++);
}

static json_t *
exited (struct mur_child *c)
{
    int status = 0;
    bool has = mur_child_has_exited (c, &status);
    return json_pack ("{s:b, s:i}", "exited", has, "status", status);
}

static json_t *
with_child (const char *what, uint64_t number)
{
    struct mur_child *c = number < child_count ? children[number] : NULL;
    if (! c)
        return json_pack ("{s:s}", "error", "no such child");
    if (str_eq (what, "exited"))
        return exited (c);
    if (str_eq (what, "is-ending"))
        return json_pack ("{s:b}", "is_ending", mur_child_is_being_ended (c));
    if (str_eq (what, "begin"))
        mur_child_begin_ending (c);
    else if (str_eq (what, "end"))
        mur_child_end (c);
    else if (str_eq (what, "free"))
        mur_child_free (steal_ptr (&children[number]));
    else
        return json_pack ("{s:s}", "error", "no such command");
    return json_object ();
}

static json_t *
answer (const json_t *o)
{
    const char *what = json_get_string (o, "do");
    uint64_t number = UINT64_MAX;
    json_get_u64 (o, "child", &number);
    if (! what)
        return json_pack ("{s:s}", "error", "no command");
    if (str_eq (what, "launch"))
        return launch (o);
    if (! str_eq (what, "set"))
        return with_child (what, number);
    setenv (json_get_string (o, "name"), json_get_string (o, "value"), 1);
    return json_object ();
}

int
main (void)
{
    char *line = NULL;
    size_t size = 0;
    signal (SIGPIPE, SIG_IGN);
    while (getline (&line, &size, stdin) > 0) {
        _cleanup_json_ json_t *command = json_loads (line, 0, NULL);
        _cleanup_json_ json_t *told = answer (command);
        _cleanup_free_ char *text = json_text (told, JSON_TEXT_ORDERED);
        printf ("%s\n", text);
        fflush (stdout);
    }
    for (size_t i = 0; i < child_count; i++)
        mur_child_free (children[i]);
    free (line);
    return 0;
}
