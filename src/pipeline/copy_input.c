/* copy_input.c -- see copy_input.h. */
#include "pipeline/copy_input.h"

#include "bam/bgzf_block.h"
#include "input/input_error.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20 };        /* room for many blocks */

struct copy {
    const struct merge_settings *merge;
    const char *path;
    const struct merge_copy *what;
    struct output_file *output;
    int fd;
    uint64_t at, end;           /* what is read next, and the EOF block */
    uint8_t *buffer;
    size_t n_bytes;             /* in the buffer; they begin with a block */
    struct bam_index_file index;
    size_t next_chunk, next_window;     /* of the index: the first ones in blocks to come */
    struct stat file;           /* when it was opened */
};

static int refuse_index(const struct copy *copy)
{
    diag_error("the index of '%s' is not that of the file: make the index again, or remove it",
               copy->path);
    return -1;
}

/* Reads the index, which must be the one that was looked at before. */
static int read_index(struct copy *copy)
{
    struct bam_index_file *index = &copy->index;
    if (bam_index_file_read(copy->path, index) == 0 &&
        index->n_records == copy->what->n_records && index->last_begin == copy->what->last_begin)
        return 0;
    diag_error("the index of '%s' was changed while others were read; merge again", copy->path);
    return -1;
}

/* Passes the places in the index that are in the block at byte `at`. False if one lies before it,
   and so in no block. */
static bool pass_places(struct copy *copy, uint64_t at)
{
    const struct bam_index_part *part = &copy->index.part;
    size_t *chunk = &copy->next_chunk, *window = &copy->next_window;
    while (*chunk < part->n_chunks && part->chunks[*chunk].begin >> 16 == at) ++*chunk;
    while (*window < part->n_windows && part->windows[*window].begin >> 16 == at) ++*window;
    return !(*chunk < part->n_chunks && part->chunks[*chunk].begin >> 16 < at) &&
           !(*window < part->n_windows && part->windows[*window].begin >> 16 < at);
}

static bool differs(const struct stat *a, const struct stat *b)
{
    return a->st_size != b->st_size || a->st_mtim.tv_sec != b->st_mtim.tv_sec ||
           a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

static int refuse_change(const char *path)
{
    diag_error("'%s' was changed while it, or others, were read; merge again", path);
    return -1;
}

/* Opens the file, which must be the one that was looked at before. */
static int open_file(struct copy *copy, const struct stat *before)
{
    struct stat now;
    copy->fd = open(copy->path, O_RDONLY | O_CLOEXEC);
    if (copy->fd < 0 || fstat(copy->fd, &now) < 0) {
        diag_error("cannot open '%s': %s", copy->path, strerror(errno));
        return -1;
    }
    if (!before || now.st_ino != before->st_ino || now.st_dev != before->st_dev ||
        differs(&now, before))
        return refuse_change(copy->path);
    copy->file = now;
    copy->at = copy->what->begin;
    copy->end = (uint64_t)now.st_size - BGZF_END_BYTES;
    return 0;
}

/* Fills the buffer. */
static int read_on(struct copy *copy)
{
    while (copy->n_bytes < BUFFER_BYTES && copy->at < copy->end) {
        size_t n = BUFFER_BYTES - copy->n_bytes;
        if (n > copy->end - copy->at) n = (size_t)(copy->end - copy->at);
        ssize_t n_read = pread(copy->fd, copy->buffer + copy->n_bytes, n, (off_t)copy->at);
        if (n_read < 0 && errno == EINTR) continue;
        if (n_read <= 0) {
            if (n_read == 0) errno = 0;         /* the file became shorter */
            input_error_read(copy->path, copy->at);
            return -1;
        }
        copy->n_bytes += (size_t)n_read;
        copy->at += (uint64_t)n_read;
    }
    return 0;
}

/* The size of the whole blocks at the beginning of the buffer; 0 after a message. */
static size_t whole_blocks(struct copy *copy)
{
    size_t at = 0;
    while (at + BGZF_HEADER_BYTES <= copy->n_bytes) {
        size_t n = bgzf_block_bytes(copy->buffer + at);
        if (n == 0) {
            diag_error("'%s' is damaged: no BGZF block at byte %" PRIu64, copy->path,
                       copy->at - copy->n_bytes + at);
            return 0;
        }
        if (at + n > copy->n_bytes) break;
        if (!pass_places(copy, copy->at - copy->n_bytes + at)) {
            (void)refuse_index(copy);
            return 0;
        }
        at += n;
    }
    if (at > 0 && (at == copy->n_bytes || copy->at < copy->end)) return at;
    diag_error("'%s' is truncated: it ends within the BGZF block at byte %" PRIu64,
               copy->path, copy->at - copy->n_bytes + at);
    return 0;
}

static int copy_blocks(struct copy *copy)
{
    const struct merge_settings *s = copy->merge;
    for (;;) {
        if (read_on(copy) < 0) return -1;
        if (copy->n_bytes == 0) break;
        size_t n = whole_blocks(copy);
        if (n == 0 || crew_failed(s->crew) || output_file_copy(copy->output, copy->buffer, n) < 0)
            return -1;
        copy->n_bytes -= n;
        memmove(copy->buffer, copy->buffer + n, copy->n_bytes);
        crew_lock(s->crew);
        s->counts->output_bytes += n;
        load_totals_locked(s->totals)->file_bytes_read += n;
        crew_unlock(s->crew);
    }
    const struct bam_index_part *part = &copy->index.part;
    struct stat now;
    if (copy->next_chunk < part->n_chunks || copy->next_window < part->n_windows)
        return refuse_index(copy);
    return fstat(copy->fd, &now) < 0 || differs(&now, &copy->file) ? refuse_change(copy->path) : 0;
}

int copy_input(const struct merge_settings *merge, struct bam_inputs *inputs, const char *path,
               const struct merge_step *step)
{
    struct copy copy = {.merge = merge, .path = path, .what = &step->copy,
                        .output = &merge->output->files[0], .fd = -1};
    struct bam_index_part *part = &copy.index.part;
    int r = open_file(&copy, bam_inputs_file(inputs, step->inputs[0]));
    if (r == 0) r = read_index(&copy);
    if (r == 0) {
        part->end = bam_index_voffset(copy.end, 0);
        if (part->n_refs == 0) part->unplaced_begin = bam_index_voffset(copy.what->begin, 0);
        r = output_file_copy_index(copy.output, part, copy.what->begin);
    }
    copy.buffer = xmalloc(BUFFER_BYTES);
    if (r == 0) r = copy_blocks(&copy);
    free(copy.buffer);
    bam_index_part_release(part);
    if (copy.fd >= 0) (void)close(copy.fd);
    if (r < 0) return -1;
    crew_lock(merge->crew);
    merge->counts->n_records += copy.what->n_records;
    crew_unlock(merge->crew);
    return 0;
}
