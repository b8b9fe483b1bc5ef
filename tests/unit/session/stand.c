/* SPDX-License-Identifier: Apache-2.0
 *
 * Making and taking apart a session on a stand.
 */
#include "tests/unit/session/stand.h"
#include "fs/latch.h"
#include "fs/paths.h"

#include "base/clock.h"
#include "base/secret.h"
#include "door/tasks/intake.h"
#include "session/conversation/conversation.h"
#include "session/task/attempt_end.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char agent[] = "name: stand\n"
                            "version: \"0.1.0\"\n"
                            "artifacts:\n"
                            "  - {name: std/driver-scripted, version: \"0.1.0\", runtime: driver}\n"
                            "inference:\n"
                            "  model: scripted\n"
                            "  driver: {artifact: std/driver-scripted}\n";

static char *
make_dir (struct stand *st, const char *name)
{
    char *path = x_asprintf ("%s/%s", st->dir, name);
    assert_int_equal (mkdir (path, 0700), 0);
    return path;
}

static struct fs_root *
open_root (struct stand *st, const char *path, bool is_records)
{
    int fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true (fd >= 0);
    return fs_root_new (fd, path, st->s.places.latch, is_records);
}

static void
open_places (struct stand *st)
{
    struct places *p = &st->s.places;
    p->bootstrap_fd = -1;
    p->latch = fs_latch_new ();
    p->work = open_root (st, st->work_dir, false);
    p->runtime = open_root (st, st->runtime_dir, false);
    p->records = open_root (st, st->records_dir, true);
    p->work_path = x_strdup (st->work_dir);
    p->dirs.runtime_path = x_strdup (st->runtime_dir);
    p->dirs.records_path = x_strdup (st->records_dir);
}

static void
read_manifest (struct stand *st, const char *yaml)
{
    struct mur_error *err = NULL;
    st->manifest =
        capsule_manifest_parse (yaml, strlen (yaml), "murmur.yaml", MANIFEST_WITH_SECRETS, &err);
    if (! st->manifest)
        fail_msg ("the stand's manifest: %s", err->message);
    st->policy_request = (struct policy_request){ .home_dir = st->dir,
                                                  .manifest_dir = st->dir,
                                                  .work_root = st->work_dir,
                                                  .bind_addr = "127.0.0.1" };
    st->s.policy = policy_lower (st->manifest, &st->policy_request, &err);
    if (! st->s.policy)
        fail_msg ("the stand's policy: %s", err->message);
}

void
stand_open_manifest (struct stand *st, const char *yaml)
{
    *st = (struct stand){ .dir = "/tmp/stand-XXXXXX" };
    assert_non_null (mkdtemp (st->dir));
    setenv ("HOME", st->dir, 1);
    st->work_dir = make_dir (st, "work");
    st->runtime_dir = make_dir (st, "runtime");
    st->records_dir = make_dir (st, "records");
    open_places (st);
    read_manifest (st, yaml);
    struct session *s = &st->s;
    st->asked = (struct stage_request){ .manifest = st->manifest,
                                        .policy = s->policy,
                                        .config = &st->config,
                                        .file.dir = st->dir,
                                        .work.root = st->work_dir,
                                        .launcher.spawner = &st->spawner,
                                        .time.process_start_ms = clock_monotonic_ms () };
    s->asked = &st->asked;
    s->manifest = st->manifest;
    s->id = id_new ("ses_");
    s->arena = arena_new ();
    s->redactor = redactor_new ();
    s->deadline = &st->deadline;
    s->tally.launched_ms = clock_monotonic_ms ();
    pthread_mutex_init (&s->now.lock, NULL);
    pthread_mutex_init (&s->loop_lock.mutex, NULL);
    struct mur_error *err = NULL;
    s->trace = trace_writer_new (s->places.records, s->id.text, s->redactor, &err);
    assert_non_null (s->trace);
    st->task = (struct task){ .id = "tsk_00000000000000000000000000000001",
                              .context_id = "ctx_00000000000000000000000000000001",
                              .source = "task_md",
                              .is_trusted = true,
                              .cancel = cancel_new () };
    st->t = (struct running_task){ .task = &st->task,
                                   .cancel = cancel_new (),
                                   .started_ms = clock_monotonic_ms (),
                                   .record = conversation_new (NULL, st->task.context_id, NULL) };
}

void
stand_open (struct stand *st, const char *more)
{
    _cleanup_free_ char *yaml = x_asprintf ("%s%s", agent, more ? more : "");
    stand_open_manifest (st, yaml);
}

static void
close_task (struct running_task *t)
{
    conversation_free (t->record);
    message_list_clear (&t->list);
    message_list_clear (&t->seed);
    cancel_unref (t->cancel);
    free (t->task_message_id);
    free (t->held.continuation_id);
    free (t->harness.session);
    free (t->harness.status_note);
    free (t->onward.continuation_text);
    free (t->onward.standing_answer);
    free (t->onward.original_text);
    free (t->onward.declined);
    for (int i = 0; i < RESTART_SECTIONS; i++)
        buf_free (&t->onward.sections[i]);
    free (t->end.result);
    free (t->end.response);
    free (t->end.reason);
    mur_error_freep (&t->end.error);
    mur_error_freep (&t->fatal);
}

static void
close_artifact (struct staged_artifact *a)
{
    free (a->version);
    free (a->shown.description);
    free (a->shown.parameters);
    free (a->pulled_by);
    strv_free (&a->shown.required);
    buf_free (&a->skill_text);
    strv_free (&a->guest.env);
    free (a->guest.config_env);
}

void
stand_close (struct stand *st)
{
    struct session *s = &st->s;
    close_task (&st->t);
    cancel_unref (st->task.cancel);
    trace_writer_free (s->trace);
    registry_freep (&s->registry);
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        close_artifact (&s->kit.artifacts[i]);
    free (s->kit.artifacts);
    free (s->kit.tools);
    strv_free (&s->kit.guest_env);
    fs_root_free (s->places.work);
    fs_root_free (s->places.runtime);
    fs_root_free (s->places.records);
    fs_latch_free (s->places.latch);
    free (s->places.work_path);
    free (s->places.dirs.runtime_path);
    free (s->places.dirs.records_path);
    redactor_free (s->redactor);
    arena_free (s->arena);
    policy_freep (&s->policy);
    capsule_manifest_freep (&st->manifest);
    free (st->work_dir);
    free (st->runtime_dir);
    free (st->records_dir);
    _cleanup_free_ char *command = x_asprintf ("rm -rf '%s'", st->dir);
    assert_int_equal (system (command), 0);
}

void
stand_serve (struct stand *st)
{
    const struct registry_spec spec = { .acceptance = ACCEPT_QUEUE,
                                        .queue_depth = 4,
                                        .is_public = true };
    const struct task_intake intake = { .source = "task_md", .is_trusted = true };
    const struct task *task;
    st->s.registry = registry_new (&spec);
    registry_enqueue (st->s.registry, &intake);
    assert_int_equal (registry_next (st->s.registry, 0, &task), REGISTRY_TASK);
    st->t.task = task;
}

/* --- the kit --- */

struct staged_artifact *
stand_artifact (struct stand *st, const char *name, enum artifact_role role, const char *parameters)
{
    struct kit *kit = &st->s.kit;
    if (! kit->artifacts)
        kit->artifacts = x_new_array (struct staged_artifact, 16);
    struct staged_artifact *a = &kit->artifacts[kit->artifact_count++];
    struct artifact_entry *entry = arena_new0 (st->s.arena, struct artifact_entry);
    struct artifact_grant *grant = arena_new0 (st->s.arena, struct artifact_grant);
    entry->name = arena_printf (st->s.arena, "local/%s", name);
    entry->tool_name = name;
    entry->role = role;
    grant->entry = entry;
    grant->opens_work_dir = true;
    *a = (struct staged_artifact){ .entry = entry,
                                   .grant = grant,
                                   .tool_name = name,
                                   .full_name = entry->name,
                                   .version = x_strdup ("0.1.0"),
                                   .role = role,
                                   .origin = LOCK_OPERATOR,
                                   .shown.parameters = x_strdup (parameters ? parameters : "{}"),
                                   .guest.scope_fd = -1,
                                   .guest.state_fd = -1 };
    _cleanup_json_ json_t *schema = json_loads (a->shown.parameters, 0, NULL);
    const json_t *required = json_object_get (schema, "required");
    for (size_t i = 0; i < json_array_size (required); i++)
        strv_push (&a->shown.required, json_string_value (json_array_get (required, i)));
    return a;
}

void
stand_tools (struct stand *st)
{
    struct kit *kit = &st->s.kit;
    free (kit->tools);
    kit->tools = x_new_array (struct tool_entry, kit->artifact_count + 1);
    kit->tool_count = 0;
    for (size_t i = 0; i < kit->artifact_count; i++) {
        struct staged_artifact *a = &kit->artifacts[i];
        if ((a->role == ROLE_TOOL || a->role == ROLE_SKILL) && ! a->is_removed)
            kit->tools[kit->tool_count++] =
                (struct tool_entry){ .name = a->tool_name,
                                     .description = a->shown.description,
                                     .parameters = a->shown.parameters,
                                     .required = a->shown.required,
                                     .is_schema_malformed = a->shown.is_schema_malformed,
                                     .is_skill = a->role == ROLE_SKILL,
                                     .artifact = a };
    }
    qsort (kit->tools, kit->tool_count, sizeof *kit->tools, tool_entry_compare);
}

/* --- files and lines --- */

char *
stand_read (struct stand *st, const char *path)
{
    _cleanup_free_ char *whole = x_asprintf ("%s/%s", st->dir, path);
    struct buf text = { 0 };
    if (! fs_read_path (whole, 1 << 24, &text, NULL))
        return NULL;
    return text.data ? buf_steal (&text) : x_strdup ("");
}

void
stand_write (struct stand *st, const char *path, const char *text)
{
    _cleanup_free_ char *whole = x_asprintf ("%s/%s", st->dir, path);
    FILE *f = fopen (whole, "w");
    assert_non_null (f);
    assert_true (fputs (text, f) >= 0);
    assert_int_equal (fclose (f), 0);
}

static json_t *
look (struct stand *st, const char *type, size_t *count)
{
    _cleanup_free_ char *text = stand_read (st, "records/trace.jsonl");
    json_t *last = NULL;
    *count = 0;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr (line, '\n');
        if (next)
            *next++ = '\0';
        json_t *o = json_loads (line, 0, NULL);
        assert_non_null (o);
        if (str_eq (json_get_string (o, "event_type"), type)) {
            (*count)++;
            json_decref (last);
            last = o;
        } else {
            json_decref (o);
        }
    }
    return last;
}

size_t
stand_lines (struct stand *st, const char *type)
{
    size_t count;
    json_decref (look (st, type, &count));
    return count;
}

json_t *
stand_line (struct stand *st, const char *type)
{
    size_t count;
    return look (st, type, &count);
}

json_t *
value_of (const char *text)
{
    _cleanup_free_ char *copy = x_strdup (text);
    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    json_t *v = json_loads (copy, JSON_DECODE_ANY, NULL);
    if (! v)
        fail_msg ("no JSON: %s", copy);
    return v;
}

void
assert_same_json (const char *text, const char *expected)
{
    _cleanup_json_ json_t *given = json_loads (text ? text : "null", JSON_DECODE_ANY, NULL);
    _cleanup_json_ json_t *wanted = value_of (expected);
    if (! json_equal (given, wanted))
        fail_msg ("%s\nis not\n%s", text ? text : "(nothing)", expected);
}
