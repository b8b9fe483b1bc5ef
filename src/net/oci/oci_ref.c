/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oci/oci_ref.h"

#include "base/alloc.h"
#include "net/url.h"

#include <ctype.h>
#include <string.h>

#define TAG_MAX        128
#define REPOSITORY_MAX 255

bool
oci_tag_is_valid (const char *text)
{
    size_t len = strlen (text);
    if (len == 0 || len > TAG_MAX || text[0] == '.' || text[0] == '-')
        return false;
    for (const char *p = text; *p; p++)
        if (! isascii (*p) || (! isalnum ((unsigned char)*p) && ! strchr ("_.-", *p)))
            return false;
    return true;
}

bool
oci_digest_is_valid (const char *text)
{
    return str_starts (text, "sha256:") && sha256_hex_is_valid (text + 7);
}

void
oci_digest_of (const void *data, size_t len, char out[OCI_DIGEST_LEN + 1])
{
    memcpy (out, "sha256:", 7);
    sha256_hex (data, len, out + 7);
}

static bool
is_word_char (char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* What is wrong with a repository, by the grammar of the distribution specification; NULL: nothing.
 * Static. */
static const char *
repository_fault (const char *text)
{
    if (! *text || strlen (text) > REPOSITORY_MAX)
        return "has no repository, or one that is too long";
    for (const char *p = text; *p; p++) {
        bool is_sign = strchr ("._-", *p) != NULL;
        if (! is_word_char (*p) && ! is_sign && *p != '/')
            return "has a repository with another character than a-z, 0-9, '.', '_', '-' and '/'";
        bool is_edge = p == text || p[-1] == '/' || ! p[1] || p[1] == '/';
        if ((is_edge && ! is_word_char (*p) && *p != '/') || (*p == '/' && (is_edge || ! p[1])) ||
            (*p == '.' && p[1] == '.'))
            return "has a repository with an empty part, or one that begins or ends with a sign";
    }
    return NULL;
}

static const char *
host_fault (const char *text, size_t len)
{
    _cleanup_authority_ struct authority a = { 0 };
    const char *fault = authority_parse (text, len, &a);
    if (fault)
        return fault;
    if (a.has_userinfo)
        return "holds a user name";
    bool is_host = strchr (a.host, '.') || a.host[0] == '[' || a.port != URL_NO_PORT ||
                   str_eq (a.host, "localhost");
    return is_host ? NULL : "does not begin with the host of a registry";
}

static const char *
read_parts (const char *text, struct oci_ref *out)
{
    const char *slash = strchr (text, '/');
    if (! slash)
        return "names no repository";
    const char *fault = host_fault (text, (size_t)(slash - text));
    if (fault)
        return fault;
    out->host = x_strndup (text, (size_t)(slash - text));
    str_lower (out->host);
    const char *at = strchr (slash, '@');
    size_t len = at ? (size_t)(at - slash - 1) : strlen (slash + 1);
    if (at && ! oci_digest_is_valid (at + 1))
        return "has a digest that is not sha256: and 64 hex digits";
    out->digest = at ? x_strdup (at + 1) : NULL;
    out->repository = x_strndup (slash + 1, len);
    char *colon = strchr (out->repository, ':');
    if (colon) {
        out->tag = x_strdup (colon + 1);
        *colon = '\0';
        if (! oci_tag_is_valid (out->tag))
            return "has a tag that is none";
    }
    return repository_fault (out->repository);
}

bool
oci_ref_parse (const char *text, struct oci_ref *out, struct mur_error **err)
{
    *out = (struct oci_ref){ 0 };
    const char *inner = str_starts (text, OCI_SCHEME) ? text + strlen (OCI_SCHEME) : text;
    const char *fault = read_parts (inner, out);
    if (! fault)
        return true;
    oci_ref_clear (out);
    mur_fail (err, E_REG_007, "\"%s\" %s", text, fault);
    return mur_hint (err, "write oci://<host>/<repository>:<tag>, such as "
                          "oci://ghcr.io/ana/tool-git:1.0.0");
}

void
oci_ref_clear (struct oci_ref *r)
{
    free (r->host);
    free (r->repository);
    free (r->tag);
    free (r->digest);
    *r = (struct oci_ref){ 0 };
}

char *
oci_ref_text (const struct oci_ref *r)
{
    return x_asprintf ("%s/%s%s%s%s%s", r->host, r->repository, r->tag ? ":" : "",
                       r->tag ? r->tag : "", r->digest ? "@" : "", r->digest ? r->digest : "");
}
