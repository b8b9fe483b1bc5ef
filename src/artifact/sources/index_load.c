/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/sources/index_load.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "manifest/settings/config.h"
#include "net/http_fetch.h"

#include <sys/stat.h>

static bool
fetch_text (const char *url, struct buf *text, struct mur_error **err)
{
    _cleanup_ (http_client_freep) struct http_client *client = http_client_new ();
    struct http_header agent = { "user-agent", "murmur-cli", 10 };
    struct http_fetch fetch = {
        .request = { .method = "GET",
                     .url = url,
                     .headers = &agent,
                     .header_count = 1,
                     .first_byte_timeout_ms = 30000,
                     .between_bytes_timeout_ms = 30000,
                     .uses_proxy_env = true },
        .limit_bytes = INDEX_BYTES_MAX,
        .redirect_limit = 5,
    };
    _cleanup_http_response_ struct http_response response = { 0 };
    if (! http_fetch (client, &fetch, &response, NULL, err))
        return mur_context (err, "cannot fetch %s", url);
    if (response.status != 200)
        return mur_fail (err, E_IO_003, "cannot fetch %s: HTTP %d", url, response.status);
    *text = response.body;
    response.body = (struct buf){ 0 };
    return true;
}

const char *
index_address (const struct config *c)
{
    static const char published[] = "https://github.com/murmur-nexus/default-artifacts/releases/"
                                    "latest/download/" INDEX_FILE_NAME;
    return c->index_url[0] ? c->index_url : published;
}

struct artifact_index *
index_load (const char *path_or_url, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    bool is_url = str_starts (path_or_url, "http://") || str_starts (path_or_url, "https://");
    if (is_url) {
        if (! fetch_text (path_or_url, &text, err))
            return NULL;
    } else {
        _cleanup_error_ struct mur_error *caught = NULL;
        struct stat st;
        _cleanup_free_ char *inside = stat (path_or_url, &st) == 0 && S_ISDIR (st.st_mode)
                                          ? x_asprintf ("%s/" INDEX_FILE_NAME, path_or_url)
                                          : NULL;
        if (! fs_read_path (inside ? inside : path_or_url, INDEX_BYTES_MAX, &text, &caught))
            return mur_fail (err, E_IO_003, "%s", caught->message), NULL;
    }
    return index_parse (text.data ? text.data : "", text.len, path_or_url, err);
}
