/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses the library as a program of its users does, from C and, compiled once more, from C++: each
 * argument is one step, each step prints one line.
 *
 *   every-function MANIFEST-FOLDER STEP...
 */
#include "murmur/murmur.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct use {
    const char *folder;
    struct mur_request *request;
    struct mur_session *session;
    char *task;
};

static void
tell_error (struct mur_error *err)
{
    const char *hint = mur_error_hint (err);
    printf ("error %s %s%s%s\n", mur_error_code (err), mur_error_message (err), hint ? " | " : "",
            hint ? hint : "");
    mur_error_free (err);
}

static char *
give_key (void *ctx, const char *name)
{
    char *value = NULL;
    (void)ctx;
    if (strcmp (name, "LIBRARY_KEY") == 0)
        value = strdup ("sk-from-the-callback");
    return value;
}

static void
tell_event (const struct mur_event *e)
{
    if (mur_event_kind (e) != MUR_EVENT_LOG)
        printf ("event %d %s %s %s %s %s\n", (int)mur_event_kind (e),
                mur_event_text (e) ? mur_event_text (e) : "-",
                mur_event_state (e) ? mur_event_state (e) : "-", mur_event_task (e) ? "task" : "-",
                mur_event_context (e) ? "context" : "-", mur_event_json (e) ? "json" : "-");
}

/* It answers what is asked from where it is told. */
static void
on_event (void *ctx, struct mur_session *s, const struct mur_event *e)
{
    (void)ctx;
    tell_event (e);
    if (mur_event_kind (e) == MUR_EVENT_QUESTION)
        printf ("called back: %s\n",
                mur_session_answer (s, mur_event_task (e), "from the callback", NULL) ? "answered"
                                                                                      : "not");
    if (mur_event_kind (e) == MUR_EVENT_TASK_ENDED)
        printf ("called back: %s\n", mur_session_end (s) ? "ended" : "killed");
    fflush (stdout);
}

static void
launch (struct use *u)
{
    struct mur_error *err = NULL;
    u->session = mur_session_launch (u->request, &err);
    if (! u->session)
        tell_error (err);
    else
        printf ("launched %s at %s%s, %s, %s, fd %s\n", mur_session_id (u->session),
                mur_session_address (u->session),
                mur_session_token (u->session) ? " with a token" : "",
                mur_session_workdir (u->session), mur_session_records (u->session),
                mur_session_fd (u->session) >= 0 ? "open" : "closed");
}

static void
send_task (struct use *u, const char *text)
{
    struct mur_error *err = NULL;
    free (u->task);
    u->task = mur_session_send (u->session, text, strlen (text), NULL, &err);
    if (u->task)
        printf ("sent\n");
    else
        tell_error (err);
}

/* Takes events until one of this kind came. */
static void
wait_for (struct use *u, enum mur_event_kind kind)
{
    struct pollfd ready = { mur_session_fd (u->session), POLLIN, 0 };
    for (;;) {
        struct mur_event *e = NULL;
        if (poll (&ready, 1, 60000) != 1 || ! (e = mur_session_next (u->session, 0))) {
            printf ("nothing more\n");
            return;
        }
        bool is_it = mur_event_kind (e) == kind;
        tell_event (e);
        mur_event_free (e);
        if (is_it)
            return;
    }
}

static void
explain (struct use *u)
{
    struct mur_error *err = NULL;
    char *text = mur_request_explain (u->request, &err);
    if (text)
        printf ("%s", text);
    else
        tell_error (err);
    free (text);
}

static void
set_all (struct use *u, const char *what)
{
    struct mur_request *r = u->request;
    const char *equals = strchr (what, '=');
    const char *value = equals ? equals + 1 : NULL;
#define IS(name) (strncmp (what, name, sizeof name - 1) == 0)
    if (IS ("text="))
        mur_request_set_manifest_text (r, value, strlen (value), u->folder);
    else if (IS ("capsule="))
        mur_request_set_capsule (r, value, "0.1.0");
    else if (IS ("workdir="))
        mur_request_set_workdir (r, value);
    else if (IS ("system="))
        mur_request_set_system_prompt (r, value);
    else if (IS ("containment="))
        mur_request_set_containment (r, value);
    else if (IS ("resume="))
        mur_request_set_resume (r, value);
    else if (IS ("context="))
        mur_request_set_context (r, value);
    else if (IS ("deadline="))
        mur_request_set_deadline (r, strtoull (value, NULL, 10));
    else if (IS ("acceptance="))
        mur_request_set_task_acceptance (r, value);
    else if (IS ("model="))
        mur_request_set_model (r, value);
    else if (IS ("max-tokens="))
        mur_request_set_max_session_tokens (r, strtoull (value, NULL, 10));
    else if (IS ("resume-mode="))
        mur_request_set_resume_mode (r, value);
    else if (IS ("forget"))
        mur_request_set_forget_session (r, true);
    else if (IS ("bind="))
        mur_request_set_bind (r, value);
    else if (IS ("port="))
        mur_request_set_port (r, (uint16_t)atoi (value));
    else if (IS ("public-url="))
        mur_request_set_public_url (r, value);
    else if (IS ("unconfined"))
        mur_request_set_unconfined (r, true);
    else if (IS ("secrets-dir="))
        mur_request_set_secrets_dir (r, value);
    else if (IS ("records-store="))
        mur_request_set_records_store (r, value);
    else if (IS ("case="))
        mur_request_set_case_id (r, value);
    else if (IS ("dataset="))
        mur_request_set_dataset_id (r, value);
    else if (IS ("member"))
        mur_request_set_formation_member (r, true);
    else if (IS ("task="))
        mur_request_set_task (r, value, strlen (value));
    else if (IS ("events"))
        mur_request_set_events (r, on_event, u);
    else if (IS ("after="))
        mur_request_set_after_task (r, value);
    else if (IS ("conversation="))
        mur_request_set_conversation (r, value);
    else if (IS ("program="))
        mur_request_set_program (r, value);
    else if (IS ("without="))
        mur_request_set_variable (r, value, NULL);
    else if (IS ("with="))
        mur_request_set_variable (r, "LIBRARY_VARIABLE", value);
    else if (IS ("keys"))
        mur_request_set_credentials (r, give_key, u);
    else if (IS ("no-env-file"))
        mur_request_set_env_file (r, false);
    else
        printf ("what is %s?\n", what);
}

static void
tell_totals (const struct use *u)
{
    const char *status = mur_session_status (u->session);
    char *result = mur_session_result (u->session);
    const struct mur_error *why = mur_session_error (u->session);
    printf ("result %s, error %s, token of ci %s\n", result ? result : "-",
            why ? mur_error_code (why) : "-",
            mur_session_token_of (u->session, "ci") ? "there" : "-");
    free (result);
    printf ("%s %s turns %llu in %llu out %llu ms %llu\n",
            mur_session_is_running (u->session) ? "running" : "over", status ? status : "-",
            (unsigned long long)mur_session_total (u->session, MUR_TOTAL_TURNS),
            (unsigned long long)mur_session_total (u->session, MUR_TOTAL_INPUT_TOKENS),
            (unsigned long long)mur_session_total (u->session, MUR_TOTAL_OUTPUT_TOKENS),
            (unsigned long long)mur_session_total (u->session, MUR_TOTAL_DURATION_MS));
}

/* child=APPROVAL,CAPSULE,RECORDS,DAEMON: one from its launch to its end. */
static void
child (char *words)
{
    struct mur_child_launch launch;
    memset (&launch, 0, sizeof launch);
    struct mur_error *err = NULL;
    launch.approval = strtok (words, ",");
    launch.capsule = strtok (NULL, ",");
    launch.version = "0.1.0";
    launch.parent_records_dir = strtok (NULL, ",");
    launch.roost_url = strtok (NULL, ",");
    struct mur_child *c = mur_child_launch (&launch, &err);
    if (! c) {
        tell_error (err);
        return;
    }
    const char *formation = mur_child_formation_id (c), *token = mur_child_door_token (c),
               *snapshot = mur_child_snapshot_report (c);
    printf ("child %s %s at %s, %s, %s, %d and %d\n", mur_child_argv (c)[1],
            mur_child_session_id (c), mur_child_url (c), mur_child_workdir (c),
            mur_child_records_dir (c), mur_child_workdir_fd (c) >= 0,
            mur_child_records_fd (c) >= 0);
    printf ("formation %s token %s snapshot %s first %s pid %d\n", formation ? formation : "-",
            token ? "there" : "-", snapshot ? snapshot : "-", mur_child_environment (c)[0],
            mur_child_pid (c) > 0);
    int status = -1;
    mur_child_begin_ending (c);
    printf ("%s\n", mur_child_is_being_ended (c) ? "being ended" : "not");
    mur_child_end (c);
    bool has_exited = mur_child_has_exited (c, &status);
    char *tail = mur_child_stderr_tail (c);
    printf ("%s with %d, %s\n", has_exited ? "exited" : "runs", status, tail ? "told" : "silent");
    free (tail);
    mur_child_free (c);
}

static void
step (struct use *u, char *word)
{
    struct mur_error *err = NULL;
    if (strcmp (word, "launch") == 0)
        launch (u);
    else if (strncmp (word, "child=", 6) == 0)
        child (word + 6);
    else if (strcmp (word, "explain") == 0)
        explain (u);
    else if (strncmp (word, "send=", 5) == 0)
        send_task (u, word + 5);
    else if (strncmp (word, "answer=", 7) == 0)
        mur_session_answer (u->session, u->task, word + 7, &err) ? (void)puts ("answered")
                                                                 : tell_error (err);
    else if (strcmp (word, "cancel") == 0)
        mur_session_cancel (u->session, u->task, &err) ? (void)puts ("cancelled")
                                                       : tell_error (err);
    else if (strncmp (word, "wait=", 5) == 0)
        wait_for (u, (enum mur_event_kind)atoi (word + 5));
    else if (strcmp (word, "over") == 0)
        while (mur_session_is_running (u->session))
            (void)poll (NULL, 0, 10);
    else if (strcmp (word, "end") == 0)
        puts (mur_session_end (u->session) ? "ended" : "killed");
    else if (strcmp (word, "free") == 0) {
        mur_session_free (u->session);
        u->session = NULL;
    } else if (strcmp (word, "totals") == 0)
        tell_totals (u);
    else
        set_all (u, word);
    fflush (stdout);
}

int
main (int argc, char **argv)
{
    struct use u = { argc > 1 ? argv[1] : ".", mur_request_new (), NULL, NULL };
    mur_request_set_manifest (u.request, u.folder);
    printf ("murmur %s\n", mur_version ());
    for (int i = 2; i < argc; i++)
        step (&u, argv[i]);
    mur_session_free (u.session);
    mur_request_free (u.request);
    free (u.task);
    return 0;
}
