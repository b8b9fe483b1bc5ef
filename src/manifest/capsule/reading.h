/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that judge a capsule manifest share; nobody else includes this.
 *
 * capsule.c calls the judges in the order of refusals (spec/manifest.md 2.1); each returns false
 * with *err set.
 */
#pragma once

#include "manifest/capsule/capsule.h"

struct reading {
    struct schema_reader r;
    struct capsule_manifest *m;
    enum manifest_reading how;
};

extern const struct schema capabilities_schema;
extern const struct schema lifecycle_schema;
extern const struct schema inference_schema;
extern const struct schema retry_schema;
extern const struct schema context_schema;
extern const struct schema trace_schema;
extern const struct schema otel_schema;
extern const struct schema exports_schema;
extern const struct schema limits_schema;
extern const struct schema resources_schema;

/* Fails about <path> with E-MAN-003 and its position. Always false. */
bool refuse_value (const struct reading *rd, struct mur_error **err, const char *path,
                   const char *fmt, ...) _printf_ (4, 5);
/* A path in the arena. */
char *path_of (const struct reading *rd, const char *fmt, ...) _printf_ (2, 3);
/* Texts to look up in, whatever their number. */
struct text_set {
    const char **sorted;
    size_t len;
};
struct text_set text_set_of (const struct reading *rd, const char *const *items, size_t len);
bool text_set_has (const struct text_set *set, const char *text);
/* Index of the first element equal to an earlier one, or len. */
size_t find_repeat (const char *const *items, size_t len);

/* (5) */
bool judge_artifacts (struct reading *rd, struct mur_error **err);
/* (7), and inside (5). <path> is the block's. */
bool judge_capabilities (struct reading *rd, struct capabilities *c, const char *path,
                         struct mur_error **err);
/* (8) to (13), and (21) */
bool judge_inference (struct reading *rd, struct mur_error **err);
bool judge_driver_gateways (struct reading *rd, struct mur_error **err);
bool judge_alternate_drivers (struct reading *rd, struct mur_error **err);
bool judge_process_driver (struct reading *rd, struct mur_error **err);
bool judge_prompt_artifact (struct reading *rd, struct mur_error **err);
bool judge_alternates_selectable (struct reading *rd, struct mur_error **err);
/* (14), (15) and the scorers */
bool judge_context (struct reading *rd, struct mur_error **err);
bool judge_trace (struct reading *rd, struct mur_error **err);
bool judge_otel (struct reading *rd, struct mur_error **err);
void settle_scorers (struct reading *rd);
/* (16) to (20) */
bool judge_door (struct reading *rd, struct mur_error **err);
bool judge_door_and_spawn (struct reading *rd, struct mur_error **err);
bool judge_lifecycle (struct reading *rd, struct mur_error **err);
bool judge_exports (struct reading *rd, struct mur_error **err);
bool judge_control (struct reading *rd, struct mur_error **err);
