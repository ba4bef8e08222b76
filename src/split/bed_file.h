/*
 * bed_file.h -- reads the intervals of a BED file, which may be compressed.
 *
 * A line has a reference, a start (from 0), an end (not included) and an optional name, separated
 * by tabs; a line without a tab may use spaces. Skips empty lines and lines that begin with #,
 * "track" or "browser" (UCSC's description of BED).
 *
 * Threads: one. Errors: -1 after a message that names the file and the line.
 */
#ifndef ROCKSORT_SPLIT_BED_FILE_H
#define ROCKSORT_SPLIT_BED_FILE_H

#include <htslib/sam.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bed_interval {
    int32_t tid;
    int64_t begin, end;
    char *name;                 /* owned; NULL: none */
    size_t line;                /* line number, from 1 */
};

struct bed_intervals {
    struct bed_interval *intervals;     /* sorted by reference, start and line; they may overlap */
    size_t n, room;
};

struct bed_rules {
    const char *takes;          /* for a message: "option --split-by takes ... or a BED file" */
    bool is_lenient;            /* as mosdepth: keeps empty intervals and the name "."; skips lines
                                   of references that the header lacks, with a warning; the file may
                                   have no intervals */
};

/* Reads the file. Unless the rules are lenient, a file without intervals and a reference that the
   header lacks are errors. The caller releases the intervals. */
int bed_file_read(const char *path, sam_hdr_t *header, const struct bed_rules *rules,
                  struct bed_intervals *bed);

void bed_intervals_release(struct bed_intervals *bed);

#endif
