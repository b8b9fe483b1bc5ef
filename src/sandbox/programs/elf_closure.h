/* SPDX-License-Identifier: Apache-2.0
 *
 * What an executable needs besides itself: its ELF interpreter and the libraries it names,
 * transitively (spec/containment.md 8.1). Files are read by position, never whole; a file that does
 * not parse contributes only itself.
 */
#pragma once

#include "base/buf.h"

/* Adds the canonical paths of <path>, its interpreter and its NEEDED closure to <out>, each once,
 * breadth first. */
void elf_closure (const char *path, struct strv *out);

/* True when the file's dynamic symbol table defines or names <symbol> ("Py_BytesMain"). */
bool elf_has_symbol (const char *path, const char *symbol);

/* From an image in memory (a native tool the runtime wrote itself): the absolute "#!" interpreter,
 * absolute PT_INTERP and NEEDED libraries through absolute run paths without $ORIGIN. Nothing below
 * <excluded_dir> is read or added. */
void elf_image_closure (const void *image, size_t len, const char *excluded_dir, struct strv *out);
