/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/request.h"

#include "base/alloc.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum option {
    OPTION_WORKDIR,
    OPTION_SYSTEM_PROMPT,
    OPTION_CONTAINMENT,
    OPTION_RESUME,
    OPTION_CONTEXT,
    OPTION_TASK_ACCEPTANCE,
    OPTION_AFTER_TASK,
    OPTION_CONVERSATION,
    OPTION_MODEL,
    OPTION_RESUME_MODE,
    OPTION_BIND,
    OPTION_PUBLIC_URL,
    OPTION_SECRETS_DIR,
    OPTION_RECORDS_STORE,
    OPTION_CASE_ID,
    OPTION_DATASET_ID,
    OPTION_COUNT,
};

static const char *const option_flags[] = {
    [OPTION_WORKDIR] = "--workdir",
    [OPTION_SYSTEM_PROMPT] = "--system-prompt",
    [OPTION_CONTAINMENT] = "--containment",
    [OPTION_RESUME] = "--resume",
    [OPTION_CONTEXT] = "--context",
    [OPTION_TASK_ACCEPTANCE] = "--lifecycle-task-acceptance",
    [OPTION_AFTER_TASK] = "--lifecycle-after-task",
    [OPTION_CONVERSATION] = "--lifecycle-conversation",
    [OPTION_MODEL] = "--model",
    [OPTION_RESUME_MODE] = "--resume-mode",
    [OPTION_BIND] = "--bind",
    [OPTION_PUBLIC_URL] = "--public-url",
    [OPTION_SECRETS_DIR] = "--secrets-dir",
    [OPTION_RECORDS_STORE] = "--records-store",
    [OPTION_CASE_ID] = "--case-id",
    [OPTION_DATASET_ID] = "--dataset-id",
};

enum number {
    NUMBER_DEADLINE,
    NUMBER_SESSION_TOKENS,
    NUMBER_PORT,
    NUMBER_COUNT,
};

static const char *const number_flags[] = {
    [NUMBER_DEADLINE] = "--deadline",
    [NUMBER_SESSION_TOKENS] = "--max-session-tokens",
    [NUMBER_PORT] = "--port",
};

enum flag {
    FLAG_NO_ENV_FILE,
    FLAG_FORGET_SESSION,
    FLAG_UNCONFINED,
    FLAG_COUNT,
};

static const char *const flag_flags[] = {
    [FLAG_NO_ENV_FILE] = "--no-env-file",
    [FLAG_FORGET_SESSION] = "--forget-session",
    [FLAG_UNCONFINED] = "--unconfined",
};

/* What this process's own launcher said to it alone. */
static const char *const ours_alone[] = {
    "MURMUR_CREDENTIALS_FD",  "MURMUR_SPAWNER",           "MURMUR_SPAWNER_LIFELINE",
    "MURMUR_FORMATION_ID",    "MURMUR_FORMATION_CHANNEL", "MURMUR_FORMATION_LIFELINE",
    "MURMUR_FORMATION_PEERS",
};

struct mur_request {
    char *manifest; /* its path, or its folder's; NULL: a packed capsule */
    char *text;     /* from memory; NULL: it is read there */
    size_t text_len;
    char *name, *version; /* of a packed capsule */
    char *task;
    size_t task_len;
    char *options[OPTION_COUNT];
    uint64_t numbers[NUMBER_COUNT]; /* 0: not said */
    bool flags[FLAG_COUNT];
    bool is_member;        /* of the formation this process was started for */
    struct strv variables; /* "NAME=value", or "NAME" for one that goes */
    char *program;
    mur_credential_fn *credentials;
    void *credentials_ctx;
    mur_event_fn *events;
    void *events_ctx;
    const char *fault; /* what no setter can say; NULL: none */
};

struct mur_request *
mur_request_new (void)
{
    return x_new0 (struct mur_request);
}

void
mur_request_free (struct mur_request *r)
{
    if (! r)
        return;
    free (r->manifest);
    free (r->text);
    free (r->name);
    free (r->version);
    free (r->task);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        free (r->options[i]);
    strv_free (&r->variables);
    free (r->program);
    free (r);
}

/* --- setters --- */

static void
replace (char **slot, const char *text)
{
    char *copy = text ? x_strdup (text) : NULL;
    free (*slot);
    *slot = copy;
}

/* Of no request no setter says anything: its launch does. */
static void
set_option (struct mur_request *r, enum option which, const char *text)
{
    if (r)
        replace (&r->options[which], text);
}

static void
set_number (struct mur_request *r, enum number which, uint64_t value)
{
    if (r)
        r->numbers[which] = value;
}

static void
set_flag (struct mur_request *r, enum flag which, bool is_set)
{
    if (r)
        r->flags[which] = is_set;
}

void
mur_request_set_manifest (struct mur_request *r, const char *path)
{
    mur_request_set_manifest_text (r, NULL, 0, path);
}

void
mur_request_set_manifest_text (struct mur_request *r, const char *text, size_t len,
                               const char *folder)
{
    if (! r)
        return;
    replace (&r->manifest, folder ? folder : ".");
    replace (&r->name, NULL);
    free (r->text);
    r->text = text ? x_strndup (text, len) : NULL;
    r->text_len = text ? len : 0;
}

void
mur_request_set_capsule (struct mur_request *r, const char *name, const char *version)
{
    if (! r)
        return;
    replace (&r->manifest, NULL);
    replace (&r->text, NULL);
    replace (&r->name, name);
    replace (&r->version, version);
}

void
mur_request_set_workdir (struct mur_request *r, const char *path)
{
    set_option (r, OPTION_WORKDIR, path);
}

void
mur_request_set_system_prompt (struct mur_request *r, const char *text)
{
    set_option (r, OPTION_SYSTEM_PROMPT, text);
}

void
mur_request_set_containment (struct mur_request *r, const char *floor)
{
    set_option (r, OPTION_CONTAINMENT, floor);
}

void
mur_request_set_resume (struct mur_request *r, const char *session)
{
    set_option (r, OPTION_RESUME, session);
}

void
mur_request_set_context (struct mur_request *r, const char *context_id)
{
    set_option (r, OPTION_CONTEXT, context_id);
}

void
mur_request_set_deadline (struct mur_request *r, uint64_t seconds)
{
    set_number (r, NUMBER_DEADLINE, seconds);
}

void
mur_request_set_task_acceptance (struct mur_request *r, const char *word)
{
    set_option (r, OPTION_TASK_ACCEPTANCE, word);
}

void
mur_request_set_after_task (struct mur_request *r, const char *word)
{
    set_option (r, OPTION_AFTER_TASK, word);
}

void
mur_request_set_conversation (struct mur_request *r, const char *word)
{
    set_option (r, OPTION_CONVERSATION, word);
}

void
mur_request_set_env_file (struct mur_request *r, bool is_read)
{
    set_flag (r, FLAG_NO_ENV_FILE, ! is_read);
}

void
mur_request_set_model (struct mur_request *r, const char *name)
{
    set_option (r, OPTION_MODEL, name);
}

void
mur_request_set_max_session_tokens (struct mur_request *r, uint64_t count)
{
    set_number (r, NUMBER_SESSION_TOKENS, count);
}

void
mur_request_set_resume_mode (struct mur_request *r, const char *word)
{
    set_option (r, OPTION_RESUME_MODE, word);
}

void
mur_request_set_forget_session (struct mur_request *r, bool is_forgotten)
{
    set_flag (r, FLAG_FORGET_SESSION, is_forgotten);
}

void
mur_request_set_bind (struct mur_request *r, const char *address)
{
    set_option (r, OPTION_BIND, address);
}

void
mur_request_set_port (struct mur_request *r, uint16_t port)
{
    set_number (r, NUMBER_PORT, port);
}

void
mur_request_set_public_url (struct mur_request *r, const char *url)
{
    set_option (r, OPTION_PUBLIC_URL, url);
}

void
mur_request_set_unconfined (struct mur_request *r, bool is_unconfined)
{
    set_flag (r, FLAG_UNCONFINED, is_unconfined);
}

void
mur_request_set_secrets_dir (struct mur_request *r, const char *path)
{
    set_option (r, OPTION_SECRETS_DIR, path);
}

void
mur_request_set_records_store (struct mur_request *r, const char *url)
{
    set_option (r, OPTION_RECORDS_STORE, url);
}

void
mur_request_set_case_id (struct mur_request *r, const char *id)
{
    set_option (r, OPTION_CASE_ID, id);
}

void
mur_request_set_dataset_id (struct mur_request *r, const char *id)
{
    set_option (r, OPTION_DATASET_ID, id);
}

void
mur_request_set_formation_member (struct mur_request *r, bool is_member)
{
    if (r)
        r->is_member = is_member;
}

void
mur_request_set_task (struct mur_request *r, const char *text, size_t len)
{
    if (! r)
        return;
    free (r->task);
    r->task = text ? x_strndup (text, len) : NULL;
    r->task_len = text ? len : 0;
}

void
mur_request_set_variable (struct mur_request *r, const char *name, const char *value)
{
    if (! r)
        return;
    if (! name || ! *name || strchr (name, '=')) {
        r->fault = "a variable has a name that is empty or holds an equals sign";
        return;
    }
    if (value)
        strv_printf (&r->variables, "%s=%s", name, value);
    else
        strv_push (&r->variables, name);
}

void
mur_request_set_credentials (struct mur_request *r, mur_credential_fn *fn, void *ctx)
{
    if (! r)
        return;
    r->credentials = fn;
    r->credentials_ctx = ctx;
}

void
mur_request_set_events (struct mur_request *r, mur_event_fn *fn, void *ctx)
{
    if (! r)
        return;
    r->events = fn;
    r->events_ctx = ctx;
}

void
mur_request_set_program (struct mur_request *r, const char *path)
{
    if (r)
        replace (&r->program, path);
}

/* --- what is made of it --- */

bool
request_check (const struct mur_request *r, struct mur_error **err)
{
    if (! r || r->fault)
        return mur_fail (err, E_IO_003, "%s", r ? r->fault : "there is no request");
    return true;
}

static void
push_pair (struct strv *argv, const char *flag, const char *value)
{
    strv_push (argv, flag);
    strv_push (argv, value);
}

/* In the folder this process is in at the launch. */
static char *
manifest_path (const struct mur_request *r)
{
    const char *path = r->manifest ? r->manifest : ".";
    struct stat st;
    bool is_folder = r->text || (stat (path, &st) == 0 && S_ISDIR (st.st_mode));
    return is_folder ? x_asprintf ("%s/murmur.yaml", path) : x_strdup (path);
}

void
request_words (const struct mur_request *r, int text_fd, struct strv *argv)
{
    if (r->name) {
        push_pair (argv, "--capsule", r->name);
        if (r->version)
            push_pair (argv, "--capsule-version", r->version);
    } else {
        strv_push (argv, "--manifest");
        strv_take (argv, manifest_path (r));
    }
    if (r->text) {
        strv_push (argv, "--manifest-fd");
        strv_printf (argv, "%d", text_fd);
    }
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (r->options[i])
            push_pair (argv, option_flags[i], r->options[i]);
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (r->numbers[i]) {
            strv_push (argv, number_flags[i]);
            strv_printf (argv, "%llu", (unsigned long long)r->numbers[i]);
        }
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (r->flags[i])
            strv_push (argv, flag_flags[i]);
    if (r->task)
        push_pair (argv, "--task", "-");
}

const char *
request_manifest_text (const struct mur_request *r, size_t *len)
{
    *len = r->text_len;
    return r->text;
}

const char *
request_task (const struct mur_request *r, size_t *len)
{
    *len = r->task_len;
    return r->task;
}

static bool
is_named (const char *entry, const char *name, size_t name_len)
{
    return strncmp (entry, name, name_len) == 0 &&
           (entry[name_len] == '=' || entry[name_len] == '\0');
}

/* The last word about a variable counts. */
static const char *
said_of (const struct mur_request *r, const char *name, size_t name_len)
{
    for (size_t i = r->variables.len; i-- > 0;)
        if (is_named (r->variables.items[i], name, name_len))
            return r->variables.items[i];
    return NULL;
}

static bool
is_ours_alone (const char *entry)
{
    for (size_t i = 0; i < ARRAY_LEN (ours_alone); i++)
        if (is_named (entry, ours_alone[i], strlen (ours_alone[i])))
            return true;
    return false;
}

void
request_environment (const struct mur_request *r, struct strv *out)
{
    for (char **own = environ; own && *own; own++)
        if (! is_ours_alone (*own) && ! said_of (r, *own, strcspn (*own, "=")))
            strv_push (out, *own);
    for (size_t i = 0; i < r->variables.len; i++) {
        const char *entry = r->variables.items[i];
        if (strchr (entry, '=') && said_of (r, entry, strcspn (entry, "=")) == entry)
            strv_push (out, entry);
    }
}

bool
request_is_member (const struct mur_request *r)
{
    return r->is_member;
}

const char *
request_program (const struct mur_request *r)
{
    return r->program;
}

mur_credential_fn *
request_credentials (const struct mur_request *r, void **ctx)
{
    *ctx = r->credentials_ctx;
    return r->credentials;
}

mur_event_fn *
request_events (const struct mur_request *r, void **ctx)
{
    *ctx = r->events_ctx;
    return r->events;
}
