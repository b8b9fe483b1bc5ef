/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kube/kube_object.h"

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
