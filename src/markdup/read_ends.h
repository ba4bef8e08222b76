/*
 * read_ends.h -- what the search for duplicates needs to know of a record: the read ends of it.
 *
 * The rules are those of samtools markdup 1.24. A read is examined if it is mapped, primary and,
 * unless asked otherwise, has passed QC. A member of a pair is compared by the unclipped ends of
 * both reads; a single read by its unclipped 5' end. Two reads with the same *key* are duplicates
 * of each other; the key of a pair is (ref, here, mate_ref, there, orientation, is_left), that of a
 * single read (ref, here, is_reverse), and both have the barcode and the group, too.
 *
 * A single read whose key is also that of the 5' end of a member of a pair is a duplicate of that
 * pair. `here` of nearly all members of pairs is their 5' end. One whose is not has a second read
 * ends, of the kind READ_ENDS_END, whose key is that of a single read. So all read ends that may
 * have to do with each other agree in ref and here.
 *
 * With --ignore-strand the key of a pair is without its orientation, and that of a single read is
 * (ref, start, end): both of its unclipped ends, and no strand. One of them is `here`, the other
 * one `other_place`. Single reads are where they start, so members of pairs whose `here` is their
 * end have a READ_ENDS_END.
 *
 * Coordinates are 1-based, and clipped bases count as if they were aligned.
 */
#ifndef ROCKSORT_MARKDUP_READ_ENDS_H
#define ROCKSORT_MARKDUP_READ_ENDS_H

#include "markdup/markdup_rules.h"
#include "markdup/read_names.h"

#include <stddef.h>
#include <stdint.h>

enum read_ends_kind {
    READ_ENDS_SINGLE,           /* a single read */
    READ_ENDS_PAIR,             /* a member of a pair */
    READ_ENDS_END,              /* the 5' end of a member of a pair, which has read ends, too */
    READ_ENDS_OTHER,            /* secondary, supplementary or unmapped: marked as its primary is */
};

/* Strands of both reads, seen from the left end of the template. */
enum pair_orientation { PAIR_FF, PAIR_RR, PAIR_FR, PAIR_RF };

/* The ordinal says which of two records of a run came first in the input: the index, unless they
   are sorted by something else than their place first (spill/sort_buffer.h). */
enum { DUPLICATE_ORDINAL_BITS = 40 };
#define DUPLICATE_ORDINAL_MASK ((UINT64_C(1) << DUPLICATE_ORDINAL_BITS) - 1)

/* read ends are gathered and sorted while they are in the cache: the fields have their order and
   sizes so that they take 96 bytes. */
struct read_ends {
    enum read_ends_kind kind : 8;
    enum pair_orientation orientation : 8;
    bool is_left;
    bool is_reverse;
    bool failed_qc;
    bool has_others;            /* other records may have to be marked as this one is */
    bool lacks_score;           /* a pair: no tag ms */
    bool was_marked;            /* in the input */
    uint8_t name_bytes, barcode_bytes;
    uint64_t ordinal : DUPLICATE_ORDINAL_BITS;  /* see above; the caller sets it, and the index */
    uint32_t index;             /* number of the record in its run */
    uint32_t group;             /* read group or library that it is counted in, or 0 */
    int32_t ref, mate_ref;
    int64_t pos;                /* of its alignment, 0-based */
    int64_t here, there;
    int64_t other_place;        /* a pair: its 5' end, which is `here` unless both reads have one
                                   strand; READ_ENDS_END: `here` of the pair; else `here`. With
                                   --ignore-strand the other end of a pair or a single read */
    int64_t score;              /* its own; of a pair: of both reads */
    uint64_t barcode;           /* hash of it, or 0 */
    const uint8_t *name;        /* without NUL; NULL: the read ends does not need it */
    const uint8_t *barcode_text;        /* without NUL, in the record or with its name; NULL: there
                                           is none, it is longer than 255 characters, or the rules
                                           allow no mismatches */
};

_Static_assert(sizeof(struct read_ends) == 96, "no space is lost");

/* True if the single reads that have the single key of this member of a pair lie at its `here`. */
static inline bool read_ends_meets_singles(const struct markdup_rules *rules,
                                           const struct read_ends *ends)
{
    return ends->here == ends->other_place ||
           (rules->ignores_strand && ends->here < ends->other_place);
}

/* What a record is to the search. */
enum examined_as { EXAMINED_NOT, EXAMINED_AS_SINGLE, EXAMINED_AS_PAIR };

struct record_read_ends {
    enum examined_as as;
    uint32_t group;
    bool lacks_barcode;         /* its name or tag should have one, and cannot be read */
    struct read_ends ends[2];
    unsigned n;                 /* 0 to 2 */
};

/*
 * Makes the read ends of a checked record (bam_check.h). The names point into it. Returns NULL, or
 * what is wrong with the record, which then has no read ends. Pure; any thread.
 */
const char *read_ends_make(const struct markdup_rules *rules, const uint8_t *rec,
                           struct record_read_ends *all_ends);

/* ---- keys ---- */

/* The 128-bit hash of what must be equal of two duplicates, which stands for it. */
struct duplicate_key {
    uint64_t low, high;
};

/* Of a pair; and of a single read, or the 5' end of a member of a pair. */
struct duplicate_key duplicate_key_of_pair(const struct markdup_rules *rules,
                                           const struct read_ends *ends);
struct duplicate_key duplicate_key_of_single(const struct markdup_rules *rules,
                                             const struct read_ends *ends);

/* Of a name or any other text; and of a key that was made without barcode, with one. */
struct duplicate_key duplicate_key_of_text(const void *text, size_t n_bytes);
struct duplicate_key duplicate_key_with_barcode(struct duplicate_key key, const uint8_t *barcode,
                                                size_t n_bytes);

#endif
