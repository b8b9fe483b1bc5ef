/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of drivers of coding agents. See murmur_harness.h.
 */
#ifdef MUR_ROLE_PROCESS_DRIVER

#include "murmur_harness.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct mur_gateway
mur_harness_gateway (const struct mur_json *config)
{
    mur_node gateway = mur_json_get (config, 0, "$gateway");
    return (struct mur_gateway){
        mur_json_text (config, mur_json_get (config, gateway, "base_url")),
        mur_json_text (config, mur_json_get (config, gateway, "placeholder")),
    };
}

bool
mur_harness_args (struct mur_plan *plan, const struct mur_json *config, const char *member)
{
    mur_node list = mur_json_get (config, 0, member);
    if (mur_json_kind (config, list) == MUR_JSON_ABSENT)
        return true;
    bool is_fine = mur_json_kind (config, list) == MUR_JSON_ARRAY;
    for (mur_node n = mur_json_first (config, list); is_fine && n >= 0;
         n = mur_json_next (config, n)) {
        char *word = mur_json_text (config, n);
        is_fine = word != NULL;
        if (is_fine)
            mur_plan_arg (plan, word);
    }
    if (! is_fine)
        mur_plan_refuse (plan, "inference.driver.config.%s: a list of texts is wanted", member);
    return is_fine;
}

char *
mur_harness_joined (const struct mur_json *config, const char *member)
{
    struct mur_text joined = { 0 };
    mur_node list = mur_json_get (config, 0, member);
    for (mur_node n = mur_json_first (config, list); n >= 0; n = mur_json_next (config, n)) {
        char *word = mur_json_text (config, n);
        if (word == NULL)
            continue;
        if (joined.len > 0)
            mur_text_puts (&joined, ",");
        mur_text_puts (&joined, word);
    }
    return joined.data;
}

bool
mur_harness_known (struct mur_plan *plan, const struct mur_json *config, const char *const *members)
{
    for (mur_node n = mur_json_first (config, 0); n >= 0; n = mur_json_next (config, n)) {
        char *key = mur_json_key (config, n);
        const char *const *known = members;
        while (*known != NULL && strcmp (*known, key) != 0)
            known++;
        if (*known != NULL || key[0] == '$')
            continue;
        struct mur_text all = { 0 };
        for (known = members; *known != NULL; known++)
            mur_text_printf (&all, "%s%s", known == members ? "" : ", ", *known);
        mur_plan_refuse (plan, "inference.driver.config.%s: unknown; this driver takes %s", key,
                         all.data);
        return false;
    }
    return true;
}

char *
mur_harness_value (const struct mur_json *json, mur_node node)
{
    size_t len = 0;
    const char *raw = mur_json_raw (json, node, &len);
    bool is_fine = raw != NULL && len > 0 && mur_json_check (raw, len, NULL);
    return is_fine ? mur_format ("%.*s", (int)len, raw) : mur_format ("null");
}

char *
mur_harness_object (const struct mur_json *json, mur_node node)
{
    char *value = mur_harness_value (json, node);
    return value[0] == '{' ? value : mur_format ("{}");
}

static bool
holds_word (const char *text, const char *word)
{
    for (size_t len = strlen (word); *text != '\0'; text++)
        if (strncasecmp (text, word, len) == 0)
            return true;
    return false;
}

enum mur_turn_failure
mur_harness_failure (int status, const char *message)
{
    static const struct {
        const char *word;
        enum mur_turn_failure kind;
    } words[] = {
        { "401", MUR_TURN_AUTH },          { "403", MUR_TURN_AUTH },
        { "unauthorized", MUR_TURN_AUTH }, { "invalid api key", MUR_TURN_AUTH },
        { "/login", MUR_TURN_AUTH },       { "not logged in", MUR_TURN_AUTH },
        { "log in", MUR_TURN_AUTH },       { "authentication", MUR_TURN_AUTH },
        { "429", MUR_TURN_QUOTA },         { "usage limit", MUR_TURN_QUOTA },
        { "rate limit", MUR_TURN_QUOTA },  { "quota", MUR_TURN_QUOTA },
        { "credit", MUR_TURN_QUOTA },      { "too many requests", MUR_TURN_QUOTA },
    };
    if (status == 401 || status == 403)
        return MUR_TURN_AUTH;
    if (status == 402 || status == 429)
        return MUR_TURN_QUOTA;
    for (size_t i = 0; status == 0 && message != NULL && i < sizeof words / sizeof *words; i++)
        if (holds_word (message, words[i].word))
            return words[i].kind;
    return MUR_TURN_HARNESS_ERROR;
}

#endif
