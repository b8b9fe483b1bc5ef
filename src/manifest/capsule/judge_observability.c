/* SPDX-License-Identifier: Apache-2.0
 *
 * Judging observability.otel: where spans go, what they may carry, and the two maps of texts.
 */
#include "manifest/capsule/judges_internal.h"
#include "manifest/text/yaml_tree.h"

#include "base/buf.h"
#include "manifest/capsule/capsule_schema.h"

#include <string.h>

/* RFC 9110's token. */
static bool
is_header_name (const char *name)
{
    return *name && name[strspn (name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789!#$%&'*+-.^_`|~")] == '\0';
}

static bool
judge_headers (struct reading *rd, struct otel_block *o, struct mur_error **err)
{
    static const char path[] = "observability.otel.headers";
    if (! read_text_pairs (rd, o->written_headers, path, &o->headers.items, &o->headers.len, err))
        return false;
    for (size_t i = 0; i < o->headers.len; i++) {
        const struct name_value *h = &o->headers.items[i];
        const char *at = path_of (rd, "%s.%s", path, h->name);
        if (! is_header_name (h->name))
            return refuse_value (rd, err, at, "that is no name of a header");
        for (const char *c = h->value; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                return refuse_value (rd, err, at, "a header's value has no control characters");
    }
    return true;
}

static bool
judge_endpoint (struct reading *rd, const struct otel_block *o, struct mur_error **err)
{
    const char *path = "observability.otel.endpoint", *scheme = NULL;
    if (! o->endpoint)
        return true;
    if (rd->m->observability->otel_endpoint)
        return refuse_value (rd, err, path, "observability.otel_endpoint says it already");
    scheme = strstr (o->endpoint, "://");
    if (scheme && ! str_starts (o->endpoint, "http://") && ! str_starts (o->endpoint, "https://"))
        return refuse_value (rd, err, path, "only http:// and https:// are spoken");
    const char *host = scheme ? scheme + 3 : o->endpoint;
    if (! *host || strchr ("/:", *host) || strpbrk (host, " \t@?#"))
        return refuse_value (rd, err, path,
                             "'%s' is no address of a collector, such as http://127.0.0.1:4318",
                             o->endpoint);
    return true;
}

bool
judge_otel (struct reading *rd, struct mur_error **err)
{
    struct otel_block *o = rd->m->observability ? rd->m->observability->otel : NULL;
    if (! o)
        return true;
    if (! schema_check (&rd->r, &otel_schema, o, "observability.otel", err) ||
        ! judge_endpoint (rd, o, err) || ! judge_headers (rd, o, err) ||
        ! read_text_pairs (rd, o->written_resource, "observability.otel.resource",
                           &o->resource.items, &o->resource.len, err))
        return false;
    enum trace_capture capture = rd->m->trace ? rd->m->trace->capture : CAPTURE_META;
    if (str_eq (o->content, "full") && capture < CAPTURE_CONTENT) {
        refuse_value (rd, err, "observability.otel.content",
                      "full sends what trace.capture does not keep");
        return mur_hint (err, "set trace.capture: content, or observability.otel.content: meta");
    }
    if (str_eq (o->content, "meta") && capture == CAPTURE_NONE) {
        refuse_value (rd, err, "observability.otel.content",
                      "meta sends what trace.capture: none does not keep");
        return mur_hint (err, "set trace.capture: meta, or observability.otel.content: none");
    }
    return true;
}
