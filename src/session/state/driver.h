/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver choices of an agent: the artifact, the model and the bounds each would be asked with
 * (docs/spec/session.md 6).
 *
 * Filled by staging, read-only afterwards: which of them is selected is selection.h's.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

struct artifact_entry;
struct sent_lists;
struct session;
struct staged_artifact;

/* Where a limit came from. */
enum limit_source {
    LIMIT_NONE,
    LIMIT_MANIFEST,
    LIMIT_DRIVER,
};

/* A driver choice: primary, or one of inference.alternates. */
struct choice {
    const char *name; /* "primary", or the alternate's */
    const char *model;
    struct staged_artifact *artifact;
    char *config;      /* compact JSON or NULL; all choices have the primary's */
    bool is_available; /* its credential could be resolved when it was staged */
    uint64_t output_cap;
    enum limit_source output_cap_source;
    uint64_t window; /* 0: none */
    enum limit_source window_source;
    uint64_t input_ceiling; /* 0: none */
    uint64_t input_budget;  /* 0: none */
    const char *budget_basis;
    struct strv env;
    struct model_cap { /* every model the driver's own manifest lists */
        const char *model;
        uint64_t cap;
    } * model_caps;
    size_t model_cap_count;
};

struct choices {
    struct choice primary;
    struct choice **all; /* the primary, then inference.alternates in order */
    size_t count;        /* 0 for a script */
    /* The driver's while a compaction hook asks it; empty: the same. */
    struct strv compaction_env;
    struct sent_lists *sent; /* what the trace already says they were sent */
};

/* What one inference call uses, read once. */
struct call_choice {
    const struct choice *driver;
    uint64_t output_cap;
    uint64_t input_budget; /* 0: none */
    const char *budget_basis;
};

/* True when this entry is the driver of some choice of the http loop. */
bool session_is_driver_entry (const struct session *s, const struct artifact_entry *entry);
