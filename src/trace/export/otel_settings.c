/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/otel_settings.h"

#include "base/alloc.h"
#include "base/diag.h"

#include <ctype.h>
#include <string.h>

static char *
joined_url (const char *base, const char *tail)
{
    size_t len = strlen (base);
    while (len && base[len - 1] == '/')
        len--;
    const char *scheme = strstr (base, "://") ? "" : "http://";
    return x_asprintf ("%s%.*s%s", scheme, (int)len, base, tail);
}

/* --- headers --- */

static void
take_header (struct otel_settings *s, const char *name, size_t name_len, const char *value,
             size_t value_len)
{
    _cleanup_free_ char *text = x_strndup (name, name_len);
    str_lower (text);
    for (size_t i = 0; i < s->header_count; i++) {
        if (! str_eq (s->headers[i].name, text))
            continue;
        secret_free (s->headers[i].value);
        s->headers[i].value = secret_new (value, value_len);
        return;
    }
    x_grow (s->headers, s->header_count, s->header_cap);
    s->headers[s->header_count++] =
        (struct otel_header){ steal_ptr (&text), secret_new (value, value_len) };
}

/* A value as written, its one ${NAME} replaced. */
static bool
manifest_header (const struct otel_sources *from, struct otel_settings *s,
                 const struct name_value *header, struct mur_error **err)
{
    const char *open = strstr (header->value, "${"), *close = open ? strchr (open, '}') : NULL;
    if (! close) {
        take_header (s, header->name, strlen (header->name), header->value, strlen (header->value));
        return true;
    }
    _cleanup_free_ char *name = x_strndup (open + 2, (size_t)(close - open - 2));
    _cleanup_ (secret_freep) struct secret *key = from->credential (from->ctx, name);
    if (! key) {
        mur_fail (err, E_MAN_003, "observability.otel.headers.%s: the credential %s is not set",
                  header->name, name);
        return mur_hint (err, "mur config set -g credentials.%s VALUE, or set the variable", name);
    }
    char *text = x_asprintf ("%.*s%s%s", (int)(open - header->value), header->value,
                             secret_reveal (key), close + 1);
    take_header (s, header->name, strlen (header->name), text, strlen (text));
    secret_wipe (text, strlen (text));
    free (text);
    return true;
}

/* --- "key=value,key=value" of a variable --- */

static void
percent_decode (char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        unsigned byte;
        if (at[0] == '%' && isxdigit ((unsigned char)at[1]) && isxdigit ((unsigned char)at[2]) &&
            sscanf (at + 1, "%2x", &byte) == 1 && byte) {
            *to++ = (char)byte;
            at += 2;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

typedef void pair_fn (struct otel_settings *s, const char *key, const char *value);

static void
each_pair (struct otel_settings *s, const char *list, pair_fn *take)
{
    _cleanup_free_ char *copy = list ? x_strdup (list) : NULL;
    char *rest = NULL;
    for (char *item = copy ? strtok_r (copy, ",", &rest) : NULL; item;
         item = strtok_r (NULL, ",", &rest)) {
        char *equals = strchr (item, '=');
        if (! equals)
            continue;
        *equals = '\0';
        char *key = item + strspn (item, " \t"), *value = equals + 1 + strspn (equals + 1, " \t");
        key[strcspn (key, " \t")] = '\0';
        for (size_t len = strlen (value); len && strchr (" \t", value[len - 1]); len--)
            value[len - 1] = '\0';
        percent_decode (value);
        if (*key)
            take (s, key, value);
        secret_wipe (value, strlen (value));
    }
    if (copy)
        secret_wipe (copy, strlen (list));
}

static void
take_header_pair (struct otel_settings *s, const char *key, const char *value)
{
    take_header (s, key, strlen (key), value, strlen (value));
}

static void
take_resource_pair (struct otel_settings *s, const char *key, const char *value)
{
    attributes_string_named (&s->resource, key, value);
}

/* --- sources --- */

/* A variable that is set to something. */
static const char *
variable (const struct otel_sources *from, const char *name)
{
    const char *value = from->variable (name);
    return value && *value ? value : NULL;
}

static bool
refuse_variable (struct mur_error **err, const char *name, const char *why)
{
    mur_fail (err, E_RUN_056, "%s: %s", name, why);
    return mur_hint (err, "correct or unset the variable %s", name);
}

static bool
take_protocol (const struct otel_sources *from, struct otel_settings *s, struct mur_error **err)
{
    static const char name[] = "OTEL_EXPORTER_OTLP_PROTOCOL";
    const char *protocol = variable (from, name);
    const struct otel_block *block = from->manifest ? from->manifest->otel : NULL;
    if (! protocol)
        protocol = block && block->protocol ? block->protocol : "http/protobuf";
    else if (! str_eq (protocol, "http/protobuf") && ! str_eq (protocol, "http/json"))
        return refuse_variable (err, name, "only http/protobuf and http/json are spoken");
    s->encoding = str_eq (protocol, "http/json") ? OTLP_JSON : OTLP_PROTOBUF;
    return true;
}

static bool
take_manifest (const struct otel_sources *from, struct otel_settings *s, struct mur_error **err)
{
    const struct otel_block *block = from->manifest ? from->manifest->otel : NULL;
    if (! block)
        return true;
    s->content = str_eq (block->content, "full")   ? GEN_AI_CONTENT_FULL
                 : str_eq (block->content, "meta") ? GEN_AI_CONTENT_META
                                                   : GEN_AI_CONTENT_NONE;
    s->sends_pending = block->pending.value;
    if (block->sample.is_set)
        s->sample = block->sample.value;
    for (size_t i = 0; i < block->resource.len; i++)
        attributes_string_named (&s->resource, block->resource.items[i].name,
                                 block->resource.items[i].value);
    for (size_t i = 0; i < block->headers.len; i++)
        if (! manifest_header (from, s, &block->headers.items[i], err))
            return false;
    return true;
}

static void
take_endpoints (const struct otel_sources *from, struct otel_settings *s)
{
    const struct observability *o = from->manifest;
    const char *base = variable (from, "OTEL_EXPORTER_OTLP_ENDPOINT"),
               *traces = variable (from, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
               *metrics = variable (from, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
    if (! base && o)
        base = o->otel && o->otel->endpoint ? o->otel->endpoint : o->otel_endpoint;
    bool has_metrics = ! o || ! o->otel || o->otel->metrics.value;
    if (traces)
        s->traces_url = x_strdup (traces);
    else if (base)
        s->traces_url = joined_url (base, "/v1/traces");
    if (metrics)
        s->metrics_url = x_strdup (metrics);
    else if (base && has_metrics)
        s->metrics_url = joined_url (base, "/v1/metrics");
    s->is_on = s->traces_url != NULL;
}

/* otel_endpoint alone, and conventions: capsule, are what they were before there were other
 * conventions. */
static void
choose_conventions (const struct otel_sources *from, struct otel_settings *s)
{
    const struct observability *o = from->manifest;
    if (! o || variable (from, "OTEL_EXPORTER_OTLP_ENDPOINT") ||
        variable (from, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
        return;
    s->is_capsule = o->otel ? str_eq (o->otel->conventions, "capsule") : o->otel_endpoint != NULL;
    if (s->is_capsule) {
        const char *endpoint = o->otel && o->otel->endpoint ? o->otel->endpoint : o->otel_endpoint;
        s->capsule_endpoint = endpoint ? x_strdup (endpoint) : NULL;
        s->is_on = endpoint != NULL;
    }
}

static bool
names_collector (const struct observability *o)
{
    return o && (o->otel_endpoint || (o->otel && o->otel->endpoint));
}

bool
otel_settings_read (const struct otel_sources *from, struct otel_settings *out,
                    struct mur_error **err)
{
    *out = (struct otel_settings){ .sample = 1 };
    const char *is_disabled = variable (from, "OTEL_SDK_DISABLED");
    if (from->is_locked && names_collector (from->manifest)) {
        mur_fail (err, E_CAP_021,
                  "the manifest names a collector, and observability.locked of the "
                  "configuration keeps that to the operator");
        return mur_hint (err, "remove observability.otel.endpoint (or otel_endpoint); the "
                              "operator's OTEL_EXPORTER_OTLP_ENDPOINT says where spans go");
    }
    if (is_disabled && strcasecmp (is_disabled, "true") == 0)
        return true;
    if (! take_protocol (from, out, err) || ! take_manifest (from, out, err))
        return false;
    each_pair (out, variable (from, "OTEL_EXPORTER_OTLP_HEADERS"), take_header_pair);
    struct attributes own = out->resource; /* the environment's come first: they win */
    out->resource = (struct attributes){ 0 };
    each_pair (out, variable (from, "OTEL_RESOURCE_ATTRIBUTES"), take_resource_pair);
    for (size_t i = 0; i < own.len; i++)
        attributes_string_named (&out->resource, own.items[i].key, own.items[i].text);
    attributes_free (&own);
    const char *service = variable (from, "OTEL_SERVICE_NAME");
    if (service)
        take_resource_pair (out, "service.name", service);
    take_endpoints (from, out);
    choose_conventions (from, out);
    return true;
}

void
otel_settings_free (struct otel_settings *s)
{
    for (size_t i = 0; i < s->header_count; i++) {
        free (s->headers[i].name);
        secret_free (s->headers[i].value);
    }
    free (s->headers);
    free (s->capsule_endpoint);
    free (s->traces_url);
    free (s->metrics_url);
    attributes_free (&s->resource);
    *s = (struct otel_settings){ 0 };
}
