/* SPDX-License-Identifier: Apache-2.0
 *
 * A capsule on one server: a service of systemd, a container of Podman's Quadlet; and Nomad's job.
 */
#include "deploy/deploy_internal.h"

#include "base/alloc.h"

#include <string.h>

/* One word of ExecStart=: quoted, with systemd's own marks doubled. Specifiers of ours come in by
 * <is_ours>. */
static void
put_word (struct buf *out, const char *word, bool is_ours)
{
    buf_puts (out, " \"");
    for (const char *c = word; *c; c++) {
        if (*c == '"' || *c == '\\')
            buf_putc (out, '\\');
        if ((*c == '%' || *c == '$') && ! is_ours)
            buf_putc (out, *c);
        if (*c == '\n')
            buf_puts (out, "\\n");
        else
            buf_putc (out, *c);
    }
    buf_putc (out, '"');
}

static void
put_command (struct buf *out, const char *key, const char *program, json_t *arguments)
{
    _cleanup_json_ json_t *taken = arguments;
    buf_printf (out, "%s=%s", key, program);
    for (size_t i = 0; i < json_array_size (taken); i++) {
        const char *word = json_string_value (json_array_get (taken, i));
        put_word (out, word, str_starts (word, "%S/") || str_starts (word, "%d"));
    }
    buf_putc (out, '\n');
}

void
deploy_systemd (const struct deploy_facts *f, struct deploy_files *out)
{
    const struct capsule_manifest *m = f->request->manifest;
    _cleanup_free_ char *file = x_asprintf ("%s.service", f->name);
    _cleanup_free_ char *work = x_asprintf ("%%S/%s/work", f->name);
    struct buf *u = deploy_file_new (out, file);
    buf_printf (u,
                "[Unit]\nDescription=murmur capsule %s %s\nAfter=network-online.target\n"
                "Wants=network-online.target\n\n[Service]\n",
                m->name, m->version);
    buf_printf (u, "Type=%s\nDynamicUser=yes\nStateDirectory=%s %s/work\nEnvironment=HOME=%%S/%s\n",
                f->stays ? "notify" : "oneshot", f->name, f->name, f->name);
    for (size_t i = 0; i < f->keys.len; i++)
        buf_printf (u, "LoadCredential=%s:/etc/murmur/keys/%s\n", f->keys.items[i],
                    f->keys.items[i]);
    put_command (u, "ExecStart", "mur", deploy_arguments (f, f->request->capsule, work, "%d"));
    /* Sessions make control groups and namespaces of their own below it. */
    buf_printf (u,
                "Delegate=yes\nSlice=murmur.slice\nKillMode=mixed\nTimeoutStopSec=%d\nRestart=%s\n"
                "MemoryMax=%llu\n",
                DEPLOY_GRACE_SECS, f->stays ? "on-failure" : "no",
                (unsigned long long)f->memory_bytes);
    if (f->stays)
        buf_puts (u, "SuccessExitStatus=143\nTimeoutStartSec=300\n");
    if (f->cpu_percent)
        buf_printf (u, "CPUQuota=%u%%\n", f->cpu_percent);
    buf_puts (u, "NoNewPrivileges=yes\nCapabilityBoundingSet=\nPrivateDevices=yes\n"
                 "ProtectHome=yes\nProtectSystem=full\nUMask=0077\n");
    if (f->stays)
        buf_puts (u, "\n[Install]\nWantedBy=multi-user.target\n");
    buf_puts (deploy_file_new (out, "murmur.slice"),
              "[Unit]\nDescription=murmur capsules\n\n[Slice]\nTasksMax=80%\n");
}

void
deploy_quadlet (const struct deploy_facts *f, struct deploy_files *out)
{
    const struct capsule_manifest *m = f->request->manifest;
    _cleanup_free_ char *file = x_asprintf ("%s.container", f->name);
    struct buf *u = deploy_file_new (out, file);
    buf_printf (u,
                "# Podman 4.4 or newer\n[Unit]\nDescription=murmur capsule %s %s\n\n[Container]\n",
                m->name, m->version);
    buf_printf (u, "Image=%s\n", f->request->image);
    put_command (u, "Exec", "", deploy_arguments (f, "/capsule", "/work", "/run/secrets"));
    for (size_t i = 0; i < f->keys.len; i++)
        buf_printf (u, "Secret=%s,type=mount\n", f->keys.items[i]);
    if (f->request->door != DEPLOY_DOOR_NONE)
        buf_printf (u, "PublishPort=127.0.0.1:%u:%u\n", f->port, f->port);
    buf_printf (
        u,
        "Environment=HOME=/home/murmur\nVolume=%s.volume:/home/murmur\n"
        "Volume=%s-work.volume:/work\nTmpfs=/tmp\nReadOnly=true\nDropCapability=all\n"
        "NoNewPrivileges=true\n\n[Service]\nRestart=%s\nTimeoutStopSec=%d\nMemoryMax=%llu\n",
        f->name, f->name, f->stays ? "on-failure" : "no", DEPLOY_GRACE_SECS,
        (unsigned long long)f->memory_bytes);
    if (f->stays)
        buf_puts (u, "\n[Install]\nWantedBy=default.target\n");
    _cleanup_free_ char *home = x_asprintf ("%s.volume", f->name);
    _cleanup_free_ char *work = x_asprintf ("%s-work.volume", f->name);
    buf_puts (deploy_file_new (out, home), "[Volume]\n");
    buf_puts (deploy_file_new (out, work), "[Volume]\n");
}

/* The whole job, as Nomad's own API takes it. Nothing of it is started twice. */
void
deploy_nomad (const struct deploy_facts *f, struct deploy_files *out)
{
    json_t *task =
        json_pack ("{s:s, s:s, s:{s:s, s:s, s:o}, s:{s:s}, s:{s:I}, s:I}", "Name", "mur", "Driver",
                   "docker", "Config", "image", f->request->image, "command", "mur", "args",
                   deploy_arguments (f, "/capsule", "/work", "/secrets/keys"), "Env", "HOME",
                   "/home/murmur", "Resources", "MemoryMB", (json_int_t)(f->memory_bytes >> 20),
                   "KillTimeout", (json_int_t)DEPLOY_GRACE_SECS * 1000000000);
    _cleanup_json_ json_t *job = json_pack (
        "{s:{s:s, s:s, s:s, s:{s:s}, s:[{s:s, s:i, s:{s:i, s:s}, s:{s:i, s:b}, s:[o]}]}}", "Job",
        "ID", f->name, "Name", f->name, "Type", f->stays ? "service" : "batch", "Meta",
        "murmur.dev/name", f->request->manifest->name, "TaskGroups", "Name", "mur", "Count", 1,
        "RestartPolicy", "Attempts", 0, "Mode", "fail", "ReschedulePolicy", "Attempts", 0,
        "Unlimited", 0, "Tasks", task);
    _cleanup_free_ char *file = x_asprintf ("%s.nomad.json", f->name);
    _cleanup_free_ char *text = json_pretty (job, JSON_TEXT_SORTED);
    struct buf *b = deploy_file_new (out, file);
    buf_puts (b, text);
    if (text[strlen (text) - 1] != '\n')
        buf_putc (b, '\n');
}
