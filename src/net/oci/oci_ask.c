/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oci/oci_ask.h"

#include "base/alloc.h"
#include "base/printable.h"
#include "net/oci/oci_token.h"
#include "net/url.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

#define SAID_MAX 300

/* What a repository is shown. */
struct shown {
    char *place;           /* "host/repository" */
    struct secret *header; /* the value of `authorization` */
    struct shown *next;
};

struct oci_asker {
    struct http_client *http;
    struct cancel *cancel;
    struct strv plain_hosts;
    pthread_mutex_t mutex; /* of the list; a leaf */
    struct shown *shown;
};

struct oci_asker *
oci_asker_new (const struct oci_options *options)
{
    struct oci_asker *a = x_new0 (struct oci_asker);
    a->http = http_client_new ();
    for (size_t i = 0; options->plain_hosts && i < options->plain_hosts->len; i++)
        strv_push (&a->plain_hosts, options->plain_hosts->items[i]);
    pthread_mutex_init (&a->mutex, NULL);
    return a;
}

void
oci_asker_set_cancel (struct oci_asker *a, struct cancel *cancel)
{
    a->cancel = cancel;
}

void
oci_asker_free (struct oci_asker *a)
{
    http_client_free (a->http);
    strv_free (&a->plain_hosts);
    for (struct shown *s = a->shown, *next; s; s = next) {
        next = s->next;
        free (s->place);
        secret_free (s->header);
        free (s);
    }
    pthread_mutex_destroy (&a->mutex);
    free (a);
}

/* --- addresses --- */

static bool
is_plain (const struct oci_asker *a, const char *host)
{
    _cleanup_authority_ struct authority parts = { 0 };
    return strv_contains (&a->plain_hosts, host) ||
           (! authority_parse (host, strlen (host), &parts) && host_is_loopback (parts.host));
}

char *
oci_ask_url (const struct oci_asker *a, const struct oci_ref *repository, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *rest = x_vasprintf (fmt, ap);
    va_end (ap);
    bool is_hub = str_eq (repository->host, "docker.io");
    return x_asprintf ("%s://%s/v2/%s%s/%s", is_plain (a, repository->host) ? "http" : "https",
                       is_hub ? "registry-1.docker.io" : repository->host,
                       is_hub && ! strchr (repository->repository, '/') ? "library/" : "",
                       repository->repository, rest);
}

/* --- what is shown --- */

static struct secret *
shown_copy (struct oci_asker *a, const char *place)
{
    struct secret *copy = NULL;
    pthread_mutex_lock (&a->mutex);
    for (const struct shown *s = a->shown; s && ! copy; s = s->next)
        if (str_eq (s->place, place))
            copy = secret_copy (s->header);
    pthread_mutex_unlock (&a->mutex);
    return copy;
}

static void
shown_keep (struct oci_asker *a, const char *place, const struct secret *header)
{
    pthread_mutex_lock (&a->mutex);
    struct shown *s = a->shown;
    while (s && ! str_eq (s->place, place))
        s = s->next;
    if (! s) {
        s = x_new0 (struct shown);
        s->place = x_strdup (place);
        s->next = a->shown;
        a->shown = s;
    } else {
        secret_free (s->header);
    }
    s->header = secret_copy (header);
    pthread_mutex_unlock (&a->mutex);
}

/* --- asking --- */

static bool
ask_once (const struct oci_asker *a, const struct oci_ref *ref, const struct http_fetch *fetch,
          const struct secret *shown, struct http_response *out, struct mur_error **err)
{
    struct http_fetch f = *fetch;
    _cleanup_free_ struct http_header *headers =
        x_new_array (struct http_header, f.request.header_count + 2);
    memcpy (headers, f.request.headers, f.request.header_count * sizeof *headers);
    headers[f.request.header_count++] = (struct http_header){ "user-agent", "murmur", 6 };
    if (shown)
        headers[f.request.header_count++] =
            (struct http_header){ "authorization", secret_reveal (shown), secret_len (shown) };
    f.request.headers = headers;
    f.request.uses_proxy_env = true;
    f.cancel = a->cancel;
    _cleanup_error_ struct mur_error *caught = NULL;
    if (http_fetch (a->http, &f, out, NULL, &caught))
        return true;
    mur_fail (err, E_REG_006, "%s did not answer: %s", ref->host, caught->message);
    return caught->hint ? mur_hint (err, "%s", caught->hint) : false;
}

/* The registry's own words for it, as one printable line. Owned, "" when it says nothing. */
static char *
said (const struct http_response *r)
{
    const char *body = r->body.data ? r->body.data : "";
    _cleanup_json_ json_t *json = json_parse (body, r->body.len, "answer", E_REG_006, NULL);
    const json_t *first = json_array_get (json_object_get (json, "errors"), 0);
    const char *code = json_get_string (first, "code");
    const char *message = json_get_string (first, "message");
    struct buf out = { 0 };
    _cleanup_free_ char *text =
        code ? x_asprintf (": %s%s%s", code, message ? ": " : "", message ? message : "")
             : x_strdup ("");
    size_t len = utf8_cut (text, strlen (text), SAID_MAX);
    buf_append_printable (&out, text, len, PRINTABLE_BLANK);
    return buf_steal (&out);
}

/* "in 30 s" where the registry says so, else "later". Owned. */
static char *
when_again (const struct http_response *r)
{
    const char *wait = http_response_header (r, "retry-after");
    size_t len = wait ? strlen (wait) : 0;
    bool is_seconds = len > 0 && len < 7 && strspn (wait, "0123456789") == len;
    return is_seconds ? x_asprintf ("in %s s", wait) : x_strdup ("later");
}

bool
oci_refuse (const struct oci_ref *ref, const struct http_response *r, struct mur_error **err)
{
    _cleanup_free_ char *words = said (r), *when = when_again (r);
    mur_fail (err, E_REG_006, "%s/%s answered HTTP %d%s", ref->host, ref->repository, r->status,
              words);
    if (r->status == 429)
        mur_hint (err,
                  "the registry limits how often it is asked; log in with `docker "
                  "login %s`, or try again %s",
                  ref->host, when);
    else if (r->status >= 500)
        mur_hint (err, "the registry is busy or at fault: try again %s", when);
    return false;
}

static bool
refuse_us (const struct oci_ref *ref, const struct http_response *r, bool was_shown,
           struct mur_error **err)
{
    _cleanup_free_ char *words = said (r);
    mur_fail (err, E_REG_012, "%s/%s: the registry %s (HTTP %d)%s", ref->host, ref->repository,
              was_shown ? "does not let these credentials do that" : "wants to know who asks",
              r->status, words);
    return mur_hint (err,
                     "log in with `docker login %s` (podman and credential helpers serve as well); "
                     "a repository that does not exist is answered the same way",
                     ref->host);
}

/* After a refusal: shows what the registry asks for and asks again, once. */
static bool
ask_shown (struct oci_asker *a, const struct oci_ref *repository, const struct http_fetch *fetch,
           const char *place, struct http_response *out, struct mur_error **err)
{
    _cleanup_error_ struct mur_error *caught = NULL;
    _cleanup_free_ char *challenge = http_response_joined (out, "www-authenticate");
    const struct oci_token_request q = { .http = a->http,
                                         .cancel = a->cancel,
                                         .ref = repository,
                                         .registry_url = fetch->request.url,
                                         .challenge = challenge };
    _cleanup_secret_ struct secret *fresh = oci_token_get (&q, &caught);
    if (caught)
        return mur_propagate (err, steal_ptr (&caught));
    if (! fresh)
        return refuse_us (repository, out, false, err);
    shown_keep (a, place, fresh);
    http_response_free (out);
    return ask_once (a, repository, fetch, fresh, out, err);
}

bool
oci_ask (struct oci_asker *a, const struct oci_ref *repository, const struct http_fetch *fetch,
         struct http_response *out, struct mur_error **err)
{
    _cleanup_free_ char *place = x_asprintf ("%s/%s", repository->host, repository->repository);
    _cleanup_free_ char *own = oci_ask_url (a, repository, "%s", "");
    bool is_own = url_same_origin (fetch->request.url, own);
    _cleanup_secret_ struct secret *shown = is_own ? shown_copy (a, place) : NULL;
    if (! ask_once (a, repository, fetch, shown, out, err))
        return false;
    /* A challenge of whom a redirect led to is none of the registry's: nobody is told who we are.
     */
    if (out->status == 401 && is_own && ! out->is_elsewhere &&
        ! ask_shown (a, repository, fetch, place, out, err))
        return false;
    if (out->status != 401 && out->status != 403)
        return true;
    return is_own && ! out->is_elsewhere ? refuse_us (repository, out, true, err)
                                         : oci_refuse (repository, out, err);
}
