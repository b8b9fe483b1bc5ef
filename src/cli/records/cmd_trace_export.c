/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace export`: the spans of a finished session, into a file or to a collector (records.md
 * 11).
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/records/commands.h"
#include "cli/records/recorded.h"
#include "fs/growing.h"
#include "fs/latch.h"
#include "trace/export/otlp_post.h"
#include "trace/export/trace_spans.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS 60000

static const char *
variable (const char *name)
{
    return getenv (name);
}

static bool
choose_content (const char *word, struct otel_settings *s, struct mur_error **err)
{
    static const char *const words[] = { "none", "meta", "full" };
    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (str_eq (word, words[i])) {
            s->content = (enum gen_ai_content)i;
            return true;
        }
    return ! word || mur_fail (err, E_IO_003, "--content %s: it is none, meta or full", word);
}

static bool
print_piece (void *ctx, const char *data, size_t len, struct mur_error **err)
{
    (void)ctx, (void)err;
    out_write (data, len);
    return true;
}

static bool
write_piece (void *ctx, const char *data, size_t len, struct mur_error **err)
{
    return fs_growing_append (ctx, data, len, err);
}

/* Where bodies are sent. */
struct collector {
    char *url;
    const struct otel_settings *settings;
    struct http_client *http;
};

static bool
send_body (void *ctx, const char *data, size_t len, struct mur_error **err)
{
    const struct collector *c = ctx;
    const struct otlp_post post = { .http = c->http,
                                    .settings = c->settings,
                                    .url = c->url,
                                    .body = data,
                                    .body_len = len,
                                    .patience_ms = PATIENCE_MS };
    _cleanup_free_ char *why = NULL;
    if (otlp_post (&post, &why) != OTLP_SENT)
        return mur_fail (err, E_IO_003, "the spans were not sent to %s: %s", c->url,
                         why ? why : "no answer");
    if (why)
        diag_plain_warning ("%s", why);
    return true;
}

/* --- the three targets --- */

typedef bool encode_fn (const struct trace *t, const char *target, struct otel_settings *s,
                        struct fs_root *records, struct mur_error **err);

static bool
to_stdout (const struct trace *t, const char *target, struct otel_settings *s,
           struct fs_root *records, struct mur_error **err)
{
    (void)target;
    const struct trace_spans_sink sink = { .put = print_piece };
    if (! trace_spans_encode (t, s, records, &sink, err))
        return false;
    out_write ("\n", 1);
    return true;
}

static bool
to_file (const struct trace *t, const char *target, struct otel_settings *s,
         struct fs_root *records, struct mur_error **err)
{
    _cleanup_ (fs_growing_freep) struct fs_growing *file = fs_growing_new (target, 0666, err);
    const struct trace_spans_sink sink = { .put = write_piece, .ctx = file };
    return file && trace_spans_encode (t, s, records, &sink, err) && fs_growing_finish (file, err);
}

static bool
to_collector (const struct trace *t, const char *target, struct otel_settings *s,
              struct fs_root *records, struct mur_error **err)
{
    _cleanup_free_ char *url =
        str_ends (target, "/v1/traces")
            ? x_strdup (target)
            : x_asprintf ("%s%sv1/traces", target, str_ends (target, "/") ? "" : "/");
    _cleanup_ (http_client_freep) struct http_client *http = http_client_new ();
    struct collector collector = { url, s, http };
    const struct trace_spans_sink sink = { .takes_bodies = true,
                                           .put = send_body,
                                           .ctx = &collector };
    return trace_spans_encode (t, s, records, &sink, err);
}

static bool
export_trace (const struct cli_args *args, const struct trace *t, struct mur_error **err)
{
    const char *target = cli_value (args, "--otlp");
    bool is_url = str_starts (target, "http://") || str_starts (target, "https://");
    encode_fn *encode = is_url ? to_collector : str_eq (target, "-") ? to_stdout : to_file;
    const struct otel_sources from = { .variable = variable };
    struct otel_settings settings;
    if (! otel_settings_read (&from, &settings, err))
        return false;
    if (! is_url)
        settings.encoding = OTLP_JSON;
    _cleanup_free_ char *folder = x_strndup (t->path, strlen (t->path) - strlen ("trace.jsonl"));
    _cleanup_close_ int fd = open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct fs_latch *latch = fs_latch_new ();
    struct fs_root *records = fd >= 0 ? fs_root_new (steal_fd (&fd), folder, latch, true) : NULL;
    bool is_fine = choose_content (cli_value (args, "--content"), &settings, err) &&
                   encode (t, target, &settings, records, err);
    fs_root_free (records);
    fs_latch_free (latch);
    otel_settings_free (&settings);
    return is_fine;
}

int
cmd_trace_export (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_trace_ struct trace *t =
        recorded_trace (args, cli_positional (args, "SESSION"), TRACE_TOLERANT, err);
    return t && export_trace (args, t, err) ? CLI_OK : CLI_FAILED;
}
