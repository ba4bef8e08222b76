/*
 * tape.c -- see tape.h.
 *
 * Each stream has a table of the places of its pages, 8 bytes a page. With little memory pages are
 * small, and there may be hundreds of millions. When the tables of all streams take too much
 * memory, their first places also go to the file: a *leaf* is a page full of places of pages.
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
    PLACE_FILE_BITS = 8,        /* of the number of a place */
    MIN_PAGE_BYTES = 1024,
    MAX_PAGE_BYTES = 1 << 20,   /* a rotating disk reads it in the time of a seek */
    PAGES_PER_STREAM = 4,       /* pages in memory that a stream should have */
    TABLES_SHARE = 8,           /* tables may take this part of the memory for pages, in addition */
};

union page {
    uint8_t *bytes;             /* in memory, with room for the checksum */
    uint64_t place;             /* in a file: the number of pages before it, and the number of the
                                   file */
};

struct stream {
    union page *pages;          /* those whose places are in no leaf */
    size_t room;
    size_t n_pages;             /* all pages */
    size_t n_in_leaves;         /* pages whose places are in leaves */
    size_t first_in_memory;     /* pages before it are in a file */
    uint64_t *leaves;           /* their places */
    size_t leaves_room;
    uint64_t n_bytes;
};

struct temp_file {
    int fd;
    char *dir;                  /* where it is, for messages */
    uint64_t n_pages;
};

struct tape_set {
    unsigned n_streams;
    struct temp_places places;
    size_t page_bytes;
    size_t n_pages, max_pages;  /* in memory */
    size_t leaf_pages;          /* places in a leaf */
    size_t n_places, max_places;        /* of pages in files, in the tables of all streams */
    struct stream *streams;
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
    s->leaf_pages = s->page_bytes / sizeof(uint64_t);
    s->max_places = memory_bytes / TABLES_SHARE / sizeof(union page);
    s->streams = xcalloc(n_streams, sizeof *s->streams);
    s->files = xcalloc(places->n_prefixes, sizeof *s->files);
    return s;
}

/* A page whose place is in no leaf. */
static union page *listed_page(const struct stream *stream, size_t number)
{
    return &stream->pages[number - stream->n_in_leaves];
}

void tape_set_destroy(struct tape_set *s)
{
    if (!s) return;
    for (unsigned i = 0; i < s->n_streams; i++) {
        struct stream *stream = &s->streams[i];
        for (size_t k = stream->first_in_memory; k < stream->n_pages; k++)
            free(listed_page(stream, k)->bytes);
        free(stream->pages);
        free(stream->leaves);
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

static const struct temp_file *file_of(const struct tape_set *s, uint64_t place)
{
    return &s->files[place & ((1 << PLACE_FILE_BITS) - 1)];
}

static off_t offset_of(const struct tape_set *s, uint64_t place)
{
    return (off_t)((place >> PLACE_FILE_BITS) * stored_bytes(s));
}

/* Writes a page with its checksum. Returns 0, or an errno. */
static int write_bytes(const struct tape_set *s, uint64_t place, const uint8_t *bytes)
{
    off_t at = offset_of(s, place);
    for (size_t done = 0; done < stored_bytes(s);) {
        ssize_t n = pwrite(file_of(s, place)->fd, bytes + done, stored_bytes(s) - done,
                           at + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? errno : ENOSPC;
        done += (size_t)n;
    }
    return 0;
}

/* Reads a page and verifies it; `bytes` has room for the checksum. */
static int read_page(const struct tape_set *s, uint64_t place, uint8_t *bytes)
{
    const struct temp_file *file = file_of(s, place);
    off_t at = offset_of(s, place);
    for (size_t done = 0; done < stored_bytes(s);) {
        ssize_t n = pread(file->fd, bytes + done, stored_bytes(s) - done, at + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return report_file(file, "read", n < 0 ? errno : EIO);
        done += (size_t)n;
    }
    uint32_t sum = (uint32_t)long_hash(bytes, s->page_bytes);
    return memcmp(&sum, bytes + s->page_bytes, sizeof sum) == 0 ? 0 : report_damage(file->dir);
}

static uint64_t take_place(struct tape_set *s)
{
    unsigned number = s->n_files - 1;
    return s->files[number].n_pages++ << PLACE_FILE_BITS | number;
}

/* Writes a page to the last file; if its disk is full, to a file in the next directory. Stores its
   place. */
static int write_page(struct tape_set *s, uint8_t *bytes, uint64_t *place)
{
    uint32_t sum = (uint32_t)long_hash(bytes, s->page_bytes);
    memcpy(bytes + s->page_bytes, &sum, sizeof sum);
    for (;;) {
        *place = take_place(s);
        int error = write_bytes(s, *place, bytes);
        if (error == 0) return 0;
        bool is_full = error == ENOSPC || error == EDQUOT;
        if (!is_full || s->n_files == s->places.n_prefixes)
            return report_file(file_of(s, *place), "write", error);
        if (open_file(s) < 0) return -1;
    }
}

/* Moves the first places of a table to a new leaf. `bytes` has room for a page. */
static int make_leaf(struct tape_set *s, struct stream *stream, uint8_t *bytes)
{
    size_t n = s->leaf_pages, n_leaves = stream->n_in_leaves / n;
    size_t n_left = stream->n_pages - stream->n_in_leaves - n;
    memset(bytes, 0, s->page_bytes);
    memcpy(bytes, stream->pages, n * sizeof *stream->pages);
    xgrow(&stream->leaves, &stream->leaves_room, n_leaves + 1, n_leaves / 2,
          sizeof *stream->leaves);
    if (write_page(s, bytes, &stream->leaves[n_leaves]) < 0) return -1;
    memmove(stream->pages, stream->pages + n, n_left * sizeof *stream->pages);
    stream->n_in_leaves += n;
    s->n_places -= n;
    return 0;
}

/* Makes as many leaves as the tables can fill. */
static int make_leaves(struct tape_set *s)
{
    uint8_t *bytes = xmalloc(stored_bytes(s));
    int r = 0;
    for (unsigned i = 0; i < s->n_streams && r == 0; i++) {
        struct stream *stream = &s->streams[i];
        size_t before = stream->n_in_leaves;
        while (r == 0 && stream->first_in_memory - stream->n_in_leaves >= s->leaf_pages)
            r = make_leaf(s, stream, bytes);
        size_t n_left = stream->n_pages - stream->n_in_leaves;
        if (stream->n_in_leaves == before || stream->room <= 2 * n_left) continue;
        stream->pages = xrealloc(stream->pages, (n_left + 1) * sizeof *stream->pages);
        stream->room = n_left + 1;
    }
    free(bytes);
    return r;
}

/* Writes the full pages of all streams to a file. */
static int write_full_pages(struct tape_set *s)
{
    if (s->n_files == 0 && open_file(s) < 0) return -1;
    for (unsigned i = 0; i < s->n_streams; i++) {
        struct stream *stream = &s->streams[i];
        size_t n_full = (size_t)(stream->n_bytes / s->page_bytes);
        for (; stream->first_in_memory < n_full; stream->first_in_memory++) {
            union page *page = listed_page(stream, stream->first_in_memory);
            uint64_t place;
            if (write_page(s, page->bytes, &place) < 0) return -1;
            free(page->bytes);
            page->place = place;
            s->n_pages--;
            s->n_places++;
        }
    }
    return s->n_places > s->max_places ? make_leaves(s) : 0;
}

/* ---- appending ---- */

static int add_page(struct tape_set *s, struct stream *stream)
{
    if (s->n_pages >= s->max_pages && write_full_pages(s) < 0) return -1;
    size_t n_listed = stream->n_pages - stream->n_in_leaves;
    xgrow(&stream->pages, &stream->room, n_listed + 1, n_listed / 2, sizeof *stream->pages);
    stream->pages[n_listed] = (union page){.bytes = xmalloc(stored_bytes(s))};
    stream->n_pages++;
    s->n_pages++;
    return 0;
}

int tape_set_append(struct tape_set *s, unsigned number, const void *bytes, size_t n_bytes)
{
    struct stream *stream = &s->streams[number];
    const uint8_t *from = bytes;
    while (n_bytes > 0) {
        if (stream->n_bytes == (uint64_t)stream->n_pages * s->page_bytes &&
            add_page(s, stream) < 0)
            return -1;
        union page *last = listed_page(stream, stream->n_pages - 1);
        size_t used = (size_t)(stream->n_bytes % s->page_bytes), n = s->page_bytes - used;
        if (n > n_bytes) n = n_bytes;
        memcpy(last->bytes + used, from, n);
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
    uint64_t n = 0;
    for (unsigned i = 0; i < s->n_files; i++) n += s->files[i].n_pages;
    return n * stored_bytes(s);
}

/* ---- reading ---- */

void tape_set_advise(struct tape_set *s, unsigned number)
{
    const struct stream *stream = &s->streams[number];
    /* The pages in leaves are more than the page cache should hold at a time. */
    for (size_t i = stream->n_in_leaves; i < stream->first_in_memory; i++) {
        uint64_t place = listed_page(stream, i)->place;
        (void)posix_fadvise(file_of(s, place)->fd, offset_of(s, place), (off_t)stored_bytes(s),
                            POSIX_FADV_WILLNEED);
    }
}

void tape_reader_begin(struct tape_reader *reader, struct tape_set *streams, unsigned stream)
{
    reader->streams = streams;
    reader->stream = stream;
    reader->at = 0;
    reader->page.place = reader->leaf.place = 0;
}

/* Reads a page unless it was the last one read. Returns its bytes, or NULL after a message. */
static const uint8_t *fetch(const struct tape_set *s, struct fetched_page *page, uint64_t place)
{
    if (page->place == place + 1) return page->bytes;
    xgrow(&page->bytes, &page->room, stored_bytes(s), 0, 1);
    page->place = 0;
    if (read_page(s, place, page->bytes) < 0) return NULL;
    page->place = place + 1;
    return page->bytes;
}

/* Returns the bytes of a page, or NULL after a message. */
static const uint8_t *page_bytes(struct tape_reader *reader, size_t number)
{
    const struct tape_set *s = reader->streams;
    const struct stream *stream = &s->streams[reader->stream];
    if (number >= stream->first_in_memory) return listed_page(stream, number)->bytes;
    if (number >= stream->n_in_leaves)
        return fetch(s, &reader->page, listed_page(stream, number)->place);
    const uint8_t *leaf = fetch(s, &reader->leaf, stream->leaves[number / s->leaf_pages]);
    uint64_t place;
    if (!leaf) return NULL;
    memcpy(&place, leaf + number % s->leaf_pages * sizeof place, sizeof place);
    return fetch(s, &reader->page, place);
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

bool tape_is_at_end(const struct tape_reader *reader)
{
    return tape_left(reader) == 0;
}

void tape_reader_release(struct tape_reader *reader)
{
    free(reader->bytes);
    free(reader->page.bytes);
    free(reader->leaf.bytes);
    *reader = (struct tape_reader){0};
}
