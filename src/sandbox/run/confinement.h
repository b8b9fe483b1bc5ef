/* SPDX-License-Identifier: Apache-2.0
 *
 * What every native subprocess of one session is confined by: made once from the policy and the
 * host probe, then used for each spawn (spec/containment.md 7.1).
 *
 * Thread-safe after confinement_new: the namespaces are made by the first spawn, exactly once.
 * Always true: a subprocess that cannot be confined as decided is never started.
 */
#pragma once

#include "policy/containment.h"
#include "sandbox/egress/egress.h"
#include "sandbox/host/probe.h"
#include "sandbox/programs/exec_allowlist.h"
#include "sandbox/run/spawn.h"

enum confinement_tier {
    CONFINEMENT_SECCOMP, /* no usable Landlock */
    CONFINEMENT_LANDLOCK,
    CONFINEMENT_SEALED,
};

/* A runtime that must be reachable for an interpreter: capabilities.shell.interpreter_runtime and
 * staged_runtime. */
struct confinement_tree {
    const char *path;
    bool is_listable;
    bool is_staged; /* bound at its own path under sealed, and required */
};

/* Everything is borrowed for the confinement's life. Paths are absolute and canonical. */
struct confinement_spec {
    const char *session_id;
    enum confinement_tier tier;
    const struct host_probe *probe;
    struct mount_folders folders;   /* sealed_etc with mount_synthetic_etc written */
    const char *const *shell_allow; /* NULL-terminated */
    const char *path;               /* PATH the names are resolved on */
    const char *const *staged;      /* names with a staged runtime; NULL-terminated, may be NULL */
    const struct confinement_tree *trees;
    size_t tree_count;
    enum session_space space; /* but SPACE_OWN: there are no namespaces */
    bool workdir_exec;
    bool allows_unix_sockets;
    const char *const *host_sockets; /* of the host, to be reached all the same; NULL-terminated,
                                        may be NULL */
    /* capabilities.network.allow, parsed; empty: nothing leaves */
    const struct allow_list *network;
    struct spawn_limits limits; /* max_processes as declared */
    /* limits.memory_bytes was asked for; else it holds only where no control group bounds memory */
    bool memory_is_declared;
    struct cgroup_limits cgroup;
    bool cgroup_is_optional; /* operator's resources.cgroup */
};

struct confinement;

/* Resolves the allowlist, compiles the filter and creates the control group. E-RUN-012 when no
 * group can be had and it is not optional, E-RUN-014, E-IO-003. */
struct confinement *confinement_new (const struct confinement_spec *spec, struct mur_error **err);
/* Ends every subprocess of the session, then lets go of group and namespace. */
void confinement_free (struct confinement *c);
DEFINE_CLEANUP (struct confinement, confinement_free)

const struct exec_allowlist *confinement_allowlist (const struct confinement *c);
/* Certificate files and directories its commands may read. */
const struct strv *confinement_trust_store (const struct confinement *c);
/* Commands have mounts of their own: what /etc names is the session's there. */
bool confinement_has_mounts (const struct confinement *c);
/* Their root is composed: of the host only what was put there can be named. */
bool confinement_has_root (const struct confinement *c);
/* Its commands have unix sockets of their own. */
bool confinement_has_sockets (const struct confinement *c);
/* What every program may read, whatever is allowed. */
const struct strv *confinement_public (const struct confinement *c);
/* Why there is no control group although one was wanted (optional), or NULL. */
const char *confinement_cgroup_shortfall (const struct confinement *c);
const struct cgroup_scope *confinement_scope (const struct confinement *c);
/* Bytes of files in the session's folders that its processes hold open and nobody finds any more.
 */
uint64_t confinement_unlinked_bytes (const struct confinement *c);
/* NAME=value entries by which programs find the egress relay where they have no network of their
 * own. NULL-terminated, in the confinement's arena; empty elsewhere. */
const char *const *confinement_proxy_env (const struct confinement *c);
/* Where a command finds its temporary folder: "/tmp" when mapped, else the folder's own path. */
const char *confinement_temp_dir (const struct confinement *c);
/* What is kept of one command's output at most: capabilities.resources.max_file_size_bytes. */
uint64_t confinement_output_max (const struct confinement *c);
/* The session's namespaces with their mounts and egress relay, made on first use. NULL with
 * E-CAP-005, E-RUN-014 when the composed root could not be built (the session must end), E-IO-003.
 */
const struct session_namespaces *
confinement_namespaces (struct confinement *c, struct mur_error **err);

struct confined_program {
    const char *path; /* what is executed */
    char *const *argv;
    char *const *env;
    int stdin_fd, stdout_fd, stderr_fd;
    const struct strv *closure;     /* further executable files of this spawn alone; may be NULL */
    const struct cgroup_nest *nest; /* where it runs within the scope; NULL: the scope itself */
    bool is_heard;                  /* as spawn_request */
};

/* Starts one. Errors of confinement_namespaces and of sandbox_spawn. */
bool confinement_spawn (struct confinement *c, const struct confined_program *program,
                        struct spawned *out, struct mur_error **err);
/* Tells the listener of the allow list what commands asked of the network and did not get. */
void confinement_tell_network (struct confinement *c);
/* What bounds the addresses of one of its processes; 0: nothing. */
uint64_t confinement_memory_bytes (const struct confinement *c);
/* Kills everything that runs in it. */
void confinement_kill_all (struct confinement *c);

/* Counts commands under way, for attribution: a counter belongs to a call only when it was alone
 * throughout. */
struct occupancy {
    struct cgroup_counters before;
    uint64_t entries;
    bool was_alone;
};
void confinement_enter (struct confinement *c, struct occupancy *o);
/* Leaves; returns the capabilities.resources key that stopped the command, judged by its signal,
 * else by counters, or NULL. <signal_number> is 0 for a normal exit. Beside others a command that
 * was killed, or reports that one of its processes was, is taken for the one the kernel killed for
 * memory meanwhile. */
const char *
confinement_leave (struct confinement *c, struct occupancy *o, int signal_number, int exit_code);
