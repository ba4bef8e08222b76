/*
 * run_store.c -- see run_store.h.
 *
 * Lanes. RocksDB's iterator reads one file after the other and waits for each. Where a disk is slow
 * to seek, each directory therefore has SLOW_LANES databases, with as many scans that read at the
 * same time: all drives of an array have something to do, and a single one can choose the nearest.
 */
#include "store/run_store.h"

#include "machine/disk_space.h"
#include "store/run_store_internal.h"
#include "util/diag.h"
#include "util/monotonic.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    DATABASE_FILES = 6,         /* manifest, lock, logs, directories */
    MIN_FILES = 16,
    LANE_FILES = 32,            /* below it there are fewer lanes */
    SLOW_LANES = RUN_STORE_SLOW_LANES,
    /* Of each run that is on its way a quarter of a megabyte is not in its file yet, and what does
       not fit when it ends has no second chance. */
    RESERVE_BYTES = 4 << 20,
    CHECK_BYTES = 1 << 20,      /* free space is asked for whenever so much was put */
    MOST_RETRIES = 15,
    RETRY_MICROSECONDS = 200000,
};

struct stored_run {
    struct run_store *store;
    struct volume *volume;
    struct run_writer *writer;
    double seconds;             /* that begin and put have taken */
    size_t unchecked_bytes;     /* put since free space was asked for */
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

unsigned run_store_choose_lanes(size_t n_dirs, bool slow_to_seek)
{
    unsigned n_lanes = slow_to_seek ? SLOW_LANES : 1;
    while (n_lanes > 1 && run_store_most_files(n_dirs * n_lanes) < LANE_FILES) n_lanes--;
    return n_lanes;
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
    return run_store_choose_lanes(store->settings.n_dirs, store->slow_to_seek);
}

/* As run_db_create. */
static struct run_db *open_db(const struct run_store *store, const struct volume *volume,
                              bool existing, const char **full)
{
    struct run_db_settings settings = {
        .compaction_read_bytes = store->compaction_read_bytes,
        .direct = store->direct,
        .existing = existing,
        .read_only = existing && store->settings.read_only,
        .number = volume->lane,
        .n_compactions = compaction_n_threads(run_store_n_lanes(store)),
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
        diag_no_memory();
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
    const struct run_store_means *means =
        store->slow_to_seek ? &settings->slow_means : &settings->means;
    store->scan_bytes = means->scan_bytes;
    store->direct = store->slow_to_seek &&
                    run_store_exceeds_memory(settings->input_bytes, means->scan_bytes);
    const struct compaction_store planned = {
        .mode = settings->compaction,
        .n_runs_expected = means->n_runs_expected,
        .n_dirs = (unsigned)settings->n_dirs,
        .n_lanes = (unsigned)n_lanes,
        .slow_to_seek = store->slow_to_seek,
        .direct = store->direct,
        .scan_bytes = means->scan_bytes,
        .compaction_bytes = means->compaction_bytes,
        .most_files = run_store_most_files(store->n_volumes),
    };
    compaction_facts_begin(&store->facts, &planned);
    store->width = compaction_width(&store->facts);
    if (store->facts.reads_ahead)
        store->compaction_read_bytes = compaction_read_bytes(&store->facts);
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

/* Unknown counts as none. */
static uint64_t free_bytes(const struct volume *volume)
{
    uint64_t n_bytes;
    (void)disk_space_free(volume->dir, &n_bytes);
    return n_bytes;
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
    const char *reason = volume->full_reason ? volume->full_reason : run_db_full_error(volume->db);
    disk_space_print_full(volume->dir, reason, bytes_to_come(store));
    return RUN_STORE_ERROR;
}

/* True if a compaction into the directory is under way or has failed: half of a file that it made
   takes space until it is given up, in a moment. */
static bool compaction_has_space(const struct run_store *store, const struct volume *full)
{
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        if (!volume->db || volume->dir != full->dir) continue;
        if (run_db_is_compacting(volume->db) || run_db_compact_failed(volume->db)) return true;
    }
    return false;
}

/* Waits a moment for what a compaction has, not for long in all. Returns false if it did not. */
static bool wait_for_space(const struct run_store *store, const struct volume *full,
                           unsigned *n_waits)
{
    if (*n_waits >= MOST_RETRIES || !compaction_has_space(store, full)) return false;
    ++*n_waits;
    (void)usleep(RETRY_MICROSECONDS);
    return true;
}

/* What begin and put return for the code r of the database: of a full directory AGAIN, if there is
   another. */
static int began_or_put(struct stored_run *run, double start, int r)
{
    struct run_store *store = run->store;
    run->seconds += monotonic_seconds() - start;
    if (r != RUN_DB_FULL) return r;
    if (wait_for_space(store, run->volume, &store->n_retries)) return RUN_STORE_AGAIN;
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
        diag_no_memory();
        return RUN_STORE_ERROR;
    }
    (void)pthread_mutex_lock(&store->lock);
    struct volume *volume = choose_volume(store);
    (void)pthread_mutex_unlock(&store->lock);
    run->store = store;
    run->volume = volume;
    if (!volume->db) {
        volume->full_reason = NULL;
        volume->db = open_db(store, volume, false, &volume->full_reason);
        if (volume->full_reason) return began_or_put(run, start, RUN_DB_FULL);
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
    /* What is written now cannot be written again: the batches may be gone. */
    while (free_bytes(volume) < RESERVE_BYTES &&
           wait_for_space(store, volume, &store->n_end_waits)) continue;
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
    int first = 0;
    for (size_t i = 0; i < store->n_volumes; i++) {
        struct volume *volume = &store->volumes[i];
        int r = volume->n_runs > 0 ? run_db_admit_runs(volume->db) : 0;
        if (r == RUN_DB_FULL) r = full_error(store, volume);
        if (r < 0 && first == 0) first = r;     /* the others are kept all the same */
    }
    return first;
}

unsigned run_store_n_runs(const struct run_store *store)
{
    return store->n_runs;
}

void run_store_disks_add(struct run_store_disks *disks, const struct disk_traits *disk)
{
    double rate = disk->bytes_per_second;
    if (!disk->is_memory) disks->in_memory = false;
    if (disk_is_slow_to_seek(disk)) disks->slow_to_seek = true;
    if (disk->seek_seconds > disks->seek_seconds) {
        disks->seek_seconds = disk->seek_seconds;
        disks->parallel = disk->parallel;
    }
    if (rate > 0 && (disks->bytes_per_second <= 0 || rate < disks->bytes_per_second))
        disks->bytes_per_second = rate;
}

void run_store_look(struct run_store *store, struct run_store_disks *disks)
{
    *disks = (struct run_store_disks){.in_memory = true};
    (void)pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->n_volumes; i++) {
        const struct volume *volume = &store->volumes[i];
        disks->run_bytes += volume->n_bytes;
        run_store_disks_add(disks, &volume->disk);
        if (volume->lane == 0 && !volume->full && !volume->shares_space)
            disks->free_bytes += free_bytes(volume);
    }
    (void)pthread_mutex_unlock(&store->lock);
}
