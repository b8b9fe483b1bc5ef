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
        if (mur_event_kind (e) != MUR_EVENT_LOG)
            printf ("event %d %s %s %s %s %s\n", (int)mur_event_kind (e),
                    mur_event_text (e) ? mur_event_text (e) : "-",
                    mur_event_state (e) ? mur_event_state (e) : "-",
                    mur_event_task (e) ? "task" : "-", mur_event_context (e) ? "context" : "-",
                    mur_event_json (e) ? "json" : "-");
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
    char *equals = strchr ((char *)what, '=');
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
    printf ("%s %s turns %llu in %llu out %llu ms %llu\n",
            mur_session_is_running (u->session) ? "running" : "over", status ? status : "-",
            (unsigned long long)mur_session_total (u->session, MUR_TOTAL_TURNS),
            (unsigned long long)mur_session_total (u->session, MUR_TOTAL_INPUT_TOKENS),
            (unsigned long long)mur_session_total (u->session, MUR_TOTAL_OUTPUT_TOKENS),
            (unsigned long long)mur_session_total (u->session, MUR_TOTAL_DURATION_MS));
}

static void
step (struct use *u, const char *word)
{
    struct mur_error *err = NULL;
    if (strcmp (word, "launch") == 0)
        launch (u);
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
