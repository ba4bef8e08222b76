/*
 * run_store_scan.c -- reading the runs: how much at a time, and past the page cache or not. See
 * run_store.h.
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
 */
#include "store/run_store.h"

#include "machine/memory.h"
#include "store/run_store_internal.h"
#include "util/diag.h"

#include <stdlib.h>

bool run_store_exceeds_memory(uint64_t input_bytes, size_t scan_bytes)
{
    enum { RATIO = 3, SCANS = 4 };      /* of compression; and a sort spills for a reason */
    uint64_t n_bytes = input_bytes / RATIO, least = SCANS * scan_bytes;
    return memory_available() < (n_bytes > least ? n_bytes : least);
}

static unsigned count_files(const struct run_store *store)
{
    unsigned n_files = 0;
    for (size_t i = 0; i < store->n_volumes; i++)
        if (store->volumes[i].n_runs > 0) n_files += run_db_n_files(store->volumes[i].db);
    return n_files;
}

/* Bytes that the scan should read at a time of each of n_files files; 0: what the kernel does. */
static size_t choose_read_bytes(const struct run_store *store, unsigned n_files)
{
    if (!store->direct && !store->slow_to_seek) return 0;
    return scan_read_bytes(n_files, store->scan_bytes, store->direct);
}

size_t run_store_scan_bytes(const struct run_store *store)
{
    unsigned n_files = count_files(store);
    size_t read_bytes = choose_read_bytes(store, n_files);
    return read_bytes > 0 ? n_files * (read_bytes + SCAN_FILE_BYTES) : 0;
}

int run_store_scan(struct run_store *store, struct run_scan ***scans)
{
    int n = 0;
    *scans = calloc(store->n_volumes, sizeof **scans);
    if (!*scans) {
        diag_no_memory();
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
    stats->n_seeks = scan_n_reads(stats->run_bytes, stats->scan_read_bytes) +
                     scan_n_reads(stats->compacted_bytes, stats->compaction_read_bytes);
}
