/* SPDX-License-Identifier: Apache-2.0
 *
 * A child as a Job (docs/fleet.md): where its door is, what may ask there without a token, and
 * where it writes.
 */
#include "tests/unit/testing.h"

#include "deploy/fleet_job.h"

#include <string.h>

static const struct strv no_names;

static struct job_facts
usual (void)
{
    return (struct job_facts){ .namespace = "tenant",
                               .image = "registry.example.com/capsules@sha256:aa",
                               .roost_url = "https://roost.tenant.svc",
                               .delegation = "dlg_00112233445566778899aabbccddeeff",
                               .context_id = "ctx_1",
                               .name = "local/child",
                               .version = "0.1.0",
                               .sha256 = "00",
                               .grant = "a grant",
                               .root = "root-1",
                               .parent_session = "ses_1",
                               .parent_job = "root-1",
                               .parent_pod = "root-1-x",
                               .parent_pod_uid = "uid",
                               .env = &no_names,
                               .run_s = 600 };
}

static json_t *
container_of (const json_t *job)
{
    const json_t *spec = json_object_get (
        json_object_get (json_object_get (json_object_get (job, "spec"), "template"), "spec"),
        "containers");
    return json_array_get (spec, 0);
}

/* The argument after <name>; NULL: it is not there. */
static const char *
argument_of (const json_t *job, const char *name)
{
    const json_t *args = json_object_get (container_of (job), "args");
    for (size_t i = 0; i + 1 < json_array_size (args); i++)
        if (str_eq (json_string_value (json_array_get (args, i)), name))
            return json_string_value (json_array_get (args, i + 1));
    return NULL;
}

static void
test_its_card_names_the_address_the_node_gives_its_pod (void **state)
{
    (void)state;
    static const struct {
        bool has_v6;
        const char *bind, *url;
    } cases[] = { { false, "0.0.0.0", "http://$(MURMUR_POD_IP):8080" },
                  { true, "::", "http://[$(MURMUR_POD_IP)]:8080" } };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct job_facts facts = usual ();
        facts.has_v6 = cases[i].has_v6;
        _cleanup_json_ json_t *job = fleet_job_object (&facts);
        assert_string_equal (argument_of (job, "--bind"), cases[i].bind);
        assert_string_equal (argument_of (job, "--public-url"), cases[i].url);
        _cleanup_free_ char *env = json_text (json_object_get (container_of (job), "env"), 0);
        assert_non_null (strstr (env, "{\"fieldRef\":{\"fieldPath\":\"status.podIP\"}}"));
    }
}

static void
test_the_probe_asks_for_the_card_at_the_door (void **state)
{
    (void)state;
    struct job_facts facts = usual ();
    _cleanup_json_ json_t *job = fleet_job_object (&facts);
    const json_t *container = container_of (job);
    _cleanup_free_ char *probe = json_text (json_object_get (container, "readinessProbe"), 0);
    assert_non_null (strstr (probe, "\"path\":\"/.well-known/agent-card.json\",\"port\":\"door\""));
    _cleanup_free_ char *ports = json_text (json_object_get (container, "ports"), 0);
    assert_string_equal (ports, "[{\"name\":\"door\",\"containerPort\":8080}]");
    assert_string_equal (argument_of (job, "--port"), "8080");
}

/* A root that is read leaves nothing else; what lies below a mount of its own is the session's. */
static void
test_each_place_it_writes_to_is_a_volume_of_its_own (void **state)
{
    (void)state;
    struct job_facts facts = usual ();
    _cleanup_json_ json_t *job = fleet_job_object (&facts);
    _cleanup_free_ char *mounts =
        json_text (json_object_get (container_of (job), "volumeMounts"), JSON_TEXT_SORTED);
    static const char *const places[] = { "/home/murmur", "/home/murmur/.murmur", "/tmp", "/work" };
    for (size_t i = 0; i < ARRAY_LEN (places); i++) {
        _cleanup_free_ char *mount = x_asprintf ("\"mountPath\":\"%s\",\"name\"", places[i]);
        assert_non_null (strstr (mounts, mount));
    }
}

static void
test_what_is_not_asked_for_is_no_argument (void **state)
{
    (void)state;
    struct job_facts facts = usual ();
    _cleanup_json_ json_t *job = fleet_job_object (&facts);
    assert_null (argument_of (job, "--records-store"));
    assert_null (argument_of (job, "--inherited-deadline"));
    facts.records_store = "s3://records/team";
    facts.inherited_deadline_ms = 1;
    _cleanup_json_ json_t *other = fleet_job_object (&facts);
    assert_string_equal (argument_of (other, "--records-store"), "s3://records/team");
    assert_string_equal (argument_of (other, "--inherited-deadline"), "1");
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_its_card_names_the_address_the_node_gives_its_pod),
        cmocka_unit_test (test_the_probe_asks_for_the_card_at_the_door),
        cmocka_unit_test (test_each_place_it_writes_to_is_a_volume_of_its_own),
        cmocka_unit_test (test_what_is_not_asked_for_is_no_argument),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
