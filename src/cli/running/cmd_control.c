/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur control`: reads and changes what a running session lets a controller change (spec/cli.md 3,
 * spec/door.md 15, 17).
 *
 * One HTTP request with the token of ~/.murmur/running/<session>.control. Always true: neither that
 * token nor a secret is printed; a secret comes from standard input alone.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/printable.h"
#include "cli/line/args.h"
#include "cli/running/commands.h"
#include "cli/running/running_session.h"
#include "client/door_client.h"
#include "net/http_fetch.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <termios.h>

#define ANSWER_BYTES_MAX ((size_t)1 << 20)
#define SECRET_BYTES_MAX ((size_t)64 << 10) /* the door judges; this only bounds what is read */
#define CONNECT_MS       2000
#define ANSWER_MS        30000

/* --- one request --- */

struct control_call {
    const char *method;
    const char *kind; /* "settings", "secrets"; NULL: /control itself */
    const char *name;
    const char *content_type; /* NULL: no body */
    const char *body;
    size_t body_len;
};

/* Everything but what a path may hold unescaped. */
static void
append_escaped (struct buf *b, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (strchr ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~", *c))
            buf_putc (b, (char)*c);
        else
            buf_printf (b, "%%%02X", *c);
}

/* What listens at a session's address may be anything: it is not quoted when it says our token. */
static json_t *
judge (const struct running_record *record, const struct secret *token,
       const struct http_response *r, struct mur_error **err)
{
    const char *text = r->body.data ? r->body.data : "";
    _cleanup_json_ json_t *answer = json_loadb (text, r->body.len, 0, NULL);
    if (r->status == 200 && json_is_object (answer))
        return steal_ptr (&answer);
    const char *reason = json_get_string (answer, "error");
    if (! reason || strstr (reason, secret_reveal (token)))
        reason = "it gave no reason";
    mur_fail (err, E_RUN_042, "%s refused with HTTP %d: %s", record->session_id, r->status, reason);
    if (r->status == 404)
        mur_hint (err, "`mur control show` says what it has");
    return NULL;
}

static json_t *
ask (const struct running_record *record, const struct secret *token,
     const struct control_call *call, struct mur_error **err)
{
    _cleanup_buf_ struct buf url = { 0 };
    buf_printf (&url, "http://%s/control", record->url);
    if (call->kind) {
        buf_printf (&url, "/%s/", call->kind);
        append_escaped (&url, call->name);
    }
    char *bearer = x_asprintf ("Bearer %s", secret_reveal (token));
    const char *type = call->content_type ? call->content_type : "";
    struct http_header headers[] = { { "authorization", bearer, strlen (bearer) },
                                     { "content-type", type, strlen (type) } };
    struct http_fetch fetch = {
        .request = { .method = call->method,
                     .url = url.data,
                     .headers = headers,
                     .header_count = call->content_type ? 2 : 1,
                     .body_kind = call->content_type ? HTTP_BODY_BUFFER : HTTP_BODY_NONE,
                     .body = call->body,
                     .body_len = call->body_len,
                     .connect_timeout_ms = CONNECT_MS },
        .limit_bytes = ANSWER_BYTES_MAX,
        .total_timeout_ms = ANSWER_MS,
    };
    struct http_client *client = http_client_new ();
    _cleanup_http_response_ struct http_response response = { 0 };
    bool is_answered = http_fetch (client, &fetch, &response, NULL, err);
    secret_wipe (bearer, strlen (bearer));
    free (bearer);
    http_client_free (client);
    return is_answered ? judge (record, token, &response, err) : NULL;
}

static bool
check_door (const struct running_record *record, struct mur_error **err)
{
    struct http_client *client = http_client_new ();
    bool is_answered = door_answers (client, record);
    http_client_free (client);
    return is_answered ||
           mur_fail (err, E_RUN_023, "%s is running (pid %ld), but its door at %s does not answer",
                     record->session_id, (long)record->pid, record->url);
}

/* The answer (owned) of the session that is addressed, or NULL. */
static json_t *
control (const struct cli_args *args, const struct control_call *call, struct mur_error **err)
{
    _cleanup_ (running_scan_free) struct running_scan scan = { 0 };
    const struct running_entry *e = running_session (cli_positional (args, "SESSION"), &scan, err);
    if (! e || ! check_door (&e->record, err))
        return NULL;
    _cleanup_secret_ struct secret *token = running_read_control (e->record.session_id, err);
    return token ? ask (&e->record, token, call, err) : NULL;
}

/* --- show --- */

/* Another program wrote these words, and a terminal would obey the control characters in them. */
static void
blank_controls (json_t *value)
{
    size_t i;
    const char *key;
    json_t *item;
    if (json_is_string (value)) {
        _cleanup_buf_ struct buf text = { 0 };
        const char *given = json_string_value (value);
        buf_append_printable (&text, given, strlen (given), PRINTABLE_BLANK);
        json_string_set (value, text.data ? text.data : "");
    }
    json_array_foreach (value, i, item) blank_controls (item);
    json_object_foreach (value, key, item) blank_controls (item);
}

/* A string as it is, anything else as JSON. Owned. */
static char *
value_text (const json_t *value)
{
    return json_is_string (value) ? x_strdup (json_string_value (value))
           : value                ? json_text (value, JSON_TEXT_SORTED)
                                  : x_strdup ("");
}

static const char *
text_of (const json_t *o, const char *key)
{
    const char *text = json_get_string (o, key);
    return text ? text : "?";
}

static void
print_choice (const json_t *choice)
{
    out_printf ("      %-9s model %s  driver %s  %s\n", text_of (choice, "name"),
                text_of (choice, "model"), text_of (choice, "driver"),
                json_is_true (json_object_get (choice, "available")) ? "available" : "unavailable");
}

static void
print_setting (const json_t *setting)
{
    _cleanup_free_ char *value = value_text (json_object_get (setting, "value"));
    out_printf ("  %-22s %s\n", text_of (setting, "name"), value);
    size_t i;
    const json_t *choice;
    json_array_foreach (json_object_get (setting, "choices"), i, choice) print_choice (choice);
}

static void
print_answer (const json_t *answer)
{
    const json_t *settings = json_object_get (answer, "settings");
    const json_t *secrets = json_object_get (answer, "secrets");
    size_t i;
    const json_t *one;
    out_printf ("session:  %s\n", text_of (answer, "session_id"));
    if (json_array_size (settings))
        out_puts ("settings:\n");
    json_array_foreach (settings, i, one) print_setting (one);
    if (json_array_size (secrets))
        out_puts ("secrets:\n");
    json_array_foreach (secrets, i, one)
        out_printf ("  %-22s %s\n", text_of (one, "name"),
                    json_is_true (json_object_get (one, "set")) ? "set" : "not set");
}

int
cmd_control_show (const struct cli_args *args, struct mur_error **err)
{
    const struct control_call call = { .method = "GET" };
    _cleanup_json_ json_t *answer = control (args, &call, err);
    if (! answer)
        return CLI_FAILED;
    if (cli_has (args, "--json")) {
        _cleanup_free_ char *text = json_text (answer, JSON_TEXT_SORTED);
        out_printf ("%s\n", text);
    } else {
        blank_controls (answer);
        print_answer (answer);
    }
    return CLI_OK;
}

/* --- set --- */

/* What parses as JSON is sent as that, anything else as a string. Owned. */
static char *
setting_body (const char *text)
{
    _cleanup_json_ json_t *object = json_object ();
    json_t *value = json_loads (text, JSON_DECODE_ANY, NULL);
    json_object_set_new (object, "value", value ? value : json_string_lossy (text, strlen (text)));
    return json_text (object, JSON_TEXT_SORTED);
}

int
cmd_control_set (const struct cli_args *args, struct mur_error **err)
{
    const char *name = cli_positional (args, "SETTING");
    _cleanup_free_ char *body = setting_body (cli_positional (args, "VALUE"));
    const struct control_call call = { "PUT", "settings",   name, "application/json",
                                       body,  strlen (body) };
    _cleanup_json_ json_t *answer = control (args, &call, err);
    if (! answer)
        return CLI_FAILED;
    _cleanup_free_ char *previous = value_text (json_object_get (answer, "previous"));
    _cleanup_free_ char *value = value_text (json_object_get (answer, "value"));
    out_printf ("setting:  %s\nprevious: %s\nvalue:    %s\napplies:  next inference call\n", name,
                previous, value);
    return CLI_OK;
}

/* --- secrets --- */

static struct termios echo_on;

/* Async-signal-safe: the terminal as it was, then what the signal would have done. */
static void
restore_and_die (int number)
{
    tcsetattr (STDIN_FILENO, TCSANOW, &echo_on);
    signal (number, SIG_DFL);
    raise (number);
}

static void
watch_signals (void (*handler) (int))
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    for (size_t i = 0; i < ARRAY_LEN (numbers); i++)
        signal (numbers[i], handler);
}

/* Prompts on stderr with the echo off; true when standard input is a terminal. */
static bool
hide_input (const char *name)
{
    if (! isatty (STDIN_FILENO) || tcgetattr (STDIN_FILENO, &echo_on) != 0)
        return false;
    struct termios silent = echo_on;
    silent.c_lflag &= (tcflag_t)~ECHO;
    watch_signals (restore_and_die);
    tcsetattr (STDIN_FILENO, TCSAFLUSH, &silent);
    fprintf (stderr, "%s: ", name);
    return true;
}

static void
show_input (void)
{
    tcsetattr (STDIN_FILENO, TCSAFLUSH, &echo_on);
    watch_signals (SIG_DFL);
    fputc ('\n', stderr);
}

/* Reads into <value>, which never moves: up to the end, or a line of a terminal. */
static bool
read_input (char *value, size_t *len, bool is_line, struct mur_error **err)
{
    for (*len = 0;;) {
        if (*len == SECRET_BYTES_MAX)
            return mur_fail (err, E_IO_003, "standard input holds more than %zu bytes",
                             SECRET_BYTES_MAX);
        ssize_t n = read (STDIN_FILENO, value + *len, SECRET_BYTES_MAX - *len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mur_fail_errno (err, E_IO_003, "cannot read standard input");
        *len += (size_t)n;
        if (n == 0 || (is_line && value[*len - 1] == '\n'))
            return true;
    }
}

/* One line end goes: what an editor or echo put there. */
static size_t
without_line_end (const char *value, size_t len)
{
    if (len && value[len - 1] == '\n')
        len -= len > 1 && value[len - 2] == '\r' ? 2 : 1;
    return len;
}

static bool
send_secret (const struct cli_args *args, const char *name, char *value, struct mur_error **err)
{
    size_t len;
    bool is_hidden = hide_input (name);
    bool is_read = read_input (value, &len, is_hidden, err);
    if (is_hidden)
        show_input ();
    if (! is_read)
        return false;
    const struct control_call call = { "PUT", "secrets",
                                       name,  "application/octet-stream",
                                       value, without_line_end (value, len) };
    _cleanup_json_ json_t *answer = control (args, &call, err);
    if (! answer)
        return false;
    out_printf ("secret: %s\nset:    yes (%s)\n", name,
                json_is_true (json_object_get (answer, "replaced")) ? "replaced" : "new");
    return true;
}

int
cmd_control_secret (const struct cli_args *args, struct mur_error **err)
{
    char *value = x_malloc (SECRET_BYTES_MAX);
    bool is_ok = send_secret (args, cli_positional (args, "NAME"), value, err);
    secret_wipe (value, SECRET_BYTES_MAX);
    free (value);
    return is_ok ? CLI_OK : CLI_FAILED;
}

int
cmd_control_forget (const struct cli_args *args, struct mur_error **err)
{
    const char *name = cli_positional (args, "NAME");
    const struct control_call call = { .method = "DELETE", .kind = "secrets", .name = name };
    _cleanup_json_ json_t *answer = control (args, &call, err);
    if (! answer)
        return CLI_FAILED;
    out_printf ("secret: %s\nset:    no\n", name);
    return CLI_OK;
}
