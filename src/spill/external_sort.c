/*
 * external_sort.c -- see external_sort.h.
 *
 * Items, each after its length, grow from the start of the buffer, and entries that point to them
 * from its end: sort_entry (slice_merge.h), whose prefix is the first bytes of the item. Entries
 * are sorted by prefix; then the few items with equal prefixes are compared.
 */
#include "spill/external_sort.h"

#include "order/slice_merge.h"
#include "util/byte_order.h"
#include "util/loser_tree.h"

#include <string.h>

enum {
    FAN_IN = 64,
    MAX_LEVELS = 8, /* 64^8 buffers */
    MIN_BYTES = 32 << 10,
    LENGTH_BYTES = sizeof(uint16_t),
    PREFIX_BYTES = sizeof(uint64_t),
};

struct level {
    struct tape_set *streams;   /* FAN_IN; NULL: none yet */
    unsigned n;                 /* streams in use */
};

struct external_sort {
    struct external_sort_settings settings;
    struct sort_entry *buffer;          /* NULL: nothing was added yet */
    size_t buffer_entries;              /* its size in entries */
    size_t items_bytes, n_entries;      /* in use */
    struct level levels[MAX_LEVELS];
    const struct sort_entry *entries;   /* after finish: all, sorted, if they are in memory */
    struct tape_set *sorted;            /* after finish: otherwise one tape with all */
};

/* Half of the memory is for the buffer, an eighth for the streams of each level (rarely more than
   two), and a sixteenth for the sorted stream, so that its pages are large. Sorting takes as much
   memory as the entries: half a buffer if items have 16 bytes. */
static struct tape_set *create_streams(const struct external_sort *sort, unsigned n)
{
    size_t n_bytes = sort->settings.memory_bytes / (n == 1 ? 16 : 8);
    return tape_set_create(n, n_bytes, &sort->settings.places);
}

static void destroy_streams(const struct external_sort *sort, struct tape_set *streams)
{
    if (streams && sort->settings.file_bytes)
        *sort->settings.file_bytes += tape_set_file_bytes(streams);
    tape_set_destroy(streams);
}

struct external_sort *external_sort_create(const struct external_sort_settings *settings)
{
    struct external_sort *sort = xcalloc(1, sizeof *sort);
    sort->settings = *settings;
    if (sort->settings.memory_bytes < MIN_BYTES) sort->settings.memory_bytes = MIN_BYTES;
    sort->buffer_entries = sort->settings.memory_bytes / 2 / sizeof *sort->buffer;
    return sort;
}

void external_sort_clear(struct external_sort *sort)
{
    for (size_t i = 0; i < MAX_LEVELS; i++) {
        destroy_streams(sort, sort->levels[i].streams);
        sort->levels[i] = (struct level){0};
    }
    destroy_streams(sort, sort->sorted);
    sort->sorted = NULL;
    sort->entries = NULL;
    sort->items_bytes = sort->n_entries = 0;
}

void external_sort_destroy(struct external_sort *sort)
{
    if (!sort) return;
    external_sort_clear(sort);
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

static int compare_entries(const void *a, const void *b)
{
    const uint8_t *x = ((const struct sort_entry *)a)->ref;
    const uint8_t *y = ((const struct sort_entry *)b)->ref;
    return compare_bytes(x, length_of(x), y, length_of(y));
}

static void sort_all(struct sort_entry *e, size_t n)
{
    static const struct sort_rules by_prefix = {.order = SORT_COORDINATE};
    struct sort_entry *spare = xmalloc(n * sizeof *spare);
    sort_entries(&by_prefix, e, n, spare);
    free(spare);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && e[end].prefix == e[i].prefix;)
            end++;
        if (end - i > 1) qsort(e + i, end - i, sizeof *e, compare_entries);
    }
}

/* ---- merging ---- */

/* A tape that is being merged. */
struct head {
    struct tape_reader reader;
    const uint8_t *item;        /* NULL: at the end */
    size_t n_bytes;
    uint64_t prefix;
};

static bool is_before(const void *heads, size_t i, size_t k)
{
    const struct head *a = (const struct head *)heads + i, *b = (const struct head *)heads + k;
    if (!a->item || !b->item) return a->item != NULL;
    if (a->prefix != b->prefix) return a->prefix < b->prefix;
    return compare_bytes(a->item, a->n_bytes, b->item, b->n_bytes) < 0;
}

int tape_append_item(struct tape_set *to, unsigned tape, const uint8_t *item, size_t n_bytes)
{
    uint8_t length[LENGTH_BYTES];
    (void)put_u16(length, n_bytes);
    if (tape_set_append(to, tape, length, sizeof length) < 0) return -1;
    return tape_set_append(to, tape, item, n_bytes);
}

int tape_read_item(struct tape_reader *tape, const uint8_t **item, size_t *n_bytes)
{
    *item = NULL;
    *n_bytes = 0;
    if (tape_left(tape) == 0) return 0;
    const uint8_t *bytes = tape_read(tape, LENGTH_BYTES);
    if (!bytes) return -1;
    size_t n = get_u16(bytes);
    if (!(bytes = tape_read(tape, n))) return -1;
    *item = bytes;
    *n_bytes = n;
    return 0;
}

static int read_head(struct head *head)
{
    int r = tape_read_item(&head->reader, &head->item, &head->n_bytes);
    if (head->item) head->prefix = prefix_of(head->item);
    return r;
}

/* Merges n tapes, whose heads have not been read, into one. Returns 0, or -1 after a message. */
static int merge_heads(struct head *heads, size_t n, struct tape_set *to, unsigned tape)
{
    struct loser_tree tree = {0};
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = read_head(&heads[i]);
    if (r == 0) loser_tree_build(&tree, n, is_before, heads);
    while (r == 0) {
        size_t first = loser_tree_first(&tree);
        struct head *head = &heads[first];
        if (!head->item) break;
        r = tape_append_item(to, tape, head->item, head->n_bytes);
        if (r == 0) r = read_head(head);
        if (r == 0) loser_tree_replay(&tree, first, is_before, heads);
    }
    loser_tree_release(&tree);
    return r;
}

/* Merges all tapes of levels [from, to), at least one, into a tape of `target`. */
static int merge_levels(struct external_sort *sort, size_t from, size_t to, struct tape_set *target,
                        unsigned tape)
{
    size_t n = 0;
    struct head *heads = xcalloc((to - from) * FAN_IN, sizeof *heads);
    for (size_t i = from; i < to; i++)
        for (unsigned k = 0; k < sort->levels[i].n; k++)
            tape_reader_begin(&heads[n++].reader, sort->levels[i].streams, k);
    int r = merge_heads(heads, n, target, tape);
    for (size_t i = 0; i < n; i++)
        tape_reader_release(&heads[i].reader);
    for (size_t i = from; i < to; i++) {
        destroy_streams(sort, sort->levels[i].streams);
        sort->levels[i] = (struct level){0};
    }
    free(heads);
    return r;
}

/* Makes room for a stream in a level. Returns 0, or -1 after a message. */
static int make_room(struct external_sort *sort, size_t number)
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

static struct sort_entry *sort_buffer(struct external_sort *sort)
{
    struct sort_entry *entries = sort->buffer + sort->buffer_entries - sort->n_entries;
    sort_all(entries, sort->n_entries);
    return entries;
}

/* Writes the items of the buffer as a sorted piece. Returns 0, or -1 after a message. */
static int write_piece(struct external_sort *sort)
{
    if (make_room(sort, 0) < 0) return -1;
    struct level *level = &sort->levels[0];
    const struct sort_entry *entries = sort_buffer(sort);
    unsigned tape = level->n++;
    int r = 0;
    for (size_t i = 0; i < sort->n_entries && r == 0; i++)
        r = tape_append_item(level->streams, tape, entries[i].ref, length_of(entries[i].ref));
    sort->items_bytes = sort->n_entries = 0;
    return r;
}

int external_sort_add(struct external_sort *sort, const uint8_t *item, size_t n_bytes)
{
    size_t used = sort->items_bytes + (sort->n_entries + 1) * sizeof(struct sort_entry);
    if (used + LENGTH_BYTES + n_bytes > sort->buffer_entries * sizeof(struct sort_entry) &&
        write_piece(sort) < 0)
        return -1;
    /* Unused sorts take no memory. */
    if (!sort->buffer) sort->buffer = xmalloc(sort->buffer_entries * sizeof *sort->buffer);
    uint8_t *at = (uint8_t *)sort->buffer + sort->items_bytes;
    (void)put_u16(at, n_bytes);
    memcpy(at + LENGTH_BYTES, item, n_bytes);
    sort->items_bytes += LENGTH_BYTES + n_bytes;
    sort->n_entries++;
    sort->buffer[sort->buffer_entries - sort->n_entries] =
        (struct sort_entry){prefix_of(item), at + LENGTH_BYTES};
    return 0;
}

int external_sort_add_tape(struct external_sort *sort, struct tape_set *from, unsigned tape)
{
    struct tape_reader reader = {0};
    const uint8_t *item;
    size_t n_bytes;
    int r;
    tape_reader_begin(&reader, from, tape);
    while ((r = tape_read_item(&reader, &item, &n_bytes)) == 0 && item)
        if ((r = external_sort_add(sort, item, n_bytes)) < 0) break;
    tape_reader_release(&reader);
    return r;
}

int external_sort_finish(struct external_sort *sort)
{
    size_t n_levels = 0;
    if (!sort->levels[0].streams && !sort->levels[1].streams) {
        if (sort->n_entries > 0) sort->entries = sort_buffer(sort);
        return 0;
    }
    if (sort->n_entries > 0 && write_piece(sort) < 0) return -1;
    free(sort->buffer);
    sort->buffer = NULL;
    while (n_levels < MAX_LEVELS && sort->levels[n_levels].streams)
        n_levels++;
    sort->sorted = create_streams(sort, 1);
    return merge_levels(sort, 0, n_levels, sort->sorted, 0);
}

/* ---- reading ---- */

void external_sort_read(struct external_sort_reader *reader, const struct external_sort *sort)
{
    reader->sort = sort;
    reader->next = 0;
    reader->item = NULL;
    reader->n_bytes = 0;
    if (sort->sorted) tape_reader_begin(&reader->tape, sort->sorted, 0);
}

int external_sort_next(struct external_sort_reader *reader)
{
    const struct external_sort *sort = reader->sort;
    if (sort->sorted)
        return tape_read_item(&reader->tape, &reader->item, &reader->n_bytes) < 0 ? -1
                                                                             : reader->item != NULL;
    reader->item = NULL;
    reader->n_bytes = 0;
    if (reader->next == sort->n_entries) return 0;
    reader->item = sort->entries[reader->next++].ref;
    reader->n_bytes = length_of(reader->item);
    return 1;
}

bool external_sort_is_alone(const struct external_sort_reader *reader)
{
    const struct external_sort *sort = reader->sort;
    if (sort->sorted) return false;
    const struct sort_entry *next = &sort->entries[reader->next];
    return reader->next == sort->n_entries || next->prefix != next[-1].prefix;
}

void external_sort_reader_release(struct external_sort_reader *reader)
{
    tape_reader_release(&reader->tape);
    *reader = (struct external_sort_reader){0};
}
