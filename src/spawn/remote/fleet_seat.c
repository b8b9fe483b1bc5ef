/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/remote/fleet_seat.h"

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "base/json.h"
#include "base/secret.h"
#include "base/thread.h"
#include "net/http_fetch.h"
#include "spawn/child/lifeline.h"
#include "spawn/child/roost_client.h"
#include "spawn/report/registration.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define WAIT_S        25
#define ASK_MS        40000
#define REPEATS       20
#define PAUSE_MS      1000
#define PROBE_MS      2000
#define PROBE_EACH_MS 200
#define DOORS_MS      180000 /* from the last peer's registration to its door's first answer */
#define CHANNEL_BYTES (1 << 20)
#define CARD_BYTES    ((size_t)1 << 20)

struct fleet_seat {
    char *roost_url, *token_file;
    struct http_client *http; /* of whoever asks: first the caller, then the thread */
    char *formation_id;
    uint64_t deadline_ms, news;
    json_t *told;                   /* the last answer */
    char *addresses;                /* the last line of them */
    int channel[2], lifeline_write; /* -1: given away, or closed */
    struct cancel *over;
    pthread_t thread;
    bool has_thread;
};

/* --- asking --- */

/* The answer, which s->told then is; NULL with the refusal. */
static const json_t *
ask (struct fleet_seat *s, unsigned wait_s, struct roost_refusal *refusal, struct mur_error **err)
{
    *refusal = (struct roost_refusal){ 0 };
    _cleanup_secret_ struct secret *token = registration_pod_token (s->token_file, err);
    if (! token)
        return NULL;
    _cleanup_json_ json_t *body =
        json_pack ("{s:i,s:I}", "wait", (int)wait_s, "seen", (json_int_t)s->news);
    const struct roost_request request = { .url = s->roost_url,
                                           .path = "/formation",
                                           .header = "x-murmur-pod-token",
                                           .token = token,
                                           .body = body,
                                           .total_timeout_ms = ASK_MS,
                                           .cancel = s->over };
    json_t *answer = roost_ask (s->http, &request, refusal);
    if (! answer)
        return NULL;
    json_decref (s->told);
    s->told = answer;
    json_get_u64 (answer, "news", &s->news);
    return answer;
}

static bool
refuse_failed (const json_t *told, struct mur_error **err)
{
    static const struct {
        const char *text;
        enum diag_code code;
    } codes[] = { { "E-RUN-047", E_RUN_047 }, { "E-RUN-053", E_RUN_053 } };
    const char *said = json_get_string (told, "code"), *why = json_get_string (told, "reason");
    enum diag_code code = E_RUN_045;
    for (size_t i = 0; i < ARRAY_LEN (codes); i++)
        if (str_eq (codes[i].text, said))
            code = codes[i].code;
    return mur_fail (err, code, "%s", why ? why : "the formation does not come up");
}

/* A peer's door shows its card to anybody. */
static bool
answers (struct fleet_seat *s, const char *base)
{
    _cleanup_free_ char *url = x_asprintf ("%s/.well-known/agent-card.json", base);
    const struct http_fetch fetch = { .request = { .method = "GET",
                                                   .url = url,
                                                   .connect_timeout_ms = PROBE_MS,
                                                   .first_byte_timeout_ms = PROBE_MS,
                                                   .between_bytes_timeout_ms = PROBE_MS },
                                      .limit_bytes = CARD_BYTES,
                                      .total_timeout_ms = PROBE_MS };
    _cleanup_http_response_ struct http_response r = { 0 };
    return http_fetch (s->http, &fetch, &r, NULL, NULL) && r.status == 200;
}

/* The name of a peer whose door does not answer yet; NULL: all do. Borrowed. */
static const char *
silent_peer (struct fleet_seat *s)
{
    size_t i;
    json_t *peer;
    json_array_foreach (json_object_get (s->told, "peers"), i, peer)
    {
        const char *url = json_get_string (peer, "url");
        if (! url || ! answers (s, url))
            return json_get_string (peer, "name");
    }
    return NULL;
}

/* One look at what was told. True: the seat is there, or never will be (*err). */
static bool
is_settled (struct fleet_seat *s, uint64_t *doors_end_ms, struct mur_error **err)
{
    const char *state = json_get_string (s->told, "state");
    if (str_eq (state, "failed"))
        return refuse_failed (s->told, err) || true;
    if (str_eq (state, "over"))
        return mur_fail (err, E_RUN_046, "the formation had ended before this member started") ||
               true;
    if (! json_object_get (s->told, "channel") || str_eq (state, "starting"))
        return false;
    const char *silent = str_eq (state, "ready") ? silent_peer (s) : NULL;
    if (! silent)
        return true;
    if (! *doors_end_ms)
        *doors_end_ms = clock_monotonic_ms () + DOORS_MS;
    if (clock_monotonic_ms () > *doors_end_ms)
        return mur_fail (err, E_RUN_045, "member '%s': its door never answered within %d s", silent,
                         DOORS_MS / 1000) ||
               true;
    s->news = 0; /* looked at again at once: it may have ended meanwhile */
    usleep (PROBE_EACH_MS * 1000);
    return false;
}

static bool
await_seat (struct fleet_seat *s, struct mur_error **err)
{
    struct roost_refusal refusal;
    struct mur_error *caught = NULL;
    uint64_t doors_end_ms = 0;
    for (unsigned unheard = 0; unheard < REPEATS;) {
        const json_t *told = ask (s, WAIT_S, &refusal, &caught);
        if (caught)
            return mur_propagate (err, caught);
        _cleanup_free_ char *why = refusal.text;
        if (told) {
            unheard = 0;
            if (is_settled (s, &doors_end_ms, &caught))
                return caught ? mur_propagate (err, caught) : true;
        } else if (! refusal.is_unheard || ++unheard == REPEATS) {
            return registration_refuse (s->roost_url, why, err);
        } else {
            usleep (PAUSE_MS * 1000);
        }
    }
    return false;
}

/* --- handing on --- */

static bool
write_line (struct fleet_seat *s, const json_t *line)
{
    char *text = json_text (line, JSON_TEXT_ORDERED);
    size_t len = strlen (text);
    bool is_written =
        fd_write_all (s->channel[1], text, len) && fd_write_all (s->channel[1], "\n", 1);
    secret_wipe (text, len);
    free (text);
    return is_written;
}

/* Where they are, when that is news. */
static void
hand_addresses (struct fleet_seat *s)
{
    const json_t *list = json_object_get (s->told, "addresses");
    if (! json_array_size (list))
        return;
    _cleanup_json_ json_t *line = json_pack ("{s:O}", "addresses", list);
    _cleanup_free_ char *text = json_text (line, JSON_TEXT_ORDERED);
    if (str_eq (text, s->addresses))
        return;
    free (s->addresses);
    s->addresses = steal_ptr (&text);
    (void)write_line (s, line);
}

static void *
listen_on (void *ctx)
{
    struct fleet_seat *s = ctx;
    struct roost_refusal refusal;
    (void)write_line (s, json_object_get (s->told, "channel"));
    for (;;) {
        hand_addresses (s);
        uint64_t asked_ms = clock_monotonic_ms ();
        _cleanup_error_ struct mur_error *ignored = NULL;
        const json_t *told = ask (s, WAIT_S, &refusal, &ignored);
        free (refusal.text);
        if (cancel_is_raised (s->over))
            return NULL;
        if (told && str_eq (json_get_string (told, "state"), "over")) {
            close (s->lifeline_write);
            s->lifeline_write = -1;
            return NULL;
        }
        if (clock_monotonic_ms () < asked_ms + PAUSE_MS && ! cancel_sleep (s->over, PAUSE_MS))
            return NULL;
    }
}

static bool
open_pipes (struct fleet_seat *s, struct mur_error **err)
{
    int lifeline[2];
    if (pipe2 (s->channel, O_CLOEXEC) < 0 || pipe2 (lifeline, O_CLOEXEC) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot make a channel of the formation");
    (void)fcntl (s->channel[1], F_SETPIPE_SZ, CHANNEL_BYTES);
    s->lifeline_write = lifeline[1];
    lifeline_give (LIFELINE_FORMATION, lifeline[0]);
    return true;
}

static bool
start_listening (struct fleet_seat *s, struct mur_error **err)
{
    const char *id = json_get_string (json_object_get (s->told, "channel"), "formation_id");
    s->formation_id = x_strdup (id ? id : "");
    json_get_u64 (s->told, "deadline_ms", &s->deadline_ms);
    int failed = thread_start (&s->thread, listen_on, s);
    errno = failed;
    s->has_thread = ! failed;
    return ! failed || mur_fail_errno (err, E_IO_003, "cannot listen to mur-roost");
}

struct fleet_seat *
fleet_seat_take (const char *roost_url, const char *token_file, struct mur_error **err)
{
    if (! roost_url || ! *roost_url) {
        registration_refuse (NULL, "MURMUR_ROOST_URL is not set", err);
        return NULL;
    }
    struct fleet_seat *s = x_new0 (struct fleet_seat);
    s->roost_url = x_strdup (roost_url);
    s->token_file = x_strdup (token_file);
    s->http = http_client_new ();
    s->over = cancel_new ();
    s->channel[0] = s->channel[1] = s->lifeline_write = -1;
    if (await_seat (s, err) && open_pipes (s, err) && start_listening (s, err))
        return s;
    fleet_seat_free (s);
    return NULL;
}

void
fleet_seat_free (struct fleet_seat *s)
{
    if (! s)
        return;
    cancel_raise (s->over);
    if (s->has_thread)
        pthread_join (s->thread, NULL);
    for (size_t i = 0; i < ARRAY_LEN (s->channel); i++)
        if (s->channel[i] >= 0)
            close (s->channel[i]);
    json_decref (s->told); /* the lifeline stays: an end of it would be the formation's */
    cancel_unref (s->over);
    http_client_free (s->http);
    free (s->addresses);
    free (s->formation_id);
    free (s->roost_url);
    free (s->token_file);
    free (s);
}

const char *
fleet_seat_formation (const struct fleet_seat *s)
{
    return s->formation_id;
}

uint64_t
fleet_seat_deadline_ms (const struct fleet_seat *s)
{
    return s->deadline_ms;
}

int
fleet_seat_channel (struct fleet_seat *s)
{
    int fd = s->channel[0];
    s->channel[0] = -1;
    return fd;
}
