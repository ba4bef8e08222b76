/*
 * duplicate_tags.h -- what --markdup writes into a record: flag 0x400 and the tags do (name of the
 * original), dt (SQ: an optical duplicate, LB: another one) and dc (how many there are).
 *
 * Tags come out as samtools markdup 1.24 leaves them: one that is there is replaced where it
 * stands, others are appended in the order do, dt, dc. 1.24 ends with an error if a do is no text,
 * and leaves such a dt and a dc that is no number; here they are replaced. If a tag is damaged,
 * those after it are unknown: what was not found before it is not written.
 *
 * Which records get what, by 1.24: a duplicate gets do (-t) and dt (-d). With --duplicate-count all
 * records that do not have the flag in the end get dc, 1 for secondary, supplementary, unmapped and
 * other records that are not examined; a record that had the flag in the input, and no -c, keeps
 * what it has.
 *
 * Records are raw and checked (bam_check.h). Pure; any thread.
 */
#ifndef ROCKSORT_DUPLICATES_DUPLICATE_TAGS_H
#define ROCKSORT_DUPLICATES_DUPLICATE_TAGS_H

#include "bam/content_sum.h"
#include "duplicates/duplicate_rules.h"

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

/*
 * Writes the record without the flag and all tags do, dt and dc to `out`, which has as much room as
 * the record. Returns its size. The result is the same before and after duplicate_tags_write and
 * duplicate_tags_clear, whatever they did.
 *
 * --move-umi-to-tag changes name and RX, too. What it takes from the name cannot be put back: the
 * separator may have been on the other side, RX may have had another value. So the input side must
 * strip what read_barcode_move makes of each record (or the record, if that returns 0), the output
 * side what it wrote. Both give the same bytes, whether tags were written before or after the move.
 * Such a checksum finds records that were lost or changed otherwise, but no error of the move.
 */
size_t duplicate_tags_strip(const uint8_t *rec, uint8_t *out);

/* Adds a raw, checked record to the checksum of what --markdup does not change, as it was read or
   as it will be written; its flag is changed for the moment. rules: NULL: records stay as they are.
   Any thread, on different records. */
void duplicate_sum_add_input(const struct duplicate_rules *rules, struct content_sum *sum,
                             uint8_t *rec);
void duplicate_sum_add_output(const struct duplicate_rules *rules, struct content_sum *sum,
                              uint8_t *rec);

#endif
