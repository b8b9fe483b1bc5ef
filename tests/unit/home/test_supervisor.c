/* SPDX-License-Identifier: Apache-2.0
 *
 * What a service manager is told: one state, one line, and nothing where nobody asked.
 */
#include "tests/unit/testing.h"

#include "base/alloc.h"
#include "home/supervisor.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Listens at <name>, of the file system or ("@...") the kernel's; $NOTIFY_SOCKET names it. */
static int
listen_at (const char *name)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    strcpy (at.sun_path, name);
    if (name[0] == '@')
        at.sun_path[0] = '\0';
    socklen_t size = (socklen_t)(offsetof (struct sockaddr_un, sun_path) + strlen (name));
    int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal (bind (fd, (const struct sockaddr *)&at, size), 0);
    setenv ("NOTIFY_SOCKET", name, 1);
    return fd;
}

static void
assert_heard (int fd, const char *words)
{
    char text[256] = "";
    assert_true (read (fd, text, sizeof (text) - 1) > 0);
    assert_string_equal (text, words);
}

static void
test_a_state_and_one_line_are_heard_at_a_path_and_at_a_name (void **state)
{
    (void)state;
    char folder[] = "/tmp/test_supervisor.XXXXXX";
    assert_non_null (mkdtemp (folder));
    _cleanup_free_ char *path = x_asprintf ("%s/notify", folder);
    _cleanup_free_ char *name = x_asprintf ("@test_supervisor.%d", (int)getpid ());
    const char *const places[] = { path, name };
    for (size_t i = 0; i < ARRAY_LEN (places); i++) {
        _cleanup_close_ int fd = listen_at (places[i]);
        assert_true (supervisor_is_there ());
        supervisor_tell ("READY=1", "serving at %s", "localhost:1");
        assert_heard (fd, "READY=1\nSTATUS=serving at localhost:1");
        supervisor_tell (NULL, "error: %s", "bad\nMAINPID=1");
        assert_heard (fd, "STATUS=error: bad");
    }
    unlink (path);
    rmdir (folder);
}

static void
test_nobody_is_told_where_nobody_asked (void **state)
{
    (void)state;
    static const char *const odd[] = { "", "/", "@", "notify", "vsock:2:1" };
    unsetenv ("NOTIFY_SOCKET");
    assert_false (supervisor_is_there ());
    supervisor_tell ("READY=1", "unheard");
    for (size_t i = 0; i < ARRAY_LEN (odd); i++) {
        setenv ("NOTIFY_SOCKET", odd[i], 1);
        assert_false (supervisor_is_there ());
        supervisor_tell ("READY=1", "unheard");
    }
    setenv ("NOTIFY_SOCKET", "/nonexistent/notify", 1);
    supervisor_tell ("READY=1", "unheard"); /* lost, and no more */
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_state_and_one_line_are_heard_at_a_path_and_at_a_name),
        cmocka_unit_test (test_nobody_is_told_where_nobody_asked),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
