/* SPDX-License-Identifier: Apache-2.0 */
#include "net/allow.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/text.h"
#include "net/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool
refuse (struct mur_error **err, const char *entry, const char *fault)
{
    mur_fail (err, E_CAP_001, "\"%s\" %s", entry, fault);
    return mur_hint (err, "write a host, host:port, or a whole origin such as "
                          "https://api.example.com");
}

/* A last label that is a number makes the host an IPv4 address, so it must be one; "127.1" is read
 * as 127.0.0.1. */
static const char *
settle_numeric_host (char **host)
{
    const char *dot = strrchr (*host, '.');
    const char *label = dot ? dot + 1 : *host;
    bool is_hex = str_starts (label, "0x");
    const char *digits = is_hex ? label + 2 : label;
    if (*label == '\0' ||
        strspn (digits, is_hex ? "0123456789abcdef" : "0123456789") != strlen (digits))
        return NULL;
    struct in_addr address;
    if (inet_aton (*host, &address) != 1)
        return "ends in a number but is no IPv4 address";
    char text[INET_ADDRSTRLEN];
    inet_ntop (AF_INET, &address, text, sizeof text);
    free (*host);
    *host = x_strdup (text);
    return NULL;
}

static const char *
parse_url_entry (const char *text, struct allow_rule *rule)
{
    _cleanup_url_ struct url url = { 0 };
    const char *fault = url_parse (text, &url);
    if (fault)
        return fault;
    if (url.path[0] != '\0' && strcmp (url.path, "/") != 0)
        return "has a path";
    if (url.has_query)
        return "has a query";
    if (url.has_fragment)
        return "has a fragment";
    rule->scheme = steal_ptr (&url.scheme);
    rule->host = steal_ptr (&url.authority.host);
    rule->port =
        url.authority.port == URL_NO_PORT ? url_default_port (rule->scheme) : url.authority.port;
    return NULL;
}

static const char *
parse_host_entry (const char *text, struct allow_rule *rule)
{
    size_t len = strcspn (text, "/?#");
    if (text[len] != '\0' && strcmp (text + len, "/") != 0)
        return text[len] == '/'   ? "has a path"
               : text[len] == '?' ? "has a query"
                                  : "has a fragment";
    _cleanup_authority_ struct authority authority = { 0 };
    const char *fault = authority_parse (text, len, &authority);
    if (fault)
        return fault;
    if (authority.has_userinfo)
        return "has a user name before its host";
    rule->host = steal_ptr (&authority.host);
    rule->port = authority.port == URL_NO_PORT ? ALLOW_ANY_PORT : authority.port;
    return NULL;
}

static void
rule_clear (struct allow_rule *rule)
{
    free (rule->text);
    free (rule->scheme);
    free (rule->host);
}

bool
allow_list_add (struct allow_list *list, const char *entry, struct mur_error **err)
{
    struct allow_rule rule = { .text = text_trimmed (entry), .port = ALLOW_ANY_PORT };
    const char *fault = NULL;
    if (rule.text[0] == '\0')
        fault = "is empty";
    else if (rule.text[strcspn (rule.text, " \t\r\n\v\f")] != '\0')
        fault = "has a blank inside";
    else if (strstr (rule.text, "://"))
        fault = parse_url_entry (rule.text, &rule);
    else
        fault = parse_host_entry (rule.text, &rule);
    if (! fault)
        fault = settle_numeric_host (&rule.host);
    if (fault) {
        refuse (err, entry, fault);
        rule_clear (&rule);
        return false;
    }
    x_grow (list->rules, list->len, list->cap);
    list->rules[list->len++] = rule;
    return true;
}

void
allow_list_free (struct allow_list *list)
{
    for (size_t i = 0; i < list->len; i++)
        rule_clear (&list->rules[i]);
    free (list->rules);
    *list = (struct allow_list){ 0 };
}

void
allow_tell_refused (const struct allow_list *list, const char *host, int port)
{
    if (list->listener.refused)
        list->listener.refused (list->listener.ctx, host, port);
}

bool
allow_is_held (const struct allow_hold *hold, const char *host, int port)
{
    return hold && hold->is_held (hold->ctx, host, port);
}

bool
allow_list_matches (const struct allow_list *list, const char *scheme, const char *host, int port)
{
    if (allow_is_held (list->hold, host, port))
        return false;
    for (size_t i = 0; i < list->len; i++) {
        const struct allow_rule *rule = &list->rules[i];
        if (strcasecmp (rule->host, host) == 0 &&
            (! rule->scheme || strcasecmp (rule->scheme, scheme) == 0) &&
            (rule->port == ALLOW_ANY_PORT || rule->port == port))
            return true;
    }
    return false;
}

bool
allow_list_matches_authority (const struct allow_list *list, const char *scheme,
                              const char *authority)
{
    if (! authority || authority[0] == '\0')
        return false;
    _cleanup_authority_ struct authority target = { 0 };
    if (authority_parse (authority, strlen (authority), &target))
        return false;
    int port = target.port == URL_NO_PORT ? url_default_port (scheme) : target.port;
    return allow_list_matches (list, scheme, target.host, port);
}

bool
allow_rule_covers (const struct allow_rule *ceiling, const struct allow_rule *narrower)
{
    return strcmp (ceiling->host, narrower->host) == 0 &&
           (! ceiling->scheme || str_eq (ceiling->scheme, narrower->scheme)) &&
           (ceiling->port == ALLOW_ANY_PORT || ceiling->port == narrower->port);
}

bool
allow_list_covers (const struct allow_list *ceiling, const struct allow_rule *narrower)
{
    for (size_t i = 0; i < ceiling->len; i++)
        if (allow_rule_covers (&ceiling->rules[i], narrower))
            return true;
    return false;
}
