/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/authorities.h"

#include "deploy/object_name.h"

void
authorities_of_container (const char *ca, json_t *env, json_t *mounts)
{
    if (! ca)
        return;
    json_array_append_new (
        env, json_pack ("{s:s, s:s}", "name", "MURMUR_CA_FILE", "value", DEPLOY_CA "/ca.crt"));
    json_array_append_new (
        mounts, json_pack ("{s:s, s:s, s:b}", "name", "ca", "mountPath", DEPLOY_CA, "readOnly", 1));
}

void
authorities_of_pod (const char *ca, json_t *volumes)
{
    if (ca)
        json_array_append_new (volumes, json_pack ("{s:s, s:{s:s, s:[{s:s, s:s}]}}", "name", "ca",
                                                   "configMap", "name", ca, "items", "key",
                                                   "ca.crt", "path", "ca.crt"));
}
