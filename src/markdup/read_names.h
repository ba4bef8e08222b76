/*
 * read_names.h -- parses read names: the barcode (UMI), which may also be in a tag, and the
 * coordinates on the flow cell, for optical duplicates.
 *
 * Only the record's own tag and name count, not those of its mate. Records are raw and checked
 * (bam_fields.h). Threads: any.
 */
#ifndef ROCKSORT_MARKDUP_READ_NAMES_H
#define ROCKSORT_MARKDUP_READ_NAMES_H

#include "markdup/markdup_rules.h"

#include <regex.h>
#include <stddef.h>

/* ---- patterns ---- */

enum {
    NAME_PATTERN_GROUPS = 3,    /* that match can return */
    NAME_PATTERN_WHY_BYTES = 256,
};

/*
 * A regular expression that several threads can match at the same time. glibc's regexec holds a
 * lock while it matches, 2 to 3 us a name, so each thread compiles its own copy on first use.
 * Before the pattern is destroyed, all other threads must have ended.
 */
struct name_pattern;

/* Compiles an extended regular expression. Returns NULL with the reason in `why` on failure. */
struct name_pattern *name_pattern_compile(const char *text, char why[NAME_PATTERN_WHY_BYTES]);

/* Accepts NULL. */
void name_pattern_destroy(struct name_pattern *pattern);

/* The number of groups in parentheses. */
size_t name_pattern_n_groups(const struct name_pattern *pattern);

/* Searches for the pattern in `name`. If it matches, found[i] is the place of group i, as from
   regexec; found[0] is the whole match. */
bool name_pattern_match(struct name_pattern *pattern, const char *name,
                        regmatch_t found[NAME_PATTERN_GROUPS + 1]);

/* ---- barcodes ---- */

struct read_barcode {
    const char *text;           /* in the record, n characters without NUL; NULL: none */
    size_t n;
    bool is_unreadable;         /* the name does not match, or the tag is not text */
};

/* Finds the barcode of a record. Without a pattern, the barcode in a name is what follows the
   seventh colon, up to the first character that is not allowed in names. An empty one is none. */
struct read_barcode read_barcode_of(const struct markdup_rules *rules, const uint8_t *rec);

enum { READ_BARCODE_MOVED_BYTES = 8 };

/*
 * Moves the barcode from the name to the tag RX (--move-umi-to-tag): removes it from the name
 * together with the separator before it, or else the one after it. An existing RX is replaced in
 * place; a new one comes last, but before the long tag (bam_long.h). An empty name becomes "*".
 * Writes the new record to `out`, which has room for the record and READ_BARCODE_MOVED_BYTES more.
 * Returns its size, or 0 if the name has no barcode: then nothing is written.
 */
size_t read_barcode_move(const struct markdup_rules *rules, const uint8_t *rec, uint8_t *out);

/* ---- places on the flow cell ---- */

/*
 * The rules are those of samtools markdup 1.24. A name with 3, 4, 6 or 7 colons has x and y after
 * the last two of its first 3, 4 or 6 colons; everything before x (machine, lane, tile) must be
 * equal. With --read-coords, groups of the pattern are tile, x and y. Reads whose names do not
 * match are never optical duplicates (1.24 reads uninitialised memory there, or fails).
 */
struct read_coords {
    int64_t x, y;
    uint8_t begin, end;         /* of the part of the name that must be equal */
    bool known;
};

enum { READ_COORDS_BYTES = 2 * 8 + 3 }; /* without padding */

/* `name` is the name of a record, at most 254 characters. */
struct read_coords read_coords_of(const struct markdup_rules *rules, const char *name);

/* True if both have coordinates on the same tile, and neither x nor y differs by more than
   `distance`. */
bool read_coords_near(const struct read_coords *a, const char *a_name, const struct read_coords *b,
                      const char *b_name, int64_t distance);

#endif
