/*
 * bam_sort_key.h -- sort orders and their keys.
 *
 * A sort order turns a record into a string of bytes; records are in order when their keys are in
 * memcmp order. Nothing else in rocksort compares two records. Keys of one order are prefix-free
 * (no key is the beginning of another), so that a run number and an index can be appended to them
 * without disturbing the order.
 *
 * Coordinate and shuffle keys always have 8 bytes and are handled as one integer; the key of any
 * other order has a variable length. Orders are those of samtools sort 1.24 (doc/design.md
 * has the rules). Which order it is, and what its keys depend on, is in the sort_rules, which never
 * change once records are read.
 *
 * In the minimiser order a record changes: sort_rules_admit is called once on every record that is
 * read, before its key is made, and sort_rules_restore before it is written.
 *
 * All functions are pure but for the records that those two change, and may be called from any
 * thread, except sort_rules_update_header, which changes the header it is given.
 */
#ifndef ROCKSORT_BAM_SORT_KEY_H
#define ROCKSORT_BAM_SORT_KEY_H

#include "bam/bam_fields.h"
#include "bam/content_sum.h"
#include "order/bam_key_template.h"
#include "order/minhash.h"

#include <stdbool.h>

enum sort_order {
    SORT_COORDINATE,            /* reference, position, strand */
    SORT_NAME_NATURAL,          /* -n: read name, digits by value */
    SORT_NAME_LEXICAL,          /* -N: read name by strcmp */
    SORT_TAG,                   /* -t: value of a tag, then one of the three above */
    SORT_TEMPLATE,              /* --template-coordinate: both ends of the template */
    SORT_MINHASH,               /* -M: coordinate, but records without reference by minimiser */
    SORT_COORDINATE_LONG,       /* as SORT_COORDINATE, with positions beyond 2^31 */
    SORT_SHUFFLE,               /* --shuffle: random, the same for the same records and seed */
};

struct sort_rules {
    enum sort_order order;
    enum sort_order below;      /* SORT_TAG: what decides between equal values */
    bool long_positions;        /* some reference is longer than 2^31 - 1 */
    bool zeros_count;           /* SORT_NAME_NATURAL: as in samtools 1.16, to check its files */
    char tag[2];                /* SORT_TAG */
    const struct bam_key_template *template_ends;       /* SORT_TEMPLATE */
    struct minhash_settings minhash;                    /* SORT_MINHASH */
    uint64_t seed;              /* SORT_SHUFFLE */
};

enum { SORT_KEY_FIXED_BYTES = 8 };      /* size of a fixed key */

/* True if every key of the order has SORT_KEY_FIXED_BYTES bytes. */
static inline bool sort_order_is_fixed(enum sort_order order)
{
    return order == SORT_COORDINATE || order == SORT_SHUFFLE;
}

/*
 * The coordinate key as an integer, most significant first: 31 bits of reference index, 32 bits of
 * position + 1, 1 bit that is set on the reverse strand. Reference -1 becomes 2^31 - 1 and so sorts
 * last; position -1 becomes 0. The unmapped flag plays no part.
 */
static inline uint64_t sort_key_coordinate(const uint8_t *rec)
{
    uint64_t tid = bam_record_u32(rec + 4) & 0x7fffffff;
    uint64_t pos = (uint32_t)(bam_record_u32(rec + 8) + 1);
    uint64_t reverse = bam_record_flag(rec) >> 4 & 1;
    return tid << 33 | pos << 1 | reverse;
}

/* A fixed key as its 8 bytes in memcmp order, and back. */
static inline void sort_key_store_fixed(uint64_t key, uint8_t out[SORT_KEY_FIXED_BYTES])
{
    key = __builtin_bswap64(key);
    memcpy(out, &key, sizeof key);
}

static inline uint64_t sort_key_load_fixed(const uint8_t at[SORT_KEY_FIXED_BYTES])
{
    uint64_t key;
    memcpy(&key, at, sizeof key);
    return __builtin_bswap64(key);
}

/* The shuffle key: a hash of the whole record. Equal records have equal keys and may trade places
   without anybody noticing. */
uint64_t sort_key_shuffle(const uint8_t *rec, uint64_t seed);

/* The key of a record in a fixed order. */
static inline uint64_t sort_key_fixed(const struct sort_rules *rules, const uint8_t *rec)
{
    return rules->order == SORT_COORDINATE ? sort_key_coordinate(rec)
                                           : sort_key_shuffle(rec, rules->seed);
}

/*
 * Size in bytes of the key of a record in an order whose keys are not fixed; at most twice the
 * record less 32. 0 if the record cannot be ordered; *problem then says why, to be put behind the
 * name of the read.
 */
size_t sort_key_bytes(const struct sort_rules *rules, const uint8_t *rec, const char **problem);

/* Writes that key to out and returns its size. */
size_t sort_key_encode(const struct sort_rules *rules, const uint8_t *rec, uint8_t *out);

/* Brings a record that was just read into the form in which it is sorted, and adds it to the sum as
   it will be written. */
void sort_rules_admit(const struct sort_rules *rules, uint8_t *rec, struct content_sum *sum);

/* Brings a record into the form in which it is written. */
static inline void sort_rules_restore(enum sort_order order, uint8_t *rec)
{
    if (order == SORT_MINHASH && minhash_is_tail(rec)) minhash_unstash(rec);
}

/*
 * Sets the SO, SS and GO tags of the @HD line to the order, or removes them, and adds an @HD line
 * if there is none. any_placed: some record has a reference. Returns 0, or -1 without memory.
 */
int sort_rules_update_header(const struct sort_rules *rules, bool any_placed, sam_hdr_t *header);

#endif
