/*
 * compaction_plan.h -- whether runs should be compacted before the final scan, and how.
 *
 * A scan that merges n files within scan_bytes of memory reads scan_bytes / n of a file at a time,
 * so each byte of temporary data costs it n / scan_bytes seeks. Compacting `width` files into one,
 * again and again while the input is loaded, leaves fewer files for the scan, which therefore reads
 * more at a time; it costs a second writing and reading of the data and width / compaction_bytes
 * seeks a byte. For n runs that end in n / width compacted files and `width` others there are
 *
 *     width / compaction_bytes + (n / width + width) / scan_bytes
 *
 * seeks a byte, which is least near width = sqrt(n), less if memory for compactions is scarce. The
 * width is that of 2014, sqrt(n) + 1: smaller ones leave compacted files so many that some are
 * compacted again. Compaction waits until there are max_files = n / width + width, a few more since
 * n is an estimate: with fewer than that the scan does not end anyway, and so nothing is rewritten
 * that need not be, and each byte about once.
 *
 * On a device without seeks this never pays, and is done only to stay below the limit of open
 * files, and within the memory, of which each file takes some.
 *
 * Pure functions.
 */
#ifndef ROCKSORT_STORE_COMPACTION_PLAN_H
#define ROCKSORT_STORE_COMPACTION_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much is read of a file at a time. */
enum {
    SCAN_FILE_BYTES = 48 << 10, /* what a scan holds of a file besides: index, block */
    KERNEL_READ_BYTES = 128 << 10,      /* Linux' readahead, without ours */
    MAX_READ_BYTES = 8 << 20,   /* beyond it seeks are under a fifth of the time */
};

enum compaction_mode {
    COMPACTION_AUTO,
    COMPACTION_OFF,             /* only for the limit of open files, and of memory */
    COMPACTION_ON,              /* -s SIZE */
};

struct compaction_facts {
    enum compaction_mode mode;
    uint64_t n_runs;            /* there are so many now */
    uint64_t n_runs_expected;   /* in all; 0: unknown */
    double seek_seconds;        /* of the disk; 0: unknown */
    double bytes_per_second;    /* ... reading in order */
    double parallel;            /* ... and the seeks that it does in the time of one; at least 1 */
    unsigned n_scans;           /* databases that are read at the same time */
    size_t scan_bytes;          /* memory for the final scan to read into */
    bool direct;                /* it reads past the page cache */
    size_t compaction_bytes;    /* memory for compactions */
    bool reads_ahead;           /* they read compaction_read_bytes at a time, not as the kernel */
    unsigned most_files;        /* that may be open at once */
};

/* A store, as far as compaction asks. */
struct compaction_store {
    enum compaction_mode mode;
    uint64_t n_runs_expected;   /* in all; 0: unknown */
    unsigned n_dirs;
    unsigned n_lanes;           /* databases in each directory */
    bool slow_to_seek;
    bool direct;                /* the final scan reads past the page cache */
    size_t scan_bytes;          /* memory for the final scan, of all databases */
    size_t compaction_bytes;    /* memory for compactions */
    unsigned most_files;        /* that each database may have open */
};

enum compaction_reason {
    COMPACTION_NO_NEED,         /* few runs */
    COMPACTION_NO_GAIN,         /* the disk seeks fast enough */
    COMPACTION_SWITCHED_OFF,
    COMPACTION_ASKED_FOR,
    COMPACTION_SAVES_SEEKS,
    COMPACTION_MEMORY,
    COMPACTION_OPEN_FILES,
};

struct compaction_plan {
    bool compact;
    enum compaction_reason reason;
    unsigned least_width, width;        /* files that become one */
    unsigned max_files;         /* when there are more */
};

/* Compactions that may be under way at the same time, with so many databases in a directory. */
unsigned compaction_n_threads(unsigned n_lanes);

/* Sets the facts of each database of a store that has no runs yet. Its disk is unknown. */
void compaction_facts_begin(struct compaction_facts *facts, const struct compaction_store *store);

/* Files that are to be compacted at a time when n_runs are expected in all (0: unknown). */
unsigned compaction_width(const struct compaction_facts *facts);

/* Bytes of a file that a compaction should read at a time, so that `width` files fit the memory. */
size_t compaction_read_bytes(const struct compaction_facts *facts);

/* Bytes that a scan of n_files files should read of each at a time, within `memory`, if the disk is
   slow to seek. 0: as much as the kernel reads ahead, in its own memory. */
size_t scan_read_bytes(uint64_t n_files, size_t memory, bool direct);

/* The reads with which n_bytes are scanned, read_bytes at a time; each costs a seek, about. */
uint64_t scan_n_reads(uint64_t n_bytes, size_t read_bytes);

/* Files that may be open, and for which there is memory. */
unsigned compaction_most_files(const struct compaction_facts *facts);

/* Decides; `width` files at a time, as compaction_width said when the store was made. */
struct compaction_plan compaction_decide(const struct compaction_facts *facts, unsigned width);

/* The reason in words, as part of a sentence. */
const char *compaction_reason_text(enum compaction_reason reason);

#endif
