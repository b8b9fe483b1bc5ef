/* SPDX-License-Identifier: Apache-2.0
 *
 * The conformance tool of tool.py, in C.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"
#include "murmur_sdk.h"

#define FILE_MAX (1u << 20)

struct order {
    const struct mur_json *json;
    mur_node node;
    char *text; /* NULL: none */
    char *path;
    char *error;
};

static char *
word (const struct order *o, const char *key)
{
    return mur_json_text (o->json, mur_json_get (o->json, o->node, key));
}

static char *
log_text (struct order *o)
{
    mur_log ("%s", o->text);
    return mur_format ("logged");
}

static char *
write_file (struct order *o)
{
    return mur_file_write (o->path, o->text, strlen (o->text), false, &o->error)
               ? mur_format ("written")
               : NULL;
}

static char *
read_file (struct order *o)
{
    return mur_file_read (o->path, FILE_MAX, NULL, &o->error);
}

static char *
list_folder (struct order *o)
{
    struct dirent **entries = NULL;
    int count = scandir (o->path, &entries, NULL, alphasort);
    struct mur_text names = { 0 };
    mur_text_puts (&names, "");
    for (int i = 0; i < count; i++)
        if (entries[i]->d_name[0] != '.')
            mur_text_printf (&names, "%s%s", names.len > 0 ? " " : "", entries[i]->d_name);
    if (count < 0)
        o->error = mur_path_error (o->path);
    return names.data;
}

static char *
variable (struct order *o)
{
    return mur_format ("%s", mur_env (o->text, "unset"));
}

static char *
config (struct order *o)
{
    struct mur_json *json = mur_config ();
    return mur_json_text (json, mur_json_get (json, 0, o->text));
}

static char *
progress (struct order *o)
{
    mur_emit (o->text, strlen (o->text));
    return mur_format ("shown");
}

static char *
ask (struct order *o)
{
    guest_string_t prompt = { (uint8_t *)o->text, strlen (o->text) }, answer;
    murmur_task_task_request_input (&prompt, &answer);
    return mur_format ("%.*s", (int)answer.len, (const char *)answer.ptr);
}

static char *
tell_time (struct order *o)
{
    (void)o;
    return mur_format ("%s", time (NULL) > 1600000000 ? "later" : "earlier");
}

static char *
chance (struct order *o)
{
    unsigned char bytes[2][16];
    (void)o;
    if (getentropy (bytes[0], sizeof bytes[0]) != 0 || getentropy (bytes[1], sizeof bytes[1]) != 0)
        return NULL;
    return mur_format ("%s", memcmp (bytes[0], bytes[1], sizeof bytes[0]) ? "differs" : "repeats");
}

static char *
send_request (struct order *o, const struct mur_http_request *request, bool tells_header)
{
    struct mur_http_response response;
    struct mur_text body = { 0 };
    char piece[4096], *told = NULL;
    long got = 0;
    mur_text_puts (&body, "");
    if (! mur_http_open (request, &response, &o->error))
        return NULL;
    if (tells_header)
        told = mur_http_header (&response, "x-told");
    while ((got = mur_http_read (&response, piece, sizeof piece, &o->error)) > 0)
        mur_text_add (&body, piece, (size_t)got);
    mur_http_close (&response);
    if (got < 0)
        return NULL;
    return told != NULL ? mur_format ("%u %s %s", response.status, told, body.data)
                        : mur_format ("%u %s", response.status, body.data);
}

static char *
get (struct order *o)
{
    struct mur_http_request request = { .url = word (o, "url") };
    return send_request (o, &request, true);
}

static char *
post (struct order *o)
{
    struct mur_http_header header = { "x-asked", word (o, "header") };
    struct mur_http_request request = {
        .url = word (o, "url"),
        .method = "POST",
        .headers = &header,
        .header_count = 1,
        .body = o->text,
        .body_len = strlen (o->text),
    };
    return send_request (o, &request, false);
}

static const struct {
    const char *name;
    char *(*act) (struct order *o);
} orders[] = {
    { "log", log_text },      { "write", write_file }, { "read", read_file },
    { "list", list_folder },  { "env", variable },     { "config", config },
    { "progress", progress }, { "ask", ask },          { "clock", tell_time },
    { "random", chance },     { "get", get },          { "post", post },
};

static char *
outcome (struct order *o)
{
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (mur_json_is (o->json, mur_json_get (o->json, o->node, "do"), orders[i].name))
            return orders[i].act (o);
    return NULL;
}

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    char *name = mur_json_text (in->json, mur_json_get (in->json, 0, "name"));
    if (strcmp (name, "\"break\"") == 0) {
        mur_log ("broke on purpose");
        abort ();
    }
    if (strcmp (name, "\"fail\"") == 0) {
        out->status = MUR_FAILED;
        out->summary = mur_format ("a summary");
        return;
    }
    if (strcmp (name, "\"meta\"") == 0) {
        mur_passed (out, "with metadata");
        mur_metadata (out, "resource_id", "r-1");
        mur_metadata (out, "state_effect", "read");
        return;
    }
    struct mur_json *json = mur_json_parse (name, strlen (name));
    struct mur_text answer = { 0 };
    mur_text_puts (&answer, "[");
    for (mur_node n = mur_json_first (json, 0); n >= 0; n = mur_json_next (json, n)) {
        struct order o = { .json = json, .node = n };
        o.text = word (&o, "text");
        o.path = word (&o, "path");
        char *told = outcome (&o);
        mur_text_comma (&answer);
        mur_text_json (&answer, o.error != NULL ? mur_format ("error: %s", o.error)
                                                : mur_format ("ok: %s", told));
    }
    mur_text_puts (&answer, "]");
    mur_passed_text (out, &answer);
}
