/* SPDX-License-Identifier: Apache-2.0
 *
 * Short words for the policy tests: a manifest's text lowered under a request, and what stderr
 * received.
 */
#pragma once

#include "tests/unit/manifest/reading.h"

#include "policy/scope_report.h"

#include <sys/stat.h>
#include <unistd.h>

/* A manifest with its policy; freed together. */
/* A host where nothing can be confined. */
static const struct host_containment no_sandbox_host = { .tier = TIER_NONE,
                                                         .userns_grant = "withheld",
                                                         .scoped_blocker = "no Landlock here",
                                                         .sealed_blocker = "no Landlock here" };

struct lowered {
    struct capsule_manifest *m;
    struct policy_request request;
    struct policy *p;
    struct host_containment host;
    struct containment c;
};

_unused_ static void
lower_with (struct lowered *l, const char *text, struct policy_request request)
{
    struct mur_error *err = NULL;
    *l = (struct lowered){ .m = accept (text), .request = request, .host = no_sandbox_host };
    l->request.home_dir = "/home/u/.murmur";
    if (! l->request.manifest_dir)
        l->request.manifest_dir = "/home/u/p";
    l->p = policy_lower (l->m, &l->request, &err);
    if (! l->p)
        fail_msg ("%s", err->message);
    struct capsule_containment facts = { .workdir_exec = l->p->files.exec_allowed };
    containment_decide (&l->host, l->p->containment_floor, &facts, &l->c);
}

_unused_ static void
lower (struct lowered *l, const char *text)
{
    lower_with (l, text, (struct policy_request){ .bind_addr = "127.0.0.1" });
}

_unused_ static void
lowered_free (struct lowered *l)
{
    containment_clear (&l->c);
    policy_free (l->p);
    capsule_manifest_free (l->m);
}

/* The staging checks refuse the text with <code> and the words. */
_unused_ static void
stage_refuses (const char *text, enum diag_code code, const char *words)
{
    struct lowered l;
    _cleanup_error_ struct mur_error *err = NULL;
    lower (&l, text);
    assert_false (policy_check_stage (l.p, &l.c, &err) && policy_check_paths (l.p, &err));
    if (err->code != code)
        fail_msg ("%s instead of %s: %s", diag_code_name (err->code), diag_code_name (code),
                  err->message);
    _cleanup_free_ char *all = x_asprintf ("%s\n%s", err->message, err->hint ? err->hint : "");
    assert_says (all, words);
    lowered_free (&l);
}

_unused_ static void
stage_accepts (const char *text)
{
    struct lowered l;
    lower (&l, text);
    assert_succeeds (policy_check_stage (l.p, &l.c, &err));
    assert_succeeds (policy_check_paths (l.p, &err));
    lowered_free (&l);
}

/* --- stderr --- */

static FILE *captured;
static int real_stderr;

_unused_ static void
capture_start (void)
{
    captured = tmpfile ();
    real_stderr = dup (STDERR_FILENO);
    dup2 (fileno (captured), STDERR_FILENO);
}

/* What was written since; the caller frees it. */
_unused_ static char *
capture_end (void)
{
    dup2 (real_stderr, STDERR_FILENO);
    close (real_stderr);
    struct buf text = { 0 };
    char part[4096];
    size_t n;
    rewind (captured);
    while ((n = fread (part, 1, sizeof part, captured)) > 0)
        buf_append (&text, part, n);
    fclose (captured);
    return buf_steal (&text);
}

_unused_ static size_t
occurrences (const char *text, const char *word)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr (p, word)); p++)
        n++;
    return n;
}
