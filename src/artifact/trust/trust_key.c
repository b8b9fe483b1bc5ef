/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/trust/trust_key.h"

#include "artifact/names/name.h"
#include "base/alloc.h"
#include "base/digest.h"
#include "base/secret.h"
#include "fs/paths.h"
#include "fs/replace.h"
#include "fs/temporaries.h"
#include "home/paths.h"
#include "manifest/text/suggest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX 4096

static const char own_dir[] = "keys", trusted_dir[] = "trust";
/* What stands before the 32 bytes of a key (RFC 8410). */
static const unsigned char private_head[] = { 0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
                                              0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20 };
static const unsigned char public_head[] = { 0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                             0x2b, 0x65, 0x70, 0x03, 0x21, 0x00 };

void
trust_key_clear (struct trust_key *k)
{
    free (k->name);
    *k = (struct trust_key){ 0 };
}

static char *
pem_of (const char *label, const unsigned char *head, size_t head_len,
        const unsigned char key[ED25519_KEY_LEN])
{
    unsigned char der[sizeof private_head + ED25519_KEY_LEN];
    memcpy (der, head, head_len);
    memcpy (der + head_len, key, ED25519_KEY_LEN);
    char *text = base64_encode (der, head_len + ED25519_KEY_LEN);
    char *pem = x_asprintf ("-----BEGIN %s-----\n%s\n-----END %s-----\n", label, text, label);
    secret_wipe (der, sizeof der);
    secret_wipe (text, strlen (text));
    free (text);
    return pem;
}

static bool
read_pem (const char *pem, const char *label, const unsigned char *head, size_t head_len,
          unsigned char key[ED25519_KEY_LEN])
{
    _cleanup_free_ char *begin = x_asprintf ("-----BEGIN %s-----", label);
    const char *at = strstr (pem, begin);
    const char *end = at ? strstr (at + strlen (begin), "-----END ") : NULL;
    if (! end)
        return false;
    struct buf text = { 0 };
    for (const char *p = at + strlen (begin); p < end; p++)
        if (! strchr (" \t\r\n", *p))
            buf_putc (&text, *p);
    size_t len = 0;
    unsigned char *der = text.data ? base64_decode (text.data, text.len, &len) : NULL;
    bool ok = der && len == head_len + ED25519_KEY_LEN && memcmp (der, head, head_len) == 0;
    if (ok)
        memcpy (key, der + head_len, ED25519_KEY_LEN);
    if (der)
        secret_wipe (der, len);
    if (text.data)
        secret_wipe (text.data, text.len);
    free (der);
    buf_free (&text);
    return ok;
}

static void
fill (struct trust_key *k, const char *name)
{
    k->name = x_strdup (name);
    sha256_hex (k->public_key, ED25519_KEY_LEN, k->id);
}

static bool
check_name (const char *name, struct mur_error **err)
{
    _cleanup_free_ char *why = name_part_problem (name, strlen (name));
    return ! why || mur_fail (err, E_TRU_005, "\"%s\" is no name of a key: it %s", name, why);
}

static char *
path_of (const char *dir, const char *name, const char *ending, struct mur_error **err)
{
    _cleanup_free_ char *below = x_asprintf ("%s/%s%s", dir, name, ending);
    return home_path_below (below, err);
}

static bool
read_public (const char *path, const char *name, struct trust_key *out, enum diag_code code,
             struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_error_ struct mur_error *caught = NULL;
    *out = (struct trust_key){ 0 };
    if (! fs_read_regular (path, FILE_MAX, &text, &caught))
        return mur_fail (err, code, "%s", caught->message);
    if (! read_pem (text.data ? text.data : "", "PUBLIC KEY", public_head, sizeof public_head,
                    out->public_key)) {
        mur_fail (err, code, "%s is no public Ed25519 key in PEM", path);
        return mur_hint (err, "`mur trust keygen` makes a pair, of which others get the .pub; "
                              "`openssl pkey -pubout` makes it from a private one");
    }
    fill (out, name);
    return true;
}

/* --- one's own --- */

/* Gives what is written its name, which nothing has yet. False with errno. */
static bool
name_new (int dir_fd, const char *temp, const char *file)
{
    if (renameat2 (dir_fd, temp, dir_fd, file, RENAME_NOREPLACE) == 0)
        return true;
    bool is_named = errno == EINVAL && linkat (dir_fd, temp, dir_fd, file, 0) == 0;
    int saved = errno;
    unlinkat (dir_fd, temp, 0);
    errno = saved;
    return is_named;
}

/* A file is there whole or not at all, whenever we are killed. */
static bool
write_new (const char *dir, const char *file, const char *text, mode_t mode, struct mur_error **err)
{
    _cleanup_close_ int dir_fd = home_open_dir (dir, err);
    _cleanup_free_ char *temp = fs_temp_name (file);
    if (dir_fd < 0)
        return false;
    fs_temporaries_sweep (dir_fd, 0, NULL);
    if (fs_write_new (dir_fd, temp, temp, text, strlen (text), mode, true, true) &&
        name_new (dir_fd, temp, file))
        return true;
    if (errno != EEXIST)
        return mur_fail_errno (err, E_TRU_005, "cannot write ~/.murmur/%s/%s", dir, file);
    mur_fail (err, E_TRU_005, "~/.murmur/%s/%s is there already", dir, file);
    return mur_hint (err, "no key is replaced: take another name, or remove the file yourself");
}
bool
trust_key_names (bool is_own, struct strv *out, struct mur_error **err)
{
    _cleanup_error_ struct mur_error *caught = NULL;
    int fd = home_find_dir (is_own ? own_dir : trusted_dir, &caught);
    if (caught)
        return mur_propagate (err, steal_ptr (&caught));
    if (fd < 0)
        return true;
    _cleanup_closedir_ DIR *dir = fdopendir (fd);
    if (! dir)
        close (fd);
    for (struct dirent *e; dir && (e = readdir (dir));) {
        size_t len = strlen (e->d_name);
        if (len > 4 && str_ends (e->d_name, ".pub") && name_part_is_valid (e->d_name, len - 4))
            strv_take (out, x_strndup (e->d_name, len - 4));
    }
    if (out->len)
        strv_sort (out);
    return true;
}

static bool
hint_near_key (bool is_own, const char *typed, const char *rest, struct mur_error **err)
{
    _cleanup_strv_ struct strv names = { 0 };
    struct suggestion near = { NULL, 0 };
    trust_key_names (is_own, &names, NULL);
    for (size_t i = 0; i < names.len; i++)
        suggestion_offer (&near, typed, names.items[i]);
    return suggestion_hint (&near, rest, err);
}

static bool
check_mode (const char *path, const char *name, struct mur_error **err)
{
    struct stat st;
    if (lstat (path, &st) != 0) {
        mur_fail_errno (err, E_TRU_005, "cannot look at %s", path);
        return hint_near_key (
            true, name, "`mur trust list` shows your own keys, `mur trust keygen` makes one", err);
    }
    if (S_ISREG (st.st_mode) && st.st_uid == geteuid () && (st.st_mode & 077) == 0)
        return true;
    mur_fail (err, E_TRU_005, "%s is open to others, or not a file of yours", path);
    return mur_hint (err, "chmod 600 %s, and make a new key when others may have read it", path);
}

static bool
read_private (const char *path, const char *name, unsigned char private_key[ED25519_KEY_LEN],
              struct mur_error **err)
{
    _cleanup_error_ struct mur_error *caught = NULL;
    struct buf text = { 0 };
    if (! check_mode (path, name, err))
        return false;
    bool ok = fs_read_regular (path, FILE_MAX, &text, &caught) &&
              read_pem (text.data ? text.data : "", "PRIVATE KEY", private_head,
                        sizeof private_head, private_key);
    if (text.data)
        secret_wipe (text.data, text.len);
    buf_free (&text);
    return ok || mur_fail (err, E_TRU_005, "%s is no private Ed25519 key in PEM", path);
}

static bool
public_of (const char *path, const unsigned char private_key[ED25519_KEY_LEN],
           unsigned char public_key[ED25519_KEY_LEN], struct mur_error **err)
{
    return ed25519_public_of (private_key, public_key) ||
           mur_fail (err, E_TRU_005, "libcrypto makes no public key of %s", path);
}

bool
trust_key_read_own (const char *name, struct trust_key *out,
                    unsigned char private_key[ED25519_KEY_LEN], struct mur_error **err)
{
    unsigned char made[ED25519_KEY_LEN];
    *out = (struct trust_key){ 0 };
    if (! check_name (name, err) || ! ed25519_load (err))
        return false;
    _cleanup_free_ char *path = path_of (own_dir, name, ".key", err);
    _cleanup_free_ char *shown = path ? path_of (own_dir, name, ".pub", err) : NULL;
    if (! shown || ! read_private (path, name, private_key, err) ||
        ! public_of (path, private_key, made, err))
        return false;
    if (access (shown, F_OK) != 0) {
        mur_fail_errno (err, E_TRU_005, "cannot read %s", shown);
        return mur_hint (err, "`mur trust keygen %s` writes it from the private key", name);
    }
    if (! read_public (shown, name, out, E_TRU_005, err))
        return false;
    if (memcmp (made, out->public_key, sizeof made) == 0)
        return true;
    mur_fail (err, E_TRU_005, "%s is not the public half of %s", shown, path);
    return mur_hint (err, "remove it: `mur trust keygen %s` writes it from the private key", name);
}

/* A new private key in its file. */
static bool
new_private (const char *name, unsigned char private_key[ED25519_KEY_LEN],
             unsigned char public_key[ED25519_KEY_LEN], struct mur_error **err)
{
    if (! ed25519_new_pair (private_key, public_key))
        return mur_fail (err, E_TRU_005, "libcrypto makes no Ed25519 key");
    char *secret = pem_of ("PRIVATE KEY", private_head, sizeof private_head, private_key);
    _cleanup_free_ char *file = x_asprintf ("%s.key", name);
    bool ok = write_new (own_dir, file, secret, 0600, err);
    secret_wipe (secret, strlen (secret));
    free (secret);
    return ok;
}

bool
trust_key_generate (const char *name, char **path, struct mur_error **err)
{
    unsigned char private_key[ED25519_KEY_LEN], public_key[ED25519_KEY_LEN];
    *path = NULL;
    if (! check_name (name, err) || ! ed25519_load (err))
        return false;
    _cleanup_free_ char *own = path_of (own_dir, name, ".key", err);
    _cleanup_free_ char *shown = own ? path_of (own_dir, name, ".pub", err) : NULL;
    if (! shown)
        return false;
    bool is_half = access (own, F_OK) == 0 && access (shown, F_OK) != 0;
    bool ok = is_half ? read_private (own, name, private_key, err) &&
                            public_of (own, private_key, public_key, err)
                      : new_private (name, private_key, public_key, err);
    secret_wipe (private_key, sizeof private_key);
    if (! ok)
        return false;
    _cleanup_free_ char *text = pem_of ("PUBLIC KEY", public_head, sizeof public_head, public_key);
    _cleanup_free_ char *file = x_asprintf ("%s.pub", name);
    if (write_new (own_dir, file, text, 0644, err)) {
        *path = steal_ptr (&shown);
        return true;
    }
    if (! is_half)
        unlink (own);
    return false;
}

bool
trust_key_read_shown (const char *name, struct trust_key *out, struct mur_error **err)
{
    _cleanup_free_ char *path = path_of (own_dir, name, ".pub", err);
    return path && read_public (path, name, out, E_TRU_005, err);
}

/* --- those that are trusted --- */

bool
trust_key_read_trusted (const char *name, struct trust_key *out, struct mur_error **err)
{
    *out = (struct trust_key){ 0 };
    if (! name_part_is_valid (name, strlen (name))) {
        mur_fail (err, E_TRU_004, "trust.require names \"%s\", which is no name of a key", name);
        return mur_hint (err, "names of keys hold a-z, 0-9 and '-': `mur trust list` shows them");
    }
    _cleanup_free_ char *path = path_of (trusted_dir, name, ".pub", err);
    if (! path || ! read_public (path, name, out, E_TRU_004, err)) {
        mur_context (err, "the key \"%s\" that trust.require names", name);
        return mur_hint (err,
                         "`mur trust add %s <file.pub>` trusts it again; or take its name out "
                         "of trust.require in ~/.murmur/config.yaml",
                         name);
    }
    return true;
}

bool
trust_key_add (const char *name, const char *file, struct trust_key *out, struct mur_error **err)
{
    if (! check_name (name, err) || ! read_public (file, name, out, E_TRU_005, err))
        return false;
    _cleanup_free_ char *text =
        pem_of ("PUBLIC KEY", public_head, sizeof public_head, out->public_key);
    _cleanup_free_ char *target = x_asprintf ("%s.pub", name);
    return write_new (trusted_dir, target, text, 0644, err);
}

bool
trust_key_remove (const char *name, struct mur_error **err)
{
    if (! check_name (name, err))
        return false;
    _cleanup_free_ char *path = path_of (trusted_dir, name, ".pub", err);
    if (! path)
        return false;
    if (unlink (path) == 0)
        return true;
    if (errno != ENOENT)
        return mur_fail_errno (err, E_TRU_005, "cannot remove %s", path);
    mur_fail (err, E_TRU_005, "no key that is trusted is called %s", name);
    return hint_near_key (false, name, "`mur trust list` shows those that are", err);
}
