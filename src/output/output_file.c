/*
 * output_file.c -- see output_file.h.
 *
 * The header, the encoded output chunks, and the EOF block are written to an hFILE. htslib's BGZF
 * is not used, because closing it always adds an EOF block, with which the output of a failed sort
 * would look complete; nor its threaded SAM writer, which in 1.16 waits forever once the disk is
 * full.
 */
#define _GNU_SOURCE             /* sync_file_range */
#include "output/output_file.h"

#include "bam/bgzf_block.h"
#include "os/disk_space.h"
#include "output/index_names.h"
#include "util/byte_order.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ---- */

static void drop_index(void *arg, const char *name)
{
    (void)arg;
    (void)unlink(name);
}

/* Removes the indexes of a regular file that is overwritten in place. */
static void drop_indexes_of_lost(const struct output_file *file)
{
    const struct output_path *path = file->path, *index = file->settings.index_path;
    struct stat st;
    if (!path || path->temporary || stat(path->name, &st) < 0 || !S_ISREG(st.st_mode)) return;
    char *real = realpath(path->name, NULL);
    const struct output_path lost = {.name = path->name, .final = real};
    index_names_find_stale(&lost, index ? index->final : NULL, &file->settings.format, drop_index,
                     NULL);
    free(real);
}

static int open_file(struct output_file *file)
{
    struct output_path *path = file->path;
    file->raw = path ? output_path_open(path) : hopen("-", "w");
    file->file_exists = file->raw && path && path->temporary;
    if (file->raw) drop_indexes_of_lost(file);
    return file->raw ? 0 : -1;
}

static void put_text(struct byte_buffer *to, const char *text, size_t n_bytes)
{
    (void)put_u32(byte_buffer_append(to, 4), n_bytes);
    byte_buffer_copy(to, text, n_bytes);
}

/* Appends the uncompressed BAM header (SAM specification, section 4.2). Returns 0, or -1 after a
   message if a reference is too long. */
static int put_bam_header(sam_hdr_t *header, const char *text, struct byte_buffer *to)
{
    int n_refs = sam_hdr_nref(header);
    byte_buffer_copy(to, "BAM\1", 4);
    put_text(to, text, strlen(text));
    (void)put_u32(byte_buffer_append(to, 4), (size_t)n_refs);
    for (int i = 0; i < n_refs; i++) {
        const char *name = sam_hdr_tid2name(header, i);
        int64_t n_bases = sam_hdr_tid2len(header, i);
        put_text(to, name, strlen(name) + 1);
        (void)put_u32(byte_buffer_append(to, 4), (uint64_t)n_bases);
        if (n_bases <= INT32_MAX) continue;
        diag_error("reference '%s' has %" PRId64 " bases, more than BAM can hold: write SAM with "
                   "-O sam", name, n_bases);
        return -1;
    }
    return 0;
}

/* Appends the encoded header. */
static int make_header(struct output_file *file, struct byte_buffer *to)
{
    const struct output_format *format = &file->settings.format;
    const char *text = sam_hdr_str(file->header);
    struct byte_buffer raw = {0};
    if (!text) return -1;
    if (output_format_is_sam(format)) byte_buffer_copy(&raw, text, strlen(text));
    int r = output_format_is_sam(format) ? 0 : put_bam_header(file->header, text, &raw);
    if (r == 0 && output_format_is_bgzf(format))
        r = bgzf_append(to, file->settings.method, raw.bytes, raw.n_bytes);
    else if (r == 0)
        byte_buffer_copy(to, raw.bytes, raw.n_bytes);
    free(raw.bytes);
    return r;
}

/* Writes what comes before the records. */
static int start_bytes(struct output_file *file)
{
    struct byte_buffer own = {0}, *shared = file->settings.shared_header;
    struct byte_buffer *out = shared ? shared : &own;
    int r = 0;
    if (file->columns)
        column_file_begin(file->columns, file->header, out = &own);
    else if (out->n_bytes == 0)
        r = make_header(file, out);
    if (r == 0 && hwrite(file->raw, out->bytes, out->n_bytes) != (ssize_t)out->n_bytes) r = -1;
    free(own.bytes);
    return r;
}

/* ---- errors ---- */

/* The file offset of the next write. */
static uint64_t position(const struct output_file *file)
{
    return file->raw ? (uint64_t)htell(file->raw) : file->n_bytes;
}

/* Estimates the remaining bytes from the records so far; 0: unknown. */
static uint64_t bytes_to_come(const struct output_file *file)
{
    uint64_t all = file->raw_bytes, done = file->raw_written;
    if (done == 0 || done > all) return 0;
    double written = (double)position(file);
    return (uint64_t)(written * ((double)(all - done) / (double)done));
}

static int write_error(void *arg)
{
    struct output_file *file = arg;
    const struct output_path *path = file->path;
    int error = errno;
    file->lost_reader = error == EPIPE && !path;
    uint64_t needed_bytes = path && disk_space_is_short(error) ? bytes_to_come(file) : 0;
    disk_space_print_output_error(file->name, error, path ? path->temporary : NULL, needed_bytes);
    return -1;
}

/* ---- the end of the content ---- */

static bool write_columns_end(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    struct output_file *file = arg;
    if (hwrite(file->raw, bytes, n_bytes) == (ssize_t)n_bytes) return true;
    (void)write_error(file);
    return false;
}

/* Writes the Arrow or Parquet footer, or the end marker of another format. Returns 0, or -1 after a
   message. */
static int write_end(struct output_file *file)
{
    const struct column_sink sink = {write_columns_end, file};
    if (file->columns)
        return column_file_end(file->columns, file->header, position(file), &sink);
    if (!output_format_is_bgzf(&file->settings.format) ||
        hwrite(file->raw, bgzf_end_block, BGZF_END_BYTES) == BGZF_END_BYTES)
        return 0;
    return write_error(file);
}

/* Readers consider an Arrow stream complete if it ends between two messages. So writes a truncated
   message at the end of an incomplete one. */
static void cut_off(struct output_file *file)
{
    static const uint8_t begin[8] = {0xff, 0xff, 0xff, 0xff, 8};
    bool is_stream = file->settings.format.kind == OUTPUT_ARROW_STREAM;
    if (!is_stream || !file->raw || file->file_exists || file->lost_reader) return;
    if (hwrite(file->raw, begin, sizeof begin) != (ssize_t)sizeof begin) return;
    (void)!hflush(file->raw);
}

/* Ends writing, also of an incomplete file. Returns 0, or -1 after a message. */
static int end_writing(struct output_file *file, bool complete)
{
    int r = 0;
    errno = 0;
    file->is_ended = true;
    if (!complete) cut_off(file);
    if (file->cram)
        r = cram_writer_end(file->cram, complete);
    else if (complete)
        r = write_end(file);
    return r;
}

/* ---- the file ---- */

bool output_index_is_bai(const char *name)
{
    size_t n = strlen(name);
    return n >= 4 && strcmp(name + n - 4, ".bai") == 0;
}

int output_file_create_index(struct output_file *file, sam_hdr_t *header)
{
    const char *name = file->settings.index_path->name;
    if (!name || !output_format_has_bytes(&file->settings.format)) return 0;
    file->index = bam_index_create(file->settings.index_is_bai ? BAM_INDEX_BAI : BAM_INDEX_CSI,
                                   header);
    return file->index ? 0 : -1;
}

static int start_cram(struct output_file *file)
{
    const struct output_settings *s = &file->settings;
    const struct cram_writer_settings cram = {
        .name = file->name, .target = file->raw, .header = file->header, .format = &s->format.hts,
        .level = s->method.level, .pool = s->pool, .doubt = s->doubt,
        .index_path = s->index_path->name ? s->index_path : NULL,
        .explain = write_error, .arg = file,
    };
    return cram_writer_start(&cram, &file->cram);
}

int output_file_open(struct output_file *file, sam_hdr_t *header, uint64_t raw_bytes)
{
    file->path = file->settings.path->name ? file->settings.path : NULL;
    file->name = file->path ? file->path->name : "standard output";
    file->header = header;
    file->raw_bytes = raw_bytes;
    const struct output_settings *s = &file->settings;
    if (s->columns)
        file->columns = column_file_create(s->columns, file->spool_bytes, file->places, file->name);
    errno = 0;
    if (open_file(file) < 0) {
        int error = errno;
        diag_error("cannot create '%s': %s%s", file->name, output_path_problem(file->path, error),
                   diag_advice(error));
        return -1;
    }
    int r = output_format_has_bytes(&s->format) ? start_bytes(file) : start_cram(file);
    return r < 0 ? write_error(file) : 0;
}

/* Starts write-back of the file in the kernel. Otherwise closing the file would wait for it: 0.4 s
   for 670 MB. Write-back is in large parts, to save seeks on a disk that is also read. */
static void write_back(struct output_file *file)
{
    enum { WRITE_BACK_BYTES = 32 << 20 };
    const struct output_path *path = file->path;
    int fd = path ? output_path_descriptor(path) : -1;
    if (fd < 0) return;
    uint64_t end = (uint64_t)htell(file->raw), begin = file->writing_back;
    if (end < begin + WRITE_BACK_BYTES) return;
    (void)sync_file_range(fd, (off_t)begin, (off_t)(end - begin), SYNC_FILE_RANGE_WRITE);
    file->writing_back = end;
}

int output_file_copy(struct output_file *file, const uint8_t *blocks, size_t n_bytes)
{
    if (n_bytes == 0) return 0;
    errno = 0;
    if (hwrite(file->raw, blocks, n_bytes) != (ssize_t)n_bytes) return write_error(file);
    write_back(file);
    return 0;
}

int output_file_write(struct output_file *file, const uint8_t *bytes, size_t n_bytes,
                      uint64_t raw_bytes, const struct bam_index_part *part,
                      const struct byte_buffer *metadata)
{
    file->raw_written = file->raw_writing;
    file->raw_writing += raw_bytes;
    if (file->cram) return cram_writer_write(file->cram, bytes, n_bytes);
    if ((file->index && bam_index_append(file->index, part, position(file)) < 0) ||
        (file->columns && column_file_add(file->columns, metadata, position(file)) < 0))
        return -1;
    return output_file_copy(file, bytes, n_bytes);
}

int output_file_copy_index(struct output_file *file, const struct bam_index_part *part,
                           uint64_t begin)
{
    /* May be negative: offsets are added modulo 2^64. */
    uint64_t shift = position(file) - begin;
    return file->index ? bam_index_append(file->index, part, shift) : 0;
}

int output_file_end(struct output_file *file)
{
    hFILE *raw = file->raw;
    if (end_writing(file, true) < 0) return -1;
    file->n_bytes = (uint64_t)htell(raw);
    file->raw = NULL;
    errno = 0;
    return output_path_close(file->path, raw) < 0 ? write_error(file) : 0;  /* writes the rest */
}

/* Commits the closed file. On failure removes it. */
static int commit(struct output_file *file)
{
    struct stat st;
    int r = 0;
    if (file->file_exists) {
        if (stat(file->path->temporary, &st) == 0) file->n_bytes = (uint64_t)st.st_size;
        r = output_path_commit(file->path);
        if (r < 0) output_path_drop(file->path);
    }
    return r;
}

/* Removes a file that is not complete, or was not opened. */
static void abandon(struct output_file *file)
{
    if (!file->is_ended) (void)end_writing(file, false);
    if (file->raw) output_path_close_incomplete(file->path, file->raw);
    if (file->file_exists) output_path_drop(file->path);
    file->raw = NULL;
}

/* Writes the index. The sorted file is complete and stays if this fails. */
static int write_index(struct output_file *file)
{
    if (file->cram) return cram_writer_write_index(file->cram);
    return file->index ? bam_index_write(file->index, file->settings.index_path) : 0;
}

int output_file_close(struct output_file *file, bool complete)
{
    int r = -1;
    if (complete)
        r = commit(file);
    else
        abandon(file);
    if (r == 0) r = write_index(file);
    if (r < 0) output_path_drop(file->settings.index_path);
    cram_writer_destroy(file->cram);
    column_file_destroy(file->columns);
    file->cram = NULL;
    file->columns = NULL;
    bam_index_destroy(file->index);
    file->index = NULL;
    return r;
}
