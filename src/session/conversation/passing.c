/* SPDX-License-Identifier: Apache-2.0 */
#include "session/conversation/passing.h"

#include <string.h>

void
passing_note (struct passing_records *p, const struct conversation *ended)
{
    uint64_t bytes = conversation_bytes (ended);
    const char *context = conversation_context (ended);
    struct passing_record *slot = &p->ring[p->noted % PASSING_KEPT];
    if (! bytes || strlen (context) >= sizeof slot->context.text)
        return;
    if (p->noted >= PASSING_KEPT && slot->bytes)
        conversation_remove_unchanged (ended, slot->context.text, slot->bytes);
    bool is_first = p->noted++ == 0;
    slot->bytes = is_first ? 0 : bytes;
    strcpy (slot->context.text, context);
}
