/* SPDX-License-Identifier: Apache-2.0 */
#include "host/conversation.h"

#define LIMIT_MAX 100

/* read-messages: func (cursor: option<string>, limit: u32) -> result<message-page, string> */
static bool
read_messages (void *ctx, struct arena *arena, const struct value *args, size_t arg_count _unused_,
               struct value *result, struct mur_error **err _unused_)
{
    const struct conversation_host *host = ctx;
    uint64_t limit = args[1].u;
    limit = limit < 1 ? 1 : limit > LIMIT_MAX ? LIMIT_MAX : limit;
    struct conversation_page page = { 0 };
    const char *refusal = "not-granted";
    if (! host || ! host->read (host->ctx, value_text (&args[0], NULL), (uint32_t)limit, arena,
                                &page, &refusal)) {
        struct value payload = value_string (arena, refusal);
        *result = value_err (arena, &payload);
        return true;
    }
    const struct value_field fields[] = {
        { "messages", hook_messages_to_value (arena, &page.messages) },
        { "next-cursor", value_option_string (arena, page.next_cursor) },
        { "total", value_u32 (page.total) },
    };
    struct value record = value_record (arena, fields, ARRAY_LEN (fields));
    *result = value_ok (arena, &record);
    return true;
}

static const struct host_function functions[] = {
    { "read-messages", read_messages },
};

const struct host_interface host_conversation = {
    "murmur:conversation/read@0.2.0",
    functions,
    ARRAY_LEN (functions),
};
