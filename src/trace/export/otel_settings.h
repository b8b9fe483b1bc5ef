/* SPDX-License-Identifier: Apache-2.0
 *
 * How spans are exported: the manifest's observability.otel, over which the OTEL_* variables of the
 * runtime's own environment win, as the OpenTelemetry specification names them.
 */
#pragma once

#include "manifest/capsule/capsule.h"
#include "trace/export/gen_ai.h"

struct otel_header {
    char *name;
    struct secret *value;
};

struct otel_settings {
    bool is_on;
    bool is_capsule; /* capsule.* spans; of the rest only capsule_endpoint counts */
    char *capsule_endpoint;
    enum otlp_encoding encoding;
    char *traces_url;
    char *metrics_url; /* NULL: no metrics are sent */
    struct otel_header *headers;
    size_t header_count, header_cap;
    enum gen_ai_content content;
    double sample;
    bool sends_pending;
    struct attributes resource; /* what is added to our own */
};

struct otel_sources {
    const struct observability *manifest; /* NULL: none is declared */
    /* The value of a credential, owned, or NULL: the operator's configuration, then the
     * environment. */
    struct secret *(*credential) (void *ctx, const char *name);
    void *ctx;
    /* A variable of the environment, or NULL. */
    const char *(*variable) (const char *name);
    bool is_locked; /* observability.locked of the operator: a manifest names no collector */
};

/* Decides. Fails with E-CAP-021 (locked), E-MAN-003 (a header's credential that is not set),
 * E-RUN-056 (a variable that cannot be meant). */
bool otel_settings_read (const struct otel_sources *from, struct otel_settings *out,
                         struct mur_error **err);
void otel_settings_free (struct otel_settings *s);
