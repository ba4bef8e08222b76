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

#include <htslib/sam.h>
#include <stddef.h>
#include <stdint.h>

struct bed_interval {
    int32_t tid;
    int64_t begin, end;
    char *name;                 /* NULL: it has none */
    size_t line;                /* its number, from 1 */
};

/* Reads the file; its references must be in the header. *intervals has at least one, and is sorted
   by reference, begin and line; intervals may overlap. The caller frees it with
   bed_intervals_free. */
int bed_file_read(const char *path, sam_hdr_t *header, struct bed_interval **intervals, size_t *n);

/* Accepts NULL. */
void bed_intervals_free(struct bed_interval *intervals, size_t n);

#endif
