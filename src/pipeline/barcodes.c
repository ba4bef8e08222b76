/*
 * barcodes.c -- see barcodes.h.
 *
 * Reads are sorted by key and then by barcode. A leading reader lists the barcodes of a key and
 * length with their numbers of reads; when they are joined, a following reader gives each read the
 * key with the barcode of its cluster. A duplicate that was found among single reads has the
 * barcode of its pair, and does not count.
 */
#include "pipeline/barcodes.h"

#include "duplicates/barcode_clusters.h"
#include "util/byte_order.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>

enum { LIST_KEY_BYTES = ITEM_KEY_BYTES + 1 }; /* key and length of the barcode */

struct barcodes {
    struct barcode_room *room;
    bool has_lock;
    struct external_sort *sort;
    struct external_sort_reader readers[2]; /* one leads, one follows */
    struct item_writer writer;
    struct barcode_list list;
    uint8_t key[LIST_KEY_BYTES]; /* of the list */
    uint64_t n_lacking;          /* barcodes for which there was no room */
    uint8_t last[UINT8_MAX];     /* of them */
};

struct barcodes *barcodes_create(const struct external_sort_settings *settings,
                                 struct barcode_room *room)
{
    struct barcodes *b = xcalloc(1, sizeof *b);
    b->room = room;
    b->sort = external_sort_create(settings);
    return b;
}

static void give_room_back(struct barcodes *b)
{
    if (!b->has_lock) return;
    barcode_list_release(&b->list);
    b->has_lock = false;
    (void)pthread_mutex_unlock(&b->room->lock);
}

void barcodes_destroy(struct barcodes *b)
{
    if (!b) return;
    give_room_back(b);
    item_readers_end(b->sort, b->readers, 2);
    external_sort_destroy(b->sort);
    barcode_list_release(&b->list);
    free(b);
}

int barcodes_add(struct barcodes *b, struct duplicate_key key, struct read_name text,
                 const struct item_read *read)
{
    item_begin(&b->writer);
    item_put_key(&b->writer, key);
    item_put_text(&b->writer, text.text, text.n_bytes);
    item_put_read(&b->writer, read);
    return item_add(&b->writer, b->sort);
}

/* ---- lists ---- */

static size_t bytes_of_barcodes(const struct barcodes *b, uint64_t n)
{
    return (size_t)n * (BARCODE_LIST_BYTES + b->list.n_bytes + b->list.n_bytes / 4);
}

static bool has_room(struct barcodes *b)
{
    size_t n_bytes = bytes_of_barcodes(b, b->list.n + 1);
    if (n_bytes > b->room->small_bytes && !b->has_lock)
        b->has_lock = pthread_mutex_lock(&b->room->lock) == 0;
    return n_bytes <= b->room->small_bytes || n_bytes <= b->room->most_bytes;
}

/* Adds the barcode of a read; if there is no room for a new one, counts it. */
static void list_barcode(struct barcodes *b, const uint8_t *text)
{
    size_t n_bytes = b->list.n_bytes, n = b->list.n;
    bool is_listed = n > 0 && memcmp(barcode_list_text(&b->list, n - 1), text, n_bytes) == 0;
    if (b->n_lacking == 0 && (is_listed || has_room(b))) {
        barcode_list_add(&b->list, text);
        return;
    }
    if (b->n_lacking > 0 && memcmp(b->last, text, n_bytes) == 0) return;
    memcpy(b->last, text, n_bytes);
    b->n_lacking++;
}

static int report_lack_of_room(const struct barcodes *b, const struct read_moment *moment)
{
    enum { MIB = 1 << 20, ALL_BYTES_PER_LIST_BYTE = 3, OTHER_MIB = 8 };
    uint64_t n = b->list.n + b->n_lacking;
    diag_error("%" PRIu64 " different barcodes are at position %" PRId64 " of reference %" PRId32
               ": to join those with mismatches --markdup needs --max-memory %zuM",
               n, read_moment_position(moment) + 1, read_moment_reference(moment) + 1,
               bytes_of_barcodes(b, n) / MIB * ALL_BYTES_PER_LIST_BYTE + OTHER_MIB);
    return -1;
}

/* Lists the barcodes of the next key and length, and joins them. Returns the number of reads, or -1
   after a message. */
static int64_t make_list(struct barcodes *b)
{
    struct external_sort_reader *lead = &b->readers[0];
    struct item_read read;
    int64_t n = 0;
    memcpy(b->key, lead->item, LIST_KEY_BYTES);
    barcode_list_begin(&b->list, b->key[ITEM_KEY_BYTES]);
    b->n_lacking = 0;
    for (; item_begins(lead, b->key, LIST_KEY_BYTES); n++) {
        const uint8_t *text = lead->item + LIST_KEY_BYTES, *at = text + b->list.n_bytes;
        item_get_read(&at, &read);
        if (b->list.n_bytes > 0 && !read.is_found) list_barcode(b, text);
        if (external_sort_next(lead) < 0) return -1;
    }
    if (b->n_lacking > 0) return report_lack_of_room(b, &read.moment);
    barcode_list_join(&b->list);
    return n;
}

/* ---- reads ---- */

static struct duplicate_key joined_key(const struct barcodes *b, size_t number)
{
    const uint8_t *at = b->key;
    struct duplicate_key key = item_get_key(&at);
    if (b->list.n_bytes == 0) return key;
    const uint8_t *text = barcode_list_text(&b->list, b->list.joined[number]);
    return duplicate_key_with_barcode(key, text, b->list.n_bytes);
}

/* Adds n reads of a list to a sort. */
static int add_joined(struct barcodes *b, int64_t n, struct external_sort *to)
{
    struct external_sort_reader *follow = &b->readers[1];
    size_t number = 0, text_bytes = b->list.n_bytes;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *text = follow->item + LIST_KEY_BYTES, *rest = text + text_bytes;
        if (text_bytes > 0 && memcmp(barcode_list_text(&b->list, number), text, text_bytes) != 0)
            number++;
        item_begin(&b->writer);
        item_put_key(&b->writer, joined_key(b, number));
        item_put_bytes(&b->writer, rest, (size_t)(follow->item + follow->n_bytes - rest));
        if (item_add(&b->writer, to) < 0 || external_sort_next(follow) < 0) return -1;
    }
    return 0;
}

int barcodes_join(struct barcodes *b, struct external_sort *to)
{
    int r = item_readers_begin(b->sort, b->readers, 2);
    while (r == 0 && b->readers[0].item) {
        int64_t n = make_list(b);
        r = n < 0 ? -1 : add_joined(b, n, to);
        give_room_back(b);
    }
    item_readers_end(b->sort, b->readers, 2);
    return r;
}
