/*
 * temp_sort.c -- see temp_sort.h.
 *
 * The buffer has items from its start on, each after its length, and entries, which point to them,
 * from its end on. Entries have the first bytes of their item as a number, so that most comparisons
 * do not look at items.
 */
#include "store/temp_sort.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

enum {
    FAN_IN = 64,
    MAX_LEVELS = 8,             /* 64^8 buffers */
    MIN_BYTES = 256 << 10,
    LENGTH_BYTES = sizeof(uint16_t),
    PREFIX_BYTES = sizeof(uint64_t),
};

struct entry {
    uint64_t prefix;
    const uint8_t *item;        /* its length stands before it */
};

struct level {
    struct temp_streams *streams;       /* FAN_IN; NULL: none yet */
    unsigned n;                 /* that are in use */
};

struct temp_sort {
    struct temp_sort_settings settings;
    struct entry *buffer;       /* NULL: nothing was added since a run was written */
    size_t buffer_entries;      /* its size in entries */
    size_t items_bytes, n_entries;      /* in use */
    struct level levels[MAX_LEVELS];
    struct temp_streams *sorted;        /* one stream, when all is done */
};

/* Half of the memory is for the buffer, an eighth for the streams of each level, of which there are
   rarely more than two, and a sixteenth for the sorted one, so that it has large pages. qsort takes
   as much memory as the entries have, an eighth of a buffer or less. */
static struct temp_streams *create_streams(const struct temp_sort *sort, unsigned n)
{
    size_t n_bytes = sort->settings.memory_bytes / (n == 1 ? 16 : 8);
    return temp_streams_create(n, n_bytes, &sort->settings.places);
}

static void destroy_streams(const struct temp_sort *sort, struct temp_streams *streams)
{
    if (streams && sort->settings.file_bytes)
        *sort->settings.file_bytes += temp_streams_file_bytes(streams);
    temp_streams_destroy(streams);
}

struct temp_sort *temp_sort_create(const struct temp_sort_settings *settings)
{
    struct temp_sort *sort = xcalloc(1, sizeof *sort);
    sort->settings = *settings;
    if (sort->settings.memory_bytes < MIN_BYTES) sort->settings.memory_bytes = MIN_BYTES;
    sort->buffer_entries = sort->settings.memory_bytes / 2 / sizeof *sort->buffer;
    return sort;
}

void temp_sort_destroy(struct temp_sort *sort)
{
    if (!sort) return;
    for (size_t i = 0; i < MAX_LEVELS; i++) destroy_streams(sort, sort->levels[i].streams);
    destroy_streams(sort, sort->sorted);
    free(sort->buffer);
    free(sort);
}

/* ---- order ---- */

static uint64_t prefix_of(const uint8_t *item)
{
    return get_big_endian(item, PREFIX_BYTES);
}

static size_t length_of(const uint8_t *item)
{
    return get_u16(item - LENGTH_BYTES);
}

/* Compares what follows equal prefixes. */
static int compare_rest(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
    size_t n = a_bytes < b_bytes ? a_bytes : b_bytes;
    int r = memcmp(a + PREFIX_BYTES, b + PREFIX_BYTES, n - PREFIX_BYTES);
    return r != 0 ? r : a_bytes < b_bytes ? -1 : a_bytes > b_bytes;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->prefix != y->prefix) return x->prefix < y->prefix ? -1 : 1;
    return compare_rest(x->item, length_of(x->item), y->item, length_of(y->item));
}

/* ---- merging ---- */

struct head {
    struct temp_sort_reader reader;
    uint64_t prefix;
};

/* Streams that are being merged: a heap, the first head is the least. */
struct merge {
    struct head **heap;
    size_t n;
};

static bool is_before(const struct head *a, const struct head *b)
{
    if (a->prefix != b->prefix) return a->prefix < b->prefix;
    return compare_rest(a->reader.item, a->reader.n_bytes, b->reader.item,
                        b->reader.n_bytes) < 0;
}

/* Moves a head down to where it belongs. */
static void sift_down(const struct merge *merge, size_t i)
{
    struct head *moved = merge->heap[i];
    for (size_t child; (child = 2 * i + 1) < merge->n; i = child) {
        if (child + 1 < merge->n && is_before(merge->heap[child + 1], merge->heap[child])) child++;
        if (!is_before(merge->heap[child], moved)) break;
        merge->heap[i] = merge->heap[child];
    }
    merge->heap[i] = moved;
}

static int read_head(struct head *head)
{
    int r = temp_sort_next(&head->reader);
    if (r > 0) head->prefix = prefix_of(head->reader.item);
    return r;
}

static int append(struct temp_streams *to, unsigned stream, const uint8_t *item, size_t n_bytes)
{
    uint8_t length[LENGTH_BYTES];
    (void)put_u16(length, n_bytes);
    if (temp_streams_append(to, stream, length, sizeof length) < 0) return -1;
    return temp_streams_append(to, stream, item, n_bytes);
}

/* Merges n streams, whose heads have not been read, into one. Returns 0, or -1 after a message. */
static int merge_heads(struct head *heads, size_t n, struct temp_streams *to, unsigned stream)
{
    struct merge merge = {.heap = xmalloc((n + 1) * sizeof *merge.heap)};
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++)
        if ((r = read_head(&heads[i])) > 0) merge.heap[merge.n++] = &heads[i];
    for (size_t i = merge.n / 2; i > 0 && r >= 0; i--) sift_down(&merge, i - 1);
    while (merge.n > 0 && r >= 0) {
        struct head *least = merge.heap[0];
        r = append(to, stream, least->reader.item, least->reader.n_bytes);
        if (r == 0) r = read_head(least);
        if (r == 0) merge.heap[0] = merge.heap[--merge.n];
        if (r >= 0 && merge.n > 0) sift_down(&merge, 0);
    }
    free(merge.heap);
    return r < 0 ? -1 : 0;
}

/* Merges all streams of levels [from, to) into one of another object. */
static int merge_levels(struct temp_sort *sort, size_t from, size_t to,
                        struct temp_streams *target, unsigned stream)
{
    size_t n = 0;
    struct head *heads = xcalloc((to - from) * FAN_IN, sizeof *heads);
    for (size_t i = from; i < to; i++)
        for (unsigned k = 0; k < sort->levels[i].n; k++)
            temp_stream_reader_begin(&heads[n++].reader.reader, sort->levels[i].streams, k);
    int r = merge_heads(heads, n, target, stream);
    for (size_t i = 0; i < n; i++) temp_sort_reader_release(&heads[i].reader);
    for (size_t i = from; i < to; i++) {
        destroy_streams(sort, sort->levels[i].streams);
        sort->levels[i] = (struct level){0};
    }
    free(heads);
    return r;
}

/* Makes room for a stream in a level. Returns 0, or -1 after a message. */
static int make_room(struct temp_sort *sort, size_t number)
{
    struct level *level = &sort->levels[number];
    if (level->n == FAN_IN && number + 1 < MAX_LEVELS) {
        if (make_room(sort, number + 1) < 0) return -1;
        struct level *next = &sort->levels[number + 1];
        if (merge_levels(sort, number, number + 1, next->streams, next->n++) < 0) return -1;
    }
    if (!level->streams) level->streams = create_streams(sort, FAN_IN);
    return 0;
}

/* ---- the buffer ---- */

/* Sorts the items of the buffer and appends them to a stream. */
static int empty_buffer(struct temp_sort *sort, struct temp_streams *to, unsigned stream)
{
    struct entry *entries = sort->buffer + sort->buffer_entries - sort->n_entries;
    int r = 0;
    if (sort->n_entries > 0)
        qsort(entries, sort->n_entries, sizeof *entries, compare_entries);
    for (size_t i = 0; i < sort->n_entries && r == 0; i++)
        r = temp_streams_append(to, stream, entries[i].item - LENGTH_BYTES,
                                LENGTH_BYTES + length_of(entries[i].item));
    sort->items_bytes = sort->n_entries = 0;
    return r;
}

static int write_run(struct temp_sort *sort)
{
    if (make_room(sort, 0) < 0) return -1;
    return empty_buffer(sort, sort->levels[0].streams, sort->levels[0].n++);
}

int temp_sort_add(struct temp_sort *sort, const uint8_t *item, size_t n_bytes)
{
    size_t used = sort->items_bytes + (sort->n_entries + 1) * sizeof(struct entry);
    if (used + LENGTH_BYTES + n_bytes > sort->buffer_entries * sizeof(struct entry) &&
        write_run(sort) < 0)
        return -1;
    /* What is not used takes no memory. */
    if (!sort->buffer) sort->buffer = xmalloc(sort->buffer_entries * sizeof *sort->buffer);
    uint8_t *at = (uint8_t *)sort->buffer + sort->items_bytes;
    (void)put_u16(at, n_bytes);
    memcpy(at + LENGTH_BYTES, item, n_bytes);
    sort->items_bytes += LENGTH_BYTES + n_bytes;
    sort->n_entries++;
    sort->buffer[sort->buffer_entries - sort->n_entries] =
        (struct entry){prefix_of(item), at + LENGTH_BYTES};
    return 0;
}

int temp_sort_finish(struct temp_sort *sort)
{
    size_t n_levels = 0;
    int r = 0;
    while (n_levels < MAX_LEVELS && sort->levels[n_levels].streams) n_levels++;
    sort->sorted = create_streams(sort, 1);
    if (n_levels > 0) {
        if (sort->n_entries > 0) r = write_run(sort);
        free(sort->buffer);
        sort->buffer = NULL;
        while (n_levels < MAX_LEVELS && sort->levels[n_levels].streams) n_levels++;
        if (r == 0) r = merge_levels(sort, 0, n_levels, sort->sorted, 0);
    } else if (sort->n_entries > 0) {
        r = empty_buffer(sort, sort->sorted, 0);
    }
    free(sort->buffer);
    sort->buffer = NULL;
    return r;
}

/* ---- reading ---- */

void temp_sort_read(struct temp_sort_reader *reader, const struct temp_sort *sort)
{
    temp_stream_reader_begin(&reader->reader, sort->sorted, 0);
    reader->item = NULL;
    reader->n_bytes = 0;
}

int temp_sort_next(struct temp_sort_reader *reader)
{
    struct temp_stream_reader *stream = &reader->reader;
    reader->item = NULL;
    reader->n_bytes = 0;
    if (temp_stream_is_at_end(stream)) return 0;
    const uint8_t *bytes = temp_stream_read(stream, LENGTH_BYTES);
    if (!bytes) return -1;
    size_t n_bytes = get_u16(bytes);
    if (!(bytes = temp_stream_read(stream, n_bytes))) return -1;
    reader->item = bytes;
    reader->n_bytes = n_bytes;
    return 1;
}

void temp_sort_reader_release(struct temp_sort_reader *reader)
{
    temp_stream_reader_release(&reader->reader);
    *reader = (struct temp_sort_reader){0};
}
