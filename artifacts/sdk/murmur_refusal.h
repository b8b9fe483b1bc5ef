/* SPDX-License-Identifier: Apache-2.0
 *
 * What a provider, or a gateway in front of it, says when it does not answer.
 */
#ifndef MURMUR_REFUSAL_H
#define MURMUR_REFUSAL_H

#include "murmur_answer.h"

/* True when the event or whole answer is an error, with the answer failed by it; an error behind a
 * complete answer is passed over. */
bool mur_refusal_is (struct mur_answer *answer, const struct mur_json *json);
/* Fails the answer for a status other than a success. `body` is UTF-8; `advice` is the header
 * x-should-retry, `place` the header location, each NULL when it is not there. */
void mur_refusal_of_status (struct mur_answer *answer, unsigned status, const struct mur_text *body,
                            const char *advice, const char *place);
/* Fails the answer for a body that is neither JSON nor a stream of events, or is JSON that no
 * server of the driver's protocol writes. */
void mur_refusal_of_page (struct mur_answer *answer, const struct mur_text *body, bool is_json);
/* Fails the answer for a connection that was not made; `error` is mur_http_open's for `url`. */
void mur_refusal_of_connection (struct mur_answer *answer, const char *url, const char *error);

#endif
