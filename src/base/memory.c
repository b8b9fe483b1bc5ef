/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include "base/tokens.h"

#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

/* An object whose code was relocated in place has pages the file does not hold. */
static bool
has_written_text (const struct dl_phdr_info *object)
{
    for (ElfW (Half) i = 0; i < object->dlpi_phnum; i++) {
        const ElfW (Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_DYNAMIC)
            continue;
        const ElfW (Dyn) *entry = (const void *)(object->dlpi_addr + segment->p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++)
            if (entry->d_tag == DT_TEXTREL ||
                (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL)))
                return true;
        return false;
    }
    return true; /* nothing says that it was not */
}

/* Segments that may not be written hold what the file holds; what the loader relocates and then
 * protects lies in segments that may. */
static int
release_object (struct dl_phdr_info *object, size_t size, void *ctx)
{
    (void)size;
    const ElfW (Addr) page = *(const ElfW (Addr) *)ctx;
    if (has_written_text (object))
        return 0;
    for (ElfW (Half) i = 0; i < object->dlpi_phnum; i++) {
        const ElfW (Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W))
            continue;
        ElfW (Addr) begin = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1);
        ElfW (Addr) end = object->dlpi_addr + segment->p_vaddr + segment->p_filesz;
        /* Refused for what is no file or is locked; that stays as it is. */
        (void)madvise ((void *)begin, (size_t)(end - begin), MADV_DONTNEED);
    }
    return 0;
}

void
memory_release_idle (void)
{
    ElfW (Addr) page = (ElfW (Addr))sysconf (_SC_PAGESIZE);
    (void)malloc_trim (0);
    tokens_release_idle ();
    dl_iterate_phdr (release_object, &page);
}
