/*
 * run_store.c -- see run_store.h.
 *
 * A run is written with an SstFileWriter: no memtable, no log, no second copy; and ingested by a
 * hard link, which costs a manifest record. Ingested files overlap, so each becomes a file of level
 * 0 with a sequence number of its own.
 *
 * The database lies one level down, in `db`: RocksDB makes the directory that it opens, and when a
 * signal has just removed ours it must not come back behind the remover.
 *
 * The scan opens all files at once; the limit of open files is raised as far as it goes.
 */
#include "run_store.h"

#include "diag.h"
#include "rocksdb_opts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct run_store {
    char *dir;
    char *path;                         /* of the database, then of the run being written */
    size_t path_room;
    struct rocksdb_opts opts;
    rocksdb_t *db;
    rocksdb_sstfilewriter_t *writer;    /* not NULL between begin and end */
    unsigned n_runs;
    uint64_t n_bytes;
};

struct run_scan {
    struct run_store *store;
    rocksdb_iterator_t *iter;
};

/* Turns RocksDB's error string into our message; returns -1 if there was one. */
static int check_error(const struct run_store *store, const char *doing, char *error)
{
    if (!error) return 0;
    bool full = strstr(error, "No space left") || strstr(error, "NoSpace") ||
                strstr(error, "Disk quota");
    const char *advice = "";
    if (full) advice = "; free space or choose another place with -T";
    if (strstr(error, "Too many open files"))
        advice = "; give more memory with -m, which makes fewer runs, or raise 'ulimit -n'";
    diag_error("cannot %s the temporary data in '%s': %s%s", doing, store->dir, error, advice);
    rocksdb_free(error);
    return -1;
}

static void raise_open_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    /* If it cannot be raised, opening one file too many reports the trouble. */
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

struct run_store *run_store_create(const char *dir)
{
    struct run_store *store = calloc(1, sizeof *store);
    if (!store) goto no_memory;
    store->dir = strdup(dir);
    store->path_room = strlen(dir) + 32;
    store->path = malloc(store->path_room);
    if (!store->dir || !store->path) goto no_memory;
    raise_open_file_limit();
    if (rocksdb_opts_init(&store->opts) < 0) goto err;
    char *error = NULL;
    (void)snprintf(store->path, store->path_room, "%s/db", dir);
    store->db = rocksdb_open(store->opts.db, store->path, &error);
    if (check_error(store, "create", error) < 0) goto err;
    return store;
no_memory:
    diag_error("out of memory");
err:
    run_store_destroy(store);
    return NULL;
}

void run_store_destroy(struct run_store *store)
{
    if (!store) return;
    if (store->writer) rocksdb_sstfilewriter_destroy(store->writer);
    if (store->db) rocksdb_close(store->db);
    rocksdb_opts_release(&store->opts);
    free(store->path);
    free(store->dir);
    free(store);
}

int run_store_begin_run(struct run_store *store)
{
    char *error = NULL;
    (void)snprintf(store->path, store->path_room, "%s/run-%06u.sst", store->dir,
                   store->n_runs);
    store->writer = rocksdb_sstfilewriter_create(store->opts.env, store->opts.db);
    rocksdb_sstfilewriter_open(store->writer, store->path, &error);
    return check_error(store, "write", error);
}

int run_store_put(struct run_store *store, const uint8_t *key, size_t key_bytes,
                  const uint8_t *value, size_t value_bytes)
{
    char *error = NULL;
    rocksdb_sstfilewriter_put(store->writer, (const char *)key, key_bytes, (const char *)value,
                              value_bytes, &error);
    return check_error(store, "write", error);
}

int run_store_end_run(struct run_store *store)
{
    char *error = NULL;
    uint64_t file_bytes = 0;
    rocksdb_sstfilewriter_finish(store->writer, &error);
    if (check_error(store, "write", error) < 0) return -1;
    rocksdb_sstfilewriter_file_size(store->writer, &file_bytes);
    rocksdb_sstfilewriter_destroy(store->writer);
    store->writer = NULL;
    const char *path = store->path;
    rocksdb_ingest_external_file(store->db, &path, 1, store->opts.ingest, &error);
    if (check_error(store, "register", error) < 0) return -1;
    store->n_runs++;
    store->n_bytes += file_bytes;
    return 0;
}

unsigned run_store_n_runs(const struct run_store *store)
{
    return store->n_runs;
}

uint64_t run_store_bytes(const struct run_store *store)
{
    return store->n_bytes;
}

struct run_scan *run_scan_open(struct run_store *store)
{
    struct run_scan *scan = calloc(1, sizeof *scan);
    if (!scan) {
        diag_error("out of memory");
        return NULL;
    }
    scan->store = store;
    scan->iter = rocksdb_create_iterator(store->db, store->opts.scan);
    rocksdb_iter_seek_to_first(scan->iter);
    return scan;
}

int run_scan_key(struct run_scan *scan, const uint8_t **key, size_t *key_bytes)
{
    if (rocksdb_iter_valid(scan->iter)) {
        *key = (const uint8_t *)rocksdb_iter_key(scan->iter, key_bytes);
        return 1;
    }
    char *error = NULL;
    rocksdb_iter_get_error(scan->iter, &error);
    return check_error(scan->store, "read", error);
}

void run_scan_value(struct run_scan *scan, const uint8_t **value, size_t *value_bytes)
{
    *value = (const uint8_t *)rocksdb_iter_value(scan->iter, value_bytes);
}

void run_scan_next(struct run_scan *scan)
{
    rocksdb_iter_next(scan->iter);
}

void run_scan_close(struct run_scan *scan)
{
    if (!scan) return;
    rocksdb_iter_destroy(scan->iter);
    free(scan);
}
