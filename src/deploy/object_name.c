/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/object_name.h"

#include "base/alloc.h"

#include <ctype.h>
#include <string.h>

char *
deploy_object_name (const char *capsule)
{
    const char *bare = strrchr (capsule, '/');
    char *name = x_asprintf ("mur-%.48s", bare ? bare + 1 : capsule);
    for (char *c = name; *c; c++)
        *c = isalnum ((unsigned char)*c) ? (char)tolower ((unsigned char)*c) : '-';
    for (size_t len = strlen (name); name[len - 1] == '-'; len--)
        name[len - 1] = '\0';
    return name;
}
