/*
 * tape.c -- see tape.h.
 *
 * When the memory is full, all full pages go to the file, stream by stream. So pages of a stream
 * lie next to each other, and its table has an entry for each such extent. Entries are small
 * because there may be hundreds of millions of pages: with little memory pages are small.
 */
#include "os/tape.h"

#include "os/temp_dir.h"
#include "util/diag.h"
#include "util/long_hash.h"
#include "util/xalloc.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SUM_BYTES = sizeof(uint32_t),       /* the checksum after the bytes of a page in a file */
    MIN_PAGE_BYTES = 1024,
    MAX_PAGE_BYTES = 1 << 20,   /* a rotating disk reads it in the time of a seek */
    PAGES_PER_STREAM = 4,       /* pages in memory that a stream should have */
};

struct extent {                 /* pages of a stream that lie next to each other in the files */
    uint32_t place;             /* how many pages were written before the first one */
    uint8_t n;
} __attribute__((packed));

struct stream {
    uint8_t **pages;            /* in memory, each with room for the checksum */
    size_t room;
    size_t n_stored;            /* pages before those: they are in a file */
    struct extent *extents;     /* of these */
    size_t n_extents, extents_room;
    uint64_t n_bytes;
};

struct temp_file {
    int fd;
    char *dir;                  /* where it is, for messages */
    uint32_t first;             /* pages in the files before it */
};

struct tape_set {
    unsigned n_streams;
    struct temp_places places;
    size_t page_bytes;
    size_t n_pages, max_pages;  /* in memory */
    struct stream *streams;
    uint32_t n_stored;          /* pages in all files */
    struct temp_file *files;    /* one for each prefix; pages go to the last one that is open */
    unsigned n_files;           /* that are open */
};

struct tape_set *tape_set_create(unsigned n_streams, size_t memory_bytes,
                                 const struct temp_places *places)
{
    struct tape_set *s = xcalloc(1, sizeof *s);
    s->n_streams = n_streams;
    s->places = *places;
    size_t page_bytes = memory_bytes / n_streams / PAGES_PER_STREAM;
    size_t stored_bytes = MIN_PAGE_BYTES;
    while (2 * stored_bytes <= page_bytes && stored_bytes < MAX_PAGE_BYTES) stored_bytes *= 2;
    s->page_bytes = stored_bytes - SUM_BYTES;
    s->max_pages = memory_bytes / stored_bytes;
    s->streams = xcalloc(n_streams, sizeof *s->streams);
    s->files = xcalloc(places->n_prefixes, sizeof *s->files);
    return s;
}

/* Returns how many pages of a stream are in memory. */
static size_t n_in_memory(const struct tape_set *s, const struct stream *stream)
{
    return (size_t)((stream->n_bytes + s->page_bytes - 1) / s->page_bytes) - stream->n_stored;
}

void tape_set_destroy(struct tape_set *s)
{
    if (!s) return;
    for (unsigned i = 0; i < s->n_streams; i++) {
        struct stream *stream = &s->streams[i];
        for (size_t k = n_in_memory(s, stream); k-- > 0;) free(stream->pages[k]);
        free(stream->pages);
        free(stream->extents);
    }
    for (unsigned i = 0; i < s->n_files; i++) {
        (void)close(s->files[i].fd);
        free(s->files[i].dir);
    }
    free(s->files);
    free(s->streams);
    free(s);
}

/* ---- files ---- */

static size_t stored_bytes(const struct tape_set *s)
{
    return s->page_bytes + SUM_BYTES;
}

static int open_file(struct tape_set *s)
{
    assert(s->n_files < s->places.n_prefixes);
    struct temp_file *file = &s->files[s->n_files];
    file->fd = temp_dir_open_file(s->places.prefixes[s->n_files], s->places.output,
                                  &file->dir);
    if (file->fd < 0) return -1;
    file->first = s->n_stored;
    s->n_files++;
    return 0;
}

static int report_file(const struct temp_file *file, const char *what, int error)
{
    diag_error("cannot %s temporary data in '%s': %s%s", what, file->dir, strerror(error),
               temp_dir_advice(error));
    return -1;
}

static int report_damage(const char *dir)
{
    diag_error_of(DIAG_DAMAGE, "the temporary data in '%s' are damaged: sort again with -T on "
                  "another disk", dir);
    return -1;
}

/* Returns the file of a page, given how many pages were written before it. */
static const struct temp_file *file_of(const struct tape_set *s, uint32_t place)
{
    unsigned number = s->n_files - 1;
    while (s->files[number].first > place) number--;
    return &s->files[number];
}

static off_t offset_of(const struct tape_set *s, uint32_t place)
{
    return (off_t)(place - file_of(s, place)->first) * (off_t)stored_bytes(s);
}

/* Writes a page, with its checksum, to the last file. Returns 0, or an errno. */
static int write_bytes(const struct tape_set *s, const uint8_t *bytes)
{
    off_t at = offset_of(s, s->n_stored);
    for (size_t done = 0; done < stored_bytes(s);) {
        ssize_t n = pwrite(s->files[s->n_files - 1].fd, bytes + done, stored_bytes(s) - done,
                           at + (off_t)done);
        if (n <= 0) return n < 0 ? errno : ENOSPC;
        done += (size_t)n;
    }
    return 0;
}

/* Reads a page and verifies it; `bytes` has room for the checksum. */
static int read_page(const struct tape_set *s, uint32_t place, uint8_t *bytes)
{
    const struct temp_file *file = file_of(s, place);
    off_t at = offset_of(s, place);
    for (size_t done = 0; done < stored_bytes(s);) {
        ssize_t n = pread(file->fd, bytes + done, stored_bytes(s) - done, at + (off_t)done);
        if (n <= 0) return report_file(file, "read", n < 0 ? errno : EIO);
        done += (size_t)n;
    }
    uint32_t sum = (uint32_t)long_hash(bytes, s->page_bytes);
    return memcmp(&sum, bytes + s->page_bytes, sizeof sum) == 0 ? 0 : report_damage(file->dir);
}

/* Adds the page that was written last to the table of its stream. */
static void list_page(const struct tape_set *s, struct stream *stream)
{
    uint32_t place = s->n_stored - 1;
    size_t n = stream->n_extents;
    struct extent *last = n > 0 ? &stream->extents[n - 1] : NULL;
    stream->n_stored++;
    if (last && last->n < UINT8_MAX && last->place + last->n == place) {
        last->n++;
        return;
    }
    xgrow(&stream->extents, &stream->extents_room, n + 1, n / 16, sizeof *stream->extents);
    stream->extents[stream->n_extents++] = (struct extent){place, 1};
}

/* Writes a page to the last file; if its disk is full, to a file in the next directory. */
static int write_page(struct tape_set *s, struct stream *stream, uint8_t *bytes)
{
    int error;
    uint32_t sum = (uint32_t)long_hash(bytes, s->page_bytes);
    memcpy(bytes + s->page_bytes, &sum, sizeof sum);
    while ((error = s->n_stored < UINT32_MAX ? write_bytes(s, bytes) : EFBIG) != 0) {
        bool is_full = error == ENOSPC || error == EDQUOT;
        if (!is_full || s->n_files == s->places.n_prefixes)
            return report_file(&s->files[s->n_files - 1], "write", error);
        if (open_file(s) < 0) return -1;
    }
    s->n_stored++;
    list_page(s, stream);
    return 0;
}

/* Writes the full pages of all streams to a file. */
static int write_full_pages(struct tape_set *s)
{
    if (s->n_files == 0 && open_file(s) < 0) return -1;
    for (unsigned i = 0; i < s->n_streams; i++) {
        struct stream *stream = &s->streams[i];
        size_t n_all = n_in_memory(s, stream), n = 0;
        size_t n_full = (size_t)(stream->n_bytes / s->page_bytes) - stream->n_stored;
        int r = 0;
        while (r == 0 && n < n_full)
            if ((r = write_page(s, stream, stream->pages[n])) == 0) free(stream->pages[n++]);
        for (size_t k = n; k < n_all; k++) stream->pages[k - n] = stream->pages[k];
        s->n_pages -= n;
        if (r < 0) return -1;
    }
    return 0;
}

/* ---- appending ---- */

static int add_page(struct tape_set *s, struct stream *stream)
{
    if (s->n_pages >= s->max_pages && write_full_pages(s) < 0) return -1;
    size_t n = n_in_memory(s, stream);
    xgrow(&stream->pages, &stream->room, n + 1, n / 2, sizeof *stream->pages);
    stream->pages[n] = xmalloc(stored_bytes(s));
    s->n_pages++;
    return 0;
}

int tape_set_append(struct tape_set *s, unsigned number, const void *bytes, size_t n_bytes)
{
    struct stream *stream = &s->streams[number];
    const uint8_t *from = bytes;
    while (n_bytes > 0) {
        size_t used = (size_t)(stream->n_bytes % s->page_bytes), n = s->page_bytes - used;
        if (used == 0 && add_page(s, stream) < 0) return -1;
        if (n > n_bytes) n = n_bytes;
        memcpy(stream->pages[stream->n_bytes / s->page_bytes - stream->n_stored] + used, from, n);
        stream->n_bytes += n;
        from += n;
        n_bytes -= n;
    }
    return 0;
}

uint64_t tape_set_bytes(const struct tape_set *s, unsigned stream)
{
    return s->streams[stream].n_bytes;
}

uint64_t tape_set_all_bytes(const struct tape_set *s)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < s->n_streams; i++) n += s->streams[i].n_bytes;
    return n;
}

uint64_t tape_set_file_bytes(const struct tape_set *s)
{
    return (uint64_t)s->n_stored * stored_bytes(s);
}

/* ---- reading ---- */

void tape_set_advise(struct tape_set *s, unsigned number)
{
    const struct stream *stream = &s->streams[number];
    for (size_t i = 0; i < stream->n_extents; i++) {
        const struct extent *extent = &stream->extents[i];
        (void)posix_fadvise(file_of(s, extent->place)->fd, offset_of(s, extent->place),
                            (off_t)(extent->n * stored_bytes(s)), POSIX_FADV_WILLNEED);
    }
}

void tape_reader_begin(struct tape_reader *reader, struct tape_set *streams, unsigned stream)
{
    reader->streams = streams;
    reader->stream = stream;
    reader->at = 0;
    reader->extent = reader->extent_first = 0;
    reader->place = 0;
}

/* Returns where a page is in the files. */
static uint32_t find_place(struct tape_reader *reader, size_t number)
{
    const struct extent *extents = reader->streams->streams[reader->stream].extents;
    if (number < reader->extent_first) reader->extent = reader->extent_first = 0;
    while (number - reader->extent_first >= extents[reader->extent].n)
        reader->extent_first += extents[reader->extent++].n;
    return extents[reader->extent].place + (uint32_t)(number - reader->extent_first);
}

/* Returns the bytes of a page, or NULL after a message. */
static const uint8_t *page_bytes(struct tape_reader *reader, size_t number)
{
    const struct tape_set *s = reader->streams;
    const struct stream *stream = &s->streams[reader->stream];
    if (number >= stream->n_stored) return stream->pages[number - stream->n_stored];
    uint32_t place = find_place(reader, number);
    if (reader->place == (uint64_t)place + 1) return reader->page;
    xgrow(&reader->page, &reader->page_room, stored_bytes(s), 0, 1);
    reader->place = 0;
    if (read_page(s, place, reader->page) < 0) return NULL;
    reader->place = (uint64_t)place + 1;
    return reader->page;
}

const uint8_t *tape_read(struct tape_reader *reader, size_t n_bytes)
{
    const struct tape_set *s = reader->streams;
    const struct stream *stream = &s->streams[reader->stream];
    if (n_bytes > stream->n_bytes - reader->at) {
        (void)report_damage(s->n_files > 0 ? s->files[0].dir : "memory");
        return NULL;
    }
    for (size_t done = 0;;) {
        static const uint8_t nothing;
        if (n_bytes == 0) return &nothing;
        size_t from = (size_t)(reader->at % s->page_bytes), n = s->page_bytes - from;
        const uint8_t *page = page_bytes(reader, (size_t)(reader->at / s->page_bytes));
        if (!page) return NULL;
        if (n > n_bytes - done) n = n_bytes - done;
        reader->at += n;
        if (n == n_bytes) return page + from;
        if (done == 0) xgrow(&reader->bytes, &reader->room, n_bytes, n_bytes / 2, 1);
        memcpy(reader->bytes + done, page + from, n);
        done += n;
        if (done == n_bytes) return reader->bytes;
    }
}

uint64_t tape_left(const struct tape_reader *reader)
{
    return reader->streams->streams[reader->stream].n_bytes - reader->at;
}

void tape_reader_release(struct tape_reader *reader)
{
    free(reader->bytes);
    free(reader->page);
    *reader = (struct tape_reader){0};
}
