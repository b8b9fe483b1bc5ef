/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kube/kube_object.h"

#include "base/alloc.h"
#include "base/json.h"

#include <stdio.h>

static const char *
member_of (const json_t *object, const char *map, const char *name)
{
    char key[100];
    snprintf (key, sizeof key, KUBE_OWN_PREFIX "%s", name);
    return json_get_string (json_object_get (json_object_get (object, "metadata"), map), key);
}

const char *
kube_own_label (const json_t *object, const char *name)
{
    return member_of (object, "labels", name);
}

const char *
kube_own_annotation (const json_t *object, const char *name)
{
    return member_of (object, "annotations", name);
}

const json_t *
kube_job_end (const json_t *job)
{
    size_t i;
    json_t *c;
    json_array_foreach (json_object_get (json_object_get (job, "status"), "conditions"), i, c)
    {
        const char *type = json_get_string (c, "type");
        if ((str_eq (type, "Complete") || str_eq (type, "Failed")) &&
            str_eq (json_get_string (c, "status"), "True"))
            return c;
    }
    return NULL;
}
