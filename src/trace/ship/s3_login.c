/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/ship/s3_login.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "manifest/settings/config.h"
#include "manifest/settings/launcher_keys.h"
#include "manifest/settings/secrets_dir.h"
#include "trace/ship/s3_profile.h"
#include "trace/ship/s3_role.h"

#include <pthread.h>
#include <string.h>

#define KEY_ID    "AWS_ACCESS_KEY_ID"
#define KEY       "AWS_SECRET_ACCESS_KEY"
#define TOKEN     "AWS_SESSION_TOKEN"
#define MARGIN_MS 300000 /* a role is taken anew so long before its keys end */

struct s3_login {
    const struct s3_place *place;
    struct s3_keys usual; /* of the configuration, else the environment; its id may be NULL */
    pthread_mutex_t lock; /* guards what follows */
    struct s3_keys role;  /* its id may be NULL */
    uint64_t role_ends_unix_ms;
};

/* --- places --- */

typedef struct secret *source_fn (const void *ctx, const char *name);

static struct secret *
of_launcher (const void *ctx, const char *name)
{
    (void)ctx;
    return launcher_keys_ask (name);
}

static struct secret *
of_folder (const void *ctx, const char *name)
{
    (void)ctx;
    return secrets_dir_ask (name);
}

static struct secret *
of_config (const void *ctx, const char *name)
{
    const struct secret *value = ctx ? config_credential (ctx, name) : NULL;
    return value ? secret_copy (value) : NULL;
}

static struct secret *
of_environment (const void *ctx, const char *name)
{
    (void)ctx;
    const char *value = getenv (name);
    return value && *value ? secret_new (value, strlen (value)) : NULL;
}

static struct secret *
of_profile (const void *ctx, const char *name)
{
    (void)ctx;
    return s3_profile_value (name);
}

/* All of one place: a token of another login would spoil the signature. */
static bool
take_keys (source_fn *source, const void *ctx, struct s3_keys *out)
{
    out->id = source (ctx, KEY_ID);
    if (! out->id)
        return false;
    out->key = source (ctx, KEY);
    out->token = source (ctx, TOKEN);
    return true;
}

/* --- a login --- */

struct s3_login *
s3_login_new (const struct s3_place *place, struct mur_error **err)
{
    _cleanup_config_ struct config *config = config_load_global (err);
    if (! config)
        return NULL;
    struct s3_login *l = x_new0 (struct s3_login);
    *l = (struct s3_login){ .place = place, .lock = PTHREAD_MUTEX_INITIALIZER };
    if (! take_keys (of_config, config, &l->usual))
        take_keys (of_environment, NULL, &l->usual);
    return l;
}

void
s3_login_free (struct s3_login *l)
{
    s3_keys_clear (&l->usual);
    s3_keys_clear (&l->role);
    pthread_mutex_destroy (&l->lock);
    free (l);
}

/* Those of the role we have, while they hold. */
static bool
role_keys (struct s3_login *l, struct http_client *http, struct s3_keys *out,
           struct mur_error **err)
{
    pthread_mutex_lock (&l->lock);
    bool has = l->role.id && clock_unix_ms () + MARGIN_MS < l->role_ends_unix_ms;
    if (! has) {
        s3_keys_clear (&l->role);
        has = s3_role_take (http, l->place->region, &l->role, &l->role_ends_unix_ms, err);
    }
    if (has)
        s3_keys_copy (&l->role, out);
    pthread_mutex_unlock (&l->lock);
    return has;
}

static bool
refuse (const struct s3_keys *found, struct mur_error **err)
{
    _cleanup_free_ char *profile = s3_profile_words ();
    mur_fail (err, E_IO_003, "a store of s3:// needs " KEY_ID " and " KEY "; %s",
              found->id ? "the second is missing where the first is" : "they are nowhere");
    return mur_hint (err,
                     "give them as files of --secrets-dir, under credentials of the "
                     "configuration, in the environment or as %s; or a role by AWS_ROLE_ARN and "
                     "AWS_WEB_IDENTITY_TOKEN_FILE",
                     profile);
}

bool
s3_login_keys (struct s3_login *l, struct http_client *http, struct s3_keys *out,
               struct mur_error **err)
{
    *out = (struct s3_keys){ 0 };
    bool is_found = take_keys (of_launcher, NULL, out) || take_keys (of_folder, NULL, out);
    if (! is_found && ! l->usual.id && s3_role_is_named ())
        return role_keys (l, http, out, err);
    if (! is_found && l->usual.id)
        s3_keys_copy (&l->usual, out);
    else if (! is_found)
        take_keys (of_profile, NULL, out);
    return (out->id && out->key) || refuse (out, err);
}
