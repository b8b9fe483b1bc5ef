/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/text/yaml_tree.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_write.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *
yaml_kind_name (const struct yaml_node *n)
{
    static const char *const names[] = {
        [YAML_NULL] = "null",    [YAML_BOOL] = "boolean", [YAML_INT] = "integer",
        [YAML_FLOAT] = "number", [YAML_STRING] = "text",  [YAML_LIST] = "list",
        [YAML_MAP] = "map",
    };
    return names[n->kind];
}

struct yaml_node *
yaml_get (const struct yaml_node *map, const char *key)
{
    if (! map || map->kind != YAML_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->len; i++)
        if (yaml_is_scalar (map->pairs[i].key) && strcmp (map->pairs[i].key->text, key) == 0)
            return map->pairs[i].value;
    return NULL;
}

/* Where one key of a map stands: its value when that is written on the key's own line or below, the
 * key when the value is empty. */
static const struct yaml_node *
step_into_map (const struct yaml_node *map, const char *key, size_t len)
{
    for (uint32_t i = 0; map->kind == YAML_MAP && i < map->len; i++) {
        const struct yaml_node *k = map->pairs[i].key;
        if (yaml_is_scalar (k) && k->len == len && memcmp (k->text, key, len) == 0)
            return map->pairs[i].value->kind == YAML_NULL ? k : map->pairs[i].value;
    }
    return NULL;
}

/* Keys may hold dots (free names): the longest key that fits wins. */
static const struct yaml_node *
step (const struct yaml_node *at, const char **path)
{
    const char *p = *path;
    if (*p == '[') {
        char *end;
        unsigned long i = strtoul (p + 1, &end, 10);
        *path = *end == ']' ? end + 1 : end + strlen (end);
        return at->kind == YAML_LIST && i < at->len ? at->items[i] : NULL;
    }
    if (*p == '.')
        p++;
    for (size_t len = strlen (p); len; len--) {
        if (p[len] != '.' && p[len] != '[' && p[len] != '\0')
            continue;
        const struct yaml_node *next = step_into_map (at, p, len);
        if (next) {
            *path = p + len;
            return next;
        }
    }
    return NULL;
}

const struct yaml_node *
yaml_find_nearest (const struct yaml_node *root, const char *path)
{
    const struct yaml_node *at = root;
    while (path && *path) {
        const struct yaml_node *next = step (at, &path);
        if (! next)
            break;
        at = next;
    }
    return at;
}

const char *
yaml_text (const struct yaml_node *n)
{
    return n && yaml_is_scalar (n) && n->kind != YAML_NULL ? n->text : NULL;
}

bool
yaml_as_bool (const struct yaml_node *n, bool *value)
{
    if (n->kind != YAML_BOOL)
        return false;
    *value = n->text[0] == 't' || n->text[0] == 'T';
    return true;
}

/* The magnitude of an integer scalar; false beyond 64 bits. */
static bool
magnitude (const char *text, uint64_t *value)
{
    int base = 10;
    if (text[0] == '0' && text[1]) {
        base = text[1] == 'x' ? 16 : text[1] == 'o' ? 8 : 2;
        text += 2;
    }
    errno = 0;
    *value = strtoull (text, NULL, base);
    return errno == 0;
}

bool
yaml_as_u64 (const struct yaml_node *n, uint64_t *value)
{
    if (n->kind != YAML_INT)
        return false;
    const char *text = n->text;
    bool is_negative = *text == '-';
    if (*text == '+' || *text == '-')
        text++;
    return magnitude (text, value) && (! is_negative || *value == 0);
}

bool
yaml_as_double (const struct yaml_node *n, double *value)
{
    if (n->kind != YAML_INT && n->kind != YAML_FLOAT)
        return false;
    const char *text = n->text;
    double sign = *text == '-' ? -1.0 : 1.0;
    if (*text == '+' || *text == '-')
        text++;
    if (n->kind == YAML_INT) {
        uint64_t whole;
        if (magnitude (text, &whole)) {
            *value = sign * (double)whole;
            return true;
        }
    }
    if (text[0] == '.' && (text[1] == 'i' || text[1] == 'I'))
        *value = sign * INFINITY;
    else if (text[0] == '.' && (text[1] == 'n' || text[1] == 'N'))
        *value = NAN;
    else
        *value = sign * strtod (text, NULL);
    return true;
}

/* --- JSON --- */

static void
put_json_text (struct buf *out, const char *text, size_t len)
{
    _cleanup_json_ json_t *s = json_string_lossy (text, len);
    json_append (out, s, JSON_TEXT_ORDERED);
}

/* The shortest decimal that reads back as the same number, always with a '.' or an exponent. */
static void
put_json_double (struct buf *out, double value)
{
    if (! isfinite (value)) {
        buf_puts (out, "null");
        return;
    }
    char text[40];
    int digits_after = 0; /* of the one before the point */
    for (; digits_after < 17; digits_after++) {
        snprintf (text, sizeof text, "%.*e", digits_after, value);
        if (strtod (text, NULL) == value)
            break;
    }
    int exponent = atoi (strchr (text, 'e') + 1);
    if (exponent < -5 || exponent >= 16) {
        buf_puts (out, text);
        return;
    }
    int decimals = digits_after > exponent ? digits_after - exponent : 0;
    snprintf (text, sizeof text, "%.*f", decimals, value);
    buf_puts (out, text);
    if (! decimals)
        buf_puts (out, ".0");
}

static void
put_json_integer (struct buf *out, const struct yaml_node *n)
{
    uint64_t value;
    const char *text = n->text + (*n->text == '+' || *n->text == '-');
    bool fits = magnitude (text, &value) && (*n->text != '-' || value <= (uint64_t)1 << 63);
    if (fits) {
        buf_printf (out, "%s%" PRIu64, *n->text == '-' && value ? "-" : "", value);
        return;
    }
    double wide = 0;
    yaml_as_double (n, &wide);
    put_json_double (out, wide);
}

static void
put_json_scalar (struct buf *out, const struct yaml_node *n)
{
    bool flag = false;
    double number = 0;
    switch ((enum yaml_kind)n->kind) {
    case YAML_NULL:
        buf_puts (out, "null");
        break;
    case YAML_BOOL:
        yaml_as_bool (n, &flag);
        buf_puts (out, flag ? "true" : "false");
        break;
    case YAML_INT:
        put_json_integer (out, n);
        break;
    case YAML_FLOAT:
        yaml_as_double (n, &number);
        put_json_double (out, number);
        break;
    default:
        put_json_text (out, n->text, n->len);
    }
}

/* A scalar as the name of a JSON member: numbers and booleans in their JSON spelling. */
static void
put_json_key (struct buf *out, const struct yaml_node *key)
{
    if (key->kind == YAML_STRING) {
        put_json_text (out, key->text, key->len);
        return;
    }
    _cleanup_buf_ struct buf spelled = { 0 };
    put_json_scalar (&spelled, key);
    put_json_text (out, spelled.data, spelled.len);
}

static bool
put_json (struct buf *out, const struct yaml_node *n, enum diag_code code, struct mur_error **err);

static bool
put_json_map (struct buf *out, const struct yaml_node *n, enum diag_code code,
              struct mur_error **err)
{
    buf_putc (out, '{');
    for (uint32_t i = 0; i < n->len; i++) {
        const struct yaml_node *key = n->pairs[i].key;
        if (! yaml_is_scalar (key))
            return mur_fail (err, code, "line %u, column %u: a %s cannot be a key in JSON",
                             key->line, key->column, yaml_kind_name (key));
        if (i)
            buf_putc (out, ',');
        put_json_key (out, key);
        buf_putc (out, ':');
        if (! put_json (out, n->pairs[i].value, code, err))
            return false;
    }
    buf_putc (out, '}');
    return true;
}

static bool
put_json_list (struct buf *out, const struct yaml_node *n, enum diag_code code,
               struct mur_error **err)
{
    buf_putc (out, '[');
    for (uint32_t i = 0; i < n->len; i++) {
        if (i)
            buf_putc (out, ',');
        if (! put_json (out, n->items[i], code, err))
            return false;
    }
    buf_putc (out, ']');
    return true;
}

static bool
put_json (struct buf *out, const struct yaml_node *n, enum diag_code code, struct mur_error **err)
{
    if (n->tag) {
        buf_putc (out, '{');
        put_json_text (out, n->tag, strlen (n->tag));
        buf_putc (out, ':');
    }
    if (n->kind == YAML_MAP) {
        if (! put_json_map (out, n, code, err))
            return false;
    } else if (n->kind == YAML_LIST) {
        if (! put_json_list (out, n, code, err))
            return false;
    } else {
        put_json_scalar (out, n);
    }
    if (n->tag)
        buf_putc (out, '}');
    return true;
}

bool
yaml_put_json (struct buf *out, const struct yaml_node *n, enum diag_code code,
               struct mur_error **err)
{
    return put_json (out, n, code, err);
}

json_t *
yaml_to_json (const struct yaml_node *n, enum diag_code code, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! put_json (&text, n, code, err))
        return NULL;
    json_error_t at;
    json_t *value = json_loadb (text.data, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &at);
    if (! value)
        mur_fail (err, code, "cannot be held as JSON: %s", at.text);
    return value;
}
