/* SPDX-License-Identifier: Apache-2.0 */
#include "net/gateway.h"

#include "base/alloc.h"
#include "net/auth_header.h"
#include "net/url.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

struct gateway {
    struct gateway_spec spec; /* its strings are owned */
    char *base;               /* scheme://authority */
    char *host;
    char *guest_endpoint;
    char *auth_header; /* lower case */
    pthread_mutex_t lock;
    struct secret *last; /* the key read last, to notice a rotation */
    enum gateway_source last_source;
    bool is_unreadable; /* reported, until it can be read again */
};

static const char *const source_names[] = { "none",       "config",   "environment", "manifest",
                                            "controller", "launcher", "file" };
static const char *const unreadable_names[] = {
    "", "missing", "unreadable", "unparseable", "empty_entry", "no_entry"
};

const char *
gateway_source_name (enum gateway_source source)
{
    return source_names[source];
}

const char *
gateway_unreadable_name (enum gateway_unreadable why)
{
    return unreadable_names[why];
}

/* --- what the manifest may say --- */

const char *
gateway_endpoint_fault (const char *endpoint)
{
    if (strstr (endpoint, "${"))
        return "holds ${...}: an endpoint is a literal address";
    _cleanup_url_ struct url url = { 0 };
    const char *fault = url_parse (endpoint, &url);
    if (fault)
        return fault;
    if (url.authority.has_userinfo)
        return "holds a user name or password";
    if (url.has_query)
        return "holds a query";
    if (url.has_fragment)
        return "holds a fragment";
    if (strcmp (url.scheme, "http") == 0 && ! host_is_loopback (url.authority.host))
        return "is http:// to a host that is not loopback; use https://";
    return NULL;
}

/* The endpoint with any userinfo shown as "***": for messages. Owned. */
static char *
gateway_endpoint_masked (const char *endpoint)
{
    const char *mark = strstr (endpoint, "://");
    const char *start = mark ? mark + 3 : endpoint;
    size_t len = strcspn (start, "/?#");
    const char *at = memrchr (start, '@', len);
    return at ? x_asprintf ("%.*s***%s", (int)(start - endpoint), endpoint, at)
              : x_strdup (endpoint);
}

const char *
gateway_auth_fault (const char *header, const char *value)
{
    if (! header || ! *header)
        return "names no header";
    if (auth_header_is_reserved (header))
        return "names a header a key cannot go in";
    if (auth_header_fault (header))
        return "names a header that is no HTTP field name";
    if (! value)
        return "has no value";
    const char *mark = strstr (value, "{key}");
    if (! mark || strstr (mark + 1, "{key}"))
        return "has a value that does not hold {key} exactly once";
    for (const char *p = value; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            return "has a value with a character no header may hold";
    return NULL;
}

/* --- making one --- */

static char *
copy_or_null (const char *s)
{
    return s ? x_strdup (s) : NULL;
}

static char *
authority_text (const struct url *url)
{
    return url->authority.port == URL_NO_PORT
               ? x_strdup (url->authority.host)
               : x_asprintf ("%s:%d", url->authority.host, url->authority.port);
}

struct gateway *
gateway_new (const struct gateway_spec *spec, struct mur_error **err)
{
    const char *fault = gateway_endpoint_fault (spec->endpoint);
    if (fault) {
        _cleanup_free_ char *shown = gateway_endpoint_masked (spec->endpoint);
        mur_fail (err, E_MAN_003, "%s: gateway.endpoint \"%s\" %s", spec->artifact, shown, fault);
        return NULL;
    }
    fault = spec->is_keyless && ! spec->auth_header
                ? NULL
                : gateway_auth_fault (spec->auth_header, spec->auth_value);
    if (fault) {
        mur_fail (err, E_RUN_025, "%s has a gateway, but its upstream_auth %s", spec->artifact,
                  fault);
        return NULL;
    }

    _cleanup_url_ struct url url = { 0 };
    (void)url_parse (spec->endpoint, &url);
    struct gateway *g = x_new0 (struct gateway);
    g->spec = *spec;
    g->spec.artifact = x_strdup (spec->artifact);
    g->spec.endpoint = x_strdup (spec->endpoint);
    g->spec.auth_header = copy_or_null (spec->auth_header);
    g->spec.auth_value = copy_or_null (spec->auth_value);
    g->auth_header = copy_or_null (spec->auth_header);
    if (g->auth_header)
        str_lower (g->auth_header);
    g->host = authority_text (&url);
    g->base = x_asprintf ("%s://%s", url.scheme, g->host);
    size_t path_len = strlen (url.path);
    if (path_len && url.path[path_len - 1] == '/')
        path_len--;
    g->guest_endpoint = x_asprintf ("http://" GATEWAY_AUTHORITY "%.*s", (int)path_len, url.path);
    pthread_mutex_init (&g->lock, NULL);
    return g;
}

void
gateway_free (struct gateway *g)
{
    if (! g)
        return;
    free ((char *)g->spec.artifact);
    free ((char *)g->spec.endpoint);
    free ((char *)g->spec.auth_header);
    free ((char *)g->spec.auth_value);
    free (g->auth_header);
    free (g->host);
    free (g->base);
    free (g->guest_endpoint);
    secret_free (g->last);
    pthread_mutex_destroy (&g->lock);
    free (g);
}

const char *
gateway_guest_endpoint (const struct gateway *g)
{
    return g->guest_endpoint;
}

const char *
gateway_host (const struct gateway *g)
{
    return g->host;
}

bool
gateway_is_metered (const struct gateway *g)
{
    return g->spec.is_metered;
}

const char *
gateway_base (const struct gateway *g)
{
    return g->base;
}

const char *
gateway_auth_header (const struct gateway *g)
{
    return g->auth_header;
}

bool
gateway_is_header_fixed (const struct gateway *g)
{
    return g->spec.is_header_fixed;
}

bool
gateway_is_addressed (const char *scheme, const char *authority)
{
    return str_eq (scheme, "http") && str_eq (authority, GATEWAY_AUTHORITY);
}

/* --- keys --- */

static void
tell (struct gateway *g, const struct gateway_event *event)
{
    if (g->spec.on_event)
        g->spec.on_event (g->spec.ctx, event);
}

static struct secret *
render (struct gateway *g, const char *as, const struct secret *key)
{
    const char *value = as ? as : g->spec.auth_value, *mark = strstr (value, "{key}");
    size_t before = (size_t)(mark - value), after = strlen (mark + 5);
    size_t len = before + secret_len (key) + after;
    char *text = x_malloc (len + 1);
    memcpy (text, value, before);
    memcpy (text + before, secret_reveal (key), secret_len (key));
    memcpy (text + before + secret_len (key), mark + 5, after + 1);
    struct secret *header = secret_new (text, len);
    secret_wipe (text, len);
    free (text);
    if (g->spec.redactor) {
        redactor_add (g->spec.redactor, key);
        redactor_add (g->spec.redactor, header);
    }
    return header;
}

static bool
is_header_safe (const struct secret *key)
{
    const char *text = secret_reveal (key);
    for (size_t i = 0; i < secret_len (key); i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return secret_len (key) > 0;
}

/* Reads the key as it is now and notices what changed since the last look. NULL: there is none to
 * be had now; a key that was readable before stays in use. */
static struct secret *
read_key (struct gateway *g, bool by_rejection)
{
    struct gateway_key now = { 0 };
    g->spec.read_key (g->spec.ctx, &now);
    if (now.value && ! is_header_safe (now.value)) {
        secret_free (now.value);
        now.value = NULL;
        now.why = GATEWAY_EMPTY_ENTRY;
    }
    struct gateway_event event = { .source = now.source, .by_rejection = by_rejection };
    bool has_event = false;
    pthread_mutex_lock (&g->lock);
    if (now.value) {
        has_event = g->last && ! secret_equal (g->last, now.value);
        event.change = GATEWAY_ROTATED;
        secret_free (g->last);
        g->last = secret_copy (now.value);
        g->last_source = now.source;
        g->is_unreadable = false;
    } else {
        has_event = ! g->is_unreadable;
        event.change = GATEWAY_KEY_UNREADABLE;
        event.why = now.why;
        g->is_unreadable = true;
        now.value = g->last ? secret_copy (g->last) : NULL;
    }
    pthread_mutex_unlock (&g->lock);
    if (has_event)
        tell (g, &event);
    return now.value;
}

bool
gateway_render (struct gateway *g, const char *as, struct secret **header, struct secret **key)
{
    *header = *key = NULL;
    if (g->spec.is_keyless)
        return true;
    *key = read_key (g, false);
    if (! *key)
        return false;
    *header = render (g, as, *key);
    return true;
}

static void
tell_rejected (struct gateway *g, bool is_retried)
{
    pthread_mutex_lock (&g->lock);
    enum gateway_source source = g->last_source;
    pthread_mutex_unlock (&g->lock);
    tell (g, &(struct gateway_event){ .change = GATEWAY_REJECTED,
                                      .source = source,
                                      .status = 401,
                                      .is_retried = is_retried });
}

bool
gateway_render_again (struct gateway *g, const char *as, const struct secret *key,
                      struct secret **header, struct secret **fresh_key)
{
    *header = *fresh_key = NULL;
    if (! key)
        return false; /* keyless: nothing was rejected that we hold */
    _cleanup_secret_ struct secret *fresh = read_key (g, true);
    if (! fresh || secret_equal (fresh, key)) {
        tell_rejected (g, false);
        return false;
    }
    *header = render (g, as, fresh);
    *fresh_key = steal_ptr (&fresh);
    return true;
}

void
gateway_rejected_again (struct gateway *g)
{
    tell_rejected (g, true);
}
