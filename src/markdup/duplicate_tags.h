/*
 * duplicate_tags.h -- writes what --markdup adds to a record: flag 0x400 and the tags do (name of
 * the original read), dt (SQ: optical duplicate, LB: other duplicate) and dc (size of the set).
 *
 * As in samtools markdup 1.24, existing tags are replaced in place, new ones are appended in the
 * order do, dt, dc. Tags of the wrong type are replaced, too (1.24 fails if do is not text, and
 * keeps such a dt or dc). If a record has a damaged tag, no tags are written after it.
 *
 * As in 1.24, a duplicate gets do (-t) and dt (-d). With --duplicate-count all records without the
 * flag get dc; it is 1 if they are not examined. A record that had the flag in the input keeps its
 * tags, unless -c is given.
 *
 * Records are raw and checked (bam_check.h). Pure; any thread.
 */
#ifndef ROCKSORT_MARKDUP_DUPLICATE_TAGS_H
#define ROCKSORT_MARKDUP_DUPLICATE_TAGS_H

#include "bam/content_sum.h"
#include "markdup/duplicate_marks.h"
#include "markdup/markdup_rules.h"

/* Maximum size of each tag, and by how much a record grows at most. */
enum {
    DUPLICATE_ORIGINAL_BYTES = 3 + 255,
    DUPLICATE_TYPE_BYTES = 3 + 3,
    DUPLICATE_COUNT_BYTES = 3 + 4,
    DUPLICATE_TAGS_GROWTH_BYTES =
        DUPLICATE_ORIGINAL_BYTES + DUPLICATE_TYPE_BYTES + DUPLICATE_COUNT_BYTES
};

/* Writes a record that has its flag, with its tags, to `out`, which has room for
   DUPLICATE_TAGS_GROWTH_BYTES more. With --duplicate-count and -S, removes the first dc of a record
   with the flag, as 1.24 does. note: of this record; NULL: none. Returns the new size. */
size_t duplicate_tags_write(const struct markdup_rules *rules, const uint8_t *rec,
                            const struct duplicate_note *note, uint8_t *out);

/* -c: if a record has the flag, removes the flag, the first do and the first dt in place. Returns
   its size. */
size_t duplicate_tags_clear(uint8_t *rec);

/* ---- checksums of what --markdup does not change ---- */

/* Writes the record without the flag and all tags do, dt and dc to `out`, which has as much room as
   the record. Returns its size. */
size_t duplicate_tags_strip(const uint8_t *rec, uint8_t *out);

/*
 * Add a record of the input or of the output to the checksum, without what --markdup changes. Both
 * change the flag of the record for a moment. rules NULL: --markdup is off. --move-umi-to-tag
 * cannot be undone, so the input record is added after the move; the checksum does not protect the
 * move itself. Any thread, on different records.
 */
void duplicate_sum_add_input(const struct markdup_rules *rules, struct content_sum *sum,
                             uint8_t *rec);
void duplicate_sum_add_output(const struct markdup_rules *rules, struct content_sum *sum,
                              uint8_t *rec);

#endif
