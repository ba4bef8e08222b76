/*
 * run_store.c -- see run_store.h.
 *
 * Read sizes. Without a request of ours the kernel reads ahead 128 KiB of each file, outside of our
 * memory, and on a disk without seeks that is best: what we read ahead is copied once more. Where
 * seeks are slow, as much is read at a time as the memory allows, once that is more than the
 * kernel would.
 *
 * Where seeks are slow and the temporary data are much more than the memory of the machine, reading
 * goes past the page cache: through it a read of a megabyte reaches the disk in steps of the
 * kernel's readahead, between which the head goes elsewhere, and its pages push out others.
 * Otherwise a good part of the data is still in the page cache, which direct reads would not see.
 *
 * Lanes. RocksDB's iterator reads one file after the other and waits for each. Where a disk is slow
 * to seek, each directory therefore has SLOW_LANES databases, with as many scans that read at the
 * same time: all drives of an array have something to do, and a single one can choose the nearest.
 */
#include "run_store.h"

#include "diag.h"
#include "disk_space.h"
#include "machine_memory.h"
#include "monotonic.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    MIN_DIRECT_BYTES = 64 << 10,
    FILE_BYTES = 48 << 10,      /* what a scan holds of a file besides: index, block */
    OTHER_FILES = 42,           /* inputs, outputs, libraries, runs being written */
    DATABASE_FILES = 6,         /* manifest, lock, logs, directories */
    MIN_FILES = 16,
    /* RocksDB syncs its manifest twice and its directory once whenever runs are admitted: 90 ms on
       a rotating disk. */
    ADMITTED_WHEN_SLOW = 4,
    SLOW_LANES = RUN_STORE_SLOW_LANES,
    N_COMPACTIONS = 2,          /* at a time, in as many threads of RocksDB, if there are lanes */
    /* Of each run that is on its way a quarter of a megabyte is not in its file yet, and what does
       not fit when it ends has no second chance. */
    RESERVE_BYTES = 4 << 20,
    CHECK_BYTES = 1 << 20,      /* free space is asked for whenever so much was put */
    MOST_RETRIES = 15,
    RETRY_MICROSECONDS = 200000,
    REQUEST_BYTES = 1 << 20,    /* what the kernel asks of a disk at a time is about so much */
};

struct volume {                 /* a database in a temporary directory */
    const char *dir;
    unsigned lane;              /* its number there */
    struct run_db *db;          /* NULL until the first run */
    struct disk_traits disk;
    bool shares_space;          /* an earlier directory is on the same file system */
    /* under the lock */
    bool full;                  /* or nearly so, and another is not */
    unsigned n_runs;
    uint64_t n_bytes;
    double write_seconds;
    /* who ends runs only */
    struct compaction_plan plan;
    unsigned applied_width, applied_max_files;  /* of the compaction that is on; 0: none */
    bool compact_failed;        /* and was switched off */
};

struct stored_run {
    struct run_store *store;
    struct volume *volume;
    struct run_writer *writer;
    double seconds;             /* that begin and put have taken */
    size_t unchecked_bytes;     /* put since free space was asked for */
};

struct run_store {
    struct run_store_settings settings;
    struct compaction_facts facts;
    unsigned width;             /* of compactions */
    size_t compaction_read_bytes, scan_read_bytes;
    bool slow_to_seek;          /* one of the disks */
    bool direct;                /* reading goes past the page cache */
    struct volume *volumes;
    size_t n_volumes;
    unsigned n_retries;         /* of runs that had no space; who writes runs only */
    pthread_mutex_t lock;
    unsigned n_runs;            /* that have ended; under the lock, as what volumes count */
    uint64_t raw_done, raw_left;        /* of the input; likewise */
};

/* Raises the limit of open files as far as it goes; returns how many runs may be open. */
static unsigned raise_open_file_limit(size_t n_databases)
{
    rlim_t others = OTHER_FILES + DATABASE_FILES * (rlim_t)n_databases;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return MIN_FILES;
    if (limit.rlim_cur < limit.rlim_max) {
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
    }
    if (limit.rlim_cur > 1 << 20) return 1 << 20;
    if (limit.rlim_cur < others + MIN_FILES) return MIN_FILES;
    return (unsigned)(limit.rlim_cur - others);
}

unsigned run_store_most_files(size_t n_databases)
{
    return raise_open_file_limit(n_databases) / (unsigned)n_databases;
}

/* True if the temporary data will not fit the page cache; of an unknown input they will not if
   there is not much more memory than this sort may take. */
static bool exceeds_memory(const struct run_store_settings *settings)
{
    enum { RATIO = 3, SCANS = 4 };      /* of compression; and a sort spills for a reason */
    uint64_t n_bytes = settings->input_bytes / RATIO, least = SCANS * settings->scan_bytes;
    return machine_memory_available() < (n_bytes > least ? n_bytes : least);
}

/* True if a directory is on the same file system as one before it. */
static bool shares_space(const struct run_store *store, size_t number)
{
    struct disk_space mine, other;
    if (!disk_space_look(store->settings.dirs[number], &mine)) return false;
    for (size_t i = 0; i < number; i++)
        if (disk_space_look(store->settings.dirs[i], &other) && other.device == mine.device)
            return true;
    return false;
}

/* Asks all disks what they are; returns how many databases each directory should have. */
static size_t probe_disks(struct run_store *store)
{
    for (size_t i = 0; i < store->settings.n_dirs; i++) {
        struct volume *volume = &store->volumes[i];
        volume->dir = store->settings.dirs[i];
        disk_probe(volume->dir, &volume->disk);
        if (disk_is_slow_to_seek(&volume->disk)) store->slow_to_seek = true;
        volume->shares_space = shares_space(store, i);
    }
    return store->slow_to_seek ? SLOW_LANES : 1;
}

/* Reads are n_bytes and the block at their end together: that should not take one request more. */
static size_t whole_requests(size_t n_bytes)
{
    size_t end_bytes = 64 << 10;
    if (n_bytes < REQUEST_BYTES) return n_bytes;
    return n_bytes / REQUEST_BYTES * REQUEST_BYTES - end_bytes;
}

/* As run_db_create. */
static struct run_db *open_db(const struct run_store *store, const struct volume *volume,
                              bool existing, bool *full)
{
    struct run_db_settings settings = {
        .compaction_read_bytes = store->compaction_read_bytes,
        .direct = store->direct,
        .existing = existing,
        .read_only = existing && store->settings.read_only,
        .number = volume->lane,
        .n_compactions = store->n_volumes > store->settings.n_dirs ? N_COMPACTIONS : 1,
        .n_admitted = store->slow_to_seek ? ADMITTED_WHEN_SLOW : 1,
    };
    return run_db_create(volume->dir, &settings, full);
}

/* Opens the databases of another process that there are. */
static int open_volumes(struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct volume *volume = &store->volumes[i];
        if (!run_db_exists(volume->dir, volume->lane)) continue;
        volume->db = open_db(store, volume, true, NULL);
        if (!volume->db) return -1;
        volume->n_runs = run_db_n_runs(volume->db);
        volume->n_bytes = run_db_bytes(volume->db);
        store->n_runs += volume->n_runs;
    }
    return 0;
}

struct run_store *run_store_create(const struct run_store_settings *settings)
{
    struct run_store *store = calloc(1, sizeof *store);
    size_t most_lanes = settings->n_lanes > SLOW_LANES ? settings->n_lanes : SLOW_LANES;
    struct volume *volumes = calloc(settings->n_dirs * most_lanes, sizeof *volumes);
    if (!store || !volumes || pthread_mutex_init(&store->lock, NULL) != 0) {
        diag_error("out of memory");
        free(volumes);
        free(store);
        return NULL;
    }
    store->settings = *settings;
    store->volumes = volumes;
    size_t n_lanes = probe_disks(store);
    if (settings->n_lanes > 0) n_lanes = settings->n_lanes;
    store->n_volumes = settings->n_dirs * n_lanes;
    for (size_t i = store->n_volumes; i-- > 0;) {
        volumes[i] = volumes[i / n_lanes];
        volumes[i].lane = (unsigned)(i % n_lanes);
    }
    store->direct = store->slow_to_seek && exceeds_memory(settings);
    store->facts = (struct compaction_facts){
        .mode = settings->compaction,
        .n_runs_expected = settings->n_runs_expected / store->n_volumes,
        .scan_bytes = settings->scan_bytes / store->n_volumes,
        .compaction_bytes = settings->compaction_bytes / (n_lanes > 1 ? N_COMPACTIONS : 1),
        .n_scans = (unsigned)store->n_volumes,
        .most_files = run_store_most_files(store->n_volumes),
    };
    store->width = compaction_width(&store->facts);
    if (store->slow_to_seek || settings->compaction == COMPACTION_ON)
        store->compaction_read_bytes = whole_requests(compaction_read_bytes(&store->facts));
    if (!settings->existing || open_volumes(store) == 0) return store;
    run_store_destroy(store);
    return NULL;
}

void run_store_destroy(struct run_store *store)
{
    if (!store) return;
    for (size_t i = 0; i < store->n_volumes; i++) run_db_destroy(store->volumes[i].db);
    (void)pthread_mutex_destroy(&store->lock);
    free(store->volumes);
    free(store);
}

static uint64_t free_bytes(const struct volume *volume)
{
    struct statvfs fs;
    if (statvfs(volume->dir, &fs) != 0) return 0;
    return (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* Seconds until a directory will have written what it got and one more run of n_bytes. */
static double seconds_to_write(const struct volume *volume, double n_bytes)
{
    if (volume->n_runs == 0) return 0;
    return ((double)volume->n_bytes + n_bytes) * volume->write_seconds / (double)volume->n_bytes;
}

/* With the lock held: the directory for the next run: where it is done first, if there is space;
   NULL: all are full. */
static struct volume *choose_volume(const struct run_store *store)
{
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < store->n_volumes; i++) n_bytes += store->volumes[i].n_bytes;
    if (store->n_runs > 0) n_bytes /= store->n_runs;
    struct volume *best = NULL, *roomiest = NULL;
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
        if (n_free < 2 * n_bytes) continue;
        if (!best || seconds_to_write(volume, (double)n_bytes) <
                         seconds_to_write(best, (double)n_bytes))
            best = volume;
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

/* Temporary bytes that are still to come, about; 0: unknown. */
static uint64_t bytes_to_come(struct run_store *store)
{
    uint64_t n_bytes = 0;
    (void)pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->n_volumes; i++) n_bytes += store->volumes[i].n_bytes;
    /* Before the first run: half, which is what lz4 makes of it. */
    double ratio = store->raw_done > 0 && n_bytes > 0 ? (double)n_bytes / (double)store->raw_done
                                                      : 0.5;
    uint64_t left = (uint64_t)(ratio * (double)store->raw_left);
    (void)pthread_mutex_unlock(&store->lock);
    return left;
}

static int full_error(struct run_store *store, const struct volume *volume)
{
    char space[DISK_SPACE_TEXT_BYTES];
    diag_error("cannot write the temporary data in '%s': %s%s; free space or choose another place "
               "with -T", volume->dir, run_db_full_error(volume->db),
               disk_space_describe(volume->dir, bytes_to_come(store), space));
    return RUN_STORE_ERROR;
}

/* True a few times if a compaction into the directory is under way or has failed: half of a file
   that it made takes space until it is given up, in a moment. */
static bool compaction_has_the_space(struct run_store *store, const struct volume *full)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        if (!volume->db || volume->dir != full->dir) continue;
        if (run_db_is_compacting(volume->db) || run_db_compact_failed(volume->db))
            return store->n_retries++ < MOST_RETRIES;
    }
    return false;
}

/* What begin and put return for the code r of the database: of a full directory AGAIN, if there is
   another. */
static int began_or_put(struct stored_run *run, double start, int r)
{
    struct run_store *store = run->store;
    run->seconds += monotonic_seconds() - start;
    if (r != RUN_DB_FULL) return r;
    if (compaction_has_the_space(store, run->volume)) {
        (void)usleep(RETRY_MICROSECONDS);
        return RUN_STORE_AGAIN;
    }
    (void)pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->n_volumes; i++)
        if (store->volumes[i].dir == run->volume->dir) store->volumes[i].full = true;
    bool have_other = choose_volume(store) != NULL;
    (void)pthread_mutex_unlock(&store->lock);
    if (!have_other) return full_error(store, run->volume);
    diag_warning("no space is left in '%s': temporary data go to the other directories",
                 run->volume->dir);
    return RUN_STORE_AGAIN;
}

int run_store_begin_run(struct run_store *store, struct stored_run **begun)
{
    double start = monotonic_seconds();
    struct stored_run *run = calloc(1, sizeof *run);
    *begun = run;
    if (!run) {
        diag_error("out of memory");
        return RUN_STORE_ERROR;
    }
    (void)pthread_mutex_lock(&store->lock);
    struct volume *volume = choose_volume(store);
    (void)pthread_mutex_unlock(&store->lock);
    run->store = store;
    run->volume = volume;
    if (!volume->db) {
        bool full = false;
        volume->db = open_db(store, volume, false, &full);
        if (full) return began_or_put(run, start, RUN_DB_FULL);
    }
    if (!volume->db) return RUN_STORE_ERROR;
    return began_or_put(run, start, run_db_begin_run(volume->db, &run->writer));
}

/* True if the directory of a run is nearly full and another one is not known to be. */
static bool should_go_elsewhere(struct stored_run *run, size_t n_bytes)
{
    struct run_store *store = run->store;
    bool have_other = false;
    if (store->settings.n_dirs == 1) return false;
    bool check = run->unchecked_bytes == 0 || run->unchecked_bytes >= CHECK_BYTES;
    run->unchecked_bytes = (check ? 0 : run->unchecked_bytes) + n_bytes;
    if (!check || free_bytes(run->volume) >= RESERVE_BYTES) return false;
    (void)pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        if (volume->dir != run->volume->dir && !volume->full) have_other = true;
    }
    (void)pthread_mutex_unlock(&store->lock);
    return have_other;
}

int run_store_put(struct stored_run *run, const uint8_t *key, size_t key_bytes,
                  const uint8_t *value, size_t value_bytes)
{
    double start = monotonic_seconds();
    int r = run_db_put(run->writer, key, key_bytes, value, value_bytes);
    if (r == 0 && should_go_elsewhere(run, key_bytes + value_bytes)) r = RUN_DB_FULL;
    return began_or_put(run, start, r);
}

double run_store_put_seconds(const struct stored_run *run)
{
    return run->seconds;
}

int run_store_label_run(struct stored_run *run, uint32_t number, const uint8_t *label,
                        size_t label_bytes)
{
    double start = monotonic_seconds();
    return began_or_put(run, start, run_db_label_run(run->writer, number, label, label_bytes));
}

int run_store_labels(struct run_store *store,
                     int (*take)(void *arg, const uint8_t *label, size_t n_bytes), void *arg)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct run_db *db = store->volumes[i].db;
        if (db && run_db_labels(db, take, arg) < 0) return RUN_STORE_ERROR;
    }
    return 0;
}

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

int run_store_end_run(struct stored_run *run)
{
    struct run_store *store = run->store;
    struct volume *volume = run->volume;
    double start = monotonic_seconds();
    int r = run_db_end_run(run->writer);
    run->writer = NULL;
    if (r == RUN_DB_FULL) r = full_error(store, volume);
    (void)pthread_mutex_lock(&store->lock);
    volume->write_seconds += run->seconds + monotonic_seconds() - start;
    volume->n_runs = run_db_n_runs(volume->db);
    volume->n_bytes = run_db_bytes(volume->db);
    if (r == 0) store->n_runs++;
    (void)pthread_mutex_unlock(&store->lock);
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
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct volume *volume = &store->volumes[i];
        int r = volume->n_runs > 0 ? run_db_admit_runs(volume->db) : 0;
        if (r == RUN_DB_FULL) r = full_error(store, volume);
        if (r < 0) return r;
    }
    return 0;
}

/* ---- compaction ---- */

/* Settings are a file that is written and synced, so they are not changed for every run. */
static bool plan_has_changed(const struct volume *volume)
{
    unsigned applied = volume->applied_max_files;
    return volume->plan.compact && volume->plan.max_files > applied + applied / 16;
}

/* True if a width of files more than planned are there, or nearly. With a whole one RocksDB takes
   the newest files whatever their sizes, compacted ones among them, again and again. */
static bool is_behind(const struct volume *volume)
{
    unsigned width = volume->applied_width;
    unsigned margin = width > 2 * ADMITTED_WHEN_SLOW ? ADMITTED_WHEN_SLOW + 1 : 1;
    return width > 0 && !volume->compact_failed &&
           run_db_n_files(volume->db) + margin >= volume->applied_max_files + width;
}

/* Plans for more files where nothing is compacted although there are enough: among them are too few
   of one size in a row. */
static void leave_room(const struct run_store *store, struct volume *volume)
{
    if (!is_behind(volume) || run_db_is_compacting(volume->db)) return;
    unsigned n = run_db_n_files(volume->db), width = volume->applied_width;
    if (n + width + OTHER_FILES / 4 < store->facts.most_files && n > volume->plan.max_files)
        volume->plan.max_files = n;
}

/* After a compaction has failed, mostly since there was no space for it, the database is left as
   it is: the next attempts would take the space of runs. */
static int stop_failed_compactions(struct volume *volume)
{
    if (volume->compact_failed || volume->applied_width == 0 || !run_db_compact_failed(volume->db))
        return 0;
    volume->compact_failed = true;
    volume->plan.compact = false;
    diag_warning("a compaction failed in '%s': there is little space, or the disk has errors; no "
                 "more are done", volume->dir);
    return run_db_stop_compactions(volume->db);
}

bool run_store_wants_compaction(struct run_store *store, uint64_t n_runs_expected)
{
    bool wanted = false;
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct volume *volume = &store->volumes[i];
        uint64_t n_runs = volume->n_runs;
        if (n_runs == 0 || volume->compact_failed) continue;
        struct compaction_facts facts = store->facts;
        facts.n_runs = n_runs;
        facts.n_runs_expected = n_runs_expected * n_runs / store->n_runs;
        facts.seek_seconds = volume->disk.seek_seconds;
        facts.bytes_per_second = volume->disk.bytes_per_second;
        facts.parallel = volume->disk.parallel;
        volume->plan = compaction_decide(&facts, store->width);
        leave_room(store, volume);
        if (plan_has_changed(volume)) wanted = true;
        if (volume->applied_width > 0 && run_db_compact_failed(volume->db)) wanted = true;
    }
    return wanted;
}

int run_store_compact(struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct volume *volume = &store->volumes[i];
        const struct compaction_plan *plan = &volume->plan;
        if (stop_failed_compactions(volume) < 0) return RUN_STORE_ERROR;
        if (!plan_has_changed(volume)) continue;
        if (run_db_compact(volume->db, plan->least_width, plan->width, plan->max_files) < 0)
            return RUN_STORE_ERROR;
        volume->applied_width = plan->width;
        volume->applied_max_files = plan->max_files;
    }
    return 0;
}

int run_store_settle(struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct volume *volume = &store->volumes[i];
        unsigned width = volume->applied_width, enough = volume->applied_max_files * 3 / 4;
        if (stop_failed_compactions(volume) < 0) return RUN_STORE_ERROR;
        if (volume->compact_failed) continue;
        if (enough < 2 * width) enough = 2 * width;
        /* Runs that came after the last compaction: fewer than the width, but newest and in a row.
           */
        unsigned n_files = width > 0 ? run_db_n_files(volume->db) : 0;
        if (n_files <= enough) continue;
        /* No more than needed, and only once: they might be compacted ones. */
        if (width > n_files - enough + 1) width = n_files - enough + 1;
        if (run_db_compact(volume->db, 2, width, n_files - 1) < 0) return RUN_STORE_ERROR;
    }
    return 0;
}

bool run_store_is_compacting(const struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        if (volume->applied_width > 0 && run_db_is_compacting(volume->db)) return true;
    }
    return false;
}

bool run_store_compaction_is_due(const struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        if (volume->applied_width > 0 && run_db_compaction_is_due(volume->db)) return true;
    }
    return false;
}

bool run_store_is_crowded(const struct run_store *store)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        unsigned n = volume->n_runs > 0 ? run_db_n_files(volume->db) : 0;
        /* Of the files that may be open each database has its share. */
        if (!volume->compact_failed && n + 2 > store->facts.most_files) return true;
        if (is_behind(volume)) return true;
    }
    return false;
}

/* ---- after loading ---- */

static unsigned count_files(const struct run_store *store)
{
    unsigned n_files = 0;
    for (size_t i = 0; i < store->n_volumes; i++)
        if (store->volumes[i].n_runs > 0) n_files += run_db_n_files(store->volumes[i].db);
    return n_files;
}

/* Bytes that the scan should read at a time of each of n_files files. */
static size_t choose_read_bytes(const struct run_store *store, unsigned n_files)
{
    size_t share = n_files > 0 ? store->settings.scan_bytes / n_files : 0;
    share = share > 2 * FILE_BYTES ? share - FILE_BYTES : share / 2;
    if (store->direct && share < MIN_DIRECT_BYTES) return MIN_DIRECT_BYTES;
    if (!store->direct && (!store->slow_to_seek || share < 2 * (size_t)KERNEL_READ_BYTES)) return 0;
    return whole_requests(share > MAX_READ_BYTES ? MAX_READ_BYTES : share & ~(size_t)4095);
}

size_t run_store_scan_bytes(const struct run_store *store)
{
    unsigned n_files = count_files(store);
    size_t read_bytes = choose_read_bytes(store, n_files);
    return read_bytes > 0 ? n_files * (read_bytes + FILE_BYTES) : 0;
}

int run_store_scan(struct run_store *store, struct run_scan ***scans)
{
    int n = 0;
    *scans = calloc(store->n_volumes, sizeof **scans);
    if (!*scans) {
        diag_error("out of memory");
        return RUN_STORE_ERROR;
    }
    store->scan_read_bytes = choose_read_bytes(store, count_files(store));
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct run_db *db = store->volumes[i].db;
        if (store->volumes[i].n_runs == 0) continue;
        (*scans)[n] = run_scan_open(db, store->scan_read_bytes);
        if ((*scans)[n]) {
            n++;
            continue;
        }
        while (n > 0) run_scan_close((*scans)[--n]);
        free(*scans);
        return RUN_STORE_ERROR;
    }
    return n;
}

unsigned run_store_n_runs(const struct run_store *store)
{
    return store->n_runs;
}

static uint64_t n_reads(uint64_t n_bytes, size_t read_bytes)
{
    return n_bytes / (read_bytes > KERNEL_READ_BYTES ? read_bytes : KERNEL_READ_BYTES);
}

void run_store_look(struct run_store *store, struct run_store_disks *disks)
{
    *disks = (struct run_store_disks){.in_memory = true, .slow_to_seek = store->slow_to_seek};
    (void)pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        double rate = volume->disk.bytes_per_second;
        disks->run_bytes += volume->n_bytes;
        if (!volume->disk.is_memory) disks->in_memory = false;
        if (!volume->disk.is_memory && (disks->bytes_per_second <= 0 ||
                                        rate < disks->bytes_per_second))
            disks->bytes_per_second = rate;
        if (volume->lane == 0 && !volume->full && !volume->shares_space)
            disks->free_bytes += free_bytes(volume);
    }
    (void)pthread_mutex_unlock(&store->lock);
}

void run_store_stats(const struct run_store *store, struct run_store_stats *stats)
{
    *stats = (struct run_store_stats){
        .n_runs = store->n_runs,
        .n_files = count_files(store),
        .scan_read_bytes = store->scan_read_bytes,
        .compaction_read_bytes = store->compaction_read_bytes,
        .width = store->width,
        .direct = store->direct,
        .disk = store->volumes[0].disk,
    };
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        if (!volume->db) continue;
        stats->run_bytes += run_db_bytes(volume->db);
        stats->compacted_bytes += run_db_compacted_bytes(volume->db);
        if (volume->plan.reason < stats->reason) continue;
        stats->reason = volume->plan.reason;
        stats->compacted = volume->applied_width > 0;
        stats->width = volume->applied_width;
        stats->max_files = volume->applied_max_files;
    }
    /* Wanted, but when the last runs came. */
    if (!stats->compacted && stats->reason >= COMPACTION_ASKED_FOR)
        stats->reason = COMPACTION_NO_NEED;
    stats->n_seeks = n_reads(stats->run_bytes, stats->scan_read_bytes) +
                     n_reads(stats->compacted_bytes, stats->compaction_read_bytes);
}
