/* SPDX-License-Identifier: Apache-2.0
 *
 * The look before the launch: what a capsule could do here.
 */
#include "lib/request.h"
#include "lib/worker.h"

char *
mur_request_explain (const struct mur_request *r, struct mur_error **err)
{
    static const char *const words[] = { "--explain-scope", "--json", NULL };
    struct worker w;
    if (! request_check (r, err) || ! worker_start (&w, r, words, err))
        return NULL;
    char *text = worker_output (&w, err);
    worker_clear (&w);
    return text;
}
