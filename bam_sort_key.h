/*
 * bam_sort_key.h -- makes the sort keys of records, for all sort orders.
 *
 * A sort order maps a record to a string of bytes, its key. Records are in order if their keys are
 * in the order of memcmp. Nothing else in rocksort compares two records. Keys of one order are
 * prefix-free, so a run number and an index can be appended to a key without changing the order.
 *
 * Coordinate and shuffle keys always have 8 bytes and are handled as one integer. Keys of the other
 * orders vary in length, up to SORT_KEY_MOST_BYTES; a record with a longer key is rejected
 * (record_entries.h). Orders are those of samtools sort 1.24; the manual page has their rules.
 * struct sort_rules holds the order and everything that keys depend on. It does not change once
 * records are read.
 *
 * Each record must have passed bam_record_check. Calls for a record, in this order:
 *
 *     sort_rules_admit     once, when the record is read. In the minimiser order it changes the
 *                          record. In a fixed order it does nothing but content_sum_add.
 *     sort_key_fixed       makes the key in a fixed order, any number of times;
 *     sort_key_bytes,
 *     sort_key_encode      make the key in any other order, any number of times.
 *     sort_rules_restore   once, before the record is written.
 *
 * Records and keys belong to the caller; nothing is allocated. Threads: any, on different records;
 * one at a time for sort_rules_update_header.
 */
#ifndef ROCKSORT_BAM_SORT_KEY_H
#define ROCKSORT_BAM_SORT_KEY_H

#include "bam/bam_fields.h"
#include "bam/content_sum.h"
#include "bam/cut_names.h"
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
    SORT_COORDINATE_LONG,       /* like SORT_COORDINATE, with positions beyond 2^31 - 1 */
    SORT_SHUFFLE,               /* --shuffle: random, the same for the same records and seed */
};

/* Returns the name of an order in the @HD line's SS tag and in --report: "queryname:natural". */
const char *sort_order_name(enum sort_order order);

/* Returns the name of an order in messages: "read name, numbers by value". */
const char *sort_order_text(enum sort_order order);

/* Returns the name of an order in checkpoints: "natural". sort_order_of_word returns the order with
   this name, or -1 for any other word and for NULL. */
const char *sort_order_word(enum sort_order order);
int sort_order_of_word(const char *word);

struct markdup_rules;

struct sort_rules {
    enum sort_order order;
    enum sort_order below;      /* SORT_TAG: the order of records whose values are equal */
    bool long_positions;        /* some reference is longer than 2^31 - 1 */
    bool zeros_count;           /* SORT_NAME_NATURAL: leading zeros count, as in samtools 1.16 */
    char tag[2];                /* SORT_TAG */
    const struct bam_key_template *template_ends;       /* SORT_TEMPLATE */
    struct minhash_settings minhash;                    /* SORT_MINHASH */
    uint64_t seed;              /* SORT_SHUFFLE */
    struct cut_names *cut_names;        /* counts names that were cut; NULL: does not count */
    const struct markdup_rules *duplicates;     /* NULL: none are marked. Keys ignore it; checksums
                                                   exclude duplicate flags */
};

enum {
    SORT_KEY_FIXED_BYTES = 8,   /* size of a fixed key */
    /* Maximum size of a key. Limits the memory of the merge, which holds the key of the next block
       of each file. Only values of tags can be as long; the natural key of a name of 254 characters
       has at most 511 bytes. */
    SORT_KEY_MOST_BYTES = 65535,
};

/* True if every key of the order has SORT_KEY_FIXED_BYTES bytes. */
static inline bool sort_order_is_fixed(enum sort_order order)
{
    return order == SORT_COORDINATE || order == SORT_SHUFFLE;
}

/* True if keys contain values of tags, which can be long. */
static inline bool sort_order_has_long_keys(enum sort_order order)
{
    return order == SORT_TAG || order == SORT_TEMPLATE;
}

/*
 * Returns the coordinate key as an integer, most significant first: 31 bits of reference index, 32
 * bits of position + 1, 1 bit that is set on the reverse strand. Reference -1 becomes 2^31 - 1 and
 * so sorts last; position -1 becomes 0. The unmapped flag is ignored.
 */
static inline uint64_t sort_key_coordinate(const uint8_t *rec)
{
    uint64_t tid = (uint32_t)bam_record_tid(rec) & 0x7fffffff;
    uint64_t pos = (uint32_t)bam_record_pos(rec) + 1u;
    uint64_t reverse = bam_record_flag(rec) >> 4 & 1;
    return tid << 33 | pos << 1 | reverse;
}

/* Converts a fixed key to its 8 bytes in memcmp order, and back. */
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

/* Returns the shuffle key: a hash of the whole record and the seed. Identical records have equal
   keys; their order is invisible in the output. */
uint64_t sort_key_shuffle(const uint8_t *rec, uint64_t seed);

/* Returns the key of a record in a fixed order. */
static inline uint64_t sort_key_fixed(const struct sort_rules *rules, const uint8_t *rec)
{
    return rules->order == SORT_COORDINATE ? sort_key_coordinate(rec)
                                           : sort_key_shuffle(rec, rules->seed);
}

/*
 * Returns the size of the key of a record in an order whose keys are not fixed: at most
 * 2 * bam_record_bytes(rec) - 32 bytes. Returns 0 if the record cannot be ordered, and sets
 * *problem to the reason (record_problem.h).
 */
size_t sort_key_bytes(const struct sort_rules *rules, const uint8_t *rec, const char **problem);

/* Writes the key of a record in such an order to out, which has room for it, and returns its
   size. */
size_t sort_key_encode(const struct sort_rules *rules, const uint8_t *rec, uint8_t *out);

/* Changes a record that was just read to the form in which it is sorted. Adds the record, as it
   will be written, to the sum. */
void sort_rules_admit(const struct sort_rules *rules, uint8_t *rec, struct content_sum *sum);

/* Changes a record to the form in which it is written. */
static inline void sort_rules_restore(enum sort_order order, uint8_t *rec)
{
    if (order == SORT_MINHASH && minhash_is_tail(rec)) minhash_unstash(rec);
}

/*
 * Sets the SO, SS and GO tags of the @HD line to the order, or removes them, and adds an @HD line
 * if there is none. any_placed: some record has a reference. Returns 0, or -1 if htslib cannot
 * change the header.
 */
int sort_rules_update_header(const struct sort_rules *rules, bool any_placed, sam_hdr_t *header);

#endif
