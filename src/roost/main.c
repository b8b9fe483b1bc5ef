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
#include "home/supervisor.h"
#include "roost/callers.h"
#include "roost/census.h"
#include "roost/fleet.h"
#include "roost/front/store_reach.h"
#include "roost/front/tls.h"
#include "roost/server.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define USUAL_TLS_PORT 7743

struct arguments {
    bool has_port; /* else a socket of the user's own */
    uint16_t port;
    char *socket_path;
    char *registry_path;
    struct strv spawn_allow;
    uint32_t max_depth, max_concurrent, max_live;
    bool prints_version;
    const char *tls_folder; /* NULL: loopback or a socket alone */
    uint16_t tls_port;
    bool is_over_cluster;     /* --backend kubernetes */
    const char *cluster_only; /* a flag of it that was given */
    struct fleet_options fleet;
};

static bool
fail (const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    diag_stderr_line ("mur-roost: %s", text);
    supervisor_tell (NULL, "%s", text);
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

/* Texts of the cluster's side. */
static const char **
fleet_text (struct arguments *a, const char *flag)
{
    const struct {
        const char *flag;
        const char **field;
    } texts[] = {
        { "--kubeconfig", &a->fleet.kubeconfig },
        { "--namespace", &a->fleet.namespace },
        { "--image", &a->fleet.image },
        { "--queue", &a->fleet.queue },
        { "--seccomp-profile", &a->fleet.seccomp },
        { "--key-file", &a->fleet.key_file },
        { "--records-store", &a->fleet.records_store },
        { "--ca", &a->fleet.ca },
        { "--tls", &a->tls_folder },
        { "--roost-url", &a->fleet.roost_url },
    };
    for (size_t i = 0; i < ARRAY_LEN (texts); i++)
        if (str_eq (flag, texts[i].flag))
            return texts[i].field;
    return NULL;
}

/* One of two words. */
static bool
read_word (const char *flag, const char *value, const char *no, const char *yes, bool *is_yes)
{
    *is_yes = str_eq (value, yes);
    return *is_yes || str_eq (value, no) ||
           fail ("invalid %s: %s is neither %s nor %s", flag, value, no, yes);
}

static bool
set_fleet_option (struct arguments *a, const char *flag, const char *value)
{
    const char **text = fleet_text (a, flag);
    if (str_eq (flag, "--backend"))
        return read_word (flag, value, "local", "kubernetes", &a->is_over_cluster);
    a->cluster_only = flag;
    if (str_eq (flag, "--placement"))
        return read_word (flag, value, "local-first", "fleet", &a->fleet.places_all);
    if (str_eq (flag, "--queue-timeout"))
        return read_number (flag, value, 86400 * 7, &a->fleet.queue_timeout_s);
    if (str_eq (flag, "--tls-port")) {
        uint64_t port = 0;
        bool is_read = read_number (flag, value, UINT16_MAX, &port);
        a->tls_port = (uint16_t)port;
        return is_read;
    }
    *text = value;
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
    } else if (str_eq (flag, "--spawn-allow")) {
        strv_push (&a->spawn_allow, value);
    } else {
        return set_fleet_option (a, flag, value);
    }
    return true;
}

static bool
takes_value (const char *flag)
{
    static const char *const flags[] = { "--port",
                                         "--socket",
                                         "--registry-path",
                                         "--spawn-allow",
                                         "--max-depth",
                                         "--max-concurrent",
                                         "--max-live-capsules",
                                         "--backend",
                                         "--placement",
                                         "--kubeconfig",
                                         "--namespace",
                                         "--image",
                                         "--queue",
                                         "--queue-timeout",
                                         "--key-file",
                                         "--roost-url",
                                         "--seccomp-profile",
                                         "--ca",
                                         "--tls",
                                         "--tls-port",
                                         "--records-store" };
    for (size_t i = 0; i < ARRAY_LEN (flags); i++)
        if (str_eq (flag, flags[i]))
            return true;
    return false;
}

static bool
check_fleet (const struct arguments *a)
{
    if (! a->is_over_cluster)
        return ! a->cluster_only || fail ("%s needs --backend kubernetes", a->cluster_only);
    if (a->tls_folder && ! a->has_port)
        return fail ("--tls needs --port: what it hands on to is there");
    if (! a->fleet.image || ! a->fleet.roost_url)
        return fail ("--backend kubernetes needs --image, of the children, and --roost-url, the "
                     "URL at which pods find this referee");
    return true;
}

static bool
parse (int argc, char **argv, struct arguments *a)
{
    static const char equals[] = "--spawn-allow=";
    *a = (struct arguments){ .max_depth = 3,
                             .max_concurrent = 4,
                             .max_live = default_max_live (),
                             .tls_port = USUAL_TLS_PORT,
                             .fleet.queue_timeout_s = 600 };
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
    return check_fleet (a);
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

/* Over a cluster nothing of this machine counts. */
static struct census *
take_census (const char *home, bool is_over_cluster)
{
    struct mur_error *err = NULL;
    struct census_facts f;
    _cleanup_free_ char *dir = x_asprintf ("%s/.murmur/running", home);
    if (is_over_cluster)
        return census_take ("/nonexistent", &f, NULL);
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
    uint16_t port; /* 0: a socket */
    char *words, *token;
};

static bool
listen_somewhere (struct arguments *a, const char *home, struct place *place,
                  struct mur_error **err)
{
    if (a->has_port) {
        _cleanup_free_ char *path = roost_token_path ();
        place->fd = callers_bind_tcp (a->port, &place->port, err);
        place->words = x_asprintf ("127.0.0.1:%u", place->port);
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

/* The list of what runs there comes before the first request. */
static bool
join_cluster (struct arguments *a, struct referee *referee, struct fleet **fleet,
              struct mur_error **err)
{
    if (! a->is_over_cluster)
        return true;
    if (a->fleet.records_store && ! store_reach_check (a->fleet.records_store, err))
        return false;
    *fleet = fleet_new (&a->fleet, err);
    if (! *fleet || ! fleet_start (*fleet, referee, err))
        return false;
    if (! a->fleet.key_file)
        diag_stderr_line ("mur-roost: no --key-file: a restart revokes every credential");
    return true;
}

static bool
put_tls_before (const struct arguments *a, const struct place *place, struct tls_front **front,
                struct mur_error **err)
{
    if (! a->tls_folder)
        return true;
    *front = tls_front_start (a->tls_folder, a->tls_port, place->port, err);
    if (*front)
        diag_stderr_line ("mur-roost: TLS on port %u of every address", tls_front_port (*front));
    return *front != NULL;
}

/* With what helps, where something does. */
static void
fail_as (const struct mur_error *err)
{
    fail ("%s", err->message);
    if (err->hint)
        diag_stderr_line ("  hint: %s", err->hint);
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
    struct census *census = take_census (home, a->is_over_cluster);
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
    struct fleet *fleet = NULL;
    struct tls_front *front = NULL;
    bool is_listening = join_cluster (a, referee, &fleet, &err) &&
                        listen_somewhere (a, home, &place, &err) &&
                        put_tls_before (a, &place, &front, &err);
    if (! is_listening) {
        fail_as (err);
        mur_error_free (err);
    } else {
        diag_stderr_line ("mur-roost: listening on %s", place.words);
        diag_stderr_line (
            "mur-roost: at most %u live capsules on this machine (--max-live-capsules)",
            a->max_live);
        supervisor_tell ("READY=1", "listening on %s", place.words);
        server_run (place.fd, stop_fd, referee, place.token);
        if (front)
            tls_front_stop (front);
        if (! a->has_port)
            (void)unlink (a->socket_path);
    }
    free (place.words);
    free (place.token);
    fleet_free (fleet);
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
