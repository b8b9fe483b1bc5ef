/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/media.h"

#include "base/buf.h"

#include <string.h>
#include <strings.h>

/* The first row of a kind names its ending. */
static const char *const media[][2] = {
    { "image/png", "png" },       { "image/jpeg", "jpg" }, { "image/jpeg", "jpeg" },
    { "image/webp", "webp" },     { "image/gif", "gif" },  { "audio/wav", "wav" },
    { "audio/mpeg", "mp3" },      { "text/plain", "txt" }, { "text/markdown", "md" },
    { "text/html", "html" },      { "text/csv", "csv" },   { "application/json", "json" },
    { "application/pdf", "pdf" },
};

const char *
mcp_media_of (const char *path, const char *otherwise)
{
    const char *dot = strrchr (path, '.');
    for (size_t i = 0; dot && i < ARRAY_LEN (media); i++)
        if (strcasecmp (media[i][1], dot + 1) == 0)
            return media[i][0];
    return otherwise;
}

const char *
mcp_media_ending (const char *mime)
{
    for (size_t i = 0; i < ARRAY_LEN (media); i++)
        if (strcmp (media[i][0], mime) == 0)
            return media[i][1];
    return "bin";
}
