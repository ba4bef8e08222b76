/* compaction_plan.c -- see compaction_plan.h. */
#include "store/compaction_plan.h"

#include <math.h>

enum {
    KIB = 1024,
    MIN_WIDTH = 6,              /* compacted files and runs must differ in size; rocksdb_opts.c */
    RUNS_IF_UNKNOWN = 400,      /* a guess, of all databases; with 100 or 1,600 it costs a quarter
                                   more seeks */
    MIN_READ_BYTES = 64 * KIB,
    PAGE_BYTES = 4 * KIB,
    SPARE_FILES = 8,            /* appear while a compaction runs */
    SQUARES = 5,                /* see compaction_decide */
    FILE_BYTES = 16 * KIB,      /* of each file that is scanned RocksDB holds 12 KiB or so */
    MANY_FILES = 64,
    FILES_BYTES = 24 * KIB * KIB,       /* for which there may be so much besides the budget */
};

/* Estimates of the number of runs are so far off: runs get smaller when compaction takes memory. */
static const double estimate_slack = 1.1;

/* What a compaction takes was about twice the time of its own seeks and bytes on an array of four
   disks: runs are written and synced meanwhile, and the heads go back and forth. */
static const double disturbance = 2;

unsigned compaction_n_threads(unsigned n_lanes)
{
    return n_lanes > 1 ? 2 : 1;
}

void compaction_facts_begin(struct compaction_facts *facts, const struct compaction_store *store)
{
    unsigned n_databases = store->n_dirs * store->n_lanes;
    *facts = (struct compaction_facts){
        .mode = store->mode,
        .n_runs_expected = store->n_runs_expected / n_databases,
        .n_scans = n_databases,
        .scan_bytes = store->scan_bytes / n_databases,
        .direct = store->direct,
        .compaction_bytes = store->compaction_bytes / compaction_n_threads(store->n_lanes),
        .reads_ahead = store->slow_to_seek || store->mode == COMPACTION_ON,
        .most_files = store->most_files,
    };
}

unsigned compaction_width(const struct compaction_facts *facts)
{
    double n = (double)facts->n_runs_expected;
    if (n < 1) n = (double)RUNS_IF_UNKNOWN / (facts->n_scans ? facts->n_scans : 1);
    if (n < (double)facts->n_runs) n = (double)facts->n_runs;
    double memory = (double)facts->compaction_bytes;
    double width = floor(sqrt(n)) + 1;
    double most = memory / MIN_READ_BYTES;
    if (width > most) width = most;
    if (width > facts->most_files / 3.0) width = facts->most_files / 3.0;
    return width < MIN_WIDTH ? MIN_WIDTH : (unsigned)width;
}

/* Reads are n_bytes and the block at their end together: that should not take one request more. */
static size_t whole_requests(size_t n_bytes)
{
    enum {
        REQUEST_BYTES = KIB * KIB,      /* about what the kernel asks of a disk at a time */
        END_BYTES = 64 * KIB,
    };
    if (n_bytes > MAX_READ_BYTES) n_bytes = MAX_READ_BYTES;
    if (n_bytes < REQUEST_BYTES) return n_bytes & ~(size_t)(PAGE_BYTES - 1);
    return n_bytes / REQUEST_BYTES * REQUEST_BYTES - END_BYTES;
}

static size_t read_bytes_of_width(const struct compaction_facts *facts, unsigned width)
{
    size_t share = facts->compaction_bytes / width;
    return share < MIN_READ_BYTES ? MIN_READ_BYTES : whole_requests(share);
}

size_t compaction_read_bytes(const struct compaction_facts *facts)
{
    return read_bytes_of_width(facts, compaction_width(facts));
}

size_t scan_read_bytes(uint64_t n_files, size_t memory, bool direct)
{
    size_t share = n_files > 0 ? memory / n_files : 0;
    share = share > 2 * SCAN_FILE_BYTES ? share - SCAN_FILE_BYTES : share / 2;
    if (direct && share < PAGE_BYTES) return PAGE_BYTES;    /* of thousands of files (-s off) */
    if (!direct && share < 2 * KERNEL_READ_BYTES) return 0;
    return whole_requests(share);
}

uint64_t scan_n_reads(uint64_t n_bytes, size_t read_bytes)
{
    return n_bytes / (read_bytes > KERNEL_READ_BYTES ? read_bytes : KERNEL_READ_BYTES);
}

/* Seeks a byte when n files are scanned. */
static double seeks_per_byte(const struct compaction_facts *facts, uint64_t n)
{
    size_t read_bytes = scan_read_bytes(n, facts->scan_bytes, facts->direct);
    return 1 / (double)(read_bytes > 0 ? read_bytes : KERNEL_READ_BYTES);
}

/* True if a scan of n files costs more seconds a byte than compacting and scanning fewer. */
static bool pays(const struct compaction_facts *facts, uint64_t n, unsigned width,
                 uint64_t max_files)
{
    if (facts->seek_seconds <= 0 || facts->bytes_per_second <= 0) return false;
    /* Each database has a scan of its own, which waits for the disk, and they wait together. */
    double parallel = facts->parallel < facts->n_scans ? facts->parallel : facts->n_scans;
    double scan_seek = facts->seek_seconds / (parallel > 1 ? parallel : 1);
    double saved = scan_seek * (seeks_per_byte(facts, n) - seeks_per_byte(facts, max_files));
    double cost = facts->seek_seconds / (double)read_bytes_of_width(facts, width) +
                  2 / facts->bytes_per_second;
    return saved > disturbance * cost;
}

/* Files for which there is memory. (6,156 in 16 MiB took 38 MiB more than the budget and the
   allowance hold, and as their blocks left little for batches, ten times as long as 1,000.) */
unsigned compaction_most_files(const struct compaction_facts *facts)
{
    unsigned n_scans = facts->n_scans > 1 ? facts->n_scans : 1;
    size_t n_bytes = facts->scan_bytes / 4 + FILES_BYTES / n_scans;
    size_t n = n_bytes / FILE_BYTES;
    return n < facts->most_files ? (unsigned)n : facts->most_files;
}

/* Files that there may be before a compaction of `width` of them begins. */
static unsigned files_before(unsigned most_files, unsigned width)
{
    return most_files > width + 2 * SPARE_FILES ? most_files - width - SPARE_FILES : SPARE_FILES;
}

/* Of all widths a quarter takes most runs before compacted files are compacted again; of many files
   no more than there is memory for. */
static unsigned width_of_too_many(const struct compaction_facts *facts, unsigned most_files,
                                  unsigned width)
{
    size_t each = facts->reads_ahead ? read_bytes_of_width(facts, width) : FILE_BYTES;
    size_t most = facts->compaction_bytes / each;
    if (most < MANY_FILES) most = MANY_FILES;
    if (most > most_files / 4) most = most_files / 4;
    return most > width ? (unsigned)most : width;
}

struct compaction_plan compaction_decide(const struct compaction_facts *facts, unsigned width)
{
    struct compaction_plan plan = {
        .least_width = width, .width = width, .reason = COMPACTION_NO_NEED,
    };
    /* Of an unknown number of runs half have come: at any time the best guess. */
    uint64_t n = facts->n_runs_expected > facts->n_runs ? facts->n_runs_expected
                                                        : 2 * facts->n_runs;
    unsigned most_files = compaction_most_files(facts);
    unsigned limit = files_before(most_files, width);
    /* With so many runs there are many more compacted files than a width, and rows of fewer runs
       than that remain between them: half will do. */
    if (n > SQUARES * (uint64_t)width * width) plan.least_width = width / 2;
    uint64_t max_files = (uint64_t)(estimate_slack * (double)n / width) + width;
    if (max_files > limit) max_files = limit;
    plan.max_files = (unsigned)max_files;
    unsigned wide = width_of_too_many(facts, most_files, width);
    bool too_many = facts->n_runs + SPARE_FILES >= files_before(most_files, wide);
    uint64_t sure = facts->n_runs_expected > facts->n_runs ? facts->n_runs_expected
                                                           : facts->n_runs;
    if (facts->mode == COMPACTION_ON)
        plan.reason = facts->n_runs + 1 >= max_files ? COMPACTION_ASKED_FOR : COMPACTION_NO_NEED;
    else if (facts->mode == COMPACTION_AUTO && pays(facts, sure, width, max_files))
        plan.reason = facts->n_runs + 1 >= max_files ? COMPACTION_SAVES_SEEKS : COMPACTION_NO_NEED;
    else
        plan.reason = facts->mode == COMPACTION_OFF ? COMPACTION_SWITCHED_OFF : COMPACTION_NO_GAIN;
    if (plan.reason < COMPACTION_ASKED_FOR && too_many) {
        plan.reason = most_files < facts->most_files ? COMPACTION_MEMORY : COMPACTION_OPEN_FILES;
        plan.width = wide;
        /* Half as many will do: with 5,000 runs and 200 open files the compacted ones would miss
           the whole width by a few, and RocksDB then take the newest whatever their sizes. */
        plan.least_width = plan.width / 2;
        plan.max_files = files_before(most_files, plan.width);
    }
    plan.compact = plan.reason >= COMPACTION_ASKED_FOR;
    return plan;
}

const char *compaction_reason_text(enum compaction_reason reason)
{
    switch (reason) {
    case COMPACTION_NO_NEED: return "there are few runs";
    case COMPACTION_NO_GAIN: return "it would take longer than the seeks that it saves";
    case COMPACTION_SWITCHED_OFF: return "-s off";
    case COMPACTION_ASKED_FOR: return "-s was given";
    case COMPACTION_SAVES_SEEKS: return "it takes less time than the seeks that it saves";
    case COMPACTION_MEMORY: return "of the memory that so many files take";
    case COMPACTION_OPEN_FILES: return "of the limit of open files";
    }
    return "";
}
