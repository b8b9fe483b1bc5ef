/* SPDX-License-Identifier: Apache-2.0 */
#include "session/stage/stage_spans.h"

#include "base/alloc.h"
#include "manifest/settings/config.h"
#include "session/state/session.h"
#include "trace/export/otel_settings.h"

#include <stdlib.h>
#include <string.h>

/* The operator's configuration, then the environment. */
static struct secret *
credential (void *ctx, const char *name)
{
    const struct session *s = ctx;
    const struct secret *configured = config_credential (s->asked->config, name);
    if (configured)
        return secret_copy (configured);
    const char *value = getenv (name);
    return value && *value ? secret_new (value, strlen (value)) : NULL;
}

static const char *
variable (const char *name)
{
    return getenv (name);
}

bool
stage_spans (struct session *s, struct mur_error **err)
{
    const struct otel_sources from = { .manifest = s->manifest->observability,
                                       .credential = credential,
                                       .ctx = s,
                                       .variable = variable,
                                       .is_locked = s->asked->config &&
                                                    s->asked->config->is_observability_locked };
    struct otel_settings settings;
    bool is_fine = otel_settings_read (&from, &settings, err);
    if (! is_fine || ! settings.is_on) {
        otel_settings_free (&settings);
        return is_fine;
    }
    for (size_t i = 0; i < settings.header_count; i++)
        redactor_add (s->redactor, settings.headers[i].value);
    s->spans = x_memdup (&settings, sizeof settings);
    return true;
}

void
stage_spans_free (struct session *s)
{
    if (! s->spans)
        return;
    otel_settings_free (s->spans);
    free (s->spans);
}
