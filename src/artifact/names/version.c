/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/names/version.h"

#include <string.h>
#include <strings.h>

#define VERSION_MAX_BYTES 200

bool
version_is_reserved (const char *version)
{
    static const char *const reserved[] = { "latest", "stable", "edge" };
    for (size_t i = 0; i < ARRAY_LEN (reserved); i++)
        if (strcasecmp (version, reserved[i]) == 0)
            return true;
    return false;
}

bool
version_is_segment (const char *version)
{
    size_t len = strlen (version);
    if (len == 0 || len > VERSION_MAX_BYTES || str_eq (version, ".") || str_eq (version, ".."))
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)version[i];
        if (c == '/' || c == '\\' || c < 0x20 || c == 0x7f)
            return false;
    }
    return true;
}

bool
version_check_segment (const char *version, struct mur_error **err)
{
    if (version_is_segment (version))
        return true;
    return mur_fail (err, E_IO_003,
                     "version \"%s\" cannot be stored: it must be one path segment of at most %d "
                     "bytes, without '/' or '\\', and not \".\" or \"..\"",
                     version, VERSION_MAX_BYTES);
}

/* --- semver --- */

struct semver {
    const char *number[3];
    size_t number_len[3];
    const char *pre; /* NULL without a pre-release */
    size_t pre_len;
};

static size_t
digits (const char *s)
{
    return strspn (s, "0123456789");
}

static bool
is_identifier_char (char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

/* Compares two runs of digits without leading zeros. */
static int
compare_numbers (const char *a, size_t a_len, const char *b, size_t b_len)
{
    if (a_len != b_len)
        return a_len < b_len ? -1 : 1;
    return memcmp (a, b, a_len);
}

/* Dot-separated identifiers up to <stop> or the end; numeric ones may not start with 0 when
 * <strict>. */
static const char *
skip_identifiers (const char *s, char stop, bool strict)
{
    for (;;) {
        const char *start = s;
        while (is_identifier_char (*s))
            s++;
        size_t len = (size_t)(s - start);
        if (len == 0 || (strict && len > 1 && start[0] == '0' && digits (start) >= len))
            return NULL;
        if (*s == '.') {
            s++;
            continue;
        }
        return *s == '\0' || *s == stop ? s : NULL;
    }
}

static bool
semver_parse (const char *text, struct semver *v)
{
    static const char u64_max[] = "18446744073709551615";
    const char *s = text;
    for (int i = 0; i < 3; i++) {
        size_t len = digits (s);
        if (len == 0 || (len > 1 && s[0] == '0') ||
            compare_numbers (s, len, u64_max, sizeof (u64_max) - 1) > 0)
            return false;
        v->number[i] = s;
        v->number_len[i] = len;
        s += len;
        if (i < 2 && *s++ != '.')
            return false;
    }
    v->pre = NULL;
    v->pre_len = 0;
    if (*s == '-') {
        v->pre = s + 1;
        s = skip_identifiers (s + 1, '+', true);
        if (! s)
            return false;
        v->pre_len = (size_t)(s - v->pre);
    }
    if (*s == '+')
        s = skip_identifiers (s + 1, '\0', false);
    return s && *s == '\0';
}

bool
version_is_semver (const char *version)
{
    struct semver v;
    return semver_parse (version, &v);
}

static size_t
identifier_len (const char *s, size_t left)
{
    const char *dot = memchr (s, '.', left);
    return dot ? (size_t)(dot - s) : left;
}

static int
compare_identifiers (const char *a, size_t a_len, const char *b, size_t b_len)
{
    bool a_is_number = digits (a) >= a_len;
    bool b_is_number = digits (b) >= b_len;
    if (a_is_number != b_is_number)
        return a_is_number ? -1 : 1;
    if (a_is_number)
        return compare_numbers (a, a_len, b, b_len);
    size_t common = a_len < b_len ? a_len : b_len;
    int order = memcmp (a, b, common);
    if (order != 0)
        return order;
    return a_len < b_len ? -1 : a_len > b_len;
}

static int
compare_pre (const struct semver *a, const struct semver *b)
{
    if (! a->pre || ! b->pre)
        return (! a->pre) - (! b->pre);
    const char *left = a->pre, *right = b->pre;
    size_t left_len = a->pre_len, right_len = b->pre_len;
    for (;;) {
        size_t n = identifier_len (left, left_len), m = identifier_len (right, right_len);
        int order = compare_identifiers (left, n, right, m);
        if (order != 0)
            return order;
        if (n == left_len || m == right_len)
            return (n < left_len) - (m < right_len);
        left += n + 1;
        left_len -= n + 1;
        right += m + 1;
        right_len -= m + 1;
    }
}

int
version_compare (const char *a, const char *b)
{
    struct semver x, y;
    bool a_is_semver = semver_parse (a, &x), b_is_semver = semver_parse (b, &y);
    if (a_is_semver != b_is_semver)
        return a_is_semver ? 1 : -1;
    if (a_is_semver) {
        for (int i = 0; i < 3; i++) {
            int order =
                compare_numbers (x.number[i], x.number_len[i], y.number[i], y.number_len[i]);
            if (order != 0)
                return order;
        }
        int order = compare_pre (&x, &y);
        if (order != 0)
            return order;
    }
    return strcmp (a, b);
}
