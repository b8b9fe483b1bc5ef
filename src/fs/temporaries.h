/* SPDX-License-Identifier: Apache-2.0
 *
 * What a writer that was killed between writing and renaming left: ".NAME.<uuid>.tmp".
 */
#pragma once

/* Removes such files of <dir_fd>, a minute old or older (younger ones may belong to a writer at
 * work), and those below it as deep as <depth> folders. No link is followed; folders named in
 * <skipped> (NULL-terminated, NULL: none) are left out. Failures are silent. */
void fs_temporaries_sweep (int dir_fd, unsigned depth, const char *const *skipped);
