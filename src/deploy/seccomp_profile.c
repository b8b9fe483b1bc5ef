/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/seccomp_profile.h"

#include "base/json.h"
#include "deploy/deploy_internal.h"
#include "sandbox/kernel/syscall_filter.h"

#include <string.h>

/* What the walls are made with. Capabilities are the kernel's to judge: outside a namespace of its
 * own a pod has none. */
static const char *const walls[] = { "clone",     "clone3",        "unshare",    "setns",
                                     "mount",     "umount2",       "pivot_root", "chroot",
                                     "open_tree", "move_mount",    "fsopen",     "fsconfig",
                                     "fsmount",   "mount_setattr", "fspick",     "sethostname",
                                     "seccomp",   "setdomainname", NULL };

/* Of the runtime itself, and what its commands' own filter lets through by argument. */
static const char *const runtime[] = { "sendto",
                                       "sendmsg",
                                       "sendmmsg",
                                       "setxattr",
                                       "lsetxattr",
                                       "fsetxattr",
                                       "removexattr",
                                       "lremovexattr",
                                       "fremovexattr",
                                       "getxattr",
                                       "lgetxattr",
                                       "fgetxattr",
                                       "listxattr",
                                       "llistxattr",
                                       "flistxattr",
                                       "prlimit64",
                                       "setpriority",
                                       "ioprio_set",
                                       "sched_setparam",
                                       "sched_setscheduler",
                                       "sched_setattr",
                                       "sched_setaffinity",
                                       "pidfd_getfd",
                                       "shmget",
                                       "shmat",
                                       "shmdt",
                                       "shmctl",
                                       "msgget",
                                       "msgsnd",
                                       "msgrcv",
                                       "msgctl",
                                       "semget",
                                       "semop",
                                       "semctl",
                                       "semtimedop",
                                       "mq_open",
                                       "mq_unlink",
                                       "mq_timedsend",
                                       "mq_timedreceive",
                                       "mq_notify",
                                       "mq_getsetattr",
                                       "process_madvise",
                                       "listen",
                                       "remap_file_pages",
                                       NULL };

/* Sockets of these families alone: vsock leads to the machine below. */
static const int families[] = { 1 /* unix */, 2 /* IPv4 */, 10 /* IPv6 */, 16 /* netlink */ };

static json_t *
names_of (void)
{
    json_t *names = json_array ();
    const char *const *const lists[] = { syscall_filter_allowed, walls, runtime };
    for (size_t i = 0; i < ARRAY_LEN (lists); i++)
        for (const char *const *name = lists[i]; *name; name++)
            json_array_append_new (names, json_string (*name));
    return names;
}

static void
allow_by_argument (json_t *rules, const char *name, uint64_t value)
{
    json_array_append_new (rules, json_pack ("{s:[s], s:s, s:[{s:i, s:I, s:s}]}", "names", name,
                                             "action", "SCMP_ACT_ALLOW", "args", "index", 0,
                                             "value", (json_int_t)value, "op", "SCMP_CMP_EQ"));
}

/* The first list is what is always allowed. */
static json_t *
profile (void)
{
    json_t *rules = json_pack ("[{s:o, s:s}]", "names", names_of (), "action", "SCMP_ACT_ALLOW");
    for (size_t i = 0; i < ARRAY_LEN (families); i++)
        allow_by_argument (rules, "socket", (uint64_t)families[i]);
    for (size_t i = 0; i < SYSCALL_FILTER_PERSONALITIES; i++)
        allow_by_argument (rules, "personality", syscall_filter_personalities[i]);
    return json_pack ("{s:s, s:i, s:[s, s], s:o}", "defaultAction", "SCMP_ACT_ERRNO",
                      "defaultErrnoRet", 1, "architectures", "SCMP_ARCH_X86_64",
                      "SCMP_ARCH_AARCH64", "syscalls", rules);
}

void
seccomp_profile_json (struct buf *out)
{
    _cleanup_json_ json_t *p = profile ();
    _cleanup_free_ char *text = json_pretty (p, JSON_TEXT_ORDERED);
    buf_printf (out, "%s\n", text);
}

void
seccomp_profile_object (struct buf *out, const char *namespace)
{
    _cleanup_json_ json_t *o =
        json_pack ("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion",
                   "security-profiles-operator.x-k8s.io/v1beta1", "kind", "SeccompProfile",
                   "metadata", "name", "murmur", "namespace", namespace, "spec", profile ());
    json_object_del (json_object_get (o, "spec"), "defaultErrnoRet"); /* it has no such field */
    deploy_yaml (out, o);
}
