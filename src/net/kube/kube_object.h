/* SPDX-License-Identifier: Apache-2.0
 *
 * What murmur reads of a cluster's objects: labels and annotations below its own prefix, and how a
 * Job ended.
 */
#pragma once

#include <jansson.h>

#define KUBE_OWN_PREFIX "murmur.dev/"

/* The value of the label, or annotation, "murmur.dev/<name>" of an object; NULL: there is none.
 * Borrowed. */
const char *kube_own_label (const json_t *object, const char *name);
const char *kube_own_annotation (const json_t *object, const char *name);

/* The condition a Job has ended with, whose type is "Complete" or "Failed"; NULL: it has not ended.
 * Borrowed. */
const json_t *kube_job_end (const json_t *job);
