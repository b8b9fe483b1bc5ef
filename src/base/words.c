/* SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"

#include <string.h>

void
words_split (const char *line, struct strv *words)
{
    struct buf word = { 0 };
    char quote = 0;
    for (const char *c = line; *c; c++) {
        if (*c == '\\' && c[1]) {
            buf_putc (&word, *++c);
        } else if (quote) {
            if (*c == quote)
                quote = 0;
            else
                buf_putc (&word, *c);
        } else if (*c == '\'' || *c == '"') {
            quote = *c;
        } else if (*c == ' ' || (*c >= '\t' && *c <= '\r')) {
            if (word.len)
                strv_take (words, buf_steal (&word));
        } else {
            buf_putc (&word, *c);
        }
    }
    if (word.len)
        strv_take (words, buf_steal (&word));
    buf_free (&word);
}
