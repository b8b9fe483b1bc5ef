/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace export`: the spans of a finished session, into a file or to a collector (records.md
 * 11).
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/records/commands.h"
#include "cli/records/recorded.h"
#include "fs/latch.h"
#include "fs/paths.h"
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
write_file (const char *path, const struct buf *body, struct mur_error **err)
{
    if (! str_eq (path, "-"))
        return fs_replace_path (path, body->data, body->len, 0666, false, err);
    out_write (body->data, body->len);
    out_write ("\n", 1);
    return true;
}

static bool
send (const char *url, const struct otel_settings *s, const struct buf *body,
      struct mur_error **err)
{
    _cleanup_free_ char *whole =
        str_ends (url, "/v1/traces")
            ? x_strdup (url)
            : x_asprintf ("%s%sv1/traces", url, str_ends (url, "/") ? "" : "/");
    _cleanup_ (http_client_freep) struct http_client *http = http_client_new ();
    const struct otlp_post post = { .http = http,
                                    .settings = s,
                                    .url = whole,
                                    .body = body->data,
                                    .body_len = body->len,
                                    .patience_ms = PATIENCE_MS };
    _cleanup_free_ char *why = NULL;
    if (otlp_post (&post, &why) != OTLP_SENT)
        return mur_fail (err, E_IO_003, "the spans were not sent to %s: %s", whole,
                         why ? why : "no answer");
    if (why)
        diag_plain_warning ("%s", why);
    return true;
}

static bool
export_trace (const struct cli_args *args, const struct trace *t, struct mur_error **err)
{
    const char *target = cli_value (args, "--otlp");
    bool is_url = str_starts (target, "http://") || str_starts (target, "https://");
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
    _cleanup_buf_ struct buf body = { 0 };
    bool is_fine = choose_content (cli_value (args, "--content"), &settings, err);
    if (is_fine) {
        trace_spans_encode (t, &settings, records, &body);
        is_fine = is_url ? send (target, &settings, &body, err) : write_file (target, &body, err);
    }
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
