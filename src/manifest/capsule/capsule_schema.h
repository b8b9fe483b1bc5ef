/* SPDX-License-Identifier: Apache-2.0
 *
 * Every key of murmur.yaml as data (spec/manifest.md 4-13, 22). The order of keys in a block breaks
 * ties between suggestions and is the order of warnings; the printed reference follows it too.
 */
#pragma once

#include "manifest/capsule/capsule.h"

/* The schema of the whole file: what the reference, the fuzz dictionary and a test are printed
 * from. */
const struct schema *capsule_schema (void);

extern const struct schema capabilities_schema;
extern const struct schema lifecycle_schema;
extern const struct schema inference_schema;
extern const struct schema retry_schema;
extern const struct schema context_schema;
extern const struct schema trace_schema;
extern const struct schema otel_schema;
extern const struct schema approvals_schema;
extern const struct schema limits_schema;
extern const struct schema mcp_schema;
extern const struct schema resources_schema;
