/* SPDX-License-Identifier: Apache-2.0
 *
 * mur-roost: the daemon that says whether one capsule may start another (spec/spawn.md B1).
 *
 * Order: non-dumpable, arguments, census, key, bind, print, serve. Nothing is written anywhere.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/version.h"
#include "home/roost_socket.h"
#include "roost/callers.h"
#include "roost/census.h"
#include "roost/server.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

struct arguments {
    bool has_port; /* else a socket of the user's own */
    uint16_t port;
    char *socket_path;
    char *registry_path;
    struct strv spawn_allow;
    uint32_t max_depth, max_concurrent, max_live;
    bool prints_version;
};

static bool
fail (const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    diag_stderr_line ("mur-roost: %s", text);
    return false;
}

/* Eight for each core, between 16 and 256. */
static uint32_t
default_max_live (void)
{
    long cores = sysconf (_SC_NPROCESSORS_ONLN);
    long live = cores > 0 ? cores * 8 : 16;
    return (uint32_t)(live < 16 ? 16 : live > 256 ? 256 : live);
}

static bool
read_number (const char *flag, const char *text, uint64_t max, uint64_t *value)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull (text, &end, 10);
    if (! *text || *end || errno || strspn (text, "0123456789") != strlen (text) || n > max)
        return fail ("invalid %s: %s is not a whole number from 0 to %llu", flag, text,
                     (unsigned long long)max);
    *value = n;
    return true;
}

static bool
set_option (struct arguments *a, const char *flag, const char *value)
{
    const struct {
        const char *flag;
        uint32_t *field;
    } counts[] = {
        { "--max-depth", &a->max_depth },
        { "--max-concurrent", &a->max_concurrent },
        { "--max-live-capsules", &a->max_live },
    };
    uint64_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN (counts); i++)
        if (str_eq (flag, counts[i].flag)) {
            if (! read_number (flag, value, UINT32_MAX, &n))
                return false;
            *counts[i].field = (uint32_t)n;
            return true;
        }
    if (str_eq (flag, "--port")) {
        if (! read_number (flag, value, UINT16_MAX, &n))
            return false;
        a->port = (uint16_t)n;
        a->has_port = true;
    } else if (str_eq (flag, "--socket")) {
        free (a->socket_path);
        a->socket_path = x_strdup (value);
    } else if (str_eq (flag, "--registry-path")) {
        free (a->registry_path);
        a->registry_path = x_strdup (value);
    } else {
        strv_push (&a->spawn_allow, value);
    }
    return true;
}

static bool
takes_value (const char *flag)
{
    static const char *const flags[] = {
        "--port",      "--socket",         "--registry-path",    "--spawn-allow",
        "--max-depth", "--max-concurrent", "--max-live-capsules"
    };
    for (size_t i = 0; i < ARRAY_LEN (flags); i++)
        if (str_eq (flag, flags[i]))
            return true;
    return false;
}

static bool
parse (int argc, char **argv, struct arguments *a)
{
    static const char equals[] = "--spawn-allow=";
    *a = (struct arguments){ .max_depth = 3, .max_concurrent = 4, .max_live = default_max_live () };
    for (int i = 1; i < argc; i++) {
        if (str_eq (argv[i], "--version")) {
            a->prints_version = true;
            return true;
        }
        if (strncmp (argv[i], equals, sizeof equals - 1) == 0) {
            strv_push (&a->spawn_allow, argv[i] + sizeof equals - 1);
            continue;
        }
        if (! takes_value (argv[i]))
            return fail ("unknown argument: %s", argv[i]);
        if (i + 1 == argc)
            return fail ("%s needs a value", argv[i]);
        if (! set_option (a, argv[i], argv[i + 1]))
            return false;
        i++;
    }
    return true;
}

static int
print_version (void)
{
    _cleanup_error_ struct mur_error *err = NULL;
    out_printf ("mur-roost %s\n", MUR_VERSION);
    if (out_finish (&err))
        return 0;
    diag_error (err);
    return 1;
}

/* SIGTERM and SIGINT as a descriptor, so that the accept loop can wait for them. */
static int
open_stop_fd (void)
{
    sigset_t stop;
    sigemptyset (&stop);
    sigaddset (&stop, SIGTERM);
    sigaddset (&stop, SIGINT);
    sigprocmask (SIG_BLOCK, &stop, NULL);
    return signalfd (-1, &stop, SFD_CLOEXEC);
}

static struct census *
take_census (const char *home)
{
    struct mur_error *err = NULL;
    struct census_facts f;
    _cleanup_free_ char *dir = x_asprintf ("%s/.murmur/running", home);
    struct census *c = census_take (dir, &f, &err);
    if (! c) {
        fail ("%s: the live capsules of this machine cannot be counted", err->message);
        mur_error_free (err);
        return NULL;
    }
    diag_stderr_line ("mur-roost: %zu live capsules, %s: %zu records read in %.1f ms, %zu stale, "
                      "%zu unreadable",
                      f.counted, dir, f.counted + f.stale + f.unreadable, f.read_ms, f.stale,
                      f.unreadable);
    return c;
}

/* Where it listens, and what it says of that. */
struct place {
    int fd;
    char *words, *token;
};

static bool
listen_somewhere (struct arguments *a, const char *home, struct place *place,
                  struct mur_error **err)
{
    if (a->has_port) {
        uint16_t port;
        _cleanup_free_ char *path = roost_token_path ();
        place->fd = callers_bind_tcp (a->port, &port, err);
        place->words = x_asprintf ("127.0.0.1:%u", port);
        /* Without one only processes the kernel knows as this user's are answered. */
        struct mur_error *unwritten = NULL;
        place->token = callers_token (path, &unwritten);
        mur_error_free (unwritten);
        return place->fd >= 0;
    }
    if (! a->socket_path) {
        _cleanup_free_ char *folder = x_asprintf ("%s/.murmur", home);
        (void)mkdir (folder, 0700);
        a->socket_path = roost_socket_path ();
    }
    place->fd = callers_bind_socket (a->socket_path, err);
    place->words = x_asprintf ("unix:%s", a->socket_path);
    return place->fd >= 0;
}

static int
serve (struct arguments *a)
{
    struct mur_error *err = NULL;
    const char *home = getenv ("HOME");
    if (! home || ! *home)
        return fail ("HOME is not set, so the live capsules of this machine cannot be counted"), 1;
    if (! a->registry_path)
        a->registry_path = x_asprintf ("%s/.murmur/artifacts", home);
    struct census *census = take_census (home);
    if (! census)
        return 1;
    const struct referee_options options = { .registry_path = a->registry_path,
                                             .spawn_allow = a->spawn_allow.items,
                                             .max_depth = a->max_depth,
                                             .max_concurrent = a->max_concurrent,
                                             .max_live = a->max_live };
    _cleanup_ (referee_freep) struct referee *referee = referee_new (&options, census);
    _cleanup_close_ int stop_fd = open_stop_fd ();
    struct place place = { .fd = -1 };
    bool is_listening = listen_somewhere (a, home, &place, &err);
    if (! is_listening) {
        fail ("%s", err->message);
        mur_error_free (err);
    } else {
        diag_stderr_line ("mur-roost: listening on %s", place.words);
        diag_stderr_line (
            "mur-roost: at most %u live capsules on this machine (--max-live-capsules)",
            a->max_live);
        server_run (place.fd, stop_fd, referee, place.token);
        if (! a->has_port)
            (void)unlink (a->socket_path);
    }
    free (place.words);
    free (place.token);
    return is_listening ? 0 : 1;
}

int
main (int argc, char **argv)
{
    alloc_init ();
    diag_init ();
    mallopt (M_ARENA_MAX, 1); /* a thread a connection: an arena each would be most of our memory */
    if (prctl (PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        diag_plain_warning ("this process stays dumpable: %s", strerror (errno));
    struct arguments a;
    int status = 1;
    if (parse (argc, argv, &a))
        status = a.prints_version ? print_version () : serve (&a);
    free (a.registry_path);
    free (a.socket_path);
    strv_free (&a.spawn_allow);
    return status;
}
