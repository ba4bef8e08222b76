/*
 * large_barcodes.c -- see large_barcodes.h.
 *
 * Reads are sorted by key, without the barcode, and then by the barcode: once as single reads, and
 * then pairs once more as pairs. A leading reader lists the barcodes of a key and length with
 * their numbers of reads; when they are joined, a following reader gives each read the hash of its
 * cluster's barcode.
 */
#include "pipeline/large_barcodes.h"

#include "duplicates/barcode_clusters.h"
#include "duplicates/chain_rules.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

enum {
    KEY_BYTES = 16,
    LIST_KEY_BYTES = KEY_BYTES + 1,     /* key and length of the barcode */
};

struct large_barcodes {
    const struct duplicate_rules *rules;
    size_t list_bytes;
    struct temp_sort *singles, *pairs;
    struct item_writer writer;
    struct item_reader lead, follow;
    struct barcode_list list;
    uint8_t key[LIST_KEY_BYTES];        /* of the list */
    uint64_t n_lacking;         /* barcodes for which there was no room */
    uint8_t last[UINT8_MAX];    /* of them */
    large_barcodes_taker take;
    void *arg;
};

struct large_barcodes *large_barcodes_create(const struct duplicate_rules *rules,
                                             const struct temp_sort_settings *memory,
                                             size_t barcode_bytes)
{
    struct large_barcodes *b = xcalloc(1, sizeof *b);
    b->rules = rules;
    b->list_bytes = barcode_bytes;
    b->singles = temp_sort_create(memory);
    b->pairs = temp_sort_create(memory);
    return b;
}

void large_barcodes_destroy(struct large_barcodes *b)
{
    if (!b) return;
    item_reader_release(&b->lead);
    item_reader_release(&b->follow);
    temp_sort_destroy(b->singles);
    temp_sort_destroy(b->pairs);
    barcode_list_release(&b->list);
    free(b);
}

/* ---- items ---- */

/* A list for single reads or pairs, with the barcode that the read has as a single read. */
static int add(struct large_barcodes *b, struct temp_sort *sort, struct duplicate_key key,
               const struct duplicate_view *view, uint32_t run, uint64_t single_barcode)
{
    struct duplicate_view without_text = *view;
    const struct item_order order = item_order_of(view, run);
    without_text.barcode_text = NULL;
    item_begin(&b->writer);
    item_put_key(&b->writer, key);
    item_put_bytes(&b->writer, &view->barcode_bytes, 1);
    item_put_bytes(&b->writer, view->barcode_text, view->barcode_bytes);
    item_put_order(&b->writer, &order);
    item_put_number(&b->writer, (int64_t)single_barcode);
    item_put_view(&b->writer, &without_text);
    return item_add(&b->writer, sort);
}

int large_barcodes_add(struct large_barcodes *b, const struct duplicate_view *view, uint32_t run)
{
    struct duplicate_view without_barcode = *view;
    without_barcode.barcode = 0;
    return add(b, b->singles, duplicate_key_of_single(b->rules, &without_barcode), view, run,
               view->barcode);
}

/* Goes to the view of an item; returns the text of its barcode, which the key of the list says the
   length of. *single_barcode: as in add. */
static const uint8_t *get_read(const struct large_barcodes *b, struct item_reader *reader,
                               uint64_t *single_barcode)
{
    (void)item_get_bytes(reader, LIST_KEY_BYTES);
    const uint8_t *text = item_get_bytes(reader, b->key[KEY_BYTES]);
    const uint8_t *order = item_get_bytes(reader, sizeof(struct item_order));
    *single_barcode = (uint64_t)item_get_number(reader);
    item_get_view(reader, order);
    return text;
}

/* ---- lists ---- */

static size_t bytes_of_barcodes(const struct large_barcodes *b, uint64_t n)
{
    return (size_t)n * (BARCODE_LIST_BYTES + b->list.n_bytes + b->list.n_bytes / 4);
}

/* Adds the barcode of a read; if there is no room, counts it. */
static void list_barcode(struct large_barcodes *b, const uint8_t *text)
{
    size_t n_bytes = b->list.n_bytes;
    if (b->n_lacking == 0 && bytes_of_barcodes(b, b->list.n + 1) <= b->list_bytes) {
        barcode_list_add(&b->list, text);
        return;
    }
    const uint8_t *last = b->n_lacking > 0 ? b->last : barcode_list_text(&b->list, b->list.n - 1);
    if (memcmp(last, text, n_bytes) == 0) return;
    memcpy(b->last, text, n_bytes);
    b->n_lacking++;
}

static int report_lack_of_room(const struct large_barcodes *b)
{
    enum { MIB = 1 << 20, ALL_BYTES_PER_LIST_BYTE = 3, OTHER_MIB = 8 };
    const struct duplicate_view *view = &b->lead.read.view;
    uint64_t n = b->list.n + b->n_lacking;
    diag_error("%" PRIu64 " different barcodes are at position %" PRId64 " of reference %" PRId32
               ": to join those with mismatches --markdup needs --max-memory %zuM",
               n, view->here, view->ref + 1,
               bytes_of_barcodes(b, n) / MIB * ALL_BYTES_PER_LIST_BYTE + OTHER_MIB);
    return -1;
}

/* Lists the barcodes of the next key and length, and joins them. Returns the number of reads, or -1
   after a message. */
static int64_t make_list(struct large_barcodes *b)
{
    int64_t n = 0;
    memcpy(b->key, b->lead.items.item, LIST_KEY_BYTES);
    barcode_list_begin(&b->list, b->key[KEY_BYTES]);
    b->n_lacking = 0;
    for (; item_begins(&b->lead, b->key, LIST_KEY_BYTES); n++) {
        if (b->list.n_bytes > 0) list_barcode(b, b->lead.items.item + LIST_KEY_BYTES);
        if (b->n_lacking == 1) {        /* for the message */
            uint64_t barcode;
            (void)get_read(b, &b->lead, &barcode);
        }
        if (item_reader_next(&b->lead) < 0) return -1;
    }
    if (b->n_lacking > 0) return report_lack_of_room(b);
    barcode_list_join(&b->list);
    return n;
}

/* ---- reads ---- */

static int take_single(struct large_barcodes *b, const uint8_t *text, uint64_t joined,
                       uint64_t single_barcode)
{
    struct item_read *read = &b->follow.read;
    (void)single_barcode;
    if (b->list.n_bytes == 0 || !chain_is_paired(&read->view))
        return b->take(b->arg, &read->view, read->run, joined, read->view.barcode);
    struct duplicate_view view = read->view;
    view.barcode = 0;
    struct duplicate_key key = duplicate_key_of_pair(b->rules, &view);
    view.barcode = read->view.barcode;
    view.barcode_text = text;
    view.barcode_bytes = (uint8_t)b->list.n_bytes;
    return add(b, b->pairs, key, &view, read->run, joined);
}

static int take_pair(struct large_barcodes *b, const uint8_t *text, uint64_t joined,
                     uint64_t single_barcode)
{
    (void)text;
    return b->take(b->arg, &b->follow.read.view, b->follow.read.run, single_barcode, joined);
}

/* A read, the hash of its cluster's barcode, and the one that it has as a single read. */
typedef int (*read_taker)(struct large_barcodes *b, const uint8_t *text, uint64_t joined,
                          uint64_t single_barcode);

/* Gives n reads of a list to `take`. */
static int take_reads(struct large_barcodes *b, int64_t n, read_taker take)
{
    size_t number = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t single_barcode, joined;
        const uint8_t *text = get_read(b, &b->follow, &single_barcode);
        size_t n_bytes = b->list.n_bytes;
        if (n_bytes == 0) {
            joined = b->follow.read.view.barcode;
        } else {
            if (memcmp(barcode_list_text(&b->list, number), text, n_bytes) != 0) number++;
            joined = XXH3_64bits(barcode_list_text(&b->list, b->list.joined[number]), n_bytes);
        }
        if (take(b, text, joined, single_barcode) < 0 || item_reader_next(&b->follow) < 0)
            return -1;
    }
    return 0;
}

static int join_sorted(struct large_barcodes *b, struct temp_sort **sort, read_taker take)
{
    if (item_readers_begin(&b->lead, &b->follow, *sort) < 0) return -1;
    while (b->lead.items.item) {
        int64_t n = make_list(b);
        if (n < 0 || take_reads(b, n, take) < 0) return -1;
    }
    item_readers_end(&b->lead, &b->follow, sort);
    return 0;
}

int large_barcodes_join(struct large_barcodes *b, large_barcodes_taker take, void *arg)
{
    b->take = take;
    b->arg = arg;
    if (join_sorted(b, &b->singles, take_single) < 0) return -1;
    return join_sorted(b, &b->pairs, take_pair);
}
