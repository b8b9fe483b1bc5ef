/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/trust/trust_policy.h"

#include "artifact/names/name.h"
#include "base/alloc.h"
#include "manifest/settings/config.h"

#include <fnmatch.h>
#include <pthread.h>
#include <string.h>

#define PATTERN_WEIGHT ((size_t)1 << 32) /* no length outweighs being about names, or exact */

struct trust_policy {
    pthread_mutex_t mutex; /* of reading both; a leaf */
    struct config *config; /* NULL until it was read */
    struct trust_ring ring;
    bool has_ring;
    bool is_waived;
};

struct trust_policy *
trust_policy_new (void)
{
    struct trust_policy *p = x_new0 (struct trust_policy);
    pthread_mutex_init (&p->mutex, NULL);
    return p;
}

void
trust_policy_free (struct trust_policy *p)
{
    config_free (p->config);
    trust_ring_clear (&p->ring);
    pthread_mutex_destroy (&p->mutex);
    free (p);
}

void
trust_policy_waive (struct trust_policy *p)
{
    p->is_waived = true;
}

static const struct config *
config_of (struct trust_policy *p, struct mur_error **err)
{
    pthread_mutex_lock (&p->mutex);
    if (! p->config)
        p->config = config_load_global (err);
    pthread_mutex_unlock (&p->mutex);
    return p->config;
}

/* How closely a pattern names an artifact; 0: not at all. One with a '/' is about full names, any
 * other about scopes; what comes with mur is meant only by what names its scope. */
static size_t
closeness (const char *pattern, const char *scope, const struct trust_subject *of)
{
    const char *slash = strchr (pattern, '/');
    size_t len = strlen (pattern), wild = strcspn (pattern, "*?[");
    bool is_open = wild < (slash ? (size_t)(slash - pattern) : len);
    if ((is_open && of->comes_with_mur) ||
        fnmatch (pattern, slash ? of->full_name : scope, FNM_PATHNAME) != 0)
        return 0;
    return 1 + len + (slash ? 2 * PATTERN_WEIGHT : 0) + (wild == len ? PATTERN_WEIGHT : 0);
}

/* The rule that names an artifact most closely. NULL: none that asks for a key. */
static const struct config_trust_rule *
rule_of (const struct config *c, const struct trust_subject *of)
{
    const struct config_trust_rule *found = NULL;
    _cleanup_free_ char *scope = name_scope (of->full_name);
    size_t best = 0;
    for (size_t i = 0; i < c->trust.count; i++) {
        size_t close = closeness (c->trust.rules[i].pattern, scope, of);
        if (close <= best)
            continue;
        found = &c->trust.rules[i];
        best = close;
    }
    return found && found->keys.len ? found : NULL;
}

static bool
hint_keys (const struct config_trust_rule *rule, const char *full_name, const char *version,
           struct mur_error **err)
{
    _cleanup_free_ char *keys = strv_join (&rule->keys, ", ");
    return mur_hint (
        err,
        "trust.require.%s in ~/.murmur/config.yaml asks for %s; have the publisher sign "
        "it (`mur sign`), or trust another key (`mur trust add`) and name it there. "
        "`mur verify %s@%s` says who signed it",
        rule->pattern, keys, full_name, version);
}

static bool
judge (const struct config_trust_rule *rule, const struct trust_key *keys, const char *full_name,
       const struct signed_package *package, const char *signature, struct mur_error **err)
{
    _cleanup_free_ char *names = strv_join (&rule->keys, ", "), *why = NULL;
    if (! signature) {
        mur_fail (err, E_TRU_001, "%s@%s is not signed, and must be by %s", full_name,
                  package->version, names);
        return hint_keys (rule, full_name, package->version, err);
    }
    switch (signature_judge (signature, package, keys, rule->keys.len, NULL, &why)) {
    case SIGNATURE_GOOD:
        return true;
    case SIGNATURE_FOREIGN:
        mur_fail (err, E_TRU_002, "%s@%s is signed, but not by %s", full_name, package->version,
                  names);
        return hint_keys (rule, full_name, package->version, err);
    case SIGNATURE_BROKEN:
        break;
    }
    mur_fail (err, E_TRU_003, "the signature of %s@%s does not hold: %s", full_name,
              package->version, why);
    return mur_hint (err, "do not run it; get it and its signature from the publisher again");
}

static bool
check_by (const struct config_trust_rule *rule, const char *full_name,
          const struct signed_package *package, const char *signature, struct mur_error **err)
{
    struct trust_key *keys = x_new_array (struct trust_key, rule->keys.len);
    bool ok = ed25519_load (err);
    for (size_t i = 0; ok && i < rule->keys.len; i++)
        ok = trust_key_read_trusted (rule->keys.items[i], &keys[i], err);
    ok = ok && judge (rule, keys, full_name, package, signature, err);
    for (size_t i = 0; i < rule->keys.len; i++)
        trust_key_clear (&keys[i]);
    free (keys);
    return ok;
}

bool
trust_policy_check (struct trust_policy *p, const struct trust_subject *of, const char *signature,
                    struct mur_error **err)
{
    if (p->is_waived)
        return true;
    const struct config *config = config_of (p, err);
    const struct config_trust_rule *rule = config ? rule_of (config, of) : NULL;
    const struct signed_package package = { name_bare (of->full_name), of->version, of->sha256 };
    return config && (! rule || check_by (rule, of->full_name, &package, signature, err));
}

bool
trust_is_refusal (enum diag_code code)
{
    return code >= E_TRU_001 && code <= E_TRU_004;
}

/* The keys that are trusted; none when they cannot be read. */
static const struct trust_ring *
ring_of (struct trust_policy *p)
{
    pthread_mutex_lock (&p->mutex);
    if (! p->has_ring)
        (void)trust_ring_read (&p->ring, NULL);
    p->has_ring = true;
    pthread_mutex_unlock (&p->mutex);
    return &p->ring;
}

char *
trust_policy_signer (struct trust_policy *p, const struct trust_subject *of, const char *signature)
{
    const struct signed_package package = { name_bare (of->full_name), of->version, of->sha256 };
    if (! signature)
        return NULL;
    const struct trust_key *key = trust_ring_signer (ring_of (p), &package, signature);
    return key ? x_asprintf (TRUST_SIGNER_PREFIX "%s", key->id) : NULL;
}
