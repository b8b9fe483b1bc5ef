/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance hook of hook.py, in C. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "murmur_hook.h"

static void
tell_piece (const char *what, char *text, char *why)
{
    fprintf (stderr, "heard: %s %s %s\n", what, text ? text : why, text ? "true" : "false");
    free (text);
    free (why);
}

static void
tell_conversation (void)
{
    struct mur_conversation_page page;
    char *cursor = NULL, *why = NULL;
    const char *comma = "";
    char roles[4096] = "";
    uint32_t total = 0;
    do {
        if (! mur_conversation_read (cursor, 1, &page, &why)) {
            fprintf (stderr, "heard: no page: %s\n", why);
            return;
        }
        for (size_t i = 0; i < page.count; i++) {
            const struct mur_message *m = &page.items[i];
            if (! m->id || m->inserted_by != MUR_INSERTED_NOT)
                fprintf (stderr, "heard: odd message %s\n", m->content);
            size_t len = strlen (roles);
            snprintf (roles + len, sizeof roles - len, "%s%s", comma, m->role);
            comma = ",";
        }
        total = page.total;
        cursor = page.next_cursor;
    } while (cursor);
    fprintf (stderr, "heard: conversation %u %s\n", (unsigned)total, roles);
    fprintf (stderr, "heard: refused %s\n",
             mur_conversation_read ("no cursor", 1, &page, &why) ? "false" : "true");
}

static void
tell_inference (void)
{
    struct mur_message message;
    memset (&message, 0, sizeof message);
    message.role = "user";
    message.content = "say it";
    struct mur_inference_request request = { { &message, 1 }, "be short", NULL };
    struct mur_inference_answer answer;
    char *why = NULL;
    bool is_told = mur_infer (&request, &answer, &why);
    fprintf (stderr, "heard: inferred %s %s\n", is_told ? answer.text : why,
             is_told ? "true" : "false");
}

void
mur_on_stage (const struct mur_stage_event *event, struct mur_hook_output *out)
{
    (void)out;
    fprintf (stderr, "heard: stage ");
    for (size_t i = 0; event->shell_allow[i]; i++)
        fprintf (stderr, "%s%s", i ? "," : "", event->shell_allow[i]);
    fprintf (stderr, "\n");
}

void
mur_on_session_start (const struct mur_session_event *event, struct mur_hook_output *out)
{
    (void)out;
    char *why = NULL;
    fprintf (stderr, "heard: start %s %s %u\n", event->capsule_name, event->capsule_version,
             (unsigned)strlen (event->session_id));
    free (mur_task_input (false, &why));
    fprintf (stderr, "heard: no input: %s\n", why);
}

void
mur_on_task_start (const struct mur_task_start_event *event, struct mur_hook_output *out)
{
    (void)out;
    fprintf (stderr, "heard: task %s %llu\n", event->source,
             (unsigned long long)event->input_bytes);
}

void
mur_on_inference (const struct mur_inference_event *event, struct mur_hook_output *out)
{
    (void)out;
    fprintf (stderr, "heard: turn %u %s %s %llu\n", (unsigned)event->turn, event->decision,
             event->tool_name ? event->tool_name : "-", (unsigned long long)event->output_tokens);
}

void
mur_on_tool_call (const struct mur_tool_event *event, struct mur_hook_output *out)
{
    (void)out;
    if (event->outcome)
        fprintf (stderr, "heard: called %s %s %s\n", event->tool_name, event->outcome->status,
                 event->outcome->output_bytes ? "true" : "false");
    else
        fprintf (stderr, "heard: call %s %llu\n", event->tool_name,
                 (unsigned long long)event->input_bytes);
}

void
mur_on_shell (const struct mur_shell_event *event, struct mur_hook_output *out)
{
    (void)out;
    if (event->outcome) {
        fprintf (stderr, "heard: ran %s %d %llu\n", event->binary, (int)event->outcome->exit_code,
                 (unsigned long long)event->outcome->out_bytes);
        return;
    }
    fprintf (stderr, "heard: shell %s ", event->binary);
    for (size_t i = 0; event->argv[i]; i++)
        fprintf (stderr, "%s%s", i ? "|" : "", event->argv[i]);
    fprintf (stderr, "\n");
}

void
mur_on_task_end (const struct mur_task_end_event *event, struct mur_hook_output *out)
{
    (void)out;
    char *why = NULL;
    fprintf (stderr, "heard: end %s\n", event->exit_status);
    fprintf (stderr, "heard: tokens %llu %llu\n",
             (unsigned long long)mur_count_tokens ("hello world"),
             (unsigned long long)mur_count_tokens (""));
    char *text = mur_task_input (false, &why);
    tell_piece ("input", text, why);
    why = NULL;
    text = mur_task_output (&why);
    tell_piece ("output", text, why);
    tell_conversation ();
    tell_inference ();
}

void
mur_on_session_end (const struct mur_session_end_event *event, struct mur_hook_output *out)
{
    (void)out;
    fprintf (stderr, "heard: over %u %u %u %s\n", (unsigned)event->total_turns,
             (unsigned)event->total_tool_calls, (unsigned)event->total_shell_calls,
             event->exit_status);
}
