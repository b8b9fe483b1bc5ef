/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/report/registration.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fdio.h"
#include "base/text.h"
#include "spawn/child/roost_client.h"

#include <fcntl.h>
#include <string.h>

/* The daemon itself gives a connection as long. */
#define REGISTER_TIMEOUT_MS 10000
#define PROBE_TIMEOUT_MS    2000
#define POD_REPEATS         20
#define POD_REPEAT_MS       1000
#define TOKEN_BYTES         ((size_t)64 << 10)

static bool
refuse (const char *roost_url, const char *reason, const char *hint, struct mur_error **err)
{
    mur_fail (err, E_RUN_019,
              "cannot register with mur-roost at %s: %s. A capsule with capabilities.spawn.allow, "
              "and one that another started, runs only when registered",
              text_is_blank (roost_url) ? "<unset>" : roost_url, reason);
    return mur_hint (err, "%s", hint);
}

bool
registration_refuse (const char *roost_url, const char *reason, struct mur_error **err)
{
    return refuse (roost_url, reason, "start mur-roost and set MURMUR_ROOST_URL to its address",
                   err);
}

static bool
check_url (const char *roost_url, struct mur_error **err)
{
    return ! text_is_blank (roost_url) ||
           registration_refuse (NULL, "MURMUR_ROOST_URL is not set", err);
}

bool
registration_probe (struct http_client *http, const char *roost_url, struct mur_error **err)
{
    if (! check_url (roost_url, err))
        return false;
    const struct roost_request request = { .url = roost_url,
                                           .path = "/health",
                                           .total_timeout_ms = PROBE_TIMEOUT_MS };
    struct roost_refusal refusal = { 0 };
    _cleanup_json_ json_t *answer = roost_ask (http, &request, &refusal);
    _cleanup_free_ char *reason = refusal.text;
    return answer || registration_refuse (roost_url, reason, err);
}

struct secret *
registration_pod_token (const char *path, struct mur_error **err)
{
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    _cleanup_buf_ struct buf text = { 0 };
    if (fd < 0 || ! fd_read_all (fd, TOKEN_BYTES, &text) || ! text.len) {
        mur_fail_errno (err, E_RUN_019, "--fleet-token %s cannot be read, or is empty", path);
        return NULL;
    }
    struct secret *token = secret_new (text.data, strcspn (text.data, "\r\n"));
    secret_wipe (text.data, text.len);
    return token;
}

struct secret *
registration_ask (struct http_client *http, const char *roost_url, const struct registrant *who,
                  struct mur_error **err)
{
    if (! check_url (roost_url, err))
        return NULL;
    _cleanup_json_ json_t *body = json_object ();
    json_set_string (body, "session_id", who->session_id);
    json_set_string (body, "name", who->capsule_name);
    json_set_string (body, "version", who->capsule_version);
    const struct roost_request request = { .url = roost_url,
                                           .path = "/register",
                                           .header = who->pod_token ? "x-murmur-pod-token"
                                                     : who->grant   ? "x-murmur-spawn-approval"
                                                                    : NULL,
                                           .token = who->pod_token ? who->pod_token : who->grant,
                                           .body = body,
                                           .total_timeout_ms = REGISTER_TIMEOUT_MS };
    struct roost_refusal refusal = { 0 };
    _cleanup_json_ json_t *answer = roost_ask (http, &request, &refusal);
    /* A pod's registration is one, however often it is said. */
    for (unsigned i = 0; who->pod_token && ! answer && refusal.is_unheard && i < POD_REPEATS; i++) {
        usleep (POD_REPEAT_MS * 1000);
        free (refusal.text);
        refusal = (struct roost_refusal){ 0 };
        answer = roost_ask (http, &request, &refusal);
    }
    _cleanup_free_ char *reason = refusal.text;
    const char *credential = json_get_string (answer, "credential");
    if (credential && *credential && who->fleet)
        *who->fleet = json_incref (json_object_get (answer, "fleet"));
    if (credential && *credential)
        return secret_new (credential, strlen (credential));
    if (reason && ! refusal.is_unheard)
        refuse (roost_url, reason,
                "mur-roost looks into the store of the user it runs as (mur publish), and takes "
                "the names of its --spawn-allow",
                err);
    else
        registration_refuse (roost_url, reason ? reason : "its answer has no field credential",
                             err);
    return NULL;
}

bool
registration_end (struct http_client *http, const char *roost_url, const struct secret *credential,
                  bool is_complete, const json_t *completion, uint64_t timeout_ms, char **reason)
{
    _cleanup_json_ json_t *body = json_object ();
    json_set_string (body, "outcome", is_complete ? "complete" : "failed");
    if (completion)
        json_object_set (body, "completion", (json_t *)(uintptr_t)completion);
    const struct roost_request request = { .url = roost_url,
                                           .path = "/deregister",
                                           .header = "x-murmur-spawn-credential",
                                           .token = credential,
                                           .body = body,
                                           .total_timeout_ms = timeout_ms };
    struct roost_refusal refusal = { 0 };
    _cleanup_json_ json_t *answer = roost_ask (http, &request, &refusal);
    *reason = refusal.text;
    return answer != NULL;
}
