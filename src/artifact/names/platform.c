/* SPDX-License-Identifier: Apache-2.0
 *
 * Platform tags and image headers.
 */
#include "artifact/names/platform.h"

#include "base/buf.h"

#include <string.h>

static const char *const tags[] = {
    "darwin-aarch64",
    "darwin-x86_64",
    "linux-aarch64",
    "linux-x86_64",
};

const char *
platform_host (void)
{
#if defined(__linux__) && defined(__x86_64__)
    return "linux-x86_64";
#elif defined(__linux__) && defined(__aarch64__)
    return "linux-aarch64";
#elif defined(__APPLE__) && defined(__x86_64__)
    return "darwin-x86_64";
#elif defined(__APPLE__) && defined(__aarch64__)
    return "darwin-aarch64";
#else
    return "unknown";
#endif
}

bool
platform_is_tag (const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN (tags); i++)
        if (strcmp (text, tags[i]) == 0)
            return true;
    return false;
}

const char *
platform_of_file (const char *file_name)
{
    static const char ending[] = ".mur.zip";
    if (! str_ends (file_name, ending))
        return NULL;
    size_t stem = strlen (file_name) - strlen (ending);
    for (size_t i = 0; i < ARRAY_LEN (tags); i++) {
        size_t len = strlen (tags[i]);
        if (stem > len && file_name[stem - len - 1] == '-' &&
            memcmp (file_name + stem - len, tags[i], len) == 0)
            return tags[i];
    }
    return NULL;
}

/* --- images --- */

static const char *
elf_platform (const unsigned char *b)
{
    bool is_little = b[5] == 1;
    if (b[4] != 2 || (! is_little && b[5] != 2))
        return NULL;
    unsigned machine = is_little ? b[18] | (unsigned)b[19] << 8 : b[19] | (unsigned)b[18] << 8;
    return machine == 0x3e ? "linux-x86_64" : machine == 0xb7 ? "linux-aarch64" : NULL;
}

static const char *
macho_platform (const unsigned char *b, bool is_little)
{
    uint32_t type =
        is_little
            ? (uint32_t)b[4] | (uint32_t)b[5] << 8 | (uint32_t)b[6] << 16 | (uint32_t)b[7] << 24
            : (uint32_t)b[7] | (uint32_t)b[6] << 8 | (uint32_t)b[5] << 16 | (uint32_t)b[4] << 24;
    return type == 0x01000007 ? "darwin-x86_64" : type == 0x0100000c ? "darwin-aarch64" : NULL;
}

const char *
platform_of_binary (const void *image, size_t len)
{
    const unsigned char *b = image;
    if (len >= 64 && memcmp (b,
                             "\x7f"
                             "ELF",
                             4) == 0)
        return elf_platform (b);
    if (len >= 8 && memcmp (b, "\xcf\xfa\xed\xfe", 4) == 0)
        return macho_platform (b, true);
    if (len >= 8 && memcmp (b, "\xfe\xed\xfa\xcf", 4) == 0)
        return macho_platform (b, false);
    if (len >= 4 && memcmp (b, "\xca\xfe\xba\xbe", 4) == 0)
        return "darwin";
    return NULL;
}

bool
platform_check_binary (const char *artifact, const void *image, size_t len, struct mur_error **err)
{
    const char *found = platform_of_binary (image, len);
    const char *host = platform_host ();
    if (! found || strcmp (host, "unknown") == 0 || strcmp (found, host) == 0)
        return true;
    if (strcmp (found, "darwin") == 0 && str_starts (host, "darwin-"))
        return true;
    return mur_fail (err, E_RUN_021, "%s: its binary was built for %s%s and this host is %s",
                     artifact, found, strcmp (found, "darwin") == 0 ? " (universal)" : "", host);
}
