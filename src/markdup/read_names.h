/*
 * read_names.h -- what read names say: the barcode (UMI) of a read, which may also be in a tag, and
 * where on the flow cell it was seen, for optical duplicates.
 *
 * A record is what its own tag or name says, not that of its mate. Records are raw and checked
 * (bam_fields.h). Threads: any.
 */
#ifndef ROCKSORT_MARKDUP_READ_NAMES_H
#define ROCKSORT_MARKDUP_READ_NAMES_H

#include "markdup/markdup_rules.h"

#include <regex.h>
#include <stddef.h>

/* ---- patterns ---- */

enum {
    NAME_PATTERN_GROUPS = 3,    /* that can be asked for */
    NAME_PATTERN_WHY_BYTES = 256,
};

/*
 * A regular expression that several threads match at one time. regexec of the GNU C library takes a
 * lock for as long as it matches, 2 to 3 us for each name, so each thread compiles a copy when it
 * first needs one. All threads but the one that destroys the pattern must have ended by then.
 */
struct name_pattern;

/* Compiles an extended regular expression. Returns NULL if it is wrong, and says so in `why`. The
   text is copied. */
struct name_pattern *name_pattern_compile(const char *text, char why[NAME_PATTERN_WHY_BYTES]);

/* NULL is accepted. */
void name_pattern_destroy(struct name_pattern *pattern);

/* The number of groups in parentheses. */
size_t name_pattern_n_groups(const struct name_pattern *pattern);

/* Looks for the pattern in `name`. If it is there, found[i] says where group i is, as regexec does;
   found[0] is the whole match. */
bool name_pattern_match(struct name_pattern *pattern, const char *name,
                        regmatch_t found[NAME_PATTERN_GROUPS + 1]);

/* ---- barcodes ---- */

struct read_barcode {
    const char *text;           /* in the record, n characters and no NUL; NULL: there is none */
    size_t n;
    bool is_unreadable;         /* there is none because the name does not fit or the tag is no
                                   text: worth a warning */
};

/* In a name without a pattern it is what follows the seventh colon, whatever stands before it, up to
   a character that no name has. An empty barcode is none. So is that of a record without the tag. */
struct read_barcode read_barcode_of(const struct markdup_rules *rules, const uint8_t *rec);

enum { READ_BARCODE_MOVED_BYTES = 8 };

/*
 * Moves the barcode from the name to the tag RX (--move-umi-to-tag): the name loses it together
 * with the separator before it, or else the one behind it; an RX that is there is replaced where it
 * stands; a new one comes last, but before the long tag (bam_long.h). A name of which nothing is
 * left becomes "*". Writes the new record to `out`, which has READ_BARCODE_MOVED_BYTES more than
 * the record has. Returns its size, or 0 if the name has no barcode and the record stays as it is.
 */
size_t read_barcode_move(const struct markdup_rules *rules, const uint8_t *rec, uint8_t *out);

/* ---- places on the flow cell ---- */

/*
 * The rules are those of samtools markdup 1.24. A name of 3, 4, 6 or 7 colons has x and y after the
 * last two of its first 3, 4 or 6 colons, and all before x (machine, lane, tile) must be equal.
 * With --read-coords groups of the pattern say what is what. Reads whose names do not fit are no
 * optical duplicates; 1.24 compares what its memory holds, or ends with an error.
 */
struct read_coords {
    bool known;
    int64_t x, y;
    uint8_t begin, end;         /* of the part of the name that must be equal */
};

/* `name` is that of a record: at most 254 characters. */
struct read_coords read_coords_of(const struct markdup_rules *rules, const char *name);

/* True if both have coordinates, on one tile, and neither x nor y differs by more than
   `distance`. */
bool read_coords_near(const struct read_coords *a, const char *a_name, const struct read_coords *b,
                      const char *b_name, int64_t distance);

/* True if two coordinates, neither of which is INT64_MIN, do not differ by more than `distance`. */
bool read_coords_within(int64_t a, int64_t b, int64_t distance);

#endif
