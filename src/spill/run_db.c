/*
 * run_db.c -- see run_db.h.
 *
 * An SstFileWriter writes each file of a run, without memtable, log or second copy. The files are
 * then ingested together by hard links, which costs an entry in the manifest. Ingested files
 * overlap, so each becomes a file of level 0 with its own sequence number.
 *
 * The database is in `db-N`, a directory below the temporary directory. RocksDB creates the
 * directory that it opens. If a signal has just removed the temporary directory, RocksDB must not
 * create that again.
 *
 * Each key begins with a byte of ours: `b` for blocks, `r` for labels, so that all labels come
 * after all blocks. Labels are ordinary entries: RocksDB ingests them atomically with their runs,
 * and compactions keep them. The key of a label has the number of the run and the size of the
 * longest key of its blocks, each in 4 bytes: another process needs that size to plan compactions.
 *
 * A scan opens all files at once; run_store.c raises the limit of open files for that.
 */
#include "spill/run_db.h"

#include "spill/rocksdb_opts.h"
#include "spill/store_error.h"
#include "util/byte_order.h"
#include "util/diag.h"
#include "util/monotonic.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_KEY = 'b', LABEL_KEY = 'r', LABEL_KEY_BYTES = 9 };

struct run_db {
    /* fixed after run_db_create */
    char *dir;
    char *path;                         /* of the database */
    struct run_db_settings settings;
    struct rocksdb_opts opts;
    /* the thread that begins runs */
    unsigned n_begun;                   /* numbers the files of runs */
    /* the thread that ends runs, and compacts and scans */
    struct run_db_totals totals;
    struct begun_run **ended;           /* runs that have ended and were not admitted yet */
    size_t n_ended, ended_room;
    unsigned n_waiting;                 /* files of these */
    double ended_since;                 /* when the first of them ended */
    uint64_t n_open;                    /* most files that RocksDB has open */
    bool is_direct;                     /* db was opened again with O_DIRECT */
    unsigned least_width, max_files;    /* of compactions, as RocksDB was told last; 0: none */
    /* any thread */
    pthread_mutex_t opening;            /* held while db is opened again or queried */
    rocksdb_t *db;
    const char *_Atomic full_reason;    /* the system's error when there was no space, or NULL */
};

struct run_file {
    rocksdb_sstfilewriter_t *sst;
    uint64_t n_bytes;
    size_t pending_bytes;               /* put since the file grew */
    char *key;                          /* of the last block, with our byte in front */
    size_t key_room;                    /* size of the longest one */
    char *path;
};

struct begun_run {
    struct run_db *db;
    unsigned n_files;
    struct run_file files[];
};

struct run_scan {
    struct run_db *db;
    rocksdb_readoptions_t *options;
    rocksdb_iterator_t *iter;   /* NULL before the first run_scan_key */
};

static int check_error(const struct run_db *db, const char *doing, char *error)
{
    return store_error_check(db->dir, doing, error) < 0 ? RUN_DB_ERROR : 0;
}

/* Like check_error, for writing a run; but the caller handles a full disk. */
static int check_write_error(struct run_db *db, char *error)
{
    const char *full = error ? store_error_full(error) : NULL;
    if (!full) return check_error(db, "write", error);
    /* The thread that puts and the thread that ends runs may both come here. */
    atomic_store(&db->full_reason, full);
    rocksdb_free(error);
    return RUN_DB_FULL;
}

const char *run_db_full_reason(const struct run_db *db)
{
    const char *reason = db ? atomic_load(&db->full_reason) : NULL;
    return reason ? reason : strerror(ENOSPC);
}

/* Returns an integer property of the database; 0 if RocksDB has none, or if the database could not
   be opened again. The thread that writes runs may call it while the thread that ends runs opens
   the database again. */
static uint64_t property(const struct run_db *db, const char *name)
{
    pthread_mutex_t *opening = (pthread_mutex_t *)&db->opening;
    (void)pthread_mutex_lock(opening);
    char *text = db->db ? rocksdb_property_value(db->db, name) : NULL;
    (void)pthread_mutex_unlock(opening);
    uint64_t value = text ? strtoull(text, NULL, 10) : 0;
    rocksdb_free(text);
    return value;
}

/* Returns how many files the database has, without those of runs that wait to be admitted. */
static uint64_t n_admitted_files(const struct run_db *db)
{
    return property(db, "rocksdb.num-files-at-level0");
}

/* ---- creating and destroying ---- */

bool run_db_exists(const char *dir, unsigned number)
{
    /* RocksDB makes CURRENT when the database is complete. */
    char *path = xasprintf("%s/db-%u/CURRENT", dir, number);
    bool exists = access(path, F_OK) == 0;
    free(path);
    return exists;
}

/* Counts the runs of a database that another process made, and their current bytes. */
static int count_runs(struct run_db *db)
{
    unsigned n_files = run_db_n_files(db);
    db->totals.n_bytes = property(db, "rocksdb.total-sst-files-size");
    int r = run_db_labels(db, NULL, NULL);
    db->totals.n_files = db->totals.n_runs > n_files ? db->totals.n_runs : n_files;
    return r;
}

static rocksdb_t *open_with(const struct run_db *db, const rocksdb_options_t *options, char **error)
{
    return db->settings.read_only ? rocksdb_open_for_read_only(options, db->path, 0, error)
                                  : rocksdb_open(options, db->path, error);
}

/*
 * Opens the database. If a sync failed while another process ingested a file, RocksDB has removed
 * the file, but the manifest may still name it. Opens such a database without the missing file,
 * because the input will be read again from the first missing run.
 */
static rocksdb_t *open_db(const struct run_db *db, char **error)
{
    const struct run_db_settings *settings = &db->settings;
    rocksdb_t *opened = open_with(db, db->opts.db, error);
    bool may_lack = settings->existing && (!settings->read_only || settings->may_lack_files);
    if (opened || !may_lack || !*error || !strstr(*error, "No such file")) return opened;
    rocksdb_options_t *best_efforts = rocksdb_options_create_copy(db->opts.db);
    char *ignored = NULL;
    rocksdb_get_options_from_string(db->opts.db, "best_efforts_recovery=true", best_efforts,
                                    &ignored);
    rocksdb_free(*error);
    *error = NULL;
    opened = rocksdb_open(best_efforts, db->path, error);
    rocksdb_free(ignored);
    rocksdb_options_destroy(best_efforts);
    return opened;
}

/* Syncs the name of the database's directory: RocksDB syncs only its contents. Returns 0, or -1
   after a message. */
static int sync_name(const struct run_db *db)
{
    if (path_sync_directory(db->dir) == 0) return 0;
    diag_error("cannot write temporary data in '%s': %s", db->dir, strerror(errno));
    return -1;
}

/* Returns 0, or -1 after a message or with *full set. */
static int open_or_create(struct run_db *db, const char **full)
{
    const struct run_db_settings *settings = &db->settings;
    char *error = NULL;
    db->db = open_db(db, &error);
    if (full && error && (*full = store_error_full(error)) != NULL) {
        rocksdb_free(error);
        return -1;
    }
    if (check_error(db, settings->existing ? "open" : "create", error) < 0) return -1;
    return settings->existing ? count_runs(db) : sync_name(db);
}

struct run_db *run_db_create(const char *dir, const struct run_db_settings *settings,
                             const char **full)
{
    struct run_db *db = xcalloc(1, sizeof *db);
    db->opening = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    db->settings = *settings;
    db->dir = xstrdup(dir);
    db->path = xasprintf("%s/db-%u", dir, settings->number);
    if (rocksdb_opts_init(&db->opts, settings->existing, settings->compaction_read_bytes,
                          settings->n_compactions, settings->few_files,
                          settings->long_keys) == 0 &&
        open_or_create(db, full) == 0)
        return db;
    run_db_destroy(db);
    return NULL;
}

static void free_writer(struct begun_run *w)
{
    for (unsigned i = 0; i < w->n_files; i++) {
        free(w->files[i].key);
        free(w->files[i].path);
    }
    free(w);
}

void run_db_destroy(struct run_db *db)
{
    if (!db) return;
    if (db->db) {
        rocksdb_cancel_all_background_work(db->db, 1);
        rocksdb_close(db->db);
    }
    rocksdb_opts_release(&db->opts);
    while (db->n_ended > 0) free_writer(db->ended[--db->n_ended]);
    free(db->ended);
    free(db->path);
    free(db->dir);
    free(db);
}

/* ---- writing runs ---- */

int run_db_begin_run(struct run_db *db, unsigned n_files, struct begun_run **writer)
{
    struct begun_run *w = *writer = xcalloc(1, sizeof *w + n_files * sizeof *w->files);
    w->db = db;
    int r = 0;
    while (r == 0 && w->n_files < n_files) {
        char *error = NULL;
        struct run_file *file = &w->files[w->n_files++];
        file->path = xasprintf("%s/run-%u-%06u.sst", db->dir, db->settings.number, db->n_begun++);
        file->sst = rocksdb_sstfilewriter_create(db->opts.env, db->opts.db);
        rocksdb_sstfilewriter_open(file->sst, file->path, &error);
        r = check_write_error(db, error);
    }
    return r;
}

/* True if the file no longer grows: RocksDB's put does not report a failed write. Later puts do
   nothing, and only finishing the file returns the error. */
static bool is_stuck(const struct run_db *db, struct run_file *file, size_t n_bytes)
{
    uint64_t before = file->n_bytes;
    rocksdb_sstfilewriter_file_size(file->sst, &file->n_bytes);
    if (file->n_bytes > before) file->pending_bytes = 0;
    bool stuck = file->pending_bytes >= 2 * db->opts.block_bytes;
    file->pending_bytes += n_bytes;
    return stuck;
}

int run_db_label_run(struct begun_run *w, uint32_t run, const uint8_t *label, size_t label_bytes)
{
    char *error = NULL;
    uint8_t key[LABEL_KEY_BYTES] = {LABEL_KEY};
    size_t key_bytes = 0;
    for (unsigned i = 0; i < w->n_files; i++)
        if (w->files[i].key_room > key_bytes) key_bytes = w->files[i].key_room;
    (void)put_big_endian(put_big_endian(key + 1, run, 4), key_bytes, 4);
    rocksdb_sstfilewriter_put(w->files[w->n_files - 1].sst, (const char *)key, sizeof key,
                              (const char *)label, label_bytes, &error);
    return check_write_error(w->db, error);
}

int run_db_put(struct begun_run *w, unsigned number, const uint8_t *key, size_t key_bytes,
               const uint8_t *value, size_t value_bytes)
{
    char *error = NULL;
    struct run_file *file = &w->files[number];
    xgrow(&file->key, &file->key_room, key_bytes + 1, 0, 1);
    file->key[0] = BLOCK_KEY;
    memcpy(file->key + 1, key, key_bytes);
    rocksdb_sstfilewriter_put(file->sst, file->key, key_bytes + 1, (const char *)value,
                              value_bytes, &error);
    if (!error && is_stuck(w->db, file, key_bytes + value_bytes))
        rocksdb_sstfilewriter_finish(file->sst, &error);
    return check_write_error(w->db, error);
}

/* Writes the rest of a file, and waits until it is on the disk. */
static int end_file(struct run_db *db, struct run_file *file)
{
    char *error = NULL;
    rocksdb_sstfilewriter_finish(file->sst, &error);
    int r = check_write_error(db, error);
    if (r < 0) return r;
    rocksdb_sstfilewriter_file_size(file->sst, &file->n_bytes);
    rocksdb_sstfilewriter_destroy(file->sst);
    file->sst = NULL;
    if (file->key_room > db->totals.key_bytes) db->totals.key_bytes = file->key_room;
    return 0;
}

static uint64_t bytes_of(const struct begun_run *w)
{
    uint64_t n_bytes = 0;
    for (unsigned i = 0; i < w->n_files; i++) n_bytes += w->files[i].n_bytes;
    return n_bytes;
}

/*
 * True if the runs that have ended should be admitted now. RocksDB rebuilds its list of all files
 * each time, so admitting n runs one by one would cost n * n. With one call for each 64th part of
 * the existing files, 10,000 runs need 400 calls. If runs take long, few of them wait, because a
 * killed process loses those.
 */
static bool should_admit(const struct run_db *db)
{
    enum { PARTS = 64, MOST_SECONDS = 2 };
    if (db->n_ended < db->settings.n_admitted) return false;
    uint64_t n_files = n_admitted_files(db), enough = n_files / PARTS;
    if (db->max_files > 0) {            /* with more files RocksDB should compact at once */
        if (n_files <= db->max_files && n_files + db->n_waiting > db->max_files) return true;
        /* With least_width more files, it would compact files of any size. */
        if (enough > db->least_width / 2) enough = db->least_width / 2;
    }
    return db->n_waiting >= enough || monotonic_seconds() - db->ended_since >= MOST_SECONDS;
}

int run_db_end_run(struct begun_run *w)
{
    struct run_db *db = w->db;
    for (unsigned i = 0; i < w->n_files; i++) {
        int r = end_file(db, &w->files[i]);
        if (r == 0) continue;
        run_db_abandon_run(w);
        return r;
    }
    db->totals.n_runs++;
    db->totals.n_files += w->n_files;
    db->totals.n_bytes += bytes_of(w);
    db->n_waiting += w->n_files;
    if (db->n_ended == 0) db->ended_since = monotonic_seconds();
    xgrow(&db->ended, &db->ended_room, db->n_ended + 1, db->ended_room, sizeof *db->ended);
    db->ended[db->n_ended++] = w;
    return should_admit(db) ? run_db_admit_runs(db) : 0;
}

int run_db_admit_runs(struct run_db *db)
{
    if (db->n_ended == 0) return 0;
    if (!db->db) return RUN_DB_ERROR;   /* reopening has failed after a message */
    char *error = NULL;
    const char **paths = xcalloc(db->n_waiting, sizeof *paths);
    size_t n_paths = 0;
    for (unsigned i = 0; i < db->n_ended; i++)
        for (unsigned k = 0; k < db->ended[i]->n_files; k++)
            paths[n_paths++] = db->ended[i]->files[k].path;
    rocksdb_ingest_external_file(db->db, paths, n_paths, db->opts.ingest, &error);
    free(paths);
    db->n_open += db->n_waiting;
    db->n_waiting = 0;
    for (; db->n_ended > 0; free_writer(db->ended[--db->n_ended])) {
        if (!error) continue;
        const struct begun_run *last = db->ended[db->n_ended - 1];
        db->totals.n_runs--;                   /* this run is lost */
        db->totals.n_files -= last->n_files;
        db->totals.n_bytes -= bytes_of(last);
    }
    return check_write_error(db, error);
}

void run_db_abandon_run(struct begun_run *w)
{
    if (!w) return;
    for (unsigned i = 0; i < w->n_files; i++) {
        if (w->files[i].sst) rocksdb_sstfilewriter_destroy(w->files[i].sst);
        (void)unlink(w->files[i].path); /* the file may not exist */
    }
    free_writer(w);
}

/* ---- contents ---- */

int run_db_labels(struct run_db *db, int (*take)(void *arg, const uint8_t *label, size_t n_bytes),
                  void *arg)
{
    const char first = LABEL_KEY;
    char *error = NULL;
    int r = 0;
    rocksdb_readoptions_t *options = rocksdb_opts_scan(0);
    rocksdb_iterator_t *iter = rocksdb_create_iterator(db->db, options);
    rocksdb_iter_seek(iter, &first, 1);
    for (; r == 0 && rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
        size_t n_bytes, n_key;
        const uint8_t *key = (const uint8_t *)rocksdb_iter_key(iter, &n_key);
        size_t key_bytes = n_key == LABEL_KEY_BYTES ? (size_t)get_big_endian(key + 5, 4) : 0;
        if (key_bytes > db->totals.key_bytes) db->totals.key_bytes = key_bytes;
        const char *label = rocksdb_iter_value(iter, &n_bytes);
        if (take)
            r = take(arg, (const uint8_t *)label, n_bytes);
        else
            db->totals.n_runs++;
    }
    rocksdb_iter_get_error(iter, &error);
    if (check_error(db, "read", error) < 0) r = -1;
    rocksdb_iter_destroy(iter);
    rocksdb_readoptions_destroy(options);
    return r;
}

const struct run_db_totals *run_db_totals(const struct run_db *db)
{
    return &db->totals;
}

unsigned run_db_n_durable(const struct run_db *db)
{
    return db->totals.n_runs - (unsigned)db->n_ended;
}

unsigned run_db_n_files(const struct run_db *db)
{
    return (unsigned)(n_admitted_files(db) + db->n_waiting);
}

unsigned run_db_n_open(struct run_db *db)
{
    /* RocksDB closes the files that a compaction has read shortly after it removes them from the
       database, but before it reports the end of the compaction. */
    uint64_t n_files = n_admitted_files(db);
    if (!run_db_is_compacting(db)) db->n_open = n_files;
    return (unsigned)(db->n_open + db->n_waiting);
}

uint64_t run_db_compacted_bytes(const struct run_db *db)
{
    static const char name[] = "rocksdb.compact.write.bytes COUNT : ";
    char *all = rocksdb_options_statistics_get_string(db->opts.db);
    const char *at = all ? strstr(all, name) : NULL;
    uint64_t value = at ? strtoull(at + sizeof name - 1, NULL, 10) : 0;
    rocksdb_free(all);
    return value;
}

/* ---- compactions ---- */

/* Opens the database again with O_DIRECT, unless this was done before. */
static int reopen_direct(struct run_db *db)
{
    char *error = NULL;
    if (db->is_direct) return 0;
    (void)pthread_mutex_lock(&db->opening);
    rocksdb_close(db->db);
    db->db = open_with(db, db->opts.direct_db, &error);
    (void)pthread_mutex_unlock(&db->opening);
    db->is_direct = true;
    return check_error(db, "open", error);
}

int run_db_compact(struct run_db *db, unsigned least_width, unsigned width, unsigned max_files)
{
    char *error = NULL;
    if (db->settings.direct && reopen_direct(db) < 0) return RUN_DB_ERROR;
    db->least_width = least_width;
    db->max_files = max_files;
    rocksdb_opts_compact(db->db, least_width, width, max_files, &error);
    return check_error(db, "compact", error);
}

int run_db_stop_compactions(struct run_db *db)
{
    diag_warning("a compaction failed in '%s': there is little space, or the disk is faulty; no "
                 "more are done", db->dir);
    const char *const key = "disable_auto_compactions", *const value = "true";
    char *error = NULL;
    rocksdb_set_options(db->db, 1, &key, &value, &error);
    return check_error(db, "compact", error);
}

bool run_db_is_compacting(const struct run_db *db)
{
    return property(db, "rocksdb.num-running-compactions") > 0 && !run_db_compact_failed(db);
}

static bool are_similar(uint64_t a, uint64_t b)
{
    const double most = 1 + SIMILAR_FILES_PERCENT / 100.0;
    return (double)a <= most * (double)b && (double)b <= most * (double)a;
}

/* RocksDB compacts if there are more than max_files files, and least_width neighbours among them
   have similar sizes. With max_files + least_width files it takes the newest, of any sizes. */
bool run_db_compaction_is_due(const struct run_db *db)
{
    if (db->least_width == 0 || run_db_compact_failed(db)) return false;
    /* RocksDB reports 0 if all files are already being compacted. */
    if (property(db, "rocksdb.compaction-pending") == 0) return false;
    const rocksdb_livefiles_t *files = rocksdb_livefiles(db->db);
    size_t n = (size_t)rocksdb_livefiles_count(files), n_row = 1;
    for (int i = 1; i < (int)n && n_row < db->least_width; i++)
        n_row = are_similar(rocksdb_livefiles_size(files, i - 1), rocksdb_livefiles_size(files, i))
                    ? n_row + 1 : 1;
    rocksdb_livefiles_destroy(files);
    return n > db->max_files && (n >= db->max_files + db->least_width || n_row >= db->least_width);
}

bool run_db_compact_failed(const struct run_db *db)
{
    return property(db, "rocksdb.background-errors") > 0;
}

/* ---- scans ---- */

struct run_scan *run_scan_open(struct run_db *db, size_t read_bytes)
{
    struct run_scan *scan = xcalloc(1, sizeof *scan);
    scan->db = db;
    scan->options = rocksdb_opts_scan(read_bytes);
    return scan;
}

/* Goes to the first block. Returns 0, or -1 after a message. */
static int start_scan(struct run_scan *scan)
{
    const char first = BLOCK_KEY;
    if (scan->db->settings.direct && reopen_direct(scan->db) < 0) return -1;
    scan->iter = rocksdb_create_iterator(scan->db->db, scan->options);
    rocksdb_iter_seek(scan->iter, &first, 1);
    return 0;
}

int run_scan_key(struct run_scan *scan, const uint8_t **key, size_t *key_bytes)
{
    if (!scan->iter && start_scan(scan) < 0) return -1;
    if (rocksdb_iter_valid(scan->iter)) {
        const uint8_t *whole = (const uint8_t *)rocksdb_iter_key(scan->iter, key_bytes);
        if (*key_bytes == 0 || *whole != BLOCK_KEY) return 0;   /* labels come next */
        *key = whole + 1;
        --*key_bytes;
        return 1;
    }
    char *error = NULL;
    rocksdb_iter_get_error(scan->iter, &error);
    return check_error(scan->db, "read", error);
}

void run_scan_value(struct run_scan *scan, const uint8_t **value, size_t *value_bytes)
{
    *value = (const uint8_t *)rocksdb_iter_value(scan->iter, value_bytes);
}

const char *run_scan_dir(const struct run_scan *scan)
{
    return scan->db->dir;
}

void run_scan_next(struct run_scan *scan)
{
    rocksdb_iter_next(scan->iter);
}

void run_scan_close(struct run_scan *scan)
{
    if (!scan) return;
    if (scan->iter) rocksdb_iter_destroy(scan->iter);
    rocksdb_readoptions_destroy(scan->options);
    free(scan);
}
