/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/landlock.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#define SCOPE_ABSTRACT_SOCKET (1ULL << 0)
#define SCOPE_SIGNAL          (1ULL << 1)

#define BIND_TCP      (1ULL << 0)
#define CONNECT_TCP   (1ULL << 1)
#define RULE_NET_PORT 2

#define EXECUTE     LANDLOCK_ACCESS_FS_EXECUTE
#define READ        LANDLOCK_ACCESS_FS_READ_FILE
#define LIST        LANDLOCK_ACCESS_FS_READ_DIR
#define WRITE       LANDLOCK_ACCESS_FS_WRITE_FILE
#define TRUNCATE    LANDLOCK_ACCESS_FS_TRUNCATE
#define IOCTL       LANDLOCK_ACCESS_FS_IOCTL_DEV
#define HIGHEST_ABI 7 /* no right of a later one is ever handled */

/* MAKE_CHAR and MAKE_BLOCK are granted nowhere. */
static const uint64_t grants[] = {
    [LANDLOCK_WRITABLE_TREE] = READ | WRITE | LIST | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                               LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
                               LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                               LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER | TRUNCATE,
    [LANDLOCK_SOCKETS] = LANDLOCK_ACCESS_FS_MAKE_SOCK,
    [LANDLOCK_READABLE_TREE] = READ | LIST,
    [LANDLOCK_READABLE_FILE] = READ,
    [LANDLOCK_EXECUTABLE_FILE] = EXECUTE | READ,
    [LANDLOCK_EXECUTABLE_DIR] = EXECUTE | READ,
    [LANDLOCK_EXECUTABLE_TREE] = EXECUTE | READ | LIST,
    [LANDLOCK_DEVICE_READ] = READ,
    [LANDLOCK_DEVICE_WRITE] = READ | WRITE | TRUNCATE,
    [LANDLOCK_TERMINAL] = READ | WRITE | LIST | TRUNCATE | IOCTL,
};

/* Rights that a rule on anything but a directory may carry; the kernel refuses others with EINVAL.
 */
#define FILE_RIGHTS (EXECUTE | READ | WRITE | TRUNCATE | IOCTL)

static uint64_t
handled_by (int abi)
{
    uint64_t rights = (1ULL << 13) - 1;
    if (abi >= 2)
        rights |= LANDLOCK_ACCESS_FS_REFER;
    if (abi >= 3)
        rights |= TRUNCATE;
    if (abi >= 5)
        rights |= IOCTL;
    return rights;
}

int
landlock_kernel_abi (void)
{
    long abi = syscall (SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < 0 ? 0 : (int)abi;
}

void
landlock_plan_init (struct landlock_plan *plan, int kernel_abi)
{
    *plan = (struct landlock_plan){ .abi = kernel_abi > HIGHEST_ABI ? HIGHEST_ABI : kernel_abi };
    plan->handled = handled_by (plan->abi);
}

/* Takes path_fd over. */
static void
push (struct landlock_plan *plan, int path_fd, enum landlock_grant grant, bool workdir_exec,
      bool is_directory)
{
    uint64_t rights = grants[grant];
    if (workdir_exec && grant == LANDLOCK_WRITABLE_TREE)
        rights |= EXECUTE;
    if (! is_directory)
        rights &= FILE_RIGHTS;
    x_grow (plan->rules, plan->len, plan->cap);
    plan->rules[plan->len++] =
        (struct landlock_rule){ .path_fd = path_fd, .rights = rights & plan->handled };
}

bool
landlock_plan_add (struct landlock_plan *plan, const char *path, enum landlock_grant grant,
                   bool workdir_exec, bool is_required, struct mur_error **err)
{
    _cleanup_close_ int fd = open (path, O_PATH | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat (fd, &st) < 0)
        return ! is_required || mur_fail_errno (err, E_IO_003, "cannot open %s", path);
    push (plan, steal_fd (&fd), grant, workdir_exec, S_ISDIR (st.st_mode));
    return true;
}

bool
landlock_plan_add_fd (struct landlock_plan *plan, int fd, enum landlock_grant grant,
                      bool workdir_exec, struct mur_error **err)
{
    struct stat st;
    _cleanup_close_ int copy = fcntl (fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0 || fstat (copy, &st) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot hold a granted path");
    push (plan, steal_fd (&copy), grant, workdir_exec, S_ISDIR (st.st_mode));
    return true;
}

void
landlock_plan_add_late (struct landlock_plan *plan, const char *path, enum landlock_grant grant)
{
    x_grow (plan->rules, plan->len, plan->cap);
    plan->rules[plan->len++] = (struct landlock_rule){ .path_fd = -1,
                                                       .late_path = path,
                                                       .rights = grants[grant] & plan->handled };
}

bool
landlock_plan_copy (const struct landlock_plan *plan, struct landlock_plan *out,
                    struct mur_error **err)
{
    *out = *plan;
    out->rules = NULL;
    out->len = out->cap = 0;
    out->is_prepared = false;
    for (size_t i = 0; i < plan->len; i++) {
        struct landlock_rule rule = plan->rules[i];
        if (! rule.late_path && (rule.path_fd = fcntl (rule.path_fd, F_DUPFD_CLOEXEC, 3)) < 0)
            return mur_fail_errno (err, E_IO_003, "cannot hold a granted path");
        x_grow (out->rules, out->len, out->cap);
        out->rules[out->len++] = rule;
    }
    return true;
}

void
landlock_plan_free (struct landlock_plan *plan)
{
    for (size_t i = 0; i < plan->len; i++)
        if (plan->rules[i].path_fd >= 0)
            close (plan->rules[i].path_fd);
    if (plan->is_prepared)
        close (plan->ruleset_fd);
    free (plan->rules);
    *plan = (struct landlock_plan){ 0 };
}

bool
landlock_plan_wall_network (struct landlock_plan *plan)
{
    plan->walls_network = plan->abi >= LANDLOCK_NETWORK_ABI;
    return plan->walls_network;
}

void
landlock_plan_add_port (struct landlock_plan *plan, uint16_t port)
{
    if (plan->port_count < LANDLOCK_MAX_PORTS)
        plan->ports[plan->port_count++] = port;
}

/* As of ABI 6; a kernel before it takes the members it knows. */
struct ruleset {
    uint64_t files, network, scoped;
};

static int
make_ruleset (const struct landlock_plan *plan)
{
    const struct ruleset attr = { .files = plan->handled,
                                  .network = plan->walls_network ? BIND_TCP | CONNECT_TCP : 0 };
    size_t size = plan->walls_network ? offsetof (struct ruleset, scoped) : sizeof attr.files;
    return (int)syscall (SYS_landlock_create_ruleset, &attr, size, 0);
}

static bool
add_ports (const struct landlock_plan *plan, int ruleset)
{
    for (size_t i = 0; i < plan->port_count; i++) {
        const struct {
            uint64_t access, port;
        } rule = { CONNECT_TCP, plan->ports[i] };
        if (syscall (SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0) < 0)
            return false;
    }
    return true;
}

/* Those that are late, or the others. A late path that is not there grants nothing. */
static bool
add_rules (const struct landlock_plan *plan, int ruleset, bool is_late)
{
    for (size_t i = 0; i < plan->len; i++) {
        const struct landlock_rule *r = &plan->rules[i];
        struct landlock_path_beneath_attr rule = { .allowed_access = r->rights,
                                                   .parent_fd = r->path_fd };
        struct stat st;
        if ((r->late_path != NULL) != is_late)
            continue;
        if (is_late) {
            rule.parent_fd = open (r->late_path, O_PATH | O_CLOEXEC);
            if (rule.parent_fd < 0 || fstat (rule.parent_fd, &st) < 0)
                continue;
            if (! S_ISDIR (st.st_mode))
                rule.allowed_access &= FILE_RIGHTS;
        }
        if (syscall (SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
            return false;
    }
    return true;
}

void
landlock_plan_prepare (struct landlock_plan *plan)
{
    int ruleset = make_ruleset (plan);
    if (ruleset < 0)
        return;
    plan->is_prepared = add_rules (plan, ruleset, false) && add_ports (plan, ruleset);
    plan->ruleset_fd = ruleset;
    if (! plan->is_prepared)
        close (ruleset);
}

int
landlock_restrict (const struct landlock_plan *plan)
{
    int ruleset = plan->is_prepared ? plan->ruleset_fd : make_ruleset (plan);
    if (ruleset < 0 || (! plan->is_prepared &&
                        (! add_rules (plan, ruleset, false) || ! add_ports (plan, ruleset))))
        return -1;
    /* A prepared one is shared: the first command adds them for all. */
    if (! add_rules (plan, ruleset, true))
        return -1;
    int status = (int)syscall (SYS_landlock_restrict_self, ruleset, 0);
    if (! plan->is_prepared)
        close (ruleset);
    return status;
}

int
landlock_share_scope (bool with_sockets)
{
    const struct ruleset attr = { .scoped =
                                      SCOPE_SIGNAL | (with_sockets ? SCOPE_ABSTRACT_SOCKET : 0) };
    int ruleset = (int)syscall (SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (ruleset < 0)
        return -1;
    int status = (int)syscall (SYS_landlock_restrict_self, ruleset, 0);
    int saved = errno;
    close (ruleset);
    errno = saved;
    return status;
}
