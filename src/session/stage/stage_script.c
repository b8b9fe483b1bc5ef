/* SPDX-License-Identifier: Apache-2.0 */
#include "session/stage/stage_script.h"
#include "fs/paths.h"

#include "base/digest.h"
#include "base/fdio.h"
#include "session/guests/guests.h"
#include "session/stage/staged.h"
#include "session/state/session.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define COMPONENT_LIMIT_BYTES ((size_t)1 << 30)

struct script_wasm {
    struct buf bytes;
};

static bool
give_bytes (void *ctx, const void **wasm, size_t *len, struct mur_error **err)
{
    (void)err;
    struct script_wasm *source = ctx;
    *wasm = source->bytes.data;
    *len = source->bytes.len;
    return true;
}

/* What is no WebAssembly at all is refused by its first bytes, however much more there is. */
static bool
check_head (const char *path, struct mur_error **err)
{
    static const char magic[4] = { 0, 'a', 's', 'm' };
    char head[sizeof magic];
    _cleanup_close_ int fd = open (path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || ! fd_read_exact (fd, head, sizeof head) ||
        memcmp (head, magic, sizeof magic) == 0)
        return true; /* what else is wrong with it, reading and compiling tell */
    return mur_fail (err, E_RUN_001,
                     "the component does not compile: %s does not begin as WebAssembly does", path);
}

static bool
read_component (const struct session *s, struct buf *wasm, struct mur_error **err)
{
    const char *path = s->asked->capsule.component_path;
    if (s->asked->capsule.package)
        return package_read_wasm (s->asked->capsule.package->package, wasm, err);
    if (! path)
        return mur_fail (err, E_RUN_001, "the capsule has neither a component nor inference");
    return check_head (path, err) && fs_read_regular (path, COMPONENT_LIMIT_BYTES, wasm, err);
}

bool
stage_script (struct session *s, struct mur_error **err)
{
    if (s->manifest->inference)
        return true;
    struct script_wasm source = { 0 };
    bool ok = read_component (s, &source.bytes, err);
    if (ok) {
        char key[SHA256_HEX_LEN + 1];
        sha256_hex (source.bytes.data, source.bytes.len, key);
        s->rooms.staged->script = guests_compile (s, key, give_bytes, &source, err);
    }
    buf_free (&source.bytes);
    return ok && guests_allow_script (s, err) && s->rooms.staged->script;
}
