/* SPDX-License-Identifier: Apache-2.0 */
#include "session/model/controller.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/keys/token.h"
#include "door/door.h"
#include "door/planes/control_plane.h"
#include "home/running.h"
#include "session/model/selection.h"
#include "session/model/steering_internal.h"
#include "session/model/supplied.h"
#include "session/state/session.h"

#include <string.h>

#define SETTING_DRIVER     "inference.driver"
#define SETTING_MAX_TOKENS "inference.max_tokens"
#define MAX_TOKENS_MAX     4294967295LL

struct controller {
    struct session *session;
    unsigned char key[TOKEN_KEY_LEN];
};

static const struct str_list *
secret_names (const struct session *s)
{
    return &s->manifest->control->secrets;
}

static struct controller *
controller_new (struct session *s)
{
    const struct control *declared = s->manifest->control;
    if (! declared || (! declared->settings.len && ! declared->secrets.len))
        return NULL;
    struct controller *c = x_new0 (struct controller);
    c->session = s;
    s->rooms.steering->supplied = supplied_secrets_new (&declared->secrets);
    random_bytes (c->key, sizeof c->key);
    return c;
}

void
stage_controller (struct session *s)
{
    s->rooms.steering->controller = s->manifest->inference ? controller_new (s) : NULL;
}

void
controller_free (struct controller *c)
{
    if (! c)
        return;
    secret_wipe (c->key, sizeof c->key);
    free (c);
}

/* --- secrets --- */

static bool
has_secret (void *ctx, const char *name)
{
    const struct controller *c = ctx;
    return supplied_secrets_owns (c->session->rooms.steering->supplied, name);
}

static void
answer_secret (struct control_answer *out, const char *name, bool is_set)
{
    out->status = 200;
    out->body = json_object ();
    json_set_string (out->body, "name", name);
    json_set_bool (out->body, "set", is_set);
}

static void
trace_secret (struct controller *c, const char *token_id, const char *name, const char *action,
              struct trace_flag replaced)
{
    TRACE (c->session->trace, NULL, control_change, .principal = "controller", .token_id = token_id,
           .kind = "secret", .name = name, .action = action, .replaced = replaced);
}

static void
set_secret (void *ctx, const char *token_id, const char *name, const char *value, size_t len,
            struct control_answer *out)
{
    struct controller *c = ctx;
    struct secret *secret = secret_new (value, len);
    redactor_add (c->session->redactor, secret);
    bool is_replaced = supplied_secrets_put (c->session->rooms.steering->supplied, name, secret);
    trace_secret (c, token_id, name, "set", TRACE_FLAG (is_replaced));
    answer_secret (out, name, true);
    json_set_bool (out->body, "replaced", is_replaced);
}

struct forgetting {
    struct controller *controller;
    const char *name, *token_id;
};

/* Under the lock of the selection, so that no switch to a choice this secret keys comes in between.
 */
static void
forget_it (void *ctx)
{
    const struct forgetting *f = ctx;
    supplied_secrets_put (f->controller->session->rooms.steering->supplied, f->name, NULL);
    trace_secret (f->controller, f->token_id, f->name, "forget", (struct trace_flag){ 0 });
}

static void
forget_secret (void *ctx, const char *token_id, const char *name, struct control_answer *out)
{
    struct forgetting f = { ctx, name, token_id };
    if (selection_unless_keyed_by (f.controller->session, name, forget_it, &f)) {
        answer_secret (out, name, false);
        return;
    }
    out->status = 409;
    out->reason = "in_use";
    out->message = x_strdup ("The selected driver choice uses this secret.");
}

/* --- settings --- */

static bool
has_setting (void *ctx, const char *name)
{
    const struct controller *c = ctx;
    return selection_controller_may (c->session, name);
}

static void
refuse_value (struct control_answer *out, unsigned status, const char *reason, char *message)
{
    out->status = status;
    out->reason = reason;
    out->message = message;
}

static char *
choice_names (const struct session *s)
{
    struct buf names = { 0 };
    for (size_t i = 0; i < s->choices.count; i++)
        buf_printf (&names, "%s%s", i ? ", " : "", s->choices.all[i]->name);
    return buf_steal (&names);
}

/* The sentence of a verdict. Owned. */
static char *
verdict_text (const struct session *s, enum selection_verdict verdict)
{
    if (verdict == SELECTION_UNDECLARED_DRIVER) {
        _cleanup_free_ char *names = choice_names (s);
        return x_asprintf ("There is no such driver choice; declared are: %s.", names);
    }
    return x_strdup (verdict == SELECTION_NO_INPUT_BUDGET
                         ? "No input would fit beside this in the context window of every choice."
                         : "The credential of this choice has no value now.");
}

static void
answer_setting (const struct session *s, enum selection_verdict verdict, const char *name,
                json_t *previous, json_t *value, struct control_answer *out)
{
    if (verdict != SELECTION_DONE) {
        json_decref (previous);
        json_decref (value);
        refuse_value (out, selection_status (verdict), selection_reason (verdict),
                      verdict_text (s, verdict));
        return;
    }
    out->status = 200;
    out->body = json_object ();
    json_set_string (out->body, "name", name);
    json_object_set_new (out->body, "previous", previous);
    json_object_set_new (out->body, "value", value);
    json_set_string (out->body, "applies_from", CONTROL_APPLIES_FROM);
}

static void
set_max_tokens (struct session *s, const struct selection_principal *who, const json_t *value,
                struct control_answer *out)
{
    json_int_t tokens = json_integer_value (value);
    uint64_t previous;
    if (! json_is_integer (value) || tokens < 1 || tokens > MAX_TOKENS_MAX) {
        refuse_value (out, 422, "invalid_value",
                      x_strdup ("The value must be a whole number from 1 to 4294967295."));
        return;
    }
    enum selection_verdict verdict = selection_set_max_tokens (s, who, (uint64_t)tokens, &previous);
    answer_setting (s, verdict, SETTING_MAX_TOKENS, json_integer ((json_int_t)previous),
                    json_integer (tokens), out);
}

static void
set_driver (struct session *s, const struct selection_principal *who, const json_t *value,
            struct control_answer *out)
{
    const char *name = json_string_value (value), *previous;
    if (! name) {
        refuse_value (out, 422, "invalid_value", x_strdup ("The value must be a string."));
        return;
    }
    enum selection_verdict verdict = selection_set_driver (s, who, name, &previous);
    answer_setting (s, verdict, SETTING_DRIVER, json_string (previous ? previous : ""),
                    json_string (name), out);
}

static void
set_setting (void *ctx, const char *token_id, const char *name, const json_t *value,
             struct control_answer *out)
{
    const struct controller *c = ctx;
    const struct selection_principal who = { "controller", token_id };
    if (strcmp (name, SETTING_DRIVER) == 0)
        set_driver (c->session, &who, value, out);
    else
        set_max_tokens (c->session, &who, value, out);
}

/* --- what there is --- */

static json_t *
choices_json (const struct session *s)
{
    json_t *list = json_array ();
    for (size_t i = 0; i < s->choices.count; i++) {
        const struct choice *d = s->choices.all[i];
        json_t *one = json_object ();
        json_set_string (one, "name", d->name);
        json_set_string (one, "driver", d->artifact->full_name);
        json_set_string (one, "model", d->model);
        json_set_bool (one, "available", selection_has_credential (d));
        json_array_append_new (list, one);
    }
    return list;
}

static json_t *
setting_json (struct session *s, const char *name)
{
    struct call_choice now;
    selection_peek (s, &now);
    json_t *one = json_object ();
    json_set_string (one, "name", name);
    if (strcmp (name, SETTING_DRIVER) == 0) {
        json_set_string (one, "value", now.driver->name);
        json_object_set_new (one, "choices", choices_json (s));
    } else {
        json_set_u64 (one, "value", now.output_cap);
    }
    return one;
}

static json_t *
controller_show (void *ctx)
{
    struct controller *c = ctx;
    struct session *s = c->session;
    json_t *answer = json_object (), *settings = json_array (), *secrets = json_array ();
    const struct str_list *declared = &s->manifest->control->settings;
    for (size_t i = 0; i < declared->len; i++)
        json_array_append_new (settings, setting_json (s, declared->items[i]));
    for (size_t i = 0; i < secret_names (s)->len; i++) {
        const char *name = secret_names (s)->items[i];
        _cleanup_secret_ struct secret *value =
            supplied_secrets_get (s->rooms.steering->supplied, name);
        json_array_append_new (secrets,
                               json_pack ("{s:s, s:b}", "name", name, "set", value != NULL));
    }
    json_set_string (answer, "session_id", s->id.text);
    json_object_set_new (answer, "settings", settings);
    json_object_set_new (answer, "secrets", secrets);
    return answer;
}

/* --- the token --- */

static bool
is_token (void *ctx, const char *token)
{
    const struct controller *c = ctx;
    const char *id = c->session->id.text;
    _cleanup_json_ json_t *payload = token_verify (&token_control, c->key, token, id);
    return payload && str_eq (json_get_string (payload, "session_id"), id);
}

static struct secret *
mint (struct controller *c)
{
    unsigned char nonce[16];
    char nonce_text[33];
    random_bytes (nonce, sizeof nonce);
    hex_encode (nonce, sizeof nonce, nonce_text);
    _cleanup_json_ json_t *payload = json_object ();
    json_set_string (payload, "nonce", nonce_text);
    json_set_string (payload, "session_id", c->session->id.text);
    char *text = token_mint (&token_control, c->key, payload, c->session->id.text);
    struct secret *token = secret_new (text, strlen (text));
    secret_wipe (text, strlen (text));
    free (text);
    return token;
}

bool
controller_begin (struct session *s, struct mur_error **err)
{
    if (! s->rooms.steering->controller)
        return true;
    _cleanup_secret_ struct secret *token = mint (s->rooms.steering->controller);
    redactor_add (s->redactor, token);
    return running_write_control (s->id.text, token, err);
}

void
controller_serve (struct session *s)
{
    static const struct control_ops ops = { controller_show, has_setting,   has_secret, set_setting,
                                            set_secret,      forget_secret, is_token };
    const struct control_spec spec = { &ops, s->rooms.steering->controller, s->trace };
    if (s->rooms.steering->controller)
        door_set_control (s->door, &spec);
}
