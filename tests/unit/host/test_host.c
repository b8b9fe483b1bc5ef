/* SPDX-License-Identifier: Apache-2.0
 *
 * The host interfaces as tables of functions over plain values: shapes in, shapes out, refusals as
 * error arms. That a real guest reaches them is proved in tests/unit/engine and in the integration
 * tests.
 */
#include "tests/unit/testing.h"

#include "host/artifact_manager.h"
#include "host/linkage.h"
#include "host/message.h"
#include "host/stream.h"
#include "host/task.h"
#include "host/tool_registry.h"

#include <string.h>

static struct arena *arena;

static int
up (void **state)
{
    (void)state;
    arena = arena_new ();
    return 0;
}

static int
down (void **state)
{
    (void)state;
    arena_free (arena);
    return 0;
}

/* Calls a function of an interface by name; fails the test when it traps. */
static struct value
call (const struct host_interface *interface, const char *function, void *ctx,
      const struct value *args, size_t arg_count)
{
    for (size_t i = 0; i < interface->function_count; i++)
        if (strcmp (interface->functions[i].name, function) == 0) {
            struct value result = { 0 };
            assert_succeeds (
                interface->functions[i].call (ctx, arena, args, arg_count, &result, &err));
            return result;
        }
    fail_msg ("%s has no %s", interface->name, function);
    return value_none ();
}

static const char *
err_text (const struct value *v)
{
    assert_int_equal (v->kind, VALUE_RESULT);
    assert_false (v->result.is_ok);
    return value_text (v->result.payload, NULL);
}

static const struct value *
ok_value (const struct value *v)
{
    assert_int_equal (v->kind, VALUE_RESULT);
    assert_true (v->result.is_ok);
    return v->result.payload;
}

static void
assert_field (const struct value *record, const char *name, const char *expected)
{
    const char *text = value_text (value_field (record, name), NULL);
    if (! expected)
        assert_null (text);
    else
        assert_string_equal (text, expected);
}

/* --- tool results --- */

static void
test_a_tool_result_has_its_members_in_the_order_of_the_wit_text (void **state)
{
    (void)state;
    const struct tool_metadata pairs[] = { { "k", "v" }, { "k", "second" } };
    struct tool_result r = { .status = TOOL_FAILED,
                             .data = "a\0b",
                             .data_len = 3,
                             .is_truncated = true,
                             .metadata = pairs,
                             .metadata_count = 2 };
    struct value v = tool_result_to_value (arena, &r);
    static const char *const names[] = { "status",    "summary",   "data",
                                         "data-path", "truncated", "metadata" };
    assert_int_equal (v.record.len, ARRAY_LEN (names));
    for (size_t i = 0; i < ARRAY_LEN (names); i++)
        assert_string_equal (v.record.fields[i].name, names[i]);
    assert_string_equal (value_field (&v, "status")->variant.name, "failed");
    assert_field (&v, "summary", NULL);
    size_t len;
    value_text (value_field (&v, "data"), &len);
    assert_int_equal (len, 3);
    assert_true (value_field (&v, "truncated")->boolean);
    assert_int_equal (value_field (&v, "metadata")->list.len, 2);
    assert_string_equal (tool_metadata_get (&r, "k"), "v");
    assert_null (tool_metadata_get (&r, "other"));
}

/* --- tool registry --- */

static bool
invoke (void *ctx, const char *name, const char *data, size_t len, const char *log_path,
        struct arena *a _unused_, struct tool_result *result, const char **refusal)
{
    if (strcmp (name, "local/known") != 0)
        return *refusal = "local/unknown is not among this session's tools", false;
    assert_string_equal (ctx, "session");
    assert_null (log_path);
    *result = (struct tool_result){ .status = TOOL_PASSED, .data = data, .data_len = len };
    return true;
}

static struct value
tool_input (const char *data)
{
    struct value_field fields[] = { { "data", value_option_string (arena, data) },
                                    { "log-path", value_none () } };
    return value_record (arena, fields, 2);
}

static void
test_invoke_answers_with_the_result_or_the_refusal (void **state)
{
    (void)state;
    struct tool_registry_host host = { "session", invoke };
    struct value args[] = { value_string (arena, "local/known"), tool_input ("in") };
    struct value v = call (&host_tool_registry, "invoke", &host, args, 2);
    assert_field (ok_value (&v), "data", "in");
    args[0] = value_string (arena, "local/unknown");
    v = call (&host_tool_registry, "invoke", &host, args, 2);
    assert_string_equal (err_text (&v), "local/unknown is not among this session's tools");
}

/* --- stream --- */

static struct buf seen;

static void
chunk (void *ctx, const char *text, size_t len)
{
    buf_printf (&seen, "%s %.*s;", (const char *)ctx, (int)len, text);
}

static void
input_bytes (void *ctx _unused_, const char *id, uint64_t bytes)
{
    buf_printf (&seen, "%s=%llu;", id, (unsigned long long)bytes);
}

static void
test_stream_events_reach_the_session_and_never_fail (void **state)
{
    (void)state;
    struct stream_host host = { .ctx = "s", .chunk = chunk, .tool_call_input_bytes = input_bytes };
    struct value text = value_string (arena, "hello");
    struct value two[] = { value_string (arena, "id1"), value_u64 (7) };
    struct value start[] = { value_string (arena, "id1"), value_string (arena, "name") };
    call (&host_stream, "emit-chunk", &host, &text, 1);
    call (&host_stream, "emit-thinking-chunk", &host, &text, 1); /* nobody listens */
    call (&host_stream, "tool-call-started", &host, start, 2);
    call (&host_stream, "tool-call-input-bytes", &host, two, 2);
    call (&host_stream, "emit-chunk", NULL, &text, 1);
    assert_string_equal (seen.data, "s hello;id1=7;");
    buf_free (&seen);
}

/* --- task --- */

static const char *
answer (void *ctx, const char *prompt, size_t len _unused_, struct arena *a, size_t *text_len,
        struct mur_error **err)
{
    if (ctx)
        return mur_fail (err, E_RUN_001, "nobody answered within 1s"), NULL;
    *text_len = 3;
    return arena_printf (a, "yes to %s", prompt);
}

static void
test_request_input_answers_or_traps (void **state)
{
    (void)state;
    struct value prompt = value_string (arena, "go on?");
    struct task_host host = { NULL, answer };
    struct value v = call (&host_task, "request-input", &host, &prompt, 1);
    assert_string_equal (value_text (&v, NULL), "yes");
    host.ctx = "late";
    struct value result;
    assert_fails (host_task.functions[0].call (&host, arena, &prompt, 1, &result, &err), E_RUN_001);
    assert_fails (host_task.functions[0].call (NULL, arena, &prompt, 1, &result, &err), E_RUN_001);
}

/* --- message --- */

static bool
send_message (void *ctx _unused_, const char *peer_url, const struct peer_message *m,
              struct arena *a _unused_, struct peer_task *task, const char **refusal)
{
    if (strcmp (peer_url, "http://allowed:1") != 0)
        return *refusal = "network policy: http://other is not allowed", false;
    assert_string_equal (m->message_id, "msg_1");
    assert_null (m->context_id);
    assert_string_equal (m->text, "hi");
    *task = (struct peer_task){ "task_1", "ctx_1", "completed" };
    return true;
}

static void
test_send_answers_with_the_task_or_the_policys_word (void **state)
{
    (void)state;
    struct message_host host = { NULL, send_message };
    struct value_field fields[] = { { "message-id", value_string (arena, "msg_1") },
                                    { "context-id", value_none () },
                                    { "text", value_string (arena, "hi") } };
    struct value args[] = { value_string (arena, "http://allowed:1"),
                            value_record (arena, fields, 3) };
    struct value v = call (&host_message, "send", &host, args, 2);
    assert_field (ok_value (&v), "task-id", "task_1");
    assert_field (ok_value (&v), "context-id", "ctx_1");
    assert_field (ok_value (&v), "state", "completed");
    args[0] = value_string (arena, "http://other");
    v = call (&host_message, "send", &host, args, 2);
    assert_string_equal (err_text (&v), "network policy: http://other is not allowed");
}

/* --- artifact manager --- */

static const struct artifact_summary two[] = { { "local/tool", "0.1.0", false },
                                               { "git", "0.0.0", true } };

static void
list (void *ctx _unused_, struct arena *a _unused_, const struct artifact_summary **items,
      size_t *count)
{
    *items = two;
    *count = 2;
}

static bool
describe (void *ctx _unused_, const char *name, struct arena *a _unused_,
          struct artifact_info *info, const char **refusal)
{
    static const char *const tags[] = { "t1", "t2" };
    if (strcmp (name, "local/tool") != 0)
        return *refusal = "not-granted: use local/tool", false;
    *info = (struct artifact_info){
        .summary = two[0], .tags = tags, .tag_count = 2, .input_schema = "{}"
    };
    return true;
}

static bool
remove_it (void *ctx _unused_, const char *name _unused_, struct arena *a _unused_,
           bool *was_removed, const char **refusal _unused_)
{
    *was_removed = true;
    return true;
}

static bool
diagnostics (void *ctx _unused_, struct arena *a _unused_, struct artifact_state *state,
             const char **refusal _unused_)
{
    *state = (struct artifact_state){ "ses_1", two, 2, "install_tool: none" };
    return true;
}

static void
test_the_artifact_manager_speaks_its_wit_text (void **state)
{
    (void)state;
    struct artifact_manager_host host = {
        .list = list, .describe = describe, .remove = remove_it, .diagnostics = diagnostics
    };
    struct value v = call (&host_artifact_manager, "list", &host, NULL, 0);
    assert_int_equal (v.list.len, 2);
    assert_field (&v.list.items[0], "name", "local/tool");
    assert_string_equal (value_field (&v.list.items[1], "runtime")->variant.name, "native");

    struct value name = value_string (arena, "local/tool");
    v = call (&host_artifact_manager, "describe", &host, &name, 1);
    const struct value *info = ok_value (&v);
    static const char *const members[] = { "name",    "version",      "description",  "tags",
                                           "runtime", "input-schema", "output-schema" };
    assert_int_equal (info->record.len, ARRAY_LEN (members));
    for (size_t i = 0; i < ARRAY_LEN (members); i++)
        assert_string_equal (info->record.fields[i].name, members[i]);
    assert_field (info, "input-schema", "{}");
    assert_field (info, "output-schema", NULL);
    assert_int_equal (value_field (info, "tags")->list.len, 2);

    name = value_string (arena, "tool");
    v = call (&host_artifact_manager, "describe", &host, &name, 1);
    assert_string_equal (err_text (&v), "not-granted: use local/tool");

    v = call (&host_artifact_manager, "remove", &host, &name, 1);
    assert_true (ok_value (&v)->boolean);

    v = call (&host_artifact_manager, "diagnostics", &host, NULL, 0);
    assert_field (ok_value (&v), "capsule-id", "ses_1");
    assert_int_equal (value_field (ok_value (&v), "installed")->list.len, 2);
    assert_field (ok_value (&v), "capabilities", "install_tool: none");
}

/* --- linkage --- */

static void
test_each_kind_of_guest_links_what_the_table_says (void **state)
{
    (void)state;
    const struct host_interface *interfaces[LINKAGE_MAX];
    assert_int_equal (linkage_interfaces (GUEST_SCRIPT, interfaces), 3);
    assert_ptr_equal (interfaces[0], &host_tool_registry);
    assert_ptr_equal (interfaces[1], &host_artifact_manager);
    assert_ptr_equal (interfaces[2], &host_message);
    assert_int_equal (linkage_interfaces (GUEST_TOOL, interfaces), 2);
    assert_ptr_equal (interfaces[0], &host_stream);
    assert_ptr_equal (interfaces[1], &host_task);
    assert_int_equal (linkage_interfaces (GUEST_PROCESS_DRIVER, interfaces), 0);

    struct task_host task = { 0 };
    const struct linkage_context contexts[] = { { &host_task, &task } };
    struct host_binding bindings[LINKAGE_MAX];
    assert_int_equal (linkage_bind (GUEST_TOOL, contexts, 1, bindings), 2);
    assert_null (bindings[0].ctx);
    assert_ptr_equal (bindings[1].ctx, &task);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_tool_result_has_its_members_in_the_order_of_the_wit_text),
        cmocka_unit_test (test_invoke_answers_with_the_result_or_the_refusal),
        cmocka_unit_test (test_stream_events_reach_the_session_and_never_fail),
        cmocka_unit_test (test_request_input_answers_or_traps),
        cmocka_unit_test (test_send_answers_with_the_task_or_the_policys_word),
        cmocka_unit_test (test_the_artifact_manager_speaks_its_wit_text),
        cmocka_unit_test (test_each_kind_of_guest_links_what_the_table_says),
    };
    return cmocka_run_group_tests_name ("host", tests, up, down);
}
