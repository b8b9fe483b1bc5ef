/* SPDX-License-Identifier: Apache-2.0
 *
 * Zip archives in memory: minizip walks the directory and writes, the inflating is done here so
 * that every byte that comes out is counted.
 */
#include "artifact/package/zip.h"

#include "base/alloc.h"

#include <errno.h>
#include <limits.h>
#include <minizip/unzip.h>
#include <minizip/zip.h>
#include <string.h>
#include <zlib.h>

#define ZIP_FLAG_ENCRYPTED   1u
#define ZIP_DOS_EPOCH        ((1u << 21) | (1u << 16)) /* 1980-01-01 00:00:00 */
#define ZIP_MADE_BY_UNIX     ((3u << 8) | 20u)
#define ZIP_MODE_0644        (0100644u << 16)
#define ZIP_ENTRIES_MAX      65535u
#define ZIP_NAME_MAX         4096u
#define DIRECTORY_RECORD_LEN 46u /* of the zip format, names not counted */
#define LOCAL_HEADER_LEN     30u
#define INFLATE_PIECE        (64u * 1024)

uint64_t
zip_ceiling (void)
{
    const char *text = getenv ("MURMUR_MAX_ARTIFACT_DECOMPRESSED_BYTES");
    if (! text || text[0] < '0' || text[0] > '9')
        return ZIP_DEFAULT_CEILING;
    errno = 0;
    char *end;
    unsigned long long value = strtoull (text, &end, 10);
    return errno == 0 && *end == '\0' ? value : ZIP_DEFAULT_CEILING;
}

/* --- a file that is a piece of memory --- */

struct memory_file {
    const char *data;    /* reading */
    struct buf *written; /* writing */
    uint64_t len, at;
};

static voidpf ZCALLBACK
memory_open (voidpf opaque, const void *name, int mode)
{
    (void)name;
    (void)mode;
    return opaque;
}

static uLong ZCALLBACK
memory_read (voidpf opaque, voidpf stream, void *out, uLong size)
{
    (void)opaque;
    struct memory_file *f = stream;
    uint64_t left = f->at < f->len ? f->len - f->at : 0;
    uLong taken = size < left ? size : (uLong)left;
    if (taken)
        memcpy (out, f->data + f->at, taken);
    f->at += taken;
    return taken;
}

static uLong ZCALLBACK
memory_write (voidpf opaque, voidpf stream, const void *data, uLong size)
{
    (void)opaque;
    struct memory_file *f = stream;
    /* Headers are patched in place once an entry's size is known; everything else is appended. */
    if (f->at < f->written->len) {
        uint64_t in_place = f->written->len - f->at;
        if (in_place > size)
            in_place = size;
        memcpy (f->written->data + f->at, data, (size_t)in_place);
        buf_append (f->written, (const char *)data + in_place, (size_t)(size - in_place));
    } else {
        buf_append (f->written, data, size);
    }
    f->at += size;
    f->len = f->written->len;
    return size;
}

static ZPOS64_T ZCALLBACK
memory_tell (voidpf opaque, voidpf stream)
{
    (void)opaque;
    return ((struct memory_file *)stream)->at;
}

static long ZCALLBACK
memory_seek (voidpf opaque, voidpf stream, ZPOS64_T offset, int origin)
{
    (void)opaque;
    struct memory_file *f = stream;
    uint64_t base = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                    : origin == ZLIB_FILEFUNC_SEEK_CUR ? f->at
                                                       : f->len;
    uint64_t target;
    if (__builtin_add_overflow (base, (uint64_t)offset, &target) || target > f->len)
        return -1;
    f->at = target;
    return 0;
}

static int ZCALLBACK
memory_close (voidpf opaque, voidpf stream)
{
    (void)opaque;
    (void)stream;
    return 0;
}

static int ZCALLBACK
memory_error (voidpf opaque, voidpf stream)
{
    (void)opaque;
    (void)stream;
    return 0;
}

static zlib_filefunc64_def
memory_functions (struct memory_file *file)
{
    return (zlib_filefunc64_def){
        .zopen64_file = memory_open,
        .zread_file = memory_read,
        .zwrite_file = memory_write,
        .ztell64_file = memory_tell,
        .zseek64_file = memory_seek,
        .zclose_file = memory_close,
        .zerror_file = memory_error,
        .opaque = file,
    };
}

/* --- opening --- */

struct zip {
    struct memory_file file;
    unzFile handle;
    char *label;
    struct buf names; /* all names, NUL after each */
    struct zip_entry *entries;
    const struct zip_entry **by_name; /* sorted, for zip_find */
    size_t count;
};

static bool
refuse (const struct zip *z, struct mur_error **err, const char *why)
{
    return mur_fail (err, E_IO_003, "%s: not a usable zip archive: %s", z->label, why);
}

/* Reads the record minizip stands on; entry->name holds an offset into z->names until all are read.
 */
static bool
take_entry (struct zip *z, struct mur_error **err)
{
    unz_file_info64 info;
    unz64_file_pos position;
    if (unzGetCurrentFileInfo64 (z->handle, &info, NULL, 0, NULL, 0, NULL, 0) != UNZ_OK ||
        unzGetFilePos64 (z->handle, &position) != UNZ_OK)
        return refuse (z, err, "its directory does not parse");
    if (info.size_filename == 0 || info.size_filename > ZIP_NAME_MAX)
        return refuse (z, err, "an entry's name is empty or too long");
    size_t offset = z->names.len;
    char *name = buf_reserve (&z->names, info.size_filename + 1);
    if (unzGetCurrentFileInfo64 (z->handle, NULL, name, info.size_filename + 1, NULL, 0, NULL, 0) !=
        UNZ_OK)
        return refuse (z, err, "its directory does not parse");
    name[info.size_filename] = '\0';
    if (strlen (name) != info.size_filename)
        return refuse (z, err, "an entry's name holds a NUL byte");
    z->names.len += info.size_filename + 1;
    z->entries[z->count++] = (struct zip_entry){
        .name = (const char *)offset,
        .declared_size = info.uncompressed_size,
        .mode = info.version >> 8 == ZIP_MADE_BY_UNIX >> 8 ? (uint32_t)(info.external_fa >> 16) : 0,
        .position = position.pos_in_zip_directory,
        .number = position.num_of_file,
    };
    return true;
}

static int
by_name (const void *a, const void *b)
{
    return strcmp ((*(const struct zip_entry *const *)a)->name,
                   (*(const struct zip_entry *const *)b)->name);
}

static bool
index_names (struct zip *z, struct mur_error **err)
{
    z->by_name = x_new_array (const struct zip_entry *, z->count ? z->count : 1);
    for (size_t i = 0; i < z->count; i++) {
        z->entries[i].name = z->names.data + (uintptr_t)z->entries[i].name;
        z->by_name[i] = &z->entries[i];
    }
    qsort (z->by_name, z->count, sizeof (*z->by_name), by_name);
    for (size_t i = 1; i < z->count; i++)
        if (strcmp (z->by_name[i - 1]->name, z->by_name[i]->name) == 0)
            return mur_fail (err, E_IO_003, "%s: not a usable zip archive: it holds \"%s\" twice",
                             z->label, z->by_name[i]->name);
    return true;
}

static bool
read_directory (struct zip *z, struct mur_error **err)
{
    unz_global_info64 global;
    if (unzGetGlobalInfo64 (z->handle, &global) != UNZ_OK)
        return refuse (z, err, "its directory does not parse");
    /* A record takes at least 46 bytes, so an archive cannot hold more entries than this. */
    if (global.number_entry > ZIP_ENTRIES_MAX ||
        global.number_entry > z->file.len / DIRECTORY_RECORD_LEN)
        return refuse (z, err, "it declares more entries than it can hold");
    z->entries = x_new_array (struct zip_entry, global.number_entry ? global.number_entry : 1);
    int at = global.number_entry ? unzGoToFirstFile (z->handle) : UNZ_END_OF_LIST_OF_FILE;
    while (at == UNZ_OK && z->count < global.number_entry) {
        if (! take_entry (z, err))
            return false;
        at = unzGoToNextFile (z->handle);
    }
    if (z->count != global.number_entry)
        return refuse (z, err, "its directory is cut short");
    return index_names (z, err);
}

struct zip *
zip_open (const void *data, size_t len, const char *label, struct mur_error **err)
{
    _cleanup_ (zip_closep) struct zip *z = x_new0 (struct zip);
    z->label = x_strdup (label);
    z->file = (struct memory_file){ .data = data, .len = len };
    zlib_filefunc64_def functions = memory_functions (&z->file);
    z->handle = unzOpen2_64 (label, &functions);
    if (! z->handle)
        return refuse (z, err, "no zip directory in it"), NULL;
    return read_directory (z, err) ? steal_ptr (&z) : NULL;
}

void
zip_close (struct zip *z)
{
    if (z->handle)
        unzClose (z->handle);
    free (z->label);
    buf_free (&z->names);
    free (z->entries);
    free (z->by_name);
    free (z);
}

size_t
zip_count (const struct zip *z)
{
    return z->count;
}

const struct zip_entry *
zip_at (const struct zip *z, size_t i)
{
    return i < z->count ? &z->entries[i] : NULL;
}

const struct zip_entry *
zip_find (const struct zip *z, const char *name)
{
    struct zip_entry wanted = { .name = name };
    const struct zip_entry *key = &wanted;
    const struct zip_entry **found =
        bsearch (&key, z->by_name, z->count, sizeof (*z->by_name), by_name);
    return found ? *found : NULL;
}

bool
zip_name_is_root (const char *name)
{
    return name[0] && ! strpbrk (name, "/\\") && strcmp (name, ".") != 0 &&
           strcmp (name, "..") != 0;
}

/* --- reading one entry --- */

struct reading {
    struct zip *zip;
    const struct zip_entry *entry;
    uint64_t ceiling, produced;
    uLong crc;
    zip_sink_fn *sink;
    void *ctx;
    bool is_over_ceiling;
};

static bool
entry_fault (const struct reading *r, struct mur_error **err, const char *why)
{
    return mur_fail (err, E_IO_003, "%s: entry \"%s\" %s", r->zip->label, r->entry->name, why);
}

static bool
take_output (struct reading *r, const void *data, size_t len, struct mur_error **err)
{
    r->produced += len;
    if (r->produced > r->ceiling) {
        r->is_over_ceiling = true;
        return mur_fail (err, E_IO_003,
                         "%s: entry \"%s\" is larger than the decompression ceiling of %llu bytes",
                         r->zip->label, r->entry->name, (unsigned long long)r->ceiling);
    }
    if (r->produced > r->entry->declared_size)
        return entry_fault (r, err, "inflates past its declared size");
    r->crc = crc32 (r->crc, data, (uInt)len);
    r->sink (r->ctx, data, len);
    return true;
}

static unsigned
get_u16 (const unsigned char *at)
{
    return at[0] | (unsigned)at[1] << 8;
}

static uint32_t
get_u32 (const unsigned char *at)
{
    return get_u16 (at) | (uint32_t)get_u16 (at + 2) << 16;
}

/* Where an entry's packed bytes lie, found through the directory alone: sizes in the local header
 * are not looked at. */
static const unsigned char *
locate_data (const struct reading *r, uint64_t packed_len)
{
    const unsigned char *bytes = (const unsigned char *)r->zip->file.data;
    uint64_t len = r->zip->file.len;
    if (r->entry->position > len || len - r->entry->position < DIRECTORY_RECORD_LEN)
        return NULL;
    const unsigned char *record = bytes + r->entry->position;
    uint64_t header_at = get_u32 (record + 42);
    if (memcmp (record, "PK\1\2", 4) != 0 || header_at > len || len - header_at < LOCAL_HEADER_LEN)
        return NULL;
    const unsigned char *header = bytes + header_at;
    uint64_t data_at = header_at + LOCAL_HEADER_LEN + get_u16 (header + 26) + get_u16 (header + 28);
    if (memcmp (header, "PK\3\4", 4) != 0 || data_at > len || packed_len > len - data_at)
        return NULL;
    return bytes + data_at;
}

static bool
read_stored (struct reading *r, const unsigned char *data, size_t len, struct mur_error **err)
{
    for (size_t at = 0; at < len; at += INFLATE_PIECE)
        if (! take_output (r, data + at, len - at < INFLATE_PIECE ? len - at : INFLATE_PIECE, err))
            return false;
    return true;
}

static bool
inflate_all (struct reading *r, z_stream *stream, struct mur_error **err)
{
    unsigned char piece[INFLATE_PIECE];
    for (;;) {
        stream->next_out = piece;
        stream->avail_out = sizeof (piece);
        int status = inflate (stream, Z_NO_FLUSH);
        if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
            return entry_fault (r, err,
                                status == Z_MEM_ERROR ? "cannot be inflated: out of memory"
                                                      : "does not inflate");
        if (! take_output (r, piece, sizeof (piece) - stream->avail_out, err))
            return false;
        if (status == Z_STREAM_END)
            return true;
        if (stream->avail_in == 0 && stream->avail_out > 0)
            return entry_fault (r, err, "is cut short");
    }
}

static bool
read_deflated (struct reading *r, const unsigned char *data, size_t len, struct mur_error **err)
{
    z_stream stream = { .next_in = (unsigned char *)data, .avail_in = (uInt)len };
    if (len > UINT_MAX)
        return entry_fault (r, err, "cannot be inflated");
    if (inflateInit2 (&stream, -MAX_WBITS) != Z_OK)
        return entry_fault (r, err, "cannot be inflated: out of memory");
    bool ok = inflate_all (r, &stream, err);
    inflateEnd (&stream);
    return ok;
}

static bool
check_method (const struct reading *r, const unz_file_info64 *info, struct mur_error **err)
{
    if (info->flag & ZIP_FLAG_ENCRYPTED)
        return entry_fault (r, err, "is encrypted");
    if (info->compression_method != 0 && info->compression_method != Z_DEFLATED)
        return mur_fail (err, E_IO_003,
                         "%s: entry \"%s\" uses compression method %lu; only stored and deflated "
                         "entries are read",
                         r->zip->label, r->entry->name, info->compression_method);
    return true;
}

bool
zip_stream (struct zip *z, const struct zip_entry *e, uint64_t ceiling, zip_sink_fn *sink,
            void *ctx, bool *is_over_ceiling, struct mur_error **err)
{
    struct reading r = { .zip = z, .entry = e, .ceiling = ceiling, .sink = sink, .ctx = ctx };
    r.crc = crc32 (0, NULL, 0);
    unz64_file_pos position = { .pos_in_zip_directory = e->position, .num_of_file = e->number };
    unz_file_info64 info;
    if (is_over_ceiling)
        *is_over_ceiling = false;
    if (unzGoToFilePos64 (z->handle, &position) != UNZ_OK ||
        unzGetCurrentFileInfo64 (z->handle, &info, NULL, 0, NULL, 0, NULL, 0) != UNZ_OK)
        return entry_fault (&r, err, "cannot be found again");
    if (! check_method (&r, &info, err))
        return false;
    const unsigned char *data = locate_data (&r, info.compressed_size);
    if (! data)
        return entry_fault (&r, err, "has a broken header");
    bool ok = info.compression_method == 0 ? read_stored (&r, data, info.compressed_size, err)
                                           : read_deflated (&r, data, info.compressed_size, err);
    if (ok && r.crc != info.crc)
        ok = entry_fault (&r, err, "does not match its checksum");
    if (is_over_ceiling)
        *is_over_ceiling = r.is_over_ceiling;
    return ok;
}

static void
append_piece (void *ctx, const void *data, size_t len)
{
    buf_append (ctx, data, len);
}

bool
zip_read (struct zip *z, const struct zip_entry *e, uint64_t ceiling, struct buf *out,
          bool *is_over_ceiling, struct mur_error **err)
{
    size_t before = out->len;
    bool ok = zip_stream (z, e, ceiling, append_piece, out, is_over_ceiling, err);
    if (! ok)
        buf_truncate (out, before);
    return ok;
}

/* --- writing --- */

static bool
write_entry (zipFile archive, const struct zip_source *source, struct mur_error **err)
{
    zip_fileinfo info = { .dosDate = ZIP_DOS_EPOCH, .external_fa = ZIP_MODE_0644 };
    int status = zipOpenNewFileInZip4_64 (archive, source->name, &info, NULL, 0, NULL, 0, NULL,
                                          Z_DEFLATED, Z_DEFAULT_COMPRESSION, 0, -MAX_WBITS,
                                          DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, NULL, 0,
                                          ZIP_MADE_BY_UNIX, 0, source->len >= UINT32_MAX);
    const char *at = source->data;
    for (size_t left = source->len; status == ZIP_OK && left > 0;) {
        unsigned piece = left > INT_MAX ? INT_MAX : (unsigned)left;
        status = zipWriteInFileInZip (archive, at, piece);
        at += piece;
        left -= piece;
    }
    if (status == ZIP_OK)
        status = zipCloseFileInZip (archive);
    return status == ZIP_OK ||
           mur_fail (err, E_IO_003, "cannot pack \"%s\" (zip status %d)", source->name, status);
}

bool
zip_write (const struct zip_source *entries, size_t count, struct buf *out, struct mur_error **err)
{
    struct memory_file file = { .written = out };
    zlib_filefunc64_def functions = memory_functions (&file);
    zipFile archive = zipOpen2_64 ("", APPEND_STATUS_CREATE, NULL, &functions);
    if (! archive)
        return mur_fail (err, E_IO_003, "cannot start a zip archive");
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++)
        ok = write_entry (archive, &entries[i], err);
    if (zipClose (archive, NULL) != ZIP_OK && ok)
        ok = mur_fail (err, E_IO_003, "cannot finish a zip archive");
    return ok;
}
