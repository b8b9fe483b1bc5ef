/* SPDX-License-Identifier: Apache-2.0 */
#include "net/retry_after.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

#define LONGEST_MS (UINT64_MAX / 4)

static const char *
skip_space (const char *text)
{
    while (isspace ((unsigned char)*text))
        text++;
    return text;
}

/* A number times <unit>; what is beyond thousandths is rounded up, so that nobody comes early.
 * Returns behind it, or NULL. */
static const char *
read_number (const char *text, uint64_t unit, uint64_t *value)
{
    text = skip_space (text);
    if (! isdigit ((unsigned char)*text))
        return NULL;
    *value = 0;
    for (; isdigit ((unsigned char)*text); text++)
        *value =
            *value < LONGEST_MS / 10000 ? *value * 10 + (uint64_t)(*text - '0') : LONGEST_MS / 1000;
    *value *= unit;
    if (*text != '.')
        return text;
    uint64_t place = unit;
    for (text++; isdigit ((unsigned char)*text); text++) {
        place /= 10;
        *value += place ? (uint64_t)(*text - '0') * place : *text != '0';
    }
    return text;
}

bool
retry_after_read_ms (const char *text, uint64_t *ms)
{
    const char *end = read_number (text, 1, ms);
    return end && *skip_space (end) == '\0';
}

static bool
read_date (const char *text, uint64_t now_unix_ms, uint64_t *ms)
{
    static const char *const forms[] = { "%a, %d %b %Y %H:%M:%S", "%A, %d-%b-%y %H:%M:%S",
                                         "%a %b %d %H:%M:%S %Y", "%Y-%m-%dT%H:%M:%S" };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm parts = { 0 };
        const char *end = strptime (skip_space (text), forms[i], &parts);
        if (! end)
            continue;
        end = skip_space (end);
        if (*end && strcmp (end, "GMT") != 0 && strcmp (end, "UTC") != 0 && strcmp (end, "Z") != 0)
            continue;
        time_t at = timegm (&parts);
        uint64_t at_ms = at > 0 ? (uint64_t)at * 1000 : 0;
        *ms = at_ms > now_unix_ms ? at_ms - now_unix_ms : 0;
        return true;
    }
    return false;
}

bool
retry_after_read (const char *text, uint64_t now_unix_ms, uint64_t *ms)
{
    const char *end = read_number (text, 1000, ms);
    if (! end)
        return read_date (text, now_unix_ms, ms);
    end = skip_space (end);
    if (*end == 's')
        end++;
    return *skip_space (end) == '\0' || read_date (text, now_unix_ms, ms);
}
