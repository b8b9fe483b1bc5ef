/* SPDX-License-Identifier: Apache-2.0
 *
 * An opened artifact: one buffer of a .mur.zip from which hash, manifest, contracts and payload are
 * all taken (spec/artifacts.md 3, 16.2).
 *
 * Always true: the hash is of the very bytes everything else is read from; nothing is unpacked but
 * the entries asked for, each by exact name and below the decompression ceiling.
 */
#pragma once

#include "artifact/names/wit.h"
#include "artifact/package/zip.h"
#include "base/digest.h"

struct artifact_manifest; /* manifest/settings/artifact_manifest.h */

/* The largest archive file that is read at all. */
#define PACKAGE_FILE_MAX (1ull << 30)

struct package {
    char *label; /* path or name@version, for messages */
    char *bytes; /* the whole archive */
    size_t len;
    char sha256[SHA256_HEX_LEN + 1]; /* of bytes */
    struct zip *zip;                 /* NULL until package_open_zip */
    char *manifest_text; /* packed murmur.yaml, NUL-terminated; NULL until package_open_zip */
    size_t manifest_len;
    struct artifact_manifest *manifest;
    char *signature; /* the envelope that came with it, judged by nobody; NULL: none */
    bool has_level;  /* murmur-build.json is there */
    uint64_t built_at_level;
};

/* Takes the bytes over and hashes them; the zip is not looked at. Never fails. */
struct package *package_from_bytes (char *bytes, size_t len, const char *label);
#define PACKAGE_SIGNATURE_MAX    ((size_t)65536)
#define PACKAGE_SIGNATURE_ENDING ".sig" /* of the file beside a package */
/* The envelope beside an archive; NULL: there is none. One that cannot be read, or is too long for
 * one, is "", which is none that holds. Owned. */
char *package_signature_beside (const char *archive);
/* Reads a file, and what lies beside it, once and hashes it. E-IO-001, E-IO-002, E-IO-003. */
struct package *package_from_file (const char *path, struct mur_error **err);
/* Parses the zip, the packed manifest and murmur-build.json. Call after the hash was compared with
 * whatever pins it. E-IO-003, E-MAN-*. Idempotent. */
bool package_open_zip (struct package *p, struct mur_error **err);
/* No entry leads out of the folder it would be unpacked in: not by its name, not as a link; none
 * has a set-user-id bit. Nothing here unpacks such entries; other readers may. E-IO-003. The
 * archive is open. */
bool package_check_entries (const struct package *p, struct mur_error **err);
/* The same for an archive that may be anything: false without an error when it does not open or has
 * no readable manifest. */
bool package_try_open (struct package *p);
void package_free (struct package *p);
DEFINE_CLEANUP (struct package, package_free)
#define _cleanup_package_ _cleanup_ (package_freep)

/* The entry launched as the component, by the root wasm rule. <code> is E_BLD_003 at build,
 * E_IO_003 at launch. */
const struct zip_entry *
package_root_wasm (const struct package *p, enum diag_code code, struct mur_error **err);
/* The same rule over plain names: the index of the winner, or -1 with *err set. */
int package_pick_root_wasm (const char *const *names, size_t count, enum diag_code code,
                            const char *label, struct mur_error **err);
/* The component of a script capsule's folder, by the same rule. Owned; E-RUN-004, E-IO-003. */
char *package_component_in (const char *dir_path, struct mur_error **err);
/* Inflates the selected component. E-IO-003. */
bool package_read_wasm (const struct package *p, struct buf *wasm, struct mur_error **err);
/* Inflates an entry by exact name ("skill.md", "bin/<bare>"); absent is E-IO-003 naming it. */
bool package_read_entry (const struct package *p, const char *name, struct buf *out,
                         struct mur_error **err);
/* The native executable "bin/<own name>". */
bool package_read_native (const struct package *p, struct buf *out, struct mur_error **err);

enum package_contracts {
    PACKAGE_CONTRACTS, /* read */
    PACKAGE_NOT_ZIP,
    PACKAGE_NO_WASM,
    PACKAGE_AMBIGUOUS_WASM,
    PACKAGE_OVER_CEILING,
    PACKAGE_BROKEN_ENTRY,
    PACKAGE_CORE_MODULE,
    PACKAGE_UNPARSABLE,
};

/* The contracts of the root component, telling what stood in the way. <err> (may be NULL) carries
 * the words. */
enum package_contracts
package_contracts (struct package *p, struct wit_contracts *out, struct mur_error **err);
