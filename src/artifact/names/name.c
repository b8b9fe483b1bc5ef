/* SPDX-License-Identifier: Apache-2.0
 *
 * Names, install references and grant patterns. Versions are in version.c.
 */
#include "artifact/names/name.h"

#include "artifact/names/version.h"
#include "base/alloc.h"

#include <ctype.h>
#include <string.h>

static const char default_repository[] = "default-artifacts";
static const char default_owner[] = "murmur-nexus";

/* --- parts --- */

static bool
is_part_char (char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

static char *
describe_char (const char *at, size_t left)
{
    unsigned char c = (unsigned char)*at;
    if (c >= 0x20 && c < 0x7f)
        return x_asprintf ("contains '%c'; use only a-z, 0-9 and '-'", c);
    /* A whole character when the bytes are UTF-8, so that the message stays readable. */
    for (size_t len = 2; len <= 4 && len <= left; len++)
        if (c >= 0x80 && utf8_is_valid (at, len))
            return x_asprintf ("contains '%.*s'; use only a-z, 0-9 and '-'", (int)len, at);
    return x_asprintf ("contains the byte 0x%02x; use only a-z, 0-9 and '-'", c);
}

char *
name_part_problem (const char *text, size_t len)
{
    if (len == 0)
        return x_strdup ("is empty");
    for (size_t i = 0; i < len; i++)
        if (! is_part_char (text[i]))
            return describe_char (text + i, len - i);
    if (len > NAME_PART_MAX)
        return x_asprintf ("has %zu characters; at most %d are allowed", len, NAME_PART_MAX);
    if (text[0] == '-')
        return x_strdup ("starts with '-'");
    if (text[len - 1] == '-')
        return x_strdup ("ends with '-'");
    return NULL;
}

bool
name_part_is_valid (const char *text, size_t len)
{
    if (len == 0 || len > NAME_PART_MAX || text[0] == '-' || text[len - 1] == '-')
        return false;
    for (size_t i = 0; i < len; i++)
        if (! is_part_char (text[i]))
            return false;
    return true;
}

/* --- full names --- */

bool
name_is_full (const char *text)
{
    const char *slash = strchr (text, '/');
    return slash && name_part_is_valid (text, (size_t)(slash - text)) &&
           name_part_is_valid (slash + 1, strlen (slash + 1));
}

static bool
refuse_unscoped (const char *bare, enum diag_code code, const char *prefix, struct mur_error **err)
{
    const char *short_name = str_starts (bare, "murmur-") && bare[7] ? bare + 7 : bare;
    mur_fail (err, code, "%s\"%s\" has no scope; an artifact is named <scope>/<name>", prefix,
              bare);
    return mur_hint (err,
                     "write std/%s (what comes with mur), murmur/%s (the default artifacts), "
                     "<owner>/%s (another publisher) or local/%s (installed from a file)",
                     bare, short_name, bare, bare);
}

bool
name_check_full (const char *text, enum diag_code code, const char *what, struct mur_error **err)
{
    _cleanup_free_ char *prefix = what ? x_asprintf ("%s: ", what) : x_strdup ("");
    const char *slash = strchr (text, '/');
    if (! slash) {
        _cleanup_free_ char *why = name_part_problem (text, strlen (text));
        if (! why)
            return refuse_unscoped (text, code, prefix, err);
        return mur_fail (err, code, "%sinvalid artifact name \"%s\": it %s", prefix, text, why);
    }
    if (strchr (slash + 1, '/'))
        return mur_fail (err, code, "%sinvalid artifact name \"%s\": it must hold exactly one '/'",
                         prefix, text);
    _cleanup_free_ char *scope_why = name_part_problem (text, (size_t)(slash - text));
    if (scope_why)
        return mur_fail (err, code, "%sinvalid artifact name \"%s\": the scope %s", prefix, text,
                         scope_why);
    _cleanup_free_ char *name_why = name_part_problem (slash + 1, strlen (slash + 1));
    if (name_why)
        return mur_fail (err, code, "%sinvalid artifact name \"%s\": the name %s", prefix, text,
                         name_why);
    return true;
}

const char *
name_bare (const char *full)
{
    const char *slash = strchr (full, '/');
    return slash ? slash + 1 : full;
}

char *
name_scope (const char *full)
{
    const char *slash = strchr (full, '/');
    return slash ? x_strndup (full, (size_t)(slash - full)) : x_strdup ("");
}

bool
name_has_scope (const char *full, const char *scope)
{
    size_t len = strlen (scope);
    return strncmp (full, scope, len) == 0 && full[len] == '/';
}

char *
name_scope_of_owner (const char *owner, const char *repo, enum diag_code code,
                     struct mur_error **err)
{
    if (strcasecmp (owner, default_owner) == 0 && repo &&
        strcasecmp (repo, default_repository) == 0)
        return x_strdup (SCOPE_MURMUR);
    _cleanup_free_ char *scope = x_strdup (owner);
    str_lower (scope);
    static const char *const reserved[] = { SCOPE_LOCAL, SCOPE_MURMUR, SCOPE_BUNDLED };
    for (size_t i = 0; i < ARRAY_LEN (reserved); i++)
        if (str_eq (scope, reserved[i]))
            return mur_fail (err, code, "owner \"%s\": the scope \"%s\" is reserved", owner, scope),
                   NULL;
    _cleanup_free_ char *why = name_part_problem (scope, strlen (scope));
    if (why)
        return mur_fail (err, code, "owner \"%s\" gives no usable scope: it %s", owner, why), NULL;
    return steal_ptr (&scope);
}

/* --- names the runtime keeps --- */

#define RESERVED_TOOLS(X)                                                                          \
    X ("share-file")                                                                               \
    X ("fetch-peer-file")                                                                          \
    X ("delegate-task")                                                                            \
    X ("submit-plan")                                                                              \
    X ("switch-driver")                                                                            \
    X ("call-member")                                                                              \
    X ("end-without-answer")                                                                       \
    X ("pull-artifact")                                                                            \
    X ("remove-artifact")                                                                          \
    X ("session-status")

bool
name_is_reserved_tool (const char *tool_name)
{
#define AS_ITEM(name) name,
    static const char *const reserved[] = { RESERVED_TOOLS (AS_ITEM) "background-command" };
#undef AS_ITEM
    for (size_t i = 0; i < ARRAY_LEN (reserved); i++)
        if (str_eq (tool_name, reserved[i]))
            return true;
    return false;
}

const char *
name_reserved_tools (void)
{
#define AS_TEXT(name) name ", "
    return RESERVED_TOOLS (AS_TEXT) "background-command";
#undef AS_TEXT
}

/* --- install references --- */

static bool
is_file_ref (const char *text)
{
    return str_starts (text, "./") || str_starts (text, "../") || text[0] == '/' ||
           str_ends (text, ".zip");
}

static bool
parse_github (const char *text, struct install_ref *ref, struct mur_error **err)
{
    static const char prefix[] = "github:";
    if (! str_starts (text, prefix))
        return mur_fail (err, E_IO_003,
                         "unsupported artifact reference \"%s\": only github:<owner>/<repo>@<tag> "
                         "and oci://<host>/<repository> may hold ':'",
                         text);
    const char *owner = text + strlen (prefix);
    const char *slash = strchr (owner, '/');
    const char *at = slash ? strchr (slash, '@') : NULL;
    if (! slash || ! at || slash == owner || at == slash + 1 || at[1] == '\0' ||
        memchr (slash + 1, '/', (size_t)(at - slash - 1)))
        return mur_fail (err, E_IO_003,
                         "invalid reference \"%s\": expected github:<owner>/<repo>@<tag>", text);
    ref->kind = INSTALL_GITHUB;
    ref->owner = x_strndup (owner, (size_t)(slash - owner));
    ref->repo = x_strndup (slash + 1, (size_t)(at - slash - 1));
    ref->tag = x_strdup (at + 1);
    ref->scope = name_scope_of_owner (ref->owner, ref->repo, E_REG_007, err);
    return ref->scope != NULL;
}

static bool
parse_name (const char *text, struct install_ref *ref, struct mur_error **err)
{
    const char *at = strchr (text, '@');
    if (at && strchr (at + 1, '@'))
        return mur_fail (err, E_IO_003, "invalid reference \"%s\": it holds more than one '@'",
                         text);
    if (at == text || text[0] == '\0')
        return mur_fail (err, E_IO_003, "invalid reference \"%s\": the name is empty", text);
    if (at && at[1] == '\0')
        return mur_fail (err, E_IO_003, "invalid reference \"%s\": the version after '@' is empty",
                         text);
    ref->kind = INSTALL_NAME;
    ref->name = at ? x_strndup (text, (size_t)(at - text)) : x_strdup (text);
    ref->version = at ? x_strdup (at + 1) : NULL;
    if (! name_check_full (ref->name, E_REG_007, NULL, err))
        return false;
    if (ref->version && version_is_reserved (ref->version))
        return mur_fail (err, E_REG_004, "%s@%s: \"%s\" is reserved and names no version",
                         ref->name, ref->version, ref->version);
    return ! ref->version || version_check_segment (ref->version, err);
}

bool
install_ref_parse (const char *text, struct install_ref *ref, struct mur_error **err)
{
    *ref = (struct install_ref){ 0 };
    if (str_starts (text, "http://") || str_starts (text, "https://")) {
        mur_fail (err, E_REG_007, "%s: an address is no source of artifacts", text);
        return mur_hint (err,
                         "fetch it with curl and install the file: mur install ./<name>.mur.zip; "
                         "or name a release: github:<owner>/<repo>@<tag>");
    }
    if (str_starts (text, "oci://")) {
        ref->kind = INSTALL_OCI;
        ref->path = x_strdup (text);
        return true;
    }
    if (is_file_ref (text)) {
        ref->kind = INSTALL_FILE;
        ref->path = x_strdup (text);
        return true;
    }
    bool ok = strchr (text, ':') ? parse_github (text, ref, err) : parse_name (text, ref, err);
    if (! ok)
        install_ref_clear (ref);
    return ok;
}

void
install_ref_clear (struct install_ref *ref)
{
    free (ref->path);
    free (ref->owner);
    free (ref->repo);
    free (ref->tag);
    free (ref->scope);
    free (ref->name);
    free (ref->version);
    *ref = (struct install_ref){ 0 };
}

/* --- grant patterns --- */

/* The length of the text before a final '*', or -1 when there is none. */
static ssize_t
star_at (const char *pattern)
{
    size_t len = strlen (pattern);
    return len > 0 && pattern[len - 1] == '*' ? (ssize_t)len - 1 : -1;
}

char *
pattern_problem (const char *pattern)
{
    if (str_eq (pattern, "*"))
        return NULL;
    ssize_t star = star_at (pattern);
    const char *first_star = strchr (pattern, '*');
    if (first_star && first_star != pattern + star)
        return x_strdup ("'*' may appear once, at the end");
    const char *slash = strchr (pattern, '/');
    if (! slash || strchr (slash + 1, '/'))
        return x_strdup ("it must be *, <scope>/*, <scope>/<prefix>* or <scope>/<name>");
    char *why = name_part_problem (pattern, (size_t)(slash - pattern));
    if (why) {
        char *text = x_asprintf ("the scope %s", why);
        free (why);
        return text;
    }
    size_t len = star >= 0 ? (size_t)(pattern + star - slash - 1) : strlen (slash + 1);
    /* A prefix may be empty or end in '-'. */
    if (star >= 0 && len > 0 && slash[len] == '-')
        len--;
    if (star >= 0 && len == 0)
        return slash[1] == '-' ? x_strdup ("the prefix starts with '-'") : NULL;
    why = name_part_problem (slash + 1, len);
    if (! why)
        return NULL;
    char *text = x_asprintf ("the name %s", why);
    free (why);
    return text;
}

bool
pattern_matches (const char *pattern, const char *full_name)
{
    ssize_t star = star_at (pattern);
    if (star < 0)
        return str_eq (pattern, full_name);
    return strncmp (pattern, full_name, (size_t)star) == 0;
}

bool
pattern_covers (const char *parent, const char *child)
{
    if (str_eq (parent, "*") || str_eq (parent, child))
        return true;
    ssize_t star = star_at (parent);
    if (star < 0 || str_eq (child, "*"))
        return false;
    /* A parent prefix holds the scope and the slash, so nothing crosses scopes. */
    return strncmp (parent, child, (size_t)star) == 0;
}
