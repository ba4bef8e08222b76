/*
 * barcodes.c -- see barcodes.h.
 *
 * Reads are sorted by key and barcode. A first visit lists the barcodes of a key and length with
 * their counts of reads; then they are clustered, and a second visit gives each read the key with
 * the barcode of its cluster. Duplicates found among single reads have the barcode of their pair;
 * they are not counted.
 *
 * Neighbours of a barcode are found by replacing each of its characters with each character that
 * occurs in the list, and looking up the result. So n barcodes take O(n log n), not O(n^2).
 */
#include "markdup/barcodes.h"

#include "util/byte_order.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#define NOT_TAKEN UINT32_MAX

enum { LIST_KEY_BYTES = ITEM_KEY_BYTES + 1 }; /* key and length of the barcode */

/* All barcodes of one key and one length. */
struct barcode_list {
    uint8_t *texts;             /* distinct, in the order of memcmp */
    size_t n_bytes;             /* of each */
    uint32_t *n_reads;          /* of each barcode */
    uint32_t *joined;           /* number of the barcode of its cluster */
    size_t n;
    size_t texts_room, reads_room, joined_room;
};

struct cluster_search {
    struct barcode_list *list;
    uint32_t *slots;            /* a hash table of barcode numbers, from 1; 0 is a free slot */
    size_t n_slots;             /* a power of two */
    uint32_t *to_visit;         /* joined, but neighbours not searched yet */
    size_t n_to_visit, to_visit_room;
    uint8_t letters[256];
    size_t n_letters;
};

struct barcodes {
    struct barcode_room *room;
    bool has_lock;
    struct external_sort *sort, *to;
    struct item_writer writer;
    struct barcode_list list;
    uint8_t key[LIST_KEY_BYTES]; /* of the list */
    uint64_t n_lacking;          /* barcodes that exceed the memory */
    uint8_t last[UINT8_MAX];     /* of these */
    struct read_moment moment;   /* of the read listed last */
    size_t number;               /* of the barcode of the last read of the second visit */
};

/* ---- lists ---- */

static inline const uint8_t *text_of(const struct barcode_list *list, size_t number)
{
    return list->texts + number * list->n_bytes;
}

static void add_to_list(struct barcode_list *list, const uint8_t *text)
{
    size_t n = list->n, n_bytes = list->n_bytes;
    if (n > 0 && memcmp(text_of(list, n - 1), text, n_bytes) == 0) {
        list->n_reads[n - 1]++;
        return;
    }
    xgrow(&list->texts, &list->texts_room, (n + 1) * n_bytes, n * n_bytes / 4, 1);
    xgrow(&list->n_reads, &list->reads_room, n + 1, n / 4, sizeof *list->n_reads);
    memcpy(list->texts + n * n_bytes, text, n_bytes);
    list->n_reads[n] = 1;
    list->n = n + 1;
}

static void release_list(struct barcode_list *list)
{
    free(list->texts);
    free(list->n_reads);
    free(list->joined);
    *list = (struct barcode_list){0};
}

static void list_letters(struct cluster_search *s)
{
    bool occurs[256] = {false};
    for (size_t i = 0; i < s->list->n * s->list->n_bytes; i++) occurs[s->list->texts[i]] = true;
    for (size_t c = 0; c < sizeof occurs; c++)
        if (occurs[c]) s->letters[s->n_letters++] = (uint8_t)c;
}

/* The slot of the barcode with this text, or the free slot where it belongs. */
static uint32_t *find_slot(const struct cluster_search *s, const uint8_t *text)
{
    const struct barcode_list *list = s->list;
    size_t mask = s->n_slots - 1, at = (size_t)XXH3_64bits(text, list->n_bytes) & mask;
    while (s->slots[at] > 0 && memcmp(text_of(list, s->slots[at] - 1), text, list->n_bytes) != 0)
        at = (at + 1) & mask;
    return &s->slots[at];
}

static void fill_slots(struct cluster_search *s)
{
    for (s->n_slots = 8; s->n_slots * 3 / 4 <= s->list->n;) s->n_slots *= 2;
    s->slots = xcalloc(s->n_slots, sizeof *s->slots);
    for (size_t i = 0; i < s->list->n; i++) *find_slot(s, text_of(s->list, i)) = (uint32_t)i + 1;
}

static void take(struct cluster_search *s, size_t barcode, uint32_t joined)
{
    s->list->joined[barcode] = joined;
    xgrow(&s->to_visit, &s->to_visit_room, s->n_to_visit + 1, s->n_to_visit / 2,
          sizeof *s->to_visit);
    s->to_visit[s->n_to_visit++] = (uint32_t)barcode;
}

/* Joins all barcodes that may be sequencing errors of this one. */
static void take_neighbours(struct cluster_search *s, size_t barcode, uint32_t joined)
{
    const struct barcode_list *list = s->list;
    const uint8_t *own = text_of(list, barcode);
    uint64_t n_reads = list->n_reads[barcode];
    uint8_t text[UINT8_MAX];
    memcpy(text, own, list->n_bytes);
    for (size_t c = 0; c < list->n_bytes; c++) {
        for (size_t i = 0; i < s->n_letters; i++) {
            if (s->letters[i] == own[c]) continue;
            text[c] = s->letters[i];
            uint32_t number = *find_slot(s, text);
            if (number == 0 || list->joined[number - 1] != NOT_TAKEN) continue;
            if (n_reads + 1 >= 2 * (uint64_t)list->n_reads[number - 1])
                take(s, number - 1, joined);
        }
        text[c] = own[c];
    }
}

static int compare_ranks(const void *a, const void *b)
{
    uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
    return p < q ? -1 : p > q;
}

/* Sorts the barcodes, the most frequent first, equally frequent ones by number. The lower half of
   each element is the number. */
static uint64_t *rank(const struct barcode_list *list)
{
    uint64_t *ranks = xmalloc(list->n * sizeof *ranks);
    for (size_t i = 0; i < list->n; i++)
        ranks[i] = (uint64_t)(UINT32_MAX - list->n_reads[i]) << 32 | i;
    qsort(ranks, list->n, sizeof *ranks, compare_ranks);
    return ranks;
}

/* Clusters a list: sets `joined`. Returns 0, or -1 if the thread pool has failed. */
static int join_list(struct barcode_list *list, const struct threads *threads)
{
    struct cluster_search s = {.list = list};
    bool failed = false;
    xgrow(&list->joined, &list->joined_room, list->n, 0, sizeof *list->joined);
    if (list->n == 1) list->joined[0] = 0;
    if (list->n <= 1) return 0;
    uint64_t *ranks = rank(list);
    list_letters(&s);
    fill_slots(&s);
    for (size_t i = 0; i < list->n; i++) list->joined[i] = NOT_TAKEN;
    for (size_t i = 0; i < list->n && !failed; i++) {
        uint32_t first = (uint32_t)ranks[i];
        if (list->joined[first] != NOT_TAKEN) continue;
        take(&s, first, first);
        while (s.n_to_visit > 0 && !(failed = thread_pool_failed(threads)))
            take_neighbours(&s, s.to_visit[--s.n_to_visit], first);
    }
    free(ranks);
    free(s.slots);
    free(s.to_visit);
    return failed ? -1 : 0;
}

/* ---- reads ---- */

struct barcodes *barcodes_create(struct external_sort *sort, struct barcode_room *room)
{
    struct barcodes *b = xcalloc(1, sizeof *b);
    b->room = room;
    b->sort = sort;
    return b;
}

static void give_room_back(struct barcodes *b)
{
    if (!b->has_lock) return;
    release_list(&b->list);
    b->has_lock = false;
    (void)pthread_mutex_unlock(&b->room->lock);
}

void barcodes_destroy(struct barcodes *b)
{
    if (!b) return;
    give_room_back(b);
    external_sort_destroy(b->sort);
    release_list(&b->list);
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

/* Lists the barcode of a read; if memory does not suffice for a new one, counts it in n_lacking. */
static void list_barcode(struct barcodes *b, const uint8_t *text)
{
    size_t n_bytes = b->list.n_bytes, n = b->list.n;
    bool is_listed = n > 0 && memcmp(text_of(&b->list, n - 1), text, n_bytes) == 0;
    if (b->n_lacking == 0 && (is_listed || has_room(b))) {
        add_to_list(&b->list, text);
        return;
    }
    if (b->n_lacking > 0 && memcmp(b->last, text, n_bytes) == 0) return;
    memcpy(b->last, text, n_bytes);
    b->n_lacking++;
}

static int report_lack_of_room(const struct barcodes *b)
{
    enum { MIB = 1 << 20, ALL_BYTES_PER_LIST_BYTE = 4, OTHER_MIB = 8 };
    uint64_t n = b->list.n + b->n_lacking;
    diag_error("%" PRIu64 " different barcodes are at position %" PRId64 " of reference %" PRId32
               ": to join those with mismatches --markdup needs --max-memory %zuM",
               n, read_moment_position(&b->moment) + 1, read_moment_reference(&b->moment) + 1,
               bytes_of_barcodes(b, n) / MIB * ALL_BYTES_PER_LIST_BYTE + OTHER_MIB);
    return -1;
}

static int list_read(void *arg, const uint8_t *item, bool is_first)
{
    struct barcodes *b = arg;
    struct item_read read;
    if (is_first) {
        give_room_back(b);
        memcpy(b->key, item, LIST_KEY_BYTES);
        b->list.n = b->n_lacking = b->number = 0;
        b->list.n_bytes = b->key[ITEM_KEY_BYTES];
    }
    const uint8_t *text = item + LIST_KEY_BYTES, *at = text + b->list.n_bytes;
    item_get_read(&at, &read);
    b->moment = read.moment;
    if (b->list.n_bytes > 0 && !read.is_found) list_barcode(b, text);
    return thread_pool_failed(b->room->threads) ? -1 : 0;
}

static int join_listed(void *arg)
{
    struct barcodes *b = arg;
    return b->n_lacking > 0 ? report_lack_of_room(b) : join_list(&b->list, b->room->threads);
}

/* ---- reads ---- */

static struct duplicate_key joined_key(const struct barcodes *b)
{
    const uint8_t *at = b->key;
    struct duplicate_key key = item_get_key(&at);
    if (b->list.n_bytes == 0) return key;
    const uint8_t *text = text_of(&b->list, b->list.joined[b->number]);
    return duplicate_key_with_barcode(key, text, b->list.n_bytes);
}

static int add_joined(void *arg, const uint8_t *item, size_t n_bytes)
{
    struct barcodes *b = arg;
    size_t text_bytes = b->list.n_bytes;
    const uint8_t *text = item + LIST_KEY_BYTES, *rest = text + text_bytes;
    if (text_bytes > 0 && memcmp(text_of(&b->list, b->number), text, text_bytes) != 0) b->number++;
    item_begin(&b->writer);
    item_put_key(&b->writer, joined_key(b));
    item_put_bytes(&b->writer, rest, (size_t)(item + n_bytes - rest));
    return thread_pool_failed(b->room->threads) ? -1 : item_add(&b->writer, b->to);
}

int barcodes_join(struct barcodes *b, struct external_sort *to)
{
    static const struct item_visitor visitor = {
        .key_bytes = LIST_KEY_BYTES, .look = list_read, .decide = join_listed, .take = add_joined};
    b->to = to;
    int r = item_groups_visit(b->sort, &visitor, b);
    give_room_back(b);
    external_sort_clear(b->sort);
    return r;
}
