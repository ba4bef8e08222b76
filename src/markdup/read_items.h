/*
 * read_items.h -- encodes reads as items of an external sort (spill/external_sort.h), and compares
 * them as samtools markdup does.
 *
 * An item begins with the bytes by which it is sorted: a key, which is the same for reads that must
 * be compared, and a *moment*, the place of the record in the sorted file. Then comes the read.
 *
 * Order of calls: item_begin, any of item_put_*, item_add; for each item of a reader, item_get_* in
 * the order in which the parts were put. Threads: one at a time.
 */
#ifndef ROCKSORT_MARKDUP_READ_ITEMS_H
#define ROCKSORT_MARKDUP_READ_ITEMS_H

#include "markdup/read_ends.h"
#include "markdup/read_names.h"
#include "spill/external_sort.h"

#include <string.h>

enum { ITEM_KEY_BYTES = 16 };

/* Reference, position, strand, run and ordinal: memcmp gives the order of the sorted file. */
struct read_moment {
    uint8_t bytes[22];
};

/* Decode a moment. */
int32_t read_moment_reference(const struct read_moment *moment);
int64_t read_moment_position(const struct read_moment *moment);

static inline int read_moment_compare(const struct read_moment *a, const struct read_moment *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes);
}

/* A name, in the memory of the item or the read ends from which it was read. */
struct read_name {
    const uint8_t *text; /* without NUL; NULL: none */
    size_t n_bytes;
};

/* The duplicate set of a pair, stored with its 5' end, which is compared with single reads. */
struct local_pair {
    struct duplicate_key key; /* without the barcode if barcodes are joined */
    int64_t here;             /* of the pair */
    struct read_name barcode; /* if barcodes are joined */
};

struct item_read {
    struct read_moment moment; /* its place in the file; if is_found: that of the later read */
    bool is_found;             /* a duplicate: it lost to `by` when the later one was read */
    /* copied as bytes from here to the flags: no padding */
    int64_t score;
    uint32_t run, index, group;
    bool is_paired : 1, failed_qc : 1, has_others : 1, lacks_score : 1, was_marked : 1;
    bool is_optical : 1;  /* tag dt: SQ, else LB */
    bool was_optical : 1; /* already when it was found */
    bool has_local : 1;   /* a read of a pair among single reads: `local` is set */
    struct read_name name;
    struct read_moment by;
    struct read_name by_name; /* if needed */
    struct local_pair local;
    bool has_coords;           /* set by item_read_coords: */
    struct read_coords coords; /* place on the flow cell, from its name */
};

/* Makes an item_read of read ends. Its texts point into the memory of the read ends. */
void item_read_ends(const struct read_ends *ends, uint32_t run, struct item_read *read);

/* A read that outlives its item. */
struct kept_read {
    struct item_read read;
    uint8_t texts[3][256];
};

void item_read_keep(struct kept_read *kept, const struct item_read *read);

const struct read_coords *item_read_coords(const struct markdup_rules *rules,
                                           struct item_read *read);
bool item_reads_are_near(const struct markdup_rules *rules, struct item_read *a,
                         struct item_read *b);

/* ---- which of two reads is the better one, as in samtools markdup 1.24 ---- */

/* Compares two reads of pairs or two single reads: below 0 if a is better, 0 if they are equal. */
static inline int duplicate_rank_compare(const struct item_read *a, const struct item_read *b)
{
    if (a->failed_qc != b->failed_qc) return a->failed_qc ? 1 : -1;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    size_t n = a->name.n_bytes < b->name.n_bytes ? a->name.n_bytes : b->name.n_bytes;
    int r = n > 0 ? memcmp(a->name.text, b->name.text, n) : 0;
    return r != 0 ? r : a->name.n_bytes < b->name.n_bytes ? -1 : a->name.n_bytes > b->name.n_bytes;
}

/* True if a single read is a duplicate of the best read of its key; else it becomes the best. */
static inline bool duplicate_rank_single_loses(const struct item_read *single,
                                               const struct item_read *best)
{
    return best->is_paired || single->score <= best->score;
}

/* True if a is better than b, a duplicate of the same set; of equal ones the later is, as in
   samtools. */
static inline bool duplicate_rank_is_better(const struct item_read *a, const struct item_read *b)
{
    if (a->is_paired != b->is_paired) return a->is_paired;
    int r = duplicate_rank_compare(a, b);
    return r != 0 ? r < 0 : read_moment_compare(&a->moment, &b->moment) > 0;
}

/* ---- writing ---- */

struct item_writer {
    uint8_t bytes[2048]; /* more than any item */
    uint8_t *at;
};

static inline void item_begin(struct item_writer *writer)
{
    writer->at = writer->bytes;
}

void item_put_bytes(struct item_writer *writer, const void *bytes, size_t n_bytes);
void item_put_key(struct item_writer *writer, struct duplicate_key key);
void item_put_number(struct item_writer *writer, int64_t number); /* sorts by value */
void item_put_text(struct item_writer *writer, const uint8_t *text, size_t n_bytes);

/* Puts the moment first, then is_found: of equal keys, reads are in file order, each before the
   duplicates that it reveals. */
void item_put_read(struct item_writer *writer, const struct item_read *read);

static inline size_t item_bytes(const struct item_writer *writer)
{
    return (size_t)(writer->at - writer->bytes);
}

/* Returns 0, or -1 after a message. */
static inline int item_add(const struct item_writer *writer, struct external_sort *sort)
{
    return external_sort_add(sort, writer->bytes, item_bytes(writer));
}

/* ---- reading ---- */

struct duplicate_key item_get_key(const uint8_t **at);
struct read_name item_get_text(const uint8_t **at);
void item_get_read(const uint8_t **at, struct item_read *read);

/* True if the reader is at an item that begins with these bytes. */
static inline bool item_begins(const struct external_sort_reader *reader, const void *bytes,
                               size_t n_bytes)
{
    return reader->n_bytes >= n_bytes && memcmp(reader->item, bytes, n_bytes) == 0;
}

/* ---- groups ---- */

enum { MOST_GROUP_KEY_BYTES = 64 };

/* Visits the items of a sort in groups that begin with the same bytes. All functions return 0, or
   -1 after a message. */
struct item_visitor {
    size_t key_bytes; /* by which items are grouped; no item has fewer */
    bool skips_alone; /* groups of one item may be left out */
    int (*look)(void *arg, const uint8_t *item, bool is_first); /* each item of a group; */
    int (*decide)(void *arg);                                   /* after the last one; */
    int (*take)(void *arg, const uint8_t *item, size_t n_bytes); /* then for each item again */
};

/* Ends a sort and visits its groups. Returns 0, or -1 after a message. */
int item_groups_visit(struct external_sort *sort, const struct item_visitor *visitor, void *arg);

#endif
