/* SPDX-License-Identifier: Apache-2.0
 *
 * libcurl as one table of functions, loaded by the first request: linking it would cost every start
 * 5 ms (DESIGN 3).
 */
#pragma once

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

struct curl_api {
    CURLcode (*global_init) (long flags);
    CURL *(*easy_init) (void);
    CURLcode (*easy_setopt) (CURL *easy, CURLoption option, ...);
    CURLcode (*easy_getinfo) (CURL *easy, CURLINFO info, ...);
    CURLcode (*easy_pause) (CURL *easy, int bitmask);
    void (*easy_cleanup) (CURL *easy);
    const char *(*easy_strerror) (CURLcode code);
    CURLM *(*multi_init) (void);
    CURLMcode (*multi_setopt) (CURLM *multi, CURLMoption option, ...);
    CURLMcode (*multi_add_handle) (CURLM *multi, CURL *easy);
    CURLMcode (*multi_remove_handle) (CURLM *multi, CURL *easy);
    CURLMcode (*multi_perform) (CURLM *multi, int *running);
    CURLMcode (*multi_poll) (CURLM *multi, struct curl_waitfd *extra, unsigned count,
                             int timeout_ms, int *ready);
    CURLMcode (*multi_wakeup) (CURLM *multi);
    CURLMsg *(*multi_info_read) (CURLM *multi, int *left);
    CURLMcode (*multi_cleanup) (CURLM *multi);
};

/* The loaded table, or NULL with *why set to a static sentence. Thread-safe; loads once. */
const struct curl_api *curl_api_get (const char **why);
