/*
 * bed_file.h -- reads the intervals of a BED file, which may be compressed.
 *
 * Lines have a reference, a begin (from 0), an end (not included) and perhaps a name, with tabs
 * between; a line without a tab may have spaces. Empty lines and those that begin with #, "track"
 * or "browser" are left out (UCSC's description of BED).
 *
 * Threads: one. Errors: -1 after a message that names the file and the line.
 */
#ifndef ROCKSORT_SPLIT_BED_FILE_H
#define ROCKSORT_SPLIT_BED_FILE_H

#include "util/text_pool.h"

#include <htslib/sam.h>
#include <stddef.h>
#include <stdint.h>

struct bed_interval {
    int32_t tid;
    int64_t begin, end;
    size_t name;                /* bed_interval_name */
    size_t line;                /* its number, from 1 */
};

struct bed_intervals {
    struct bed_interval *intervals;     /* sorted by reference, begin and line; they may overlap */
    size_t n, room;
    struct text_pool names;     /* of intervals */
};

/* Reads the file, which has at least one interval; its references must be in the header. The caller
   releases the intervals. */
int bed_file_read(const char *path, sam_hdr_t *header, struct bed_intervals *bed);

/* NULL: it has none. */
const char *bed_interval_name(const struct bed_intervals *bed, size_t interval);

void bed_intervals_release(struct bed_intervals *bed);

#endif
