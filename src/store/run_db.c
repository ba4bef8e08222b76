/*
 * run_db.c -- see run_db.h.
 *
 * A run is written with an SstFileWriter: no memtable, no log, no second copy; and ingested by a
 * hard link, which costs a manifest record. Ingested files overlap, so each becomes a file of level
 * 0 with a sequence number of its own.
 *
 * The database lies one level down, in `db-N`: RocksDB makes the directory that it opens, and when
 * a signal has just removed ours it must not come back behind the remover.
 *
 * Keys have a byte in front: `b` for blocks and `r` for labels, which are so behind all blocks. The
 * labels are entries like others: RocksDB admits them with their runs, as one, and compactions keep
 * them.
 *
 * A scan opens all files at once; the limit of open files is raised as far as it goes.
 */
#include "store/run_db.h"

#include "machine/disk_space.h"
#include "store/rocksdb_opts.h"
#include "util/diag.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_KEY = 'b', LABEL_KEY = 'r', LABEL_KEY_BYTES = 5 };

struct run_db {
    char *dir;
    char *path;                         /* of the database */
    struct rocksdb_opts opts;
    rocksdb_t *db;
    pthread_mutex_t opening;            /* held while db is opened again, and by who asks it */
    bool has_opening;
    unsigned n_begun;                   /* names of runs */
    unsigned n_runs;                    /* that have ended */
    struct run_writer **ended;          /* ... and are not part of the database yet */
    unsigned n_ended;
    struct run_db_settings settings;
    bool is_direct;                     /* opened again */
    uint64_t n_bytes;
    char *_Atomic full_error;           /* what RocksDB said when there was no space */
};

struct run_writer {
    struct run_db *db;
    rocksdb_sstfilewriter_t *sst;
    uint64_t file_bytes;
    size_t pending_bytes;               /* put since the file grew */
    char *key;                          /* with the byte in front */
    size_t key_room;
    char path[];
};

struct run_scan {
    struct run_db *db;
    rocksdb_readoptions_t *options;
    rocksdb_iterator_t *iter;   /* NULL until the first key is asked for */
};

static bool means_full(const char *error)
{
    return strstr(error, "No space left") || strstr(error, "NoSpace") ||
           strstr(error, "Disk quota");
}

/* What the system said of a full disk; RocksDB's words around it name files at length. */
static const char *full_reason(const char *error)
{
    return strstr(error, "Disk quota") ? "Disk quota exceeded" : "No space left on device";
}

static void cut_out(char *from, const char *to)
{
    memmove(from, to, strlen(to) + 1);
}

/* Takes out of RocksDB's words what our message says, too, the kind of error, what was being done
   and the directory of each file, and the numbers around a wrong checksum. */
static const char *shorten(char *error, const char *dir)
{
    size_t n = strlen(dir);
    for (char *at = error; n > 0 && (at = strstr(at, dir)) != NULL;)
        cut_out(at, at + n + (at[n] == '/'));
    char *stored = strstr(error, ": stored = "), *in = stored ? strstr(stored, " in ") : NULL;
    if (in) cut_out(stored, in);
    char *more = strstr(error, stored ? " offset " : " in file ");
    if (more) *more = '\0';
    const char *doing = strstr(error, "While "), *end = strstr(doing ? doing : error, ": ");
    return end ? end + strlen(": ") : error;
}

/* Turns RocksDB's error string into our message; returns -1 if there was one. */
static int check_error(const struct run_db *db, const char *doing, char *error)
{
    if (!error) return 0;
    if (means_full(error)) {
        disk_space_print_full(db->dir, full_reason(error), 0);
    } else {
        bool damaged = strncmp(error, "Corruption", strlen("Corruption")) == 0;
        const char *words = shorten(error, db->dir);
        if (damaged)
            diag_damaged("the temporary data in '%s' are damaged: %s; sort again on another "
                         "disk", db->dir, words);
        else
            diag_error("cannot %s the temporary data in '%s': %s%s", doing, db->dir, words,
                       strstr(words, "Too many open files")
                           ? "; raise 'ulimit -n', or give more with -m"
                           : "");
    }
    rocksdb_free(error);
    return RUN_DB_ERROR;
}

/* The same while a run is written; a full disk is left to the caller. */
static int check_write_error(struct run_db *db, char *error)
{
    if (!error || !means_full(error)) return check_error(db, "write", error);
    /* Who puts and who ends runs may both meet the end of the disk: the first is kept. */
    char *none = NULL, *copy = strdup(error);
    if (!atomic_compare_exchange_strong(&db->full_error, &none, copy)) free(copy);
    rocksdb_free(error);
    return RUN_DB_FULL;
}

const char *run_db_full_error(const struct run_db *db)
{
    const char *error = db ? atomic_load(&db->full_error) : NULL;
    return full_reason(error ? error : "");
}

/* A whole number that RocksDB tells about itself; 0 if it does not or could not be opened again.
   Who writes runs asks, too, while who ends them may be opening the database again. */
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

bool run_db_exists(const char *dir, unsigned number)
{
    /* RocksDB makes CURRENT when the database is complete. */
    size_t room = strlen(dir) + 48;
    char *path = malloc(room);
    if (!path) return true;             /* opening it will say so */
    (void)snprintf(path, room, "%s/db-%u/CURRENT", dir, number);
    bool exists = access(path, F_OK) == 0;
    free(path);
    return exists;
}

static int count_run(void *arg, const uint8_t *label, size_t n_bytes)
{
    struct run_db *db = arg;
    (void)label;
    (void)n_bytes;
    db->n_runs++;
    return 0;
}

/* Of a database that another process made: its runs, and their bytes as they are now. */
static int count_runs(struct run_db *db)
{
    db->n_bytes = property(db, "rocksdb.total-sst-files-size");
    return run_db_labels(db, count_run, db);
}

/*
 * Opens a database that others may have left. When a sync fails while a file is ingested, RocksDB
 * removes the file, and the manifest may name it all the same. Where the input is read again from
 * the first run that is not there, what else is there is opened without it.
 */
static rocksdb_t *open_db(const struct run_db *db, char **error)
{
    const struct run_db_settings *settings = &db->settings;
    if (settings->read_only)
        return rocksdb_open_for_read_only(db->opts.db, db->path, 0, error);
    rocksdb_t *opened = rocksdb_open(db->opts.db, db->path, error);
    if (opened || !settings->existing || !*error || !strstr(*error, "No such file")) return opened;
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

/* RocksDB syncs what is in the directory that it makes, and not the name of that. Returns 0, or -1
   after a message. */
static int sync_name(const struct run_db *db)
{
    int fd = open(db->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd >= 0 ? fsync(fd) : -1;
    if (r < 0)
        diag_error("cannot write temporary data in '%s': %s", db->dir, strerror(errno));
    if (fd >= 0) (void)close(fd);
    return r;
}

struct run_db *run_db_create(const char *dir, const struct run_db_settings *settings,
                             const char **full)
{
    char *error = NULL, *path = NULL;
    struct run_db *db = calloc(1, sizeof *db);
    if (!db) goto no_memory;
    db->has_opening = pthread_mutex_init(&db->opening, NULL) == 0;
    if (!db->has_opening) goto no_memory;
    db->settings = *settings;
    db->ended = calloc(settings->n_admitted, sizeof *db->ended);
    if (!db->ended) goto no_memory;
    db->dir = strdup(dir);
    db->path = path = malloc(strlen(dir) + 32);
    if (!db->dir || !path) goto no_memory;
    if (rocksdb_opts_init(&db->opts, settings) < 0) goto err;
    (void)sprintf(path, "%s/db-%u", dir, settings->number);
    db->db = open_db(db, &error);
    if (full && error && means_full(error)) {
        *full = full_reason(error);
        rocksdb_free(error);
        goto err;
    }
    if (check_error(db, settings->existing ? "open" : "create", error) < 0) goto err;
    if ((settings->existing ? count_runs(db) : sync_name(db)) < 0) goto err;
    return db;
no_memory:
    diag_no_memory();
err:
    run_db_destroy(db);
    return NULL;
}

void run_db_destroy(struct run_db *db)
{
    if (!db) return;
    if (db->db) {
        rocksdb_cancel_all_background_work(db->db, 1);
        rocksdb_close(db->db);
    }
    rocksdb_opts_release(&db->opts);
    while (db->n_ended > 0) free(db->ended[--db->n_ended]);
    free(db->ended);
    if (db->has_opening) (void)pthread_mutex_destroy(&db->opening);
    free(db->full_error);
    free(db->path);
    free(db->dir);
    free(db);
}

int run_db_begin_run(struct run_db *db, struct run_writer **writer)
{
    char *error = NULL;
    size_t room = strlen(db->dir) + 48;
    struct run_writer *w = malloc(sizeof *w + room);
    *writer = w;
    if (!w) {
        diag_no_memory();
        return RUN_DB_ERROR;
    }
    w->db = db;
    w->file_bytes = w->pending_bytes = 0;
    w->key = NULL;
    w->key_room = 0;
    (void)snprintf(w->path, room, "%s/run-%u-%06u.sst", db->dir, db->settings.number,
                   db->n_begun++);
    w->sst = rocksdb_sstfilewriter_create(db->opts.env, db->opts.db);
    rocksdb_sstfilewriter_open(w->sst, w->path, &error);
    return check_write_error(db, error);
}

/*
 * True if the file has stopped to grow. A put returns no error of the file: all puts after it do
 * nothing, and only the end says why.
 */
static bool is_stuck(struct run_writer *w, size_t n_bytes)
{
    enum { MOST_PENDING = 8 << 10 };    /* twice a block of the table, rocksdb_opts.c */
    uint64_t before = w->file_bytes;
    rocksdb_sstfilewriter_file_size(w->sst, &w->file_bytes);
    if (w->file_bytes > before) w->pending_bytes = 0;
    bool stuck = w->pending_bytes >= MOST_PENDING;
    w->pending_bytes += n_bytes;
    return stuck;
}

/* Makes room for a key. Returns 0, or -1 after a message. */
static int reserve_key(struct run_writer *w, size_t n_bytes)
{
    if (n_bytes <= w->key_room) return 0;
    char *grown = realloc(w->key, 2 * n_bytes);
    if (!grown) {
        diag_no_memory();
        return -1;
    }
    w->key = grown;
    w->key_room = 2 * n_bytes;
    return 0;
}

int run_db_label_run(struct run_writer *w, uint32_t run, const uint8_t *label, size_t label_bytes)
{
    char *error = NULL;
    char key[LABEL_KEY_BYTES] = {LABEL_KEY, (char)(run >> 24), (char)(run >> 16), (char)(run >> 8),
                                 (char)run};
    rocksdb_sstfilewriter_put(w->sst, key, sizeof key, (const char *)label, label_bytes, &error);
    return check_write_error(w->db, error);
}

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
        size_t n_bytes;
        const char *label = rocksdb_iter_value(iter, &n_bytes);
        r = take(arg, (const uint8_t *)label, n_bytes);
    }
    rocksdb_iter_get_error(iter, &error);
    if (check_error(db, "read", error) < 0) r = -1;
    rocksdb_iter_destroy(iter);
    rocksdb_readoptions_destroy(options);
    return r;
}

int run_db_put(struct run_writer *w, const uint8_t *key, size_t key_bytes, const uint8_t *value,
               size_t value_bytes)
{
    char *error = NULL;
    if (reserve_key(w, key_bytes + 1) < 0) return RUN_DB_ERROR;
    w->key[0] = BLOCK_KEY;
    memcpy(w->key + 1, key, key_bytes);
    rocksdb_sstfilewriter_put(w->sst, w->key, key_bytes + 1, (const char *)value, value_bytes,
                              &error);
    if (!error && is_stuck(w, key_bytes + value_bytes))
        rocksdb_sstfilewriter_finish(w->sst, &error);
    return check_write_error(w->db, error);
}

int run_db_end_run(struct run_writer *w)
{
    struct run_db *db = w->db;
    char *error = NULL;
    uint64_t file_bytes = 0;
    rocksdb_sstfilewriter_finish(w->sst, &error);
    int r = check_write_error(db, error);
    if (r < 0) {
        run_db_abandon_run(w);
        return r;
    }
    rocksdb_sstfilewriter_file_size(w->sst, &file_bytes);
    rocksdb_sstfilewriter_destroy(w->sst);
    w->sst = NULL;
    free(w->key);
    w->key = NULL;
    db->n_runs++;
    db->n_bytes += file_bytes;
    db->ended[db->n_ended++] = w;
    return db->n_ended == db->settings.n_admitted ? run_db_admit_runs(db) : 0;
}

int run_db_admit_runs(struct run_db *db)
{
    if (db->n_ended == 0) return 0;
    if (!db->db) return RUN_DB_ERROR;   /* it could not be opened again, which was said then */
    char *error = NULL;
    const char **paths = malloc(db->n_ended * sizeof *paths);
    if (!paths) {
        diag_no_memory();
        return RUN_DB_ERROR;
    }
    for (unsigned i = 0; i < db->n_ended; i++) paths[i] = db->ended[i]->path;
    rocksdb_ingest_external_file(db->db, paths, db->n_ended, db->opts.ingest, &error);
    free(paths);
    while (db->n_ended > 0) free(db->ended[--db->n_ended]);
    return check_write_error(db, error);
}

void run_db_abandon_run(struct run_writer *w)
{
    if (!w) return;
    rocksdb_sstfilewriter_destroy(w->sst);
    (void)unlink(w->path);              /* if it was made at all */
    free(w->key);
    free(w);
}

unsigned run_db_n_runs(const struct run_db *db)
{
    return db->n_runs;
}

unsigned run_db_n_durable(const struct run_db *db)
{
    return db->n_runs - db->n_ended;
}

uint64_t run_db_bytes(const struct run_db *db)
{
    return db->n_bytes;
}

unsigned run_db_n_files(const struct run_db *db)
{
    return (unsigned)property(db, "rocksdb.num-files-at-level0");
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

/* Opens the database again, if that has not been done, to read past the page cache. */
static int reopen_direct(struct run_db *db)
{
    char *error = NULL;
    if (db->is_direct) return 0;
    (void)pthread_mutex_lock(&db->opening);
    rocksdb_close(db->db);
    db->db = db->settings.read_only
                 ? rocksdb_open_for_read_only(db->opts.direct_db, db->path, 0, &error)
                 : rocksdb_open(db->opts.direct_db, db->path, &error);
    (void)pthread_mutex_unlock(&db->opening);
    db->is_direct = true;
    return check_error(db, "open", error);
}

int run_db_compact(struct run_db *db, unsigned least_width, unsigned width, unsigned max_files)
{
    struct rocksdb_setting settings[ROCKSDB_N_COMPACTION_SETTINGS];
    const char *keys[ROCKSDB_N_COMPACTION_SETTINGS], *values[ROCKSDB_N_COMPACTION_SETTINGS];
    char *error = NULL;
    if (db->settings.direct && reopen_direct(db) < 0) return RUN_DB_ERROR;
    rocksdb_opts_compaction(settings, least_width, width, max_files);
    for (size_t i = 0; i < ROCKSDB_N_COMPACTION_SETTINGS; i++) {
        keys[i] = settings[i].name;
        values[i] = settings[i].value;
    }
    rocksdb_set_options(db->db, ROCKSDB_N_COMPACTION_SETTINGS, keys, values, &error);
    return check_error(db, "compact", error);
}

int run_db_stop_compactions(struct run_db *db)
{
    const char *const key = "disable_auto_compactions", *const value = "true";
    char *error = NULL;
    rocksdb_set_options(db->db, 1, &key, &value, &error);
    return check_error(db, "compact", error);
}

bool run_db_is_compacting(const struct run_db *db)
{
    return property(db, "rocksdb.num-running-compactions") > 0 && !run_db_compact_failed(db);
}

bool run_db_compaction_is_due(const struct run_db *db)
{
    return property(db, "rocksdb.compaction-pending") > 0 && !run_db_compact_failed(db);
}

bool run_db_compact_failed(const struct run_db *db)
{
    return property(db, "rocksdb.background-errors") > 0;
}

struct run_scan *run_scan_open(struct run_db *db, size_t read_bytes)
{
    struct run_scan *scan = calloc(1, sizeof *scan);
    if (!scan) {
        diag_no_memory();
        return NULL;
    }
    scan->db = db;
    scan->options = rocksdb_opts_scan(read_bytes);
    return scan;
}

/* Returns 0, or -1 after a message. */
static int start_scan(struct run_scan *scan)
{
    if (scan->db->settings.direct && reopen_direct(scan->db) < 0) return -1;
    scan->iter = rocksdb_create_iterator(scan->db->db, scan->options);
    rocksdb_iter_seek_to_first(scan->iter);
    return 0;
}

int run_scan_key(struct run_scan *scan, const uint8_t **key, size_t *key_bytes)
{
    if (!scan->iter && start_scan(scan) < 0) return -1;
    if (rocksdb_iter_valid(scan->iter)) {
        const uint8_t *whole = (const uint8_t *)rocksdb_iter_key(scan->iter, key_bytes);
        if (*key_bytes == 0 || *whole != BLOCK_KEY) return 0;   /* the labels follow */
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
