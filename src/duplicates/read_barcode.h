/*
 * read_barcode.h -- the barcode (UMI) of a record, in a tag or in the read name, and its way from
 * the name to a tag.
 *
 * A record is what its own tag or name says: whether its mate has a barcode, too, is for the caller
 * to find out. Records are raw and checked (bam_fields.h). Pure; any thread.
 */
#ifndef ROCKSORT_DUPLICATES_READ_BARCODE_H
#define ROCKSORT_DUPLICATES_READ_BARCODE_H

#include "duplicates/duplicate_rules.h"

#include <stddef.h>

struct read_barcode {
    const char *text;           /* in the record, n characters and no NUL; NULL: there is none */
    size_t n;
    bool is_unreadable;         /* there is none because the name does not fit or the tag is no
                                   text: worth a warning */
};

/* In a name without a pattern it is what follows the seventh colon, whatever stands before it, up to
   a character that no name has. An empty barcode is none. So is that of a record without the tag. */
struct read_barcode read_barcode_of(const struct duplicate_rules *rules, const uint8_t *rec);

enum { READ_BARCODE_MOVED_BYTES = 8 };

/*
 * Moves the barcode from the name to the tag RX (--move-umi-to-tag): the name loses it together
 * with the separator before it, or else the one behind it; an RX that is there is replaced where it
 * stands; a new one comes last, but before the long tag (bam_long.h). A name of which nothing is
 * left becomes "*". Writes the new record to `out`, which has READ_BARCODE_MOVED_BYTES more than
 * the record has. Returns its size, or 0 if the name has no barcode and the record stays as it is.
 */
size_t read_barcode_move(const struct duplicate_rules *rules, const uint8_t *rec, uint8_t *out);

#endif
