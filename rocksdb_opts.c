/*
 * rocksdb_opts.c -- see rocksdb_opts.h.
 *
 * The database of a sort is unlike most databases. It is filled by ingesting a few to a few
 * thousand sorted files with large, compressed values. Then it is read once, sequentially.
 *
 * Compaction is universal, with only one level. RocksDB compacts only files of similar size
 * together, and compacted files are larger than runs, so each byte is rewritten about once.
 * Compaction is off until rocksdb_opts_compact turns it on. Width and trigger are two numbers,
 * because a larger width needs more memory; compaction_plan.h computes both. (The rule of 2014,
 * trigger 2k and width k to 2k, let RocksDB choose the width.)
 */
#include "spill/rocksdb_opts.h"

#include "util/diag.h"

#include <stdio.h>
#include <string.h>

enum {
    TABLE_FORMAT_VERSION = 5,
    TABLE_CHECKSUM_XXH3 = 4,            /* rocksdb::kXXH3 */
    TABLE_BLOCK_BYTES = 4096,           /* less than a value: each value gets a block of its own */
    LARGE_TABLE_BLOCK_BYTES = 64 << 10, /* the scan holds one of each file in memory */
    INDEX_PART_BYTES = 16 << 10,
    LONG_INDEX_PART_BYTES = 80 << 10,   /* a few hundred long keys with a common prefix */
    INDEX_RESTART_INTERVAL = 1024,      /* there are no look-ups, only scans */
    INFO_LOG_FATAL = 4,
    WRITE_BUFFER_BYTES = 64 << 10,      /* memtables stay empty */
    FILE_BUFFER_BYTES = 256 << 10,      /* a file writer buffers this much before it calls write */
    SYNC_EVERY_BYTES = 4 << 20,
    MANIFEST_BYTES = 64 << 10,          /* enough for a few hundred runs */
    NEVER = 1 << 30,
};

/* The C interface of RocksDB 7.8 has no functions for these two options. RocksDB's own readahead is
   off: it would take 256 KB more for each file of the scan, while the kernel's readahead takes no
   memory of ours. */
static const char options_format[] =
    "block_based_table_factory={max_auto_readahead_size=0};compaction_readahead_size=%zu";

static void set_table_options(rocksdb_block_based_table_options_t *table, size_t block_bytes,
                              bool long_keys)
{
    rocksdb_block_based_options_set_format_version(table, TABLE_FORMAT_VERSION);
    rocksdb_block_based_options_set_checksum(table, TABLE_CHECKSUM_XXH3);
    rocksdb_block_based_options_set_block_size(table, block_bytes);
    /* RocksDB reads the index of a file in parts, on demand. A whole index would stay in memory
       while the file is open: 50 bytes for each of our blocks. */
    rocksdb_block_based_options_set_index_type(
        table, rocksdb_block_based_table_index_type_two_level_index_search);
    rocksdb_block_based_options_set_metadata_block_size(
        table, long_keys ? LONG_INDEX_PART_BYTES : INDEX_PART_BYTES);
    /* Delta-encodes the keys of the index, except the first one of a part. Until a file is
       complete, RocksDB holds its index in memory several times. With whole keys of 65,000 bytes
       that share a prefix, the index would be as large as the records. */
    rocksdb_block_based_options_set_index_block_restart_interval(table, INDEX_RESTART_INTERVAL);
    /* Every block is read once, so a cache would only waste memory. */
    rocksdb_block_based_options_set_no_block_cache(table, 1);
}

static void set_db_options(rocksdb_options_t *db, bool existing)
{
    rocksdb_options_set_create_if_missing(db, !existing);
    rocksdb_options_set_error_if_exists(db, !existing);
    /* Without this RocksDB does not report a full disk during background work. */
    rocksdb_options_set_paranoid_checks(db, 1);
    /* Our workers compress the blocks. */
    rocksdb_options_set_compression(db, rocksdb_no_compression);
    rocksdb_options_set_disable_auto_compactions(db, 1);
    rocksdb_options_set_num_levels(db, 1);
    rocksdb_options_set_compaction_style(db, rocksdb_universal_compaction);
    /* Writes must never wait, even with many files. */
    rocksdb_options_set_level0_slowdown_writes_trigger(db, NEVER);
    rocksdb_options_set_level0_stop_writes_trigger(db, NEVER);
    /* One job for flushes, which never happen, and one compaction, to limit its memory. */
    rocksdb_options_set_max_background_jobs(db, 2);
    rocksdb_options_set_max_open_files(db, -1);
    rocksdb_options_set_max_file_opening_threads(db, 1);
    rocksdb_options_set_write_buffer_size(db, WRITE_BUFFER_BYTES);
    rocksdb_options_set_arena_block_size(db, WRITE_BUFFER_BYTES / 8);
    /* RocksDB doubles the buffer of each open output file up to this size. */
    rocksdb_options_set_writable_file_max_buffer_size(db, FILE_BUFFER_BYTES);
    /* The default, 4 MB for each database, would waste space on a disk that is nearly full. */
    rocksdb_options_set_manifest_preallocation_size(db, MANIFEST_BYTES);
    /* Starts write-back early, so that the fsync at the end of a run is short. */
    rocksdb_options_set_bytes_per_sync(db, SYNC_EVERY_BYTES);
    /* By default RocksDB announces random access, which turns the kernel's readahead off. */
    rocksdb_options_set_advise_random_on_open(db, 0);
    rocksdb_options_enable_statistics(db);
    rocksdb_options_set_info_log_level(db, INFO_LOG_FATAL);
    rocksdb_options_set_keep_log_file_num(db, 1);
    rocksdb_options_set_stats_dump_period_sec(db, 0);
    rocksdb_options_set_stats_persist_period_sec(db, 0);
    rocksdb_options_set_skip_stats_update_on_db_open(db, 1);
}

int rocksdb_opts_init(struct rocksdb_opts *opts, bool existing, size_t compaction_read_bytes,
                      unsigned n_compactions, bool few_files, bool long_keys)
{
    memset(opts, 0, sizeof *opts);
    char *error = NULL, text[sizeof options_format + 32];
    (void)snprintf(text, sizeof text, options_format, compaction_read_bytes);
    rocksdb_options_t *base = rocksdb_options_create();
    opts->db = rocksdb_options_create();
    opts->table = rocksdb_block_based_options_create();
    opts->env = rocksdb_envoptions_create();
    opts->ingest = rocksdb_ingestexternalfileoptions_create();
    opts->block_bytes = few_files ? LARGE_TABLE_BLOCK_BYTES : TABLE_BLOCK_BYTES;
    set_table_options(opts->table, opts->block_bytes, long_keys);
    rocksdb_options_set_block_based_table_factory(base, opts->table);
    set_db_options(base, existing);
    opts->threads = rocksdb_create_default_env();
    rocksdb_env_set_background_threads(opts->threads, (int)n_compactions);
    rocksdb_options_set_env(base, opts->threads);
    rocksdb_get_options_from_string(base, text, opts->db, &error);
    rocksdb_options_destroy(base);
    if (error) {
        diag_error("RocksDB refuses an option that rocksort sets: %s; please report this", error);
        rocksdb_free(error);
        rocksdb_opts_release(opts);
        return -1;
    }
    opts->direct_db = rocksdb_options_create_copy(opts->db);
    rocksdb_options_set_create_if_missing(opts->direct_db, 0);
    rocksdb_options_set_error_if_exists(opts->direct_db, 0);
    rocksdb_options_set_use_direct_reads(opts->direct_db, 1);
    rocksdb_ingestexternalfileoptions_set_move_files(opts->ingest, 1);
    return 0;
}

rocksdb_readoptions_t *rocksdb_opts_scan(size_t read_bytes)
{
    rocksdb_readoptions_t *scan = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(scan, 1);
    rocksdb_readoptions_set_fill_cache(scan, 0);
    rocksdb_readoptions_set_total_order_seek(scan, 1);
    rocksdb_readoptions_set_readahead_size(scan, read_bytes);
    return scan;
}

void rocksdb_opts_compact(rocksdb_t *db, unsigned least_width, unsigned width, unsigned max_files,
                          char **error)
{
    char trigger[16], universal[192];
    const char *const names[] = {"level0_file_num_compaction_trigger",
                                 "compaction_options_universal", "disable_auto_compactions"};
    const char *const values[] = {trigger, universal, "false"};
    (void)snprintf(trigger, sizeof trigger, "%u", max_files + 1);
    (void)snprintf(universal, sizeof universal,
                   "{size_ratio=%d;min_merge_width=%u;max_merge_width=%u;"
                   "max_size_amplification_percent=%d;compression_size_percent=-1;"
                   "stop_style=kCompactionStopStyleSimilarSize}",
                   SIMILAR_FILES_PERCENT, least_width, width, NEVER);
    rocksdb_set_options(db, sizeof names / sizeof *names, names, values, error);
}

void rocksdb_opts_release(struct rocksdb_opts *opts)
{
    if (opts->ingest) rocksdb_ingestexternalfileoptions_destroy(opts->ingest);
    if (opts->env) rocksdb_envoptions_destroy(opts->env);
    if (opts->table) rocksdb_block_based_options_destroy(opts->table);
    if (opts->db) rocksdb_options_destroy(opts->db);
    if (opts->direct_db) rocksdb_options_destroy(opts->direct_db);
    if (opts->threads) rocksdb_env_destroy(opts->threads);
    memset(opts, 0, sizeof *opts);
}
