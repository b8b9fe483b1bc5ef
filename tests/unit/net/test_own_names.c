/* SPDX-License-Identifier: Apache-2.0
 *
 * Which addresses a name may lead to.
 */
#include "tests/unit/testing.h"

#include "net/own_names.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static bool
needs_a_literal (const char *address, const char *host)
{
    struct sockaddr_storage storage = { 0 };
    struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;
    if (inet_pton (AF_INET, address, &v4->sin_addr) == 1)
        storage.ss_family = AF_INET;
    else if (inet_pton (AF_INET6, address, &v6->sin6_addr) == 1)
        storage.ss_family = AF_INET6;
    return address_needs_a_literal ((const struct sockaddr *)&storage, host);
}

static void
test_security_D5_no_name_leads_to_this_machine_unless_it_is_its_own (void **state _unused_)
{
    static const struct {
        const char *address, *host;
        bool needs;
    } rows[] = {
        { "93.184.216.34", "example.com", false },
        { "10.0.0.5", "git.example.com", false }, /* a company's own network is what was listed */
        { "127.0.0.1", "evil.test", true },
        { "127.8.9.1", "evil.test", true },
        { "0.0.0.0", "evil.test", true },
        { "::1", "evil.test", true },
        { "::", "evil.test", true },
        { "::ffff:127.0.0.1", "evil.test", true },
        { "169.254.169.254", "evil.test", true },
        { "169.254.169.254", "localhost", true },
        { "127.0.0.1", "localhost", false },
        { "127.0.0.1", "LocalHost", false },
        { "::1", "app.localhost", false },
        { "127.0.0.1", "notlocalhost", true },
        { "127.0.0.1", "127.0.0.1", false },
        { "169.254.169.254", "169.254.169.254", false },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++)
        assert_int_equal (needs_a_literal (rows[i].address, rows[i].host), rows[i].needs);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_security_D5_no_name_leads_to_this_machine_unless_it_is_its_own),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
