/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/hopeless.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <string.h>

static const struct {
    const char *why;
    const char *names[20];
} rows[] = {
    { "a container engine is the whole host, so its socket is out of reach; containers are started "
      "outside (network.host_sockets: [/var/run/docker.sock] gives every wall up for it)",
      { "docker", "docker-compose", "dockerd", "nerdctl", "ctr", "crictl", "kind", "minikube" } },
    { "it needs namespaces of its own, which no command is given; no key grants them, containers "
      "are started outside",
      { "podman", "buildah", "runc", "crun", "unshare", "nsenter", "bwrap", "firejail", "chroot",
        "fakechroot", "proot", "rootlesskit", "debootstrap", "mmdebstrap", "systemd-nspawn",
        "lxc" } },
    { "it would change the user, and no command gains rights here (no_new_privs); no key grants "
      "it, what needs other rights is done outside",
      { "sudo", "su", "doas", "pkexec", "runuser", "newgrp", "passwd", "chsh", "useradd",
        "groupadd", "usermod", "crontab" } },
    { "it looks into other processes (ptrace and kin), which is refused to every command; no key "
      "grants it, programs are traced outside",
      { "strace", "ltrace", "gdb", "gdbserver", "lldb", "perf", "bpftrace", "rr", "pstack", "gcore",
        "py-spy" } },
    { "mounts are refused to every command; no key grants them, what is to be seen is put into the "
      "work folder before the capsule starts",
      { "mount", "umount", "losetup", "fusermount", "fusermount3", "sshfs", "mkfs", "swapon",
        "swapoff" } },
    { "it makes its own packets or reads those of others; commands have TCP to the hosts of "
      "network.allow and their names, so ask a host with curl",
      { "ping", "ping6", "fping", "traceroute", "tracepath", "mtr", "nmap", "tcpdump", "tshark",
        "arping", "hping3" } },
    { "it asks the kernel's network tables over netlink, which is refused to every command; no key "
      "grants it, /proc/net holds what the session's own network has",
      { "ip", "iptables", "ip6tables", "nft", "tc", "ethtool", "iw", "wg", "ss" } },
    { "it asks the host's service manager over the bus, which is out of reach; a server is started "
      "as a command of the session, in the background",
      { "systemctl", "service", "journalctl", "loginctl", "systemd-run", "busctl", "dbus-send",
        "gdbus", "hostnamectl", "timedatectl", "localectl", "machinectl", "initctl" } },
    { "it changes or reads the machine's own state, which is refused to every command; no key "
      "grants it, it is done outside",
      { "dmesg", "modprobe", "insmod", "rmmod", "reboot", "shutdown", "halt", "poweroff", "hwclock",
        "kexec", "keyctl", "bpftool" } },
    { "it installs for the whole machine, whose folders no command writes; what the work needs is "
      "installed outside and named in shell.allow, packages of a project go into the work folder",
      { "apt", "apt-get", "aptitude", "dnf", "yum", "apk", "pacman", "zypper", "snap",
        "flatpak" } },
};

const char *
hopeless_why (const char *program)
{
    const char *slash = strrchr (program, '/');
    const char *name = slash ? slash + 1 : program;
    for (size_t r = 0; r < ARRAY_LEN (rows); r++)
        for (size_t i = 0; i < ARRAY_LEN (rows[r].names) && rows[r].names[i]; i++)
            if (str_eq (rows[r].names[i], name))
                return rows[r].why;
    return NULL;
}
