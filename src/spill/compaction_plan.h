/*
 * compaction_plan.h -- decides whether runs are compacted before the final scan, and how.
 *
 * A scan that merges n files within scan_bytes of memory reads scan_bytes / n of a file at a time,
 * so it needs n / scan_bytes seeks for each byte. If `width` files are compacted into one, again
 * and again while the input is loaded, the scan reads more of each at a time; but the data are
 * written and read once more, with width / compaction_bytes seeks for each byte. If n runs end up
 * in n / width compacted files and `width` other files, each byte needs
 *
 *     width / compaction_bytes + (n / width + width) / scan_bytes
 *
 * seeks. That number is smallest near width = sqrt(n), and at a smaller width if memory for
 * compactions is scarce. The width is sqrt(n) + 1; with a smaller one there are so many compacted
 * files that some are compacted again. Compaction waits until there are more than max_files =
 * n / width + width files, and a few more because n is an estimate. So each byte is rewritten about
 * once.
 *
 * On a device without seeks compaction never saves time. There it only keeps the number of files
 * below the limit of open files, and their memory within bounds.
 *
 * Pure functions.
 */
#ifndef ROCKSORT_SPILL_COMPACTION_PLAN_H
#define ROCKSORT_SPILL_COMPACTION_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much is read of a file at a time. */
enum {
    SCAN_FILE_BYTES = 48 << 10, /* memory of a scan for each file besides: index, block */
    KERNEL_READ_BYTES = 128 << 10,      /* what Linux reads ahead unless told otherwise */
    MAX_READ_BYTES = 8 << 20,   /* with more, seeks take less than a fifth of the time */
};

/* A file that is larger than its neighbour by more than this is not compacted together with it.
   Runs differ from each other by less; compacted files differ from runs by more. */
enum { COMPACTION_SIMILAR_PERCENT = 80 };

enum compaction_mode {
    COMPACTION_AUTO,
    COMPACTION_OFF,             /* only for the limits of open files and of memory */
    COMPACTION_ON,              /* -s SIZE */
};

/* What is known about one database. */
struct compaction_facts {
    enum compaction_mode mode;
    uint64_t n_runs;            /* that it has now: files as they were written */
    uint64_t n_runs_expected;   /* that it will have; 0: unknown */
    double seek_seconds;        /* of the disk; 0: unknown */
    double bytes_per_second;    /* that the disk reads in order; 0: unknown */
    double parallel;            /* how many seeks the disk does in the time of one, at least 1 */
    unsigned n_scans;           /* databases that are read at the same time */
    size_t scan_bytes;          /* memory that the final scan reads into */
    bool direct;                /* the scan reads past the page cache */
    size_t compaction_bytes;    /* memory for its compactions */
    bool reads_ahead;           /* compactions read compaction_read_bytes at a time */
    unsigned most_files;        /* that it may have open */
    bool long_keys;             /* keys may have tens of thousands of bytes */
    size_t key_bytes;           /* of the longest key of a block that it has */
};

/* What is known about all databases of a sort together. */
struct compaction_totals {
    enum compaction_mode mode;
    unsigned n_dirs;            /* temporary directories */
    unsigned n_lanes;           /* databases in each */
    unsigned most_files;        /* that each database may have open */
    uint64_t n_runs_expected;   /* 0: unknown */
    size_t scan_bytes, compaction_bytes;        /* memory */
    bool long_keys;
    bool slow_to_seek;          /* one of the disks is */
    bool exceeds_memory;        /* the page cache will not hold the temporary data */
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
    unsigned least_width, width;        /* this many files become one */
    unsigned max_files;         /* a compaction begins when there are more files */
};

/* How many compactions may run at a time when each directory has n_lanes databases. */
unsigned compaction_n_parallel(unsigned n_lanes);

/* The facts about one database of a sort. The fields that change with time (n_runs) or describe the
   disk (seek_seconds, bytes_per_second, parallel) are 0; the caller sets them. */
struct compaction_facts compaction_share(const struct compaction_totals *totals);

/* How many files should be compacted at a time when n_runs_expected are expected. */
unsigned compaction_width(const struct compaction_facts *facts);

/* How many bytes of a file a compaction should read at a time, so that `width` files fit into its
   memory. */
size_t compaction_read_bytes(const struct compaction_facts *facts);

/* How many bytes of a file a scan of n_files files should read at a time on a disk that is slow to
   seek. `memory` is for all files together. 0: as much as the kernel reads ahead, in the kernel's
   memory. */
size_t scan_read_bytes(uint64_t n_files, size_t memory, bool direct);

/* How many seeks a scan of n_bytes makes if it reads read_bytes at a time; 0: as much as the kernel
   reads ahead. */
double scan_seeks(double n_bytes, size_t read_bytes);

/* How many files the database may have, by the limit of open files and by memory. */
unsigned compaction_most_files(const struct compaction_facts *facts);

/* How many files its runs may have so that no compaction is needed. 0: each run should be one file,
   because seeks are slow, or compactions were asked for, or only few files may be open. */
unsigned compaction_most_run_files(const struct compaction_facts *facts);

/* Decides. `width` is what compaction_width returned when the store was made. */
struct compaction_plan compaction_decide(const struct compaction_facts *facts, unsigned width);

/* True if RocksDB will compact some of these files, which are in the order of the database. It does
   so if there are more than max_files files, and least_width neighbours among them have about the
   same size. If there are max_files + least_width files, it takes the newest files whatever their
   sizes. */
bool compaction_will_begin(const uint64_t *file_bytes, size_t n_files, unsigned least_width,
                           unsigned max_files);

/* The reason in words, as part of a sentence. */
const char *compaction_reason_text(enum compaction_reason reason);

#endif
