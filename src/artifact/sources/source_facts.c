/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/sources/source_facts.h"

#include "base/alloc.h"

#include <string.h>

void
source_facts_init (struct source_facts *f, const struct source *source)
{
    *f = (struct source_facts){ .source = source };
    pthread_mutex_init (&f->mutex, NULL);
    pthread_cond_init (&f->answered, NULL);
}

static void
question_clear (struct question *q)
{
    if (q->error)
        mur_error_free (q->error);
}

void
source_facts_clear (struct source_facts *f)
{
    question_clear (&f->owner_question);
    question_clear (&f->latest_question);
    question_clear (&f->index_question);
    for (struct tagged_release *t = f->tagged, *next; t; t = next) {
        next = t->next;
        free (t->tag);
        if (t->release)
            github_release_free (t->release);
        question_clear (&t->question);
        free (t);
    }
    if (f->latest)
        github_release_free (f->latest);
    if (f->index)
        index_free (f->index);
    pthread_cond_destroy (&f->answered);
    pthread_mutex_destroy (&f->mutex);
}

static void
forget_failure (struct question *q)
{
    if (! q->error)
        return;
    question_clear (q);
    *q = (struct question){ 0 };
}

void
source_facts_forget_failures (struct source_facts *f)
{
    forget_failure (&f->owner_question);
    forget_failure (&f->latest_question);
    forget_failure (&f->index_question);
    for (struct tagged_release *t = f->tagged; t; t = t->next)
        forget_failure (&t->question);
}

struct github_repo
source_repo (const struct source *s)
{
    return (struct github_repo){ .owner = s->owner, .name = s->repo, .token = s->token };
}

/* --- asking once --- */

/* True: the caller asks, and says when it has. False: it is answered. */
static bool
begin_asking (struct source_facts *f, struct question *q)
{
    pthread_mutex_lock (&f->mutex);
    while (q->state == QUESTION_BEING_ASKED)
        pthread_cond_wait (&f->answered, &f->mutex);
    bool is_mine = q->state == QUESTION_UNASKED;
    if (is_mine)
        q->state = QUESTION_BEING_ASKED;
    pthread_mutex_unlock (&f->mutex);
    return is_mine;
}

static void
end_asking (struct source_facts *f, struct question *q)
{
    pthread_mutex_lock (&f->mutex);
    q->state = QUESTION_ANSWERED;
    pthread_cond_broadcast (&f->answered);
    pthread_mutex_unlock (&f->mutex);
}

static bool
repeat_error (const struct question *q, struct mur_error **err)
{
    if (! q->error)
        return true;
    mur_fail (err, q->error->code, "%s", q->error->message);
    return q->error->hint ? mur_hint (err, "%s", q->error->hint) : false;
}

/* --- the questions --- */

bool
source_ask_owner (const struct github *g, struct source_facts *f, uint64_t *owner_id,
                  struct mur_error **err)
{
    if (begin_asking (f, &f->owner_question)) {
        struct github_repo repo = source_repo (f->source);
        github_owner_id (g, &repo, &f->owner_id, &f->owner_question.error);
        end_asking (f, &f->owner_question);
    }
    *owner_id = f->owner_id;
    return repeat_error (&f->owner_question, err);
}

static bool
ask_latest (const struct github *g, struct source_facts *f, struct mur_error **err)
{
    if (begin_asking (f, &f->latest_question)) {
        struct github_repo repo = source_repo (f->source);
        f->latest = github_release_latest (g, &repo, &f->latest_question.error);
        end_asking (f, &f->latest_question);
    }
    return repeat_error (&f->latest_question, err);
}

static void
fetch_index (const struct github *g, struct source_facts *f, struct mur_error **err)
{
    const struct source *s = f->source;
    struct github_repo repo = source_repo (s);
    if (! ask_latest (g, f, err))
        return;
    const struct github_asset *asset =
        f->latest ? github_find_asset (f->latest, INDEX_FILE_NAME) : NULL;
    if (! asset) {
        mur_fail (err, E_IDX_002, "github:%s/%s publishes no index: %s", s->owner, s->repo,
                  f->latest ? "its latest release has no " INDEX_FILE_NAME
                            : "it has no published release");
        return;
    }
    _cleanup_buf_ struct buf text = { 0 };
    if (! github_download (g, &repo, asset, INDEX_BYTES_MAX, &text, err))
        return;
    _cleanup_free_ char *what = x_asprintf ("index of github:%s/%s", s->owner, s->repo);
    _cleanup_index_ struct artifact_index *x =
        index_parse (text.data ? text.data : "", text.len, what, err);
    if (x && strcmp (x->scope, s->scope) != 0)
        mur_fail (err, E_REG_009,
                  "the index of github:%s/%s speaks for scope \"%s\", but that repository serves "
                  "\"%s\"",
                  s->owner, s->repo, x->scope, s->scope);
    else
        f->index = steal_ptr (&x);
}

const struct artifact_index *
source_ask_index (const struct github *g, struct source_facts *f, struct mur_error **err)
{
    if (f->source->oci)
        return mur_fail (err, E_IDX_002,
                         "oci://%s is a registry, which lists no artifacts: ask for "
                         "one by its name",
                         f->source->oci),
               NULL;
    if (begin_asking (f, &f->index_question)) {
        fetch_index (g, f, &f->index_question.error);
        end_asking (f, &f->index_question);
    }
    return repeat_error (&f->index_question, err) ? f->index : NULL;
}

/* The place of a tag's answer; NULL when it is the latest release, which is known. */
static struct tagged_release *
place_of_tag (struct source_facts *f, const char *tag)
{
    pthread_mutex_lock (&f->mutex);
    bool is_latest = f->latest_question.state == QUESTION_ANSWERED && f->latest &&
                     strcmp (f->latest->tag, tag) == 0;
    struct tagged_release *t = is_latest ? NULL : f->tagged;
    while (t && strcmp (t->tag, tag) != 0)
        t = t->next;
    if (! t && ! is_latest) {
        t = x_new0 (struct tagged_release);
        t->tag = x_strdup (tag);
        t->next = f->tagged;
        f->tagged = t;
    }
    pthread_mutex_unlock (&f->mutex);
    return t;
}

const struct github_release *
source_ask_release (const struct github *g, struct source_facts *f, const char *tag,
                    struct mur_error **err)
{
    struct tagged_release *t = place_of_tag (f, tag);
    if (! t)
        return f->latest;
    if (begin_asking (f, &t->question)) {
        struct github_repo repo = source_repo (f->source);
        t->release = github_release_by_tag (g, &repo, tag, &t->question.error);
        end_asking (f, &t->question);
    }
    return repeat_error (&t->question, err) ? t->release : NULL;
}
