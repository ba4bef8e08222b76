/*
 * read_coords.h -- where on the flow cell a read was seen, as its name says: for optical
 * duplicates.
 *
 * The rules are those of samtools markdup 1.24. A name of 3, 4, 6 or 7 colons has x and y behind
 * the last two of its first 3, 4 or 6 colons, and all before x (machine, lane, tile) must be equal.
 * With --read-coords groups of the pattern say what is what. Names that do not fit have no
 * coordinates, and their reads are no optical duplicates; 1.24 compares what its memory holds, or
 * ends with an error.
 *
 * Pure; any thread.
 */
#ifndef ROCKSORT_DUPLICATES_READ_COORDS_H
#define ROCKSORT_DUPLICATES_READ_COORDS_H

#include "duplicates/duplicate_rules.h"

struct read_coords {
    bool known;
    int64_t x, y;
    uint8_t begin, end;         /* of the part of the name that must be equal */
};

/* `name` is that of a record: at most 254 characters. */
struct read_coords read_coords_of(const struct duplicate_rules *rules, const char *name);

/* True if both have coordinates, on one tile, and neither x nor y differs by more than
   `distance`. */
bool read_coords_near(const struct read_coords *a, const char *a_name, const struct read_coords *b,
                      const char *b_name, int64_t distance);

#endif
