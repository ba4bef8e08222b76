/*
 * compaction_plan.h -- decides whether runs are compacted before the final scan, and how.
 *
 * A scan that merges n files within scan_bytes of memory reads scan_bytes / n of a file at a time,
 * so it needs n / scan_bytes seeks per byte. If the store repeatedly compacts `width` files into
 * one while the input is loaded, the scan reads more of each file at a time; but the data are
 * written and read again, with width / compaction_bytes seeks per byte. If n runs become n / width
 * compacted files and `width` other files, each byte needs
 *
 *     width / compaction_bytes + (n / width + width) / scan_bytes
 *
 * seeks. The minimum is near width = sqrt(n), and at a smaller width if memory for compactions is
 * scarce. The width is sqrt(n) + 1; a smaller one leaves too many compacted files, and some are
 * compacted again. Compaction waits until there are more than max_files = n / width + width files,
 * and a few more because n is an estimate. So each byte is rewritten about once.
 *
 * On a device without seeks compaction never saves time. It only keeps the number of files below
 * the limit of open files, and limits their memory.
 *
 * Also controls the compactions of one database: applies the plans as runs are added, and stops
 * after a failure. The other functions are pure.
 */
#ifndef ROCKSORT_SPILL_COMPACTION_PLAN_H
#define ROCKSORT_SPILL_COMPACTION_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_db;

/* Sizes of reads. */
enum {
    SCAN_FILE_BYTES = 48 << 10, /* further memory of a scan for each file: index, block */
    KERNEL_READ_BYTES = 128 << 10,      /* Linux's default readahead */
    MAX_READ_BYTES = 8 << 20,   /* at this size, seeks take less than a fifth of the time */
};

enum compaction_mode {
    COMPACTION_AUTO,
    COMPACTION_OFF,             /* only to keep the limits of open files and of memory */
    COMPACTION_ON,              /* -s SIZE */
};

/* Facts about one database. */
struct compaction_facts {
    enum compaction_mode mode;
    uint64_t n_runs;            /* runs now, counted as files before compaction */
    uint64_t n_runs_expected;   /* at the end; 0: unknown */
    double seek_seconds;        /* of a random read; 0: unknown */
    double bytes_per_second;    /* of a sequential read; 0: unknown */
    double parallel;            /* concurrent random reads that take the time of one, at least 1 */
    unsigned n_scans;           /* databases that are read at the same time */
    size_t scan_bytes;          /* read-ahead memory of the final scan */
    bool direct;                /* the scan uses O_DIRECT */
    size_t compaction_bytes;    /* memory for its compactions */
    bool reads_ahead;           /* compactions read compaction_read_bytes at a time */
    unsigned most_files;        /* limit of open files */
    bool long_keys;             /* keys may have tens of thousands of bytes */
    size_t key_bytes;           /* size of its longest key of a block */
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
    unsigned least_width, width;        /* number of files that become one */
    unsigned max_files;         /* a compaction begins when there are more files */
};

/* Returns how many compactions may run at a time if each directory has n_lanes databases. */
unsigned compaction_n_parallel(unsigned n_lanes);

/* Divides what all databases of a sort have together (n_runs_expected, scan_bytes,
   compaction_bytes) among n_lanes in each of n_dirs directories, and sets n_scans, direct and
   reads_ahead.
   slow_to_seek: a disk is; exceeds_memory: the temporary data will not fit into the page cache. */
void compaction_share(struct compaction_facts *facts, unsigned n_dirs, unsigned n_lanes,
                      bool slow_to_seek, bool exceeds_memory);

/* Returns how many files a compaction should take, for n_runs_expected. */
unsigned compaction_width(const struct compaction_facts *facts);

/* Returns how many bytes of a file a compaction should read at a time, so that `width` files fit
   into its memory. */
size_t compaction_read_bytes(const struct compaction_facts *facts);

/* Returns how many bytes of a file a scan of n_files files should read at a time on a disk that is
   slow to seek. `memory` is for all files together. 0: leave readahead to the kernel. */
size_t scan_read_bytes(uint64_t n_files, size_t memory, bool direct);

/* Returns how many seeks a scan of n_bytes makes if it reads read_bytes at a time (0: the kernel's
   readahead). */
double scan_seeks(double n_bytes, size_t read_bytes);

/* Returns how many files the database may have, by the limits of open files and of memory. */
unsigned compaction_most_files(const struct compaction_facts *facts);

/* Returns how many files its runs may have without a compaction. 0: each run should be one file,
   because seeks are slow, compactions were requested, or few files may be open. */
unsigned compaction_most_run_files(const struct compaction_facts *facts);

/* Makes the plan. `width` is the result of compaction_width when the store was created. */
struct compaction_plan compaction_decide(const struct compaction_facts *facts, unsigned width);

/* Returns the reason in words, as part of a sentence. */
const char *compaction_reason_text(enum compaction_reason reason);

/* ---- the compactions of one database ---- */

/*
 * Order of calls: starts as {0}; plan after each run, and apply if plan returned true; settle after
 * the last run. Threads: only the one that ends runs. Errors: -1 after a message.
 */
struct run_compactor {
    struct run_db *db;          /* set by the caller; NULL until the database has its first run */
    struct compaction_plan plan;
    struct compaction_plan told;        /* as RocksDB was told; width 0: compactions are off */
    bool has_failed;            /* a compaction has failed, so compactions are off */
};

/* Updates the plan; `width` is for compaction_decide. Returns true if the caller must call
   run_compactor_apply. */
bool run_compactor_plan(struct run_compactor *compactor, const struct compaction_facts *facts,
                        unsigned width);

/* Passes a changed plan to RocksDB, or stops compactions if one has failed. */
int run_compactor_apply(struct run_compactor *compactor);

/* After the last run: also lets RocksDB compact the remaining runs if there are many files. */
int run_compactor_settle(struct run_compactor *compactor);

enum compaction_state {
    COMPACTION_IS_RUNNING = 1,
    COMPACTION_IS_DUE = 2,      /* not running; begins when RocksDB's thread gets a CPU */
    /* The next run should wait until a compaction has ended: there are nearly most_files files, or
       a second compaction is due. RocksDB compacts the newest files first, so with more runs it
       would never compact some of the older files. */
    COMPACTION_IS_CROWDED = 4,
    COMPACTION_LACKS_FILES = 8, /* planned because too few files may be open */
};

/* Returns the bits that are true now. */
unsigned run_compactor_state(const struct run_compactor *compactor, unsigned most_files);

#endif
