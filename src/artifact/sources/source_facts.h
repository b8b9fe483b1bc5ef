/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of one source: its owner, its latest release, its index, releases by tag.
 *
 * Each is a question asked once, also when several threads want it: one asks, without any lock, and
 * the others wait for the answer. What was answered never changes.
 */
#pragma once

#include "artifact/sources/github.h"
#include "artifact/sources/index.h"
#include "artifact/sources/source_list.h"

#include <pthread.h>

struct question {
    enum { QUESTION_UNASKED, QUESTION_BEING_ASKED, QUESTION_ANSWERED } state;
    struct mur_error *error; /* how asking failed; written before it is answered */
};

struct tagged_release {
    char *tag;
    struct github_release *release; /* NULL: there is none */
    struct question question;
    struct tagged_release *next;
};

struct source_facts {
    const struct source *source;
    pthread_mutex_t mutex; /* of the questions' states and the list of tags; a leaf */
    pthread_cond_t answered;
    struct question owner_question, latest_question, index_question;
    uint64_t owner_id;
    struct github_release *latest;
    struct artifact_index *index;
    struct tagged_release *tagged;
};

void source_facts_init (struct source_facts *f, const struct source *source);
void source_facts_clear (struct source_facts *f);
/* With nothing being asked. */
void source_facts_forget_failures (struct source_facts *f);
struct github_repo source_repo (const struct source *s);

/* The numeric id of the repository's owner. */
bool source_ask_owner (const struct github *g, struct source_facts *f, uint64_t *owner_id,
                       struct mur_error **err);
/* Its index, whose scope is the source's. E-IDX-002, E-REG-006, E-REG-009. Borrowed. */
const struct artifact_index *
source_ask_index (const struct github *g, struct source_facts *f, struct mur_error **err);
/* The release of a tag; NULL without an error when there is none. Borrowed. */
const struct github_release *source_ask_release (const struct github *g, struct source_facts *f,
                                                 const char *tag, struct mur_error **err);
