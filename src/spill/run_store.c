/*
 * run_store.c -- see run_store.h. doc/notes/spill.md (Disks) says how much of a file is read at a
 * time, and when reads use O_DIRECT.
 */
#include "spill/run_store.h"

#include "os/disk_space.h"
#include "util/diag.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    /* Free space that is reserved for each file of a run. RocksDB buffers a quarter of a megabyte
       of each file that is being written or waits to end, of at most four runs. If that does not
       fit when the run ends, the run is lost. */
    RESERVE_BYTES = 4 << 20,
    FEW_FILES = 64,             /* their larger blocks take at most 4 MiB of memory */
    CHECK_BYTES = 1 << 20,      /* checks the free space after each such part of a run */
    MOST_RETRIES = 30,
    RETRY_MICROSECONDS = 200000,
    /* To admit runs, RocksDB syncs its manifest twice and its directory once, which takes 90 ms on
       a rotating disk. */
    ADMITTED_WHEN_SLOW = 4,
};

struct volume {                 /* a database in a temporary directory */
    /* fixed after run_store_create */
    const char *dir;
    bool closed;                /* the database is opened read-only */
    unsigned lane;              /* number of the database in the directory */
    struct disk_traits disk;
    bool shares_space;          /* an earlier directory is on the same file system */
    /* the thread that begins runs */
    const char *full_reason;    /* why the database could not be made */
    /* any thread; set by the thread that begins runs */
    struct run_db *_Atomic db;  /* NULL until the first run */
    /* under the lock */
    bool full;                  /* gets no more runs: it is full, or closed, or nearly full while
                                   another one is not */
    unsigned n_runs;
    uint64_t n_bytes;
    double write_seconds;
    /* the thread that ends runs */
    struct run_compactor compactor;
};

struct run_store {
    /* fixed after run_store_create */
    struct run_store_settings settings;
    struct compaction_facts facts;      /* of each database; compaction_share */
    unsigned width;             /* of compactions */
    size_t compaction_read_bytes;
    size_t scan_bytes;          /* read-ahead memory of the scans */
    bool slow_to_seek;          /* a disk is slow to seek */
    struct volume *volumes;
    size_t n_volumes;
    atomic_uint n_waits;        /* for space */
    /* the thread that scans */
    size_t scan_read_bytes;
    /* under the lock */
    pthread_mutex_t lock;
    unsigned n_runs;            /* runs that have ended */
    uint64_t raw_done, raw_left;        /* run_store_expect */
};

struct stored_run {
    struct run_store *store;
    struct volume *volume;
    struct begun_run *writer;
    double start, seconds;      /* when it began, and how long writing it took */
    unsigned n_files;
    _Atomic size_t n_bytes;     /* that were put */
};

/* ---- creating and destroying ---- */

/* True if a directory is on the same file system as an earlier one. */
static bool shares_space(const struct run_store *store, size_t number)
{
    struct disk_space mine, other;
    if (!disk_space_look(store->settings.dirs[number], &mine)) return false;
    for (size_t i = 0; i < number; i++)
        if (disk_space_look(store->settings.dirs[i], &other) && other.device == mine.device)
            return true;
    return false;
}

/* Warns, once per directory and process, of mounted object stores: they are slow at writing and
   reading about 100 KB at a time, and may lack hard links. */
static void warn_of_place(const struct volume *volume)
{
    char text[DISK_PROBLEM_TEXT_BYTES];
    const char *problem = disk_problem(&volume->disk, text);
    if (problem && !volume->closed)
        diag_warning("temporary data go to '%s', which is on %s: choose a local disk with -T",
                     volume->dir, problem);
}

/* Makes the volumes: probes the disks and decides how many databases each directory gets. Returns
   that number. */
static unsigned make_volumes(struct run_store *store)
{
    const struct run_store_settings *settings = &store->settings;
    struct volume *dirs = xcalloc(settings->n_dirs, sizeof *dirs);
    for (size_t i = 0; i < settings->n_dirs; i++) {
        dirs[i].dir = settings->dirs[i];
        dirs[i].closed = dirs[i].full = i < settings->n_closed_dirs;
        disk_probe(dirs[i].dir, &dirs[i].disk);
        warn_of_place(&dirs[i]);
        if (disk_is_slow_to_seek(&dirs[i].disk)) store->slow_to_seek = true;
        dirs[i].shares_space = shares_space(store, i);
    }
    unsigned n_lanes = settings->n_lanes;
    if (n_lanes == 0) n_lanes = store_layout_lanes(settings->n_dirs, store->slow_to_seek);
    store->n_volumes = settings->n_dirs * n_lanes;
    store->volumes = xcalloc(store->n_volumes, sizeof *store->volumes);
    for (size_t i = 0; i < store->n_volumes; i++) {
        store->volumes[i] = dirs[i / n_lanes];
        store->volumes[i].lane = (unsigned)(i % n_lanes);
    }
    free(dirs);
    return n_lanes;
}

/* Plans compactions and the sizes of reads. */
static void plan_reading(struct run_store *store, unsigned n_lanes)
{
    const struct run_store_settings *settings = &store->settings;
    struct memory_budget budget = *settings->budget;
    if (store->slow_to_seek) memory_budget_lengthen_runs(&budget);
    store->scan_bytes = memory_budget_scan_bytes(&budget);
    store->facts = (struct compaction_facts){
        .mode = settings->compaction,
        .most_files = store_layout_most_files(store->n_volumes),
        .n_runs_expected = memory_budget_expect_runs(&budget, settings->input_bytes, 0, 0),
        .scan_bytes = store->scan_bytes,
        .compaction_bytes = memory_budget_compaction_bytes(&budget),
        .long_keys = settings->long_keys,
    };
    compaction_share(&store->facts, (unsigned)settings->n_dirs, n_lanes, store->slow_to_seek,
                     store_layout_exceeds_memory(settings->input_bytes, store->scan_bytes));
    store->width = compaction_width(&store->facts);
    if (store->facts.reads_ahead)
        store->compaction_read_bytes = compaction_read_bytes(&store->facts);
}

/* Creates or opens the database; `full` as in run_db_create. */
static struct run_db *open_db(const struct run_store *store, const struct volume *volume,
                              bool existing, const char **full)
{
    struct run_db_settings settings = {
        .compaction_read_bytes = store->compaction_read_bytes,
        .direct = store->facts.direct,
        .existing = existing,
        .read_only = existing && (store->settings.read_only || volume->closed),
        .may_lack_files = !store->settings.read_only,
        .number = volume->lane,
        .n_compactions = compaction_n_parallel(run_store_n_lanes(store)),
        .n_admitted = store->slow_to_seek ? ADMITTED_WHEN_SLOW : 1,
        .long_keys = store->settings.long_keys,
        .few_files = store->facts.most_files * store->n_volumes <= FEW_FILES,
    };
    return run_db_create(volume->dir, &settings, full);
}

/* With the lock held: updates the counts from the database of a volume. */
static void count_runs(struct run_store *store, struct volume *volume)
{
    store->n_runs -= volume->n_runs;
    volume->n_runs = run_db_totals(volume->db)->n_runs;
    volume->n_bytes = run_db_totals(volume->db)->n_bytes;
    store->n_runs += volume->n_runs;
}

/* Opens the databases that another process has made. */
static int open_volumes(struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct volume *volume = &store->volumes[i];
        if (!run_db_exists(volume->dir, volume->lane)) continue;
        volume->db = open_db(store, volume, true, NULL);
        if (!volume->db) return -1;
        count_runs(store, volume);
        if (volume->n_runs > 0 && !volume->closed)
            volume->compactor = (struct run_compactor){.db = volume->db};
    }
    return 0;
}

struct run_store *run_store_create(const struct run_store_settings *settings)
{
    struct run_store *store = xcalloc(1, sizeof *store);
    store->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    store->settings = *settings;
    plan_reading(store, make_volumes(store));
    if (!settings->existing || open_volumes(store) == 0) return store;
    run_store_destroy(store);
    return NULL;
}

void run_store_destroy(struct run_store *store)
{
    if (!store) return;
    for (size_t i = 0; i < store->n_volumes; i++) run_db_destroy(store->volumes[i].db);
    free(store->volumes);
    free(store);
}

/* ---- space ---- */

/* Returns the free bytes in the directory of a volume; 0 if unknown. */
static uint64_t free_bytes(const struct volume *volume)
{
    struct disk_space space;
    return disk_space_look(volume->dir, &space) ? space.free_bytes : 0;
}

/* Returns the seconds in which a directory would have written its runs and one more of n_bytes. */
static double seconds_to_write(const struct volume *volume, double n_bytes)
{
    if (volume->n_runs == 0) return 0;
    return ((double)volume->n_bytes + n_bytes) * volume->write_seconds / (double)volume->n_bytes;
}

static uint64_t bytes_of_all(const struct run_store *store)
{
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < store->n_volumes; i++) n_bytes += store->volumes[i].n_bytes;
    return n_bytes;
}

/* With the lock held: chooses the directory for the next run: the one with enough space that will
   finish first, else the one with most space. NULL: all are full. */
static struct volume *choose_volume(const struct run_store *store)
{
    uint64_t run_bytes = store->n_runs > 0 ? bytes_of_all(store) / store->n_runs : 0;
    struct volume *best = NULL, *roomiest = NULL;
    double best_seconds = 0;
    uint64_t most_free = 0;
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct volume *volume = &store->volumes[i];
        if (volume->full) continue;
        if (store->n_volumes == 1) return volume;
        uint64_t n_free = free_bytes(volume);
        if (!roomiest || n_free > most_free) {
            roomiest = volume;
            most_free = n_free;
        }
        if (n_free < 2 * run_bytes) continue;
        double seconds = seconds_to_write(volume, (double)run_bytes);
        if (best && seconds >= best_seconds) continue;
        best = volume;
        best_seconds = seconds;
    }
    return best ? best : roomiest;
}

void run_store_expect(struct run_store *store, uint64_t raw_done, uint64_t raw_left)
{
    (void)pthread_mutex_lock(&store->lock);
    store->raw_done = raw_done;
    store->raw_left = raw_left;
    (void)pthread_mutex_unlock(&store->lock);
}

/* Estimates how many temporary bytes are still to be written; 0: unknown. */
static uint64_t bytes_to_come(struct run_store *store)
{
    (void)pthread_mutex_lock(&store->lock);
    uint64_t n_bytes = bytes_of_all(store);
    double ratio = 0.5;         /* before the first run: that of lz4 */
    if (store->raw_done > 0 && n_bytes > 0) ratio = (double)n_bytes / (double)store->raw_done;
    uint64_t left = (uint64_t)(ratio * (double)store->raw_left);
    (void)pthread_mutex_unlock(&store->lock);
    return left;
}

static int report_full(struct run_store *store, const struct volume *volume)
{
    const char *reason = volume->full_reason ? volume->full_reason : run_db_full_reason(volume->db);
    disk_space_print_full(volume->dir, reason, bytes_to_come(store));
    return RUN_STORE_ERROR;
}

/* True if a compaction into the directory runs or has failed: its partial output occupies space,
   but will be deleted soon. */
static bool compaction_has_space(const struct run_store *store, const struct volume *full)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        if (volume->dir != full->dir || volume->closed) continue;
        const struct run_db *db = volume->db;
        if (db && (run_db_is_compacting(db) || run_db_compact_failed(db))) return true;
    }
    return false;
}

/* Waits a moment for the space of a compaction. Returns false without waiting if no compaction
   occupies space, or after MOST_RETRIES waits. */
static bool wait_for_space(struct run_store *store, const struct volume *full)
{
    if (store->n_waits >= MOST_RETRIES || !compaction_has_space(store, full)) return false;
    store->n_waits++;
    (void)usleep(RETRY_MICROSECONDS);
    return true;
}

/* ---- writing runs ---- */

unsigned run_store_most_files(const struct run_store *store)
{
    return (unsigned)store->n_volumes * compaction_most_run_files(&store->facts);
}

int run_store_make_room(struct stored_run *run)
{
    struct run_store *store = run->store;
    if (wait_for_space(store, run->volume)) return RUN_STORE_AGAIN;
    (void)pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->n_volumes; i++)
        if (store->volumes[i].dir == run->volume->dir) store->volumes[i].full = true;
    bool have_other = choose_volume(store) != NULL;
    (void)pthread_mutex_unlock(&store->lock);
    if (!have_other) return report_full(store, run->volume);
    diag_warning("no space is left in '%s': temporary data go to the other directories",
                 run->volume->dir);
    return RUN_STORE_AGAIN;
}

int run_store_begin_run(struct run_store *store, unsigned n_files, struct stored_run **begun)
{
    struct stored_run *run = *begun = xcalloc(1, sizeof *run);
    run->start = monotonic_seconds();
    (void)pthread_mutex_lock(&store->lock);
    struct volume *volume = choose_volume(store);
    (void)pthread_mutex_unlock(&store->lock);
    run->store = store;
    run->volume = volume;
    run->n_files = n_files;
    if (!volume->db) {
        volume->full_reason = NULL;
        volume->db = open_db(store, volume, false, &volume->full_reason);
        if (volume->full_reason) return run_store_make_room(run);
    }
    if (!volume->db) return RUN_STORE_ERROR;
    int r = run_db_begin_run(volume->db, n_files, &run->writer);
    return r == RUN_STORE_FULL ? run_store_make_room(run) : r;
}

static bool is_nearly_full(const struct stored_run *run)
{
    return free_bytes(run->volume) < (uint64_t)RESERVE_BYTES * run->n_files;
}

/* True if the directory of a run is nearly full and another directory is not. */
static bool should_go_elsewhere(struct stored_run *run, size_t n_bytes)
{
    struct run_store *store = run->store;
    bool have_other = false;
    if (store->settings.n_dirs == 1) return false;
    size_t before = atomic_fetch_add(&run->n_bytes, n_bytes);
    bool check = before == 0 || before / CHECK_BYTES < (before + n_bytes) / CHECK_BYTES;
    if (!check || !is_nearly_full(run)) return false;
    (void)pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        if (volume->dir != run->volume->dir && !volume->full) have_other = true;
    }
    (void)pthread_mutex_unlock(&store->lock);
    return have_other;
}

int run_store_put(struct stored_run *run, unsigned number, const uint8_t *key, size_t key_bytes,
                  const uint8_t *value, size_t value_bytes)
{
    int r = run_db_put(run->writer, number, key, key_bytes, value, value_bytes);
    return r == 0 && should_go_elsewhere(run, key_bytes + value_bytes) ? RUN_STORE_FULL : r;
}

int run_store_label_run(struct stored_run *run, uint32_t number, const uint8_t *label,
                        size_t label_bytes)
{
    run->seconds = monotonic_seconds() - run->start;
    return run_db_label_run(run->writer, number, label, label_bytes);
}

int run_store_end_run(struct stored_run *run)
{
    struct run_store *store = run->store;
    struct volume *volume = run->volume;
    double start = monotonic_seconds();
    /* The run cannot be written again: its sort buffers may be gone. */
    while (is_nearly_full(run) && wait_for_space(store, volume)) continue;
    int r = run_db_end_run(run->writer);
    run->writer = NULL;
    if (r == RUN_DB_FULL) r = report_full(store, volume);
    (void)pthread_mutex_lock(&store->lock);
    volume->write_seconds += run->seconds + monotonic_seconds() - start;
    count_runs(store, volume);
    (void)pthread_mutex_unlock(&store->lock);
    if (volume->n_runs > 0 && !volume->compactor.db)
        volume->compactor = (struct run_compactor){.db = volume->db};
    free(run);
    return r;
}

void run_store_abandon_run(struct stored_run *run)
{
    if (!run) return;
    run_db_abandon_run(run->writer);
    free(run);
}

int run_store_flush(struct run_store *store)
{
    int first = 0;
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct volume *volume = &store->volumes[i];
        if (volume->n_runs == 0) continue;
        int r = run_db_admit_runs(volume->db);
        (void)pthread_mutex_lock(&store->lock);
        count_runs(store, volume);
        (void)pthread_mutex_unlock(&store->lock);
        if (r == RUN_DB_FULL) r = report_full(store, volume);
        if (r < 0 && first == 0) first = r;     /* still flushes the other databases */
    }
    return first;
}

/* ---- compactions ---- */

bool run_store_wants_compaction(struct run_store *store, uint64_t n_runs_expected)
{
    bool wanted = false;
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct volume *volume = &store->volumes[i];
        if (volume->n_runs == 0 || volume->closed) continue;
        struct compaction_facts facts = store->facts;
        facts.n_runs = run_db_totals(volume->db)->n_files;
        facts.n_runs_expected = n_runs_expected * facts.n_runs / store->n_runs;
        facts.seek_seconds = volume->disk.seek_seconds;
        facts.bytes_per_second = volume->disk.bytes_per_second;
        facts.parallel = volume->disk.parallel;
        facts.key_bytes = run_db_totals(volume->db)->key_bytes;
        if (run_compactor_plan(&volume->compactor, &facts, store->width)) wanted = true;
    }
    return wanted;
}

int run_store_compact(struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++)
        if (run_compactor_apply(&store->volumes[i].compactor) < 0) return RUN_STORE_ERROR;
    return 0;
}

int run_store_settle(struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++)
        if (run_compactor_settle(&store->volumes[i].compactor) < 0) return RUN_STORE_ERROR;
    return 0;
}

unsigned run_store_compactions(const struct run_store *store)
{
    unsigned state = 0;
    for (size_t i = 0; i < store->n_volumes; i++)
        state |= run_compactor_state(&store->volumes[i].compactor, store->facts.most_files);
    return state;
}

/* ---- reading runs ---- */

int run_store_labels(struct run_store *store,
                     int (*take)(void *arg, const uint8_t *label, size_t n_bytes), void *arg)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct run_db *db = store->volumes[i].db;
        if (db && run_db_labels(db, take, arg) < 0) return RUN_STORE_ERROR;
    }
    return 0;
}

static unsigned count_files(const struct run_store *store)
{
    unsigned n_files = 0;
    for (size_t i = 0; i < store->n_volumes; i++)
        if (store->volumes[i].n_runs > 0) n_files += run_db_n_files(store->volumes[i].db);
    return n_files;
}

/* Returns how many bytes of each of n_files files a scan should read at a time; 0: the kernel's
   readahead. */
static size_t choose_read_bytes(const struct run_store *store, unsigned n_files)
{
    if (!store->slow_to_seek) return 0;
    return scan_read_bytes(n_files, store->scan_bytes, store->facts.direct);
}

size_t run_store_scan_bytes(const struct run_store *store)
{
    unsigned n_files = count_files(store);
    size_t read_bytes = choose_read_bytes(store, n_files);
    return read_bytes > 0 ? n_files * (read_bytes + SCAN_FILE_BYTES) : 0;
}

size_t run_store_scan(struct run_store *store, struct run_scan ***scans)
{
    size_t n = 0;
    *scans = xcalloc(store->n_volumes, sizeof **scans);
    store->scan_read_bytes = choose_read_bytes(store, count_files(store));
    for (size_t i = 0; i < store->n_volumes; i++)
        if (store->volumes[i].n_runs > 0)
            (*scans)[n++] = run_scan_open(store->volumes[i].db, store->scan_read_bytes);
    return n;
}

/* ---- facts ---- */

unsigned run_store_n_lanes(const struct run_store *store)
{
    return (unsigned)(store->n_volumes / store->settings.n_dirs);
}

unsigned run_store_n_durable(const struct run_store *store)
{
    unsigned n = 0;
    for (size_t i = 0; i < store->n_volumes; i++)
        if (store->volumes[i].n_runs > 0) n += run_db_n_durable(store->volumes[i].db);
    return n;
}

void run_store_look(struct run_store *store, struct run_store_disks *disks)
{
    *disks = (struct run_store_disks){.in_memory = true, .slow_to_seek = store->slow_to_seek};
    (void)pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        run_store_disks_add(disks, &volume->disk);
        if (volume->lane == 0 && !volume->full && !volume->shares_space)
            disks->free_bytes += free_bytes(volume);
    }
    (void)pthread_mutex_unlock(&store->lock);
}

/* Adds the statistics of one database. The reason of the sort is the highest one of a database, in
   the order of enum compaction_reason. */
static void add_stats(const struct volume *volume, struct run_store_stats *stats)
{
    const struct run_compactor *compactor = &volume->compactor;
    stats->run_bytes += run_db_totals(volume->db)->n_bytes;
    stats->compacted_bytes += run_db_compacted_bytes(volume->db);
    if (compactor->plan.reason < stats->reason) return;
    stats->reason = compactor->plan.reason;
    stats->compacted = compactor->told.width > 0;
    stats->width = compactor->told.width;
    stats->max_files = compactor->told.max_files;
}

void run_store_stats(const struct run_store *store, struct run_store_stats *stats)
{
    *stats = (struct run_store_stats){
        .n_runs = store->n_runs,
        .n_files = count_files(store),
        .scan_read_bytes = store->scan_read_bytes,
        .compaction_read_bytes = store->compaction_read_bytes,
        .direct = store->facts.direct,
        .disk = store->volumes[0].disk,
    };
    for (size_t i = 0; i < store->n_volumes; i++)
        if (store->volumes[i].db) add_stats(&store->volumes[i], stats);
    /* A compaction was planned too late to be turned on. */
    if (!stats->compacted && stats->reason >= COMPACTION_ASKED_FOR)
        stats->reason = COMPACTION_NO_NEED;
    size_t compaction_read = stats->compaction_read_bytes;
    if (compaction_read < KERNEL_READ_BYTES) compaction_read = KERNEL_READ_BYTES;
    stats->n_seeks = (uint64_t)(scan_seeks((double)stats->run_bytes, stats->scan_read_bytes) +
                                scan_seeks((double)stats->compacted_bytes, compaction_read));
}
