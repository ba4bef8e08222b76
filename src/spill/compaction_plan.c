/* compaction_plan.c -- see compaction_plan.h. */
#include "spill/compaction_plan.h"

#include "spill/run_db.h"

#include <math.h>

enum {
    KIB = 1024,
    MIN_WIDTH = 6,              /* a compacted file must differ from runs: rocksdb_opts.c */
    RUNS_IF_UNKNOWN = 400,      /* of all databases: a guess. With 100 or 1,600 runs it costs a
                                   quarter more seeks */
    MIN_READ_BYTES = 64 * KIB,
    PAGE_BYTES = 4 * KIB,
    N_PARALLEL = 2,             /* compactions at a time */
    SPARE_FILES = 8,            /* new files while a compaction runs */
    SQUARES = 5,                /* see compaction_decide */
    PAIR_SQUARES = 3,           /* with fewer runs, pairs rewrite more in a model of RocksDB's
                                   picker */
    FILE_BYTES = 16 * KIB,      /* RocksDB holds about 12 KiB for each scanned file */
    INDEX_BYTES = 64 * KIB,     /* further memory for the index of each file if keys may be long */
    KEY_COPIES = 8,             /* copies of the longest key per file: first and last key in the
                                   lists of the database and of the scan, one in the iterator, and
                                   a block, which has one and at most twice its size of records */
    MANY_FILES = 64,
    FEW_FILES = 64,
    FILES_BYTES = 24 * KIB * KIB,       /* memory for the files, beyond the memory budget */
};

/* The number of runs is underestimated by at most this factor: runs get smaller when compaction
   takes memory. */
static const double estimate_slack = 1.1;

/* On an array of four disks, compactions took about twice the time of their own seeks and bytes,
   because the disk heads move between compactions and the runs that are written meanwhile. */
static const double disturbance = 2;

unsigned compaction_n_parallel(unsigned n_lanes)
{
    return n_lanes > 1 ? N_PARALLEL : 1;
}

void compaction_share(struct compaction_facts *facts, unsigned n_dirs, unsigned n_lanes,
                      bool slow_to_seek, bool exceeds_memory)
{
    facts->n_scans = n_dirs * n_lanes;
    facts->n_runs_expected /= facts->n_scans;
    facts->scan_bytes /= facts->n_scans;
    facts->compaction_bytes /= compaction_n_parallel(n_lanes);
    facts->direct = slow_to_seek && exceeds_memory;
    facts->reads_ahead = slow_to_seek || facts->mode == COMPACTION_ON;
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

/* RocksDB reads n_bytes and the rest of the last block. Rounds n_bytes down so that the rest needs
   no further request. */
static size_t whole_requests(size_t n_bytes)
{
    enum {
        REQUEST_BYTES = KIB * KIB,      /* about the kernel's largest request to a disk */
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
    if (direct && share < PAGE_BYTES) return PAGE_BYTES;    /* thousands of files, with -s off */
    if (!direct && share < 2 * KERNEL_READ_BYTES) return 0;
    return whole_requests(share);
}

double scan_seeks(double n_bytes, size_t read_bytes)
{
    return n_bytes / (double)(read_bytes > 0 ? read_bytes : KERNEL_READ_BYTES);
}

/* Returns the seeks per byte of a scan of n files. */
static double seeks_per_byte(const struct compaction_facts *facts, uint64_t n)
{
    return scan_seeks(1, scan_read_bytes(n, facts->scan_bytes, facts->direct));
}

/* True if compacting and then scanning max_files files takes less time than scanning n files. */
static bool pays(const struct compaction_facts *facts, uint64_t n, unsigned width,
                 uint64_t max_files)
{
    if (facts->seek_seconds <= 0 || facts->bytes_per_second <= 0) return false;
    /* Each database has its own scan, and the scans read concurrently. */
    double parallel = facts->parallel < facts->n_scans ? facts->parallel : facts->n_scans;
    double scan_seek = facts->seek_seconds / (parallel > 1 ? parallel : 1);
    double saved = scan_seek * (seeks_per_byte(facts, n) - seeks_per_byte(facts, max_files));
    double cost = facts->seek_seconds / (double)read_bytes_of_width(facts, width) +
                  2 / facts->bytes_per_second;
    return saved > disturbance * cost;
}

/* Returns the memory that a file takes during a scan. */
static size_t file_bytes(const struct compaction_facts *facts)
{
    size_t index_bytes = facts->long_keys ? INDEX_BYTES : 0;
    return FILE_BYTES + index_bytes + KEY_COPIES * facts->key_bytes;
}

/* Limits the memory of files: with a budget of 16 MiB, 6,156 files exceeded the budget and
   FILES_BYTES by 38 MiB, and took ten times as long as 1,000 files, because their blocks left
   little memory for sort buffers. */
unsigned compaction_most_files(const struct compaction_facts *facts)
{
    unsigned n_scans = facts->n_scans > 1 ? facts->n_scans : 1;
    size_t n_bytes = facts->scan_bytes / 4 + FILES_BYTES / n_scans;
    size_t n = n_bytes / file_bytes(facts);
    return n < facts->most_files ? (unsigned)n : facts->most_files;
}

unsigned compaction_most_run_files(const struct compaction_facts *facts)
{
    /* Half of its files: the number of runs is only an estimate, and files that are being written
       are also open. */
    unsigned n = compaction_most_files(facts) / 2;
    return facts->reads_ahead || n < FEW_FILES ? 0 : n;
}

/* Returns how many files may exist before a compaction of `width` files begins. */
static unsigned files_before(unsigned most_files, unsigned width)
{
    return most_files > width + 2 * SPARE_FILES ? most_files - width - SPARE_FILES : SPARE_FILES;
}

/* Returns the width if there are too many files: a quarter of the open files, which allows the most
   runs before compacted files are compacted again; at most what the memory allows, or MANY_FILES if
   the memory allows fewer. */
static unsigned width_of_too_many(const struct compaction_facts *facts, unsigned most_files,
                                  unsigned width)
{
    size_t each = facts->reads_ahead ? read_bytes_of_width(facts, width) : file_bytes(facts);
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
    /* If the number is unknown, guesses at any time that half of the runs have been written. */
    uint64_t n = facts->n_runs_expected > facts->n_runs ? facts->n_runs_expected
                                                        : 2 * facts->n_runs;
    unsigned most_files = compaction_most_files(facts);
    unsigned limit = files_before(most_files, width);
    /* With this many runs there are many more than `width` compacted files, with groups of fewer
       than `width` runs between them. So half the width must be enough for a compaction. */
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
        /* Half the width must be enough: with 5,000 runs and 200 open files, the compacted files
           are slightly fewer than the whole width, and RocksDB would take the newest files with any
           sizes. With still more runs two must be enough: with 860 runs and 16 open files this
           reduced rewriting from 79 times to 8. */
        uint64_t square = (uint64_t)most_files * most_files;
        plan.least_width = n > square / 4 ? 2 : plan.width / 2;
        /* Compactions of pairs keep the fewest sizes of files, one for each doubling, so each run
           is rewritten log2(n) times. Wider ones rewrote 8,650 runs with 32 open files 45 times. */
        if (n > PAIR_SQUARES * square) plan.width = 2;
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

/* ---- the compactions of one database ---- */

/* True if RocksDB must get the plan. It syncs a file for each change, so small ones are ignored. */
static bool plan_has_changed(const struct run_compactor *c)
{
    return c->plan.compact && (c->plan.max_files > c->told.max_files + c->told.max_files / 16 ||
                               c->plan.least_width < c->told.least_width);
}

/* True if there are nearly `width` files more than planned, including those that wait to be
   admitted. With a whole width more, RocksDB would repeatedly compact the newest files, with any
   sizes, even compacted ones. */
static bool is_behind(const struct run_compactor *c)
{
    return c->told.width > 0 && !c->has_failed &&
           run_db_n_files(c->db) + 1 >= c->told.max_files + c->told.width;
}

bool run_compactor_plan(struct run_compactor *c, const struct compaction_facts *facts,
                        unsigned width)
{
    if (c->has_failed) return false;
    c->plan = compaction_decide(facts, width);
    return plan_has_changed(c) || (c->told.width > 0 && run_db_compact_failed(c->db));
}

/* Stops compactions after one has failed, usually for lack of space. Further attempts would take
   the space of runs. The database stays as it is. */
static int stop_if_failed(struct run_compactor *c)
{
    if (c->has_failed || c->told.width == 0 || !run_db_compact_failed(c->db)) return 0;
    c->has_failed = true;
    c->plan.compact = false;
    return run_db_stop_compactions(c->db);
}

int run_compactor_apply(struct run_compactor *c)
{
    const struct compaction_plan *plan = &c->plan;
    if (stop_if_failed(c) < 0) return -1;
    if (!plan_has_changed(c)) return 0;
    if (run_db_compact(c->db, plan->least_width, plan->width, plan->max_files) < 0) return -1;
    c->told = *plan;
    return 0;
}

int run_compactor_settle(struct run_compactor *c)
{
    unsigned width = c->told.width, enough = c->told.max_files * 3 / 4;
    if (stop_if_failed(c) < 0) return -1;
    if (c->has_failed || width == 0) return 0;
    if (enough < 2 * width) enough = 2 * width;
    /* Fewer runs than the width were added after the last compaction. They are the newest files and
       neighbours. */
    unsigned n_files = run_db_n_files(c->db);
    if (n_files <= enough) return 0;
    /* Compacts no more files than needed, and only once, because some may already be compacted. */
    if (width > n_files - enough + 1) width = n_files - enough + 1;
    return run_db_compact(c->db, 2, width, n_files - 1) < 0 ? -1 : 0;
}

unsigned run_compactor_state(const struct run_compactor *c, unsigned most_files)
{
    if (!c->db) return 0;
    unsigned state = c->plan.reason >= COMPACTION_MEMORY ? COMPACTION_LACKS_FILES : 0;
    if (c->told.width > 0 && run_db_is_compacting(c->db))
        state |= COMPACTION_IS_RUNNING;
    else if (c->told.width > 0 && run_db_compaction_is_due(c->db))
        state |= COMPACTION_IS_DUE;
    /* If runs are admitted just when a compaction ends, RocksDB closes the compacted files only
       after the next compaction, so `width` more files may be open. */
    bool is_full = !c->has_failed && run_db_n_open(c->db) + c->told.width + 2 > most_files;
    return is_full || is_behind(c) ? state | COMPACTION_IS_CROWDED : state;
}
