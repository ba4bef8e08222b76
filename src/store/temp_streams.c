/* temp_streams.c -- see temp_streams.h. */
#include "store/temp_streams.h"

#include "store/temp_dir.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MIN_PAGE_BYTES = 1024,
    MAX_PAGE_BYTES = 1 << 20,   /* reading it costs a rotating disk as much as the seek before it */
    PAGES_PER_STREAM = 4,       /* that there should be memory for */
};

struct page {
    uint8_t *bytes;             /* NULL: it is in the file */
    uint64_t file_at;           /* its place in the file; in pages */
};

struct stream {
    struct page *pages;
    size_t n_pages, room;
    size_t first_in_memory;     /* pages before it are in the file */
    uint64_t n_bytes, marked_bytes;
};

struct temp_streams {
    struct temp_streams_settings settings;
    size_t page_bytes;
    size_t n_pages, max_pages;  /* in memory */
    struct stream *streams;
    int fd;                     /* -1: there is no file yet */
    char *dir;                  /* where it is, for messages */
    uint64_t n_file_pages;
    uint64_t *free_places;      /* in the file */
    size_t n_free_places, places_room;
};

struct temp_streams *temp_streams_create(const struct temp_streams_settings *settings)
{
    struct temp_streams *s = xcalloc(1, sizeof *s);
    s->settings = *settings;
    size_t page_bytes = settings->memory_bytes / settings->n_streams / PAGES_PER_STREAM;
    s->page_bytes = MIN_PAGE_BYTES;
    while (2 * s->page_bytes <= page_bytes && s->page_bytes < MAX_PAGE_BYTES) s->page_bytes *= 2;
    s->max_pages = settings->memory_bytes / s->page_bytes;
    s->streams = xcalloc(settings->n_streams, sizeof *s->streams);
    s->fd = -1;
    return s;
}

void temp_streams_destroy(struct temp_streams *s)
{
    if (!s) return;
    for (unsigned i = 0; i < s->settings.n_streams; i++) {
        for (size_t k = 0; k < s->streams[i].n_pages; k++) free(s->streams[i].pages[k].bytes);
        free(s->streams[i].pages);
    }
    if (s->fd >= 0) (void)close(s->fd);
    free(s->streams);
    free(s->free_places);
    free(s->dir);
    free(s);
}

/* ---- the file ---- */

static int open_file(struct temp_streams *s)
{
    if (s->fd >= 0) return 0;
    s->fd = temp_dir_open_file(s->settings.temp_prefix, s->settings.output, &s->dir);
    return s->fd < 0 ? -1 : 0;
}

static int report_file(const struct temp_streams *s, const char *what, int error)
{
    diag_error("cannot %s temporary data in '%s': %s; choose another place with -T", what,
               s->dir ? s->dir : "memory", strerror(error));
    return -1;
}

static int write_page(const struct temp_streams *s, const struct page *page)
{
    off_t at = (off_t)(page->file_at * s->page_bytes);
    for (size_t done = 0; done < s->page_bytes;) {
        ssize_t n = pwrite(s->fd, page->bytes + done, s->page_bytes - done, at + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return report_file(s, "write", n < 0 ? errno : ENOSPC);
        done += (size_t)n;
    }
    return 0;
}

static int read_page(const struct temp_streams *s, uint64_t file_at, size_t from, uint8_t *bytes,
                     size_t n_bytes)
{
    off_t at = (off_t)(file_at * s->page_bytes + from);
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = pread(s->fd, bytes + done, n_bytes - done, at + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return report_file(s, "read", n < 0 ? errno : EIO);
        done += (size_t)n;
    }
    return 0;
}

static uint64_t take_place(struct temp_streams *s)
{
    return s->n_free_places > 0 ? s->free_places[--s->n_free_places] : s->n_file_pages++;
}

static void free_place(struct temp_streams *s, uint64_t place)
{
    xgrow(&s->free_places, &s->places_room, s->n_free_places + 1, s->n_free_places,
          sizeof *s->free_places);
    s->free_places[s->n_free_places++] = place;
}

/* Writes the full pages of all streams to the file. */
static int write_full_pages(struct temp_streams *s)
{
    if (open_file(s) < 0) return -1;
    for (unsigned i = 0; i < s->settings.n_streams; i++) {
        struct stream *stream = &s->streams[i];
        size_t n_full = (size_t)(stream->n_bytes / s->page_bytes);
        for (; stream->first_in_memory < n_full; stream->first_in_memory++) {
            struct page *page = &stream->pages[stream->first_in_memory];
            page->file_at = take_place(s);
            if (write_page(s, page) < 0) return -1;
            free(page->bytes);
            page->bytes = NULL;
            s->n_pages--;
        }
    }
    return 0;
}

/* ---- appending ---- */

static int add_page(struct temp_streams *s, struct stream *stream)
{
    if (s->n_pages >= s->max_pages && write_full_pages(s) < 0) return -1;
    xgrow(&stream->pages, &stream->room, stream->n_pages + 1, stream->n_pages / 2,
          sizeof *stream->pages);
    stream->pages[stream->n_pages++] = (struct page){.bytes = xmalloc(s->page_bytes)};
    s->n_pages++;
    return 0;
}

int temp_streams_append(struct temp_streams *s, unsigned number, const void *bytes, size_t n_bytes)
{
    struct stream *stream = &s->streams[number];
    const uint8_t *from = bytes;
    while (n_bytes > 0) {
        if (stream->n_bytes == (uint64_t)stream->n_pages * s->page_bytes &&
            add_page(s, stream) < 0)
            return -1;
        struct page *last = &stream->pages[stream->n_pages - 1];
        size_t used = (size_t)(stream->n_bytes % s->page_bytes), n = s->page_bytes - used;
        if (n > n_bytes) n = n_bytes;
        memcpy(last->bytes + used, from, n);
        stream->n_bytes += n;
        from += n;
        n_bytes -= n;
    }
    return 0;
}

void temp_streams_mark(struct temp_streams *s)
{
    for (unsigned i = 0; i < s->settings.n_streams; i++)
        s->streams[i].marked_bytes = s->streams[i].n_bytes;
}

/* Brings the last page of a stream back to memory. */
static int fetch_last_page(struct temp_streams *s, struct stream *stream)
{
    struct page *last = &stream->pages[stream->n_pages - 1];
    uint8_t *bytes = xmalloc(s->page_bytes);
    if (read_page(s, last->file_at, 0, bytes, s->page_bytes) < 0) {
        free(bytes);
        return -1;
    }
    free_place(s, last->file_at);
    last->bytes = bytes;
    s->n_pages++;
    stream->first_in_memory = stream->n_pages - 1;
    return 0;
}

int temp_streams_undo(struct temp_streams *s)
{
    for (unsigned i = 0; i < s->settings.n_streams; i++) {
        struct stream *stream = &s->streams[i];
        stream->n_bytes = stream->marked_bytes;
        size_t n_pages = (size_t)((stream->n_bytes + s->page_bytes - 1) / s->page_bytes);
        while (stream->n_pages > n_pages) {
            struct page *last = &stream->pages[--stream->n_pages];
            if (last->bytes)
                s->n_pages--;
            else
                free_place(s, last->file_at);
            free(last->bytes);
        }
        if (stream->first_in_memory > n_pages) stream->first_in_memory = n_pages;
        if (stream->n_bytes % s->page_bytes != 0 && !stream->pages[n_pages - 1].bytes &&
            fetch_last_page(s, stream) < 0)
            return -1;
    }
    return 0;
}

uint64_t temp_streams_bytes(const struct temp_streams *s, unsigned stream)
{
    return s->streams[stream].n_bytes;
}

uint64_t temp_streams_all_bytes(const struct temp_streams *s)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < s->settings.n_streams; i++) n += s->streams[i].n_bytes;
    return n;
}

uint64_t temp_streams_file_bytes(const struct temp_streams *s)
{
    return s->n_file_pages * s->page_bytes;
}

/* ---- reading ---- */

void temp_streams_advise(struct temp_streams *s, unsigned number)
{
    const struct stream *stream = &s->streams[number];
    for (size_t i = 0; i < stream->first_in_memory; i++)
        (void)posix_fadvise(s->fd, (off_t)(stream->pages[i].file_at * s->page_bytes),
                            (off_t)s->page_bytes, POSIX_FADV_WILLNEED);
}

void temp_stream_reader_begin(struct temp_stream_reader *reader, struct temp_streams *streams,
                              unsigned stream)
{
    reader->streams = streams;
    reader->stream = stream;
    reader->at = 0;
    reader->page_place = 0;
}

/* The bytes of a page; NULL after a message. */
static const uint8_t *page_bytes(struct temp_stream_reader *reader, const struct page *page)
{
    const struct temp_streams *s = reader->streams;
    if (page->bytes) return page->bytes;
    if (reader->page_place == page->file_at + 1) return reader->page;
    xgrow(&reader->page, &reader->page_room, s->page_bytes, 0, 1);
    reader->page_place = 0;
    if (read_page(s, page->file_at, 0, reader->page, s->page_bytes) < 0) return NULL;
    reader->page_place = page->file_at + 1;
    return reader->page;
}

const uint8_t *temp_stream_read(struct temp_stream_reader *reader, size_t n_bytes)
{
    const struct temp_streams *s = reader->streams;
    const struct stream *stream = &s->streams[reader->stream];
    if (n_bytes > stream->n_bytes - reader->at) {
        (void)report_file(s, "read", EIO);
        return NULL;
    }
    for (size_t done = 0;;) {
        static const uint8_t nothing;
        if (n_bytes == 0) return &nothing;
        size_t from = (size_t)(reader->at % s->page_bytes), n = s->page_bytes - from;
        const uint8_t *page = page_bytes(reader, &stream->pages[reader->at / s->page_bytes]);
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

uint64_t temp_stream_left(const struct temp_stream_reader *reader)
{
    return reader->streams->streams[reader->stream].n_bytes - reader->at;
}

bool temp_stream_is_at_end(const struct temp_stream_reader *reader)
{
    return temp_stream_left(reader) == 0;
}

void temp_stream_reader_release(struct temp_stream_reader *reader)
{
    free(reader->bytes);
    free(reader->page);
    *reader = (struct temp_stream_reader){0};
}
