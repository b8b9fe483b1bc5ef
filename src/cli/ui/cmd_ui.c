/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur ui`: the page of this host's sessions, served to a browser on the same host.
 *
 * Always true: it is a process of its own, listens on the loopback address alone, and nothing a
 * session does depends on it.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/memory.h"
#include "cli/line/args.h"
#include "cli/line/own_command.h"
#include "cli/ui/commands.h"
#include "cli/ui/ui_fleet.h"
#include "cli/ui/ui_page.h"
#include "cli/ui/ui_server.h"
#include "home/paths.h"
#include "net/http_client.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the address --- */

/* The token is in the part of an address that a browser sends nowhere. */
static char *
address_of (const struct ui_server *server, const struct ui_gate *gate)
{
    return x_asprintf ("http://127.0.0.1:%u/#%s", ui_server_port (server),
                       secret_reveal (ui_gate_token (gate)));
}

static void
announce (const struct cli_args *args, const struct ui_server *server, const char *address)
{
    if (cli_has (args, "--json")) {
        json_t *said = json_object ();
        json_set_string (said, "url", address);
        json_set_u64 (said, "port", ui_server_port (server));
        json_set_u64 (said, "pid", (uint64_t)getpid ());
        char *text = json_text (said, JSON_TEXT_ORDERED);
        diag_secret_line (text);
        json_decref (said);
        secret_wipe (text, strlen (text));
        free (text);
        return;
    }
    char *line = x_asprintf ("ui: %s", address);
    diag_secret_line (line);
    secret_wipe (line, strlen (line));
    free (line);
}

/* A file only this user may read leads there: what a program is started with, others may read. */
static char *
write_way_in (const char *address, struct mur_error **err)
{
    _cleanup_free_ char *name = x_asprintf ("sessions/.ui-%d.html", (int)getpid ());
    _cleanup_free_ char *path = home_path_below (name, err);
    _cleanup_close_ int folder = path ? home_open_dir ("sessions", err) : -1;
    if (folder < 0)
        return NULL;
    _cleanup_free_ char *text = x_asprintf (
        "<!doctype html><meta charset=\"utf-8\"><title>murmur</title>"
        "<meta http-equiv=\"refresh\" content=\"0;url=%s\"><a href=\"%s\">the page</a>\n",
        address, address);
    unlink (path);
    _cleanup_close_ int fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool is_written = fd >= 0 && write (fd, text, strlen (text)) == (ssize_t)strlen (text);
    secret_wipe (text, strlen (text));
    if (is_written)
        return steal_ptr (&path);
    mur_fail_errno (err, E_IO_003, "cannot write %s", path);
    return NULL;
}

static void
open_browser (const char *path)
{
    pid_t pid = fork ();
    if (pid == 0) {
        own_command_default_signals ();
        execlp ("xdg-open", "xdg-open", path, (char *)NULL);
        _exit (127);
    }
    int status = 0;
    while (pid > 0 && waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || ! WIFEXITED (status) || WEXITSTATUS (status))
        diag_note ("no browser could be opened (xdg-open): open the address above");
}

/* --- until it is told to end --- */

static void
block_signals (sigset_t *ending)
{
    sigemptyset (ending);
    sigaddset (ending, SIGINT);
    sigaddset (ending, SIGTERM);
    sigaddset (ending, SIGHUP);
    pthread_sigmask (SIG_BLOCK, ending, NULL);
}

static bool
serve (const struct cli_args *args, struct ui_server *server, struct ui_gate *gate,
       struct ui_world *world, const sigset_t *ending, struct mur_error **err)
{
    ui_gate_set_hosts (gate, ui_server_port (server), cli_value (args, "--allow-host"));
    if (! ui_world_start (world, err) || ! ui_server_serve (server, err))
        return false;
    char *address = address_of (server, gate);
    _cleanup_free_ char *way_in = NULL;
    bool opens = cli_has (args, "--open");
    announce (args, server, address);
    if (opens)
        way_in = write_way_in (address, err);
    secret_wipe (address, strlen (address));
    free (address);
    if (opens && ! way_in)
        return false;
    if (! ui_page_has_parts)
        diag_plain_warning ("mur was built without the parts of its page; only its data is served "
                            "(scripts/bootstrap web, then make build)");
    if (way_in)
        open_browser (way_in);
    int signal;
    memory_release_idle ();
    while (sigwait (ending, &signal) != 0)
        ;
    if (way_in)
        unlink (way_in);
    return true;
}

/* With --fleet the sessions of a cluster, too. */
static struct ui_world *
new_world (const struct cli_args *args, struct http_client *client, struct ui_hub *hub,
           struct mur_error **err)
{
    _cleanup_ (ui_world_freep) struct ui_world *world =
        ui_world_new (cli_value (args, "--workdir"), client, hub, err);
    if (! world || ! cli_has (args, "--fleet"))
        return steal_ptr (&world);
    struct ui_fleet *fleet = ui_fleet_new (cli_value (args, "--kubeconfig"),
                                           cli_value (args, "--namespace"), client, err);
    if (! fleet)
        return NULL;
    ui_world_set_fleet (world, fleet);
    return steal_ptr (&world);
}

int
cmd_ui (const struct cli_args *args, struct mur_error **err)
{
    sigset_t ending;
    block_signals (&ending);
    bool is_read_only = cli_has (args, "--read-only");
    _cleanup_ (ui_gate_freep) struct ui_gate *gate =
        ui_gate_new (cli_value (args, "--token-file"), err);
    if (! gate)
        return CLI_FAILED;
    struct ui_hub *hub = ui_hub_new ();
    struct http_client *client = http_client_new ();
    struct ui_world *world = new_world (args, client, hub, err);
    const char *workdir = cli_value (args, "--workdir");
    struct ui_acts *acts = world ? ui_acts_new (world, client, workdir, is_read_only) : NULL;
    struct ui_server_parts parts = { gate, hub, world, acts, workdir, is_read_only };
    struct ui_server *server =
        world ? ui_server_bind (&parts, (unsigned)cli_number (args, "--port"), err) : NULL;
    bool is_ok = server && serve (args, server, gate, world, &ending, err);
    ui_server_free (server);
    ui_acts_free (acts);
    ui_world_free (world);
    http_client_free (client);
    ui_hub_free (hub);
    return is_ok ? CLI_OK : CLI_FAILED;
}
