/*
 * duplicate_tags.h -- what --markdup writes into a record: flag 0x400 and the tags do (name of the
 * original), dt (SQ: an optical duplicate, LB: another one) and dc (how many there are).
 *
 * As in samtools markdup 1.24, a tag that is there is replaced where it stands, others are appended
 * in the order do, dt, dc. (1.24 ends with an error if a do is no text, and leaves such a dt and a
 * dc that is no number; here they are replaced.) After a damaged tag nothing is written.
 *
 * As in 1.24, a duplicate gets do (-t) and dt (-d). With --duplicate-count all records without the
 * flag get dc, 1 if they are not examined. A record that had the flag in the input, without -c,
 * keeps what it has.
 *
 * Records are raw and checked (bam_check.h). Pure; any thread.
 */
#ifndef ROCKSORT_MARKDUP_DUPLICATE_TAGS_H
#define ROCKSORT_MARKDUP_DUPLICATE_TAGS_H

#include "bam/content_sum.h"
#include "markdup/markdup_rules.h"

enum duplicate_type { DUPLICATE_NO_TYPE, DUPLICATE_LIBRARY, DUPLICATE_OPTICAL };

struct duplicate_tags {
    bool is_duplicate;          /* sets the flag */
    const uint8_t *original;    /* tag do, without NUL; NULL: no tag */
    size_t original_bytes;      /* at most 254 */
    enum duplicate_type type;   /* tag dt */
    uint32_t count;             /* tag dc, but not for a record with the flag; 0: no tag */
    bool drops_count;           /* takes the first dc from a record with the flag: 1.24 does with
                                   --duplicate-count and -S */
};

/* The most bytes of each tag, and the most by which a record grows. */
enum {
    DUPLICATE_ORIGINAL_BYTES = 3 + 255,
    DUPLICATE_TYPE_BYTES = 3 + 3,
    DUPLICATE_COUNT_BYTES = 3 + 4,
    DUPLICATE_TAGS_GROWTH_BYTES =
        DUPLICATE_ORIGINAL_BYTES + DUPLICATE_TYPE_BYTES + DUPLICATE_COUNT_BYTES
};

/* Writes the record with flag and tags to `out`, which has DUPLICATE_TAGS_GROWTH_BYTES more than
   the record has. Returns its size. */
size_t duplicate_tags_write(const uint8_t *rec, const struct duplicate_tags *tags, uint8_t *out);

/* -c: takes the flag, the first do and the first dt from a record that has the flag, in place.
   Returns its size. */
size_t duplicate_tags_clear(uint8_t *rec);

/* ---- checksums of what --markdup does not change ---- */

/* True if duplicate_tags_strip would change the record. */
bool duplicate_tags_has_any(const uint8_t *rec);

/* Writes the record without the flag and all tags do, dt and dc to `out`, which has as much room as
   the record. Returns its size. */
size_t duplicate_tags_strip(const uint8_t *rec, uint8_t *out);

/*
 * Add a raw, checked record to the checksum of what --markdup does not change, as it was read or as
 * it will be written; its flag is changed for the moment. rules: NULL: records stay as they are.
 * What --move-umi-to-tag takes from the name cannot be put back, so an input record is added as it
 * will be: errors of the move are not found. Any thread, on different records.
 */
void duplicate_sum_add_input(const struct markdup_rules *rules, struct content_sum *sum,
                             uint8_t *rec);
void duplicate_sum_add_output(const struct markdup_rules *rules, struct content_sum *sum,
                              uint8_t *rec);

#endif
