/* SPDX-License-Identifier: Apache-2.0
 *
 * What a failed call of this library says: a code, a sentence, what to do.
 *
 * A function that can fail takes `struct mur_error **err` last. It returns false or NULL and leaves
 * an error there, which the caller frees; NULL for <err> drops it. *err must be NULL before the
 * call. Codes and their meanings are those of `mur explain`.
 *
 * Each function of these headers says how threads may call it, in the words of attributes(7):
 * "MT-Safe" means any number at once; with "race:x" not while another call has the same x; with
 * "env" not while somebody changes the environment. None may be called from a signal handler.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct mur_error;

/* "E-MAN-002"; "" of NULL. Static storage. MT-Safe. */
const char *mur_error_code (const struct mur_error *e);
/* One or more lines of UTF-8; "" of NULL. Lives as long as the error. MT-Safe. */
const char *mur_error_message (const struct mur_error *e);
/* What to do about it; NULL when there is nothing to say. Lives as long as the error. MT-Safe. */
const char *mur_error_hint (const struct mur_error *e);
/* NULL is fine. MT-Safe race:e. */
void mur_error_free (struct mur_error *e);

#ifdef __cplusplus
}
#endif
