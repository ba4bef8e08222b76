/*
 * read_ends.h -- makes the read ends of a record: what the search for duplicates needs to know.
 *
 * The rules are those of samtools markdup 1.24. A read is examined if it is mapped, primary and has
 * passed QC (unless --include-fails). A read of a pair is compared by the unclipped ends of both
 * reads, a single read by its unclipped 5' end. Reads with the same *key* are duplicates of each
 * other. The key of a pair is (ref, here, mate_ref, there, orientation, is_left), that of a single
 * read (ref, here, is_reverse); both also contain the barcode and the group.
 *
 * A single read is also a duplicate of a pair if the 5' end of one read of the pair gives the same
 * single key. For most reads of pairs, `here` is the 5' end. For the others a second struct
 * read_ends, of the kind READ_ENDS_END, has the 5' end as `here`. So all read ends that must be
 * compared have equal ref and here.
 *
 * With --ignore-strand the key of a pair has no orientation, and that of a single read is (ref,
 * start, end), its unclipped ends without the strand: `here` and `other_place`. `here` of a single
 * read is its start, so reads of pairs whose `here` is their end have a READ_ENDS_END.
 *
 * Coordinates are 1-based. Clipped bases count as aligned.
 */
#ifndef ROCKSORT_MARKDUP_READ_ENDS_H
#define ROCKSORT_MARKDUP_READ_ENDS_H

#include "markdup/markdup_rules.h"
#include "markdup/read_names.h"

#include <stddef.h>
#include <stdint.h>

enum read_ends_kind {
    READ_ENDS_SINGLE,           /* a single read */
    READ_ENDS_PAIR,             /* a read of a pair */
    READ_ENDS_END,              /* the 5' end of a read that also has a READ_ENDS_PAIR */
    READ_ENDS_OTHER,            /* secondary, supplementary or unmapped: like its primary */
};

/* Strands of both reads, seen from the left end of the template. */
enum pair_orientation { PAIR_FF, PAIR_RR, PAIR_FR, PAIR_RF };

/* The ordinal gives the input order of the records of a run. It is the index, unless the sort order
   begins with something other than the place (spill/sort_buffer.h). */
enum { DUPLICATE_ORDINAL_BITS = 40 };
#define DUPLICATE_ORDINAL_MASK ((UINT64_C(1) << DUPLICATE_ORDINAL_BITS) - 1)

/* Read ends are gathered and sorted in the cache, so order and sizes of the fields are chosen for a
   total of 96 bytes. */
struct read_ends {
    enum read_ends_kind kind : 8;
    enum pair_orientation orientation : 8;
    bool is_left;
    bool is_reverse;
    bool failed_qc;
    bool has_others;            /* other records may have to be marked like this one */
    bool lacks_score;           /* a pair: no tag ms */
    bool was_marked;            /* in the input */
    uint8_t name_bytes, barcode_bytes;
    uint64_t ordinal : DUPLICATE_ORDINAL_BITS;  /* see above; the caller sets it and index */
    uint32_t index;             /* number of the record in its run */
    uint32_t group;             /* read group or library for its counts, or 0 */
    int32_t ref, mate_ref;
    int64_t pos;                /* of its alignment, 0-based */
    int64_t here, there;
    int64_t other_place;        /* a pair: its 5' end, which is `here` unless both reads have the
                                   same strand; READ_ENDS_END: `here` of the pair; else `here`. With
                                   --ignore-strand: the other end */
    int64_t score;              /* of a pair: the sum of both reads */
    uint64_t barcode;           /* its hash, or 0 */
    const uint8_t *name;        /* without NUL; NULL: not needed */
    const uint8_t *barcode_text;        /* without NUL; NULL: none, longer than 255 characters, or
                                           the rules allow no mismatches */
};

_Static_assert(sizeof(struct read_ends) == 96, "no space is lost");

/* True if single reads with the single key of this read of a pair have the same `here`. */
static inline bool read_ends_meets_singles(const struct markdup_rules *rules,
                                           const struct read_ends *ends)
{
    return ends->here == ends->other_place ||
           (rules->ignores_strand && ends->here < ends->other_place);
}

/* How a record is examined. */
enum examined_as { EXAMINED_NOT, EXAMINED_AS_SINGLE, EXAMINED_AS_PAIR };

struct record_read_ends {
    enum examined_as as;
    uint32_t group;
    bool lacks_barcode;         /* its name or tag should contain one but does not */
    struct read_ends ends[2];
    unsigned n;                 /* 0 to 2 */
};

/*
 * Makes the read ends of a checked record (bam_check.h). Names point into the record. Returns NULL,
 * or what is wrong with the record, which then has no read ends. Pure; any thread.
 */
const char *read_ends_make(const struct markdup_rules *rules, const uint8_t *rec,
                           struct record_read_ends *made);

/* ---- keys ---- */

/* The 128-bit hash of the key of a pair or a single read; it is compared instead of the key. */
struct duplicate_key {
    uint64_t low, high;
};

/* The key of a pair; and that of a single read or of the 5' end of a read of a pair. Both are
   without the barcode if barcodes are joined. */
struct duplicate_key duplicate_key_of_pair(const struct markdup_rules *rules,
                                           const struct read_ends *ends);
struct duplicate_key duplicate_key_of_single(const struct markdup_rules *rules,
                                             const struct read_ends *ends);

/* The hash of a name or any other text; and a key without a barcode, combined with one. */
struct duplicate_key duplicate_key_of_text(const void *text, size_t n_bytes);
struct duplicate_key duplicate_key_with_barcode(struct duplicate_key key, const uint8_t *barcode,
                                                size_t n_bytes);

#endif
