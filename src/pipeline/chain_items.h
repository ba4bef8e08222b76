/*
 * chain_items.h -- reads as items of a temp_sort: for chains of duplicates that do not fit in
 * memory (large_chains.h).
 *
 * An item begins with what it is sorted by: a key and, as the last part, the *order* of the read:
 * where it is in the sorted file. Then come other fields, as the caller likes, and the view.
 *
 * Order of calls: item_begin, any of item_put_*, item_add; item_reader_begin, item_reader_next and
 * for each item any of item_get_*, in the order in which they were put. Threads: one at a time.
 */
#ifndef ROCKSORT_PIPELINE_CHAIN_ITEMS_H
#define ROCKSORT_PIPELINE_CHAIN_ITEMS_H

#include "duplicates/duplicate_chains.h"
#include "duplicates/duplicate_table.h"
#include "duplicates/read_coords.h"
#include "duplicates/view_code.h"
#include "store/temp_sort.h"

#include <string.h>

/* ---- reads ---- */

/* Position, strand, run and ordinal: reads of one reference are in this order in the sorted file,
   by memcmp. */
struct item_order {
    uint8_t bytes[18];
};

struct item_order item_order_of(const struct duplicate_view *view, uint32_t run);

static inline int item_order_compare(const struct item_order *a, const struct item_order *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes);
}

struct item_read {
    struct duplicate_view view;
    uint32_t run;
    struct item_order order;
    bool has_coords;            /* they were looked for */
    struct read_coords coords;
    uint8_t name[256];          /* of a read that was kept */
};

/* Keeps a copy of a read, with its name. */
void item_read_keep(struct item_read *kept, const struct item_read *read);

/* Where the read lies, as its name says. */
const struct read_coords *item_coords(const struct duplicate_rules *rules, struct item_read *read);
bool item_are_near(const struct duplicate_rules *rules, struct item_read *a, struct item_read *b);

/* How a read became a duplicate. */
struct item_found {
    bool is_known;              /* else only a flag of the caller's is there */
    bool follows_single;        /* of a pair: it met a single read */
    bool is_optical, was_optical;       /* as in chain_member */
    bool has_name;
    struct item_order by;       /* the better read */
    const uint8_t *name;        /* of that read, if has_name */
    size_t name_bytes;
};

/* A read that was marked because of `by`. Its name is kept only if the rules need it. */
struct item_found item_found_by(const struct duplicate_rules *rules, struct item_read *read,
                                struct item_read *by);

/* Who takes results: returns 0, or -1 after a message. The member and all that it points to are
   there during the call. */
struct chain_taker {
    int (*take)(void *arg, const struct chain_member *member);
    void *arg;
};

/* Gives the result of a duplicate whose original has this name. */
int item_give_duplicate(const struct chain_taker *taker, const struct item_read *read,
                        const struct item_found *found, const uint8_t *original,
                        size_t original_bytes);

/* ---- writing ---- */

struct item_writer {
    uint8_t bytes[2048];        /* more than any item */
    uint8_t *at;
    struct view_coder coder;
};

static inline void item_begin(struct item_writer *writer)
{
    writer->at = writer->bytes;
}

void item_put_key(struct item_writer *writer, struct duplicate_key key);
void item_put_order(struct item_writer *writer, const struct item_order *order);
void item_put_bytes(struct item_writer *writer, const uint8_t *bytes, size_t n_bytes);
void item_put_number(struct item_writer *writer, int64_t number);       /* in its order */
void item_put_found(struct item_writer *writer, const struct item_found *found);
void item_put_view(struct item_writer *writer, const struct duplicate_view *view);

/* Returns 0, or -1 after a message. */
int item_add(const struct item_writer *writer, struct temp_sort *sort);

/* ---- reading ---- */

struct item_reader {
    struct temp_sort_reader items;
    struct view_coder coder;
    const uint8_t *at;          /* in the item */
    struct item_read read;
    struct item_found found;
};

/* `reader` is {0} or was used before. */
void item_reader_begin(struct item_reader *reader, const struct temp_sort *sort);
void item_reader_release(struct item_reader *reader);

/* Goes to the next item. Returns 1; 0 at the end; or -1 after a message. */
int item_reader_next(struct item_reader *reader);

/* Two readers of one sort, which ends now: `lead` finds out what must be known of a group before
   `follow` goes through it. Both are at the first item then. Begin returns 0, or -1 after a
   message; end also destroys the sort, and sets it to NULL. */
int item_readers_begin(struct item_reader *lead, struct item_reader *follow,
                       struct temp_sort *sort);
void item_readers_end(struct item_reader *lead, struct item_reader *follow,
                      struct temp_sort **sort);

/* True if there is an item, and it begins with these bytes. */
bool item_begins(const struct item_reader *reader, const uint8_t *bytes, size_t n_bytes);

struct duplicate_key item_key(const uint8_t *bytes);
struct duplicate_key item_get_key(struct item_reader *reader);
const uint8_t *item_get_bytes(struct item_reader *reader, size_t n_bytes);
int64_t item_get_number(struct item_reader *reader);
void item_get_found(struct item_reader *reader);        /* to reader->found */

/* Sets reader->read from an order that was read before, and the view. */
void item_get_view(struct item_reader *reader, const uint8_t *order);

#endif
