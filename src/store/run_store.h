/*
 * run_store.h -- all sorted runs of a sort: databases (run_db.h) in the temporary directories, one
 * in each, or several where seeks are slow.
 *
 * Each run goes to one directory: to where it is written soonest, by the speed of those before it,
 * and where there is space. A directory that is found full gets no more runs; those that it has
 * stay. What is compacted when is decided here, from what is known when a run ends
 * (compaction_plan.h).
 *
 * Order of calls: create; for each run begin, put its blocks in key order, label, end; settle; one
 * scan of each database, whose blocks are in key order, to be merged by the caller; destroy at any
 * time. The store of another process is opened by create, too, and its labels (run_db.h) tell what
 * is in it.
 *
 * Ownership: as with run_db.h. Threads: one may begin a run and put into it while another ends the
 * runs before, in their order, and calls what concerns compaction. Errors: RUN_STORE_ERROR after a
 * message; RUN_STORE_AGAIN after a warning when the directory of a run was found full: begin the
 * run again, it goes to another one; or without a warning if space may come back in the same one.
 */
#ifndef ROCKSORT_STORE_RUN_STORE_H
#define ROCKSORT_STORE_RUN_STORE_H

#include "machine/disk_probe.h"
#include "store/compaction_plan.h"
#include "store/run_db.h"

struct run_store;

enum { RUN_STORE_ERROR = -1, RUN_STORE_AGAIN = -2 };

enum { RUN_STORE_SLOW_LANES = 4 };      /* databases in a directory at most */

/* What there is to plan with. */
struct run_store_means {
    uint64_t n_runs_expected;   /* 0: unknown */
    size_t scan_bytes;          /* memory for the scans to read ahead */
    size_t compaction_bytes;    /* memory for compactions, once they are on */
};

struct run_store_settings {
    const char *const *dirs;    /* existing and empty; outlive the store */
    size_t n_dirs;
    unsigned n_lanes;           /* databases in each; 0: by what the disks are like */
    bool existing;              /* the directories are another process's, with this many lanes */
    bool read_only;             /* ... and stay as they are */
    enum compaction_mode compaction;
    uint64_t input_bytes;       /* uncompressed, about; 0: unknown */
    struct run_store_means means;
    struct run_store_means slow_means;  /* if a disk is slow to seek */
};

struct run_store *run_store_create(const struct run_store_settings *settings);

/* Closes the databases; the files stay. NULL is accepted. */
void run_store_destroy(struct run_store *store);

struct stored_run;              /* one that has begun */

int run_store_begin_run(struct run_store *store, struct stored_run **run);
int run_store_put(struct stored_run *run, const uint8_t *key, size_t key_bytes,
                  const uint8_t *value, size_t value_bytes);

/* Seconds that beginning the run and putting blocks into it have taken. */
double run_store_put_seconds(const struct stored_run *run);

/* After the last block: what the run, which has this number, says of itself. As run_store_put. */
int run_store_label_run(struct stored_run *run, uint32_t number, const uint8_t *label,
                        size_t label_bytes);

/* Shows the labels of all runs, as run_db_labels. */
int run_store_labels(struct run_store *store,
                     int (*take)(void *arg, const uint8_t *label, size_t n_bytes), void *arg);

/* Databases in each directory. */
unsigned run_store_n_lanes(const struct run_store *store);

/* Runs that another process would find. By the thread that ends runs. */
unsigned run_store_n_durable(const struct run_store *store);

/* Before a run begins: of the input raw_done bytes are in runs and raw_left, about, are to come.
   For messages about a full disk. */
void run_store_expect(struct run_store *store, uint64_t raw_done, uint64_t raw_left);

/* Makes the run durable: a matter of waiting for the disk. Frees it, also after an error; there is
   no second chance then. */
int run_store_end_run(struct stored_run *run);

/* After some runs have ended, before compaction settles and before scans. */
int run_store_flush(struct run_store *store);

/* Drops the run and frees it; NULL is accepted. */
void run_store_abandon_run(struct stored_run *run);

/*
 * After a run has ended, with the runs that are expected in all by now (0: unknown): returns true
 * if something should be compacted. The caller then makes compaction_bytes of memory free, if it
 * has not, and calls run_store_compact. `stuck`: waiting for one that is due was in vain, since no
 * row of files is long enough; then there may be more files.
 */
bool run_store_wants_compaction(struct run_store *store, uint64_t n_runs_expected, bool stuck);
int run_store_compact(struct run_store *store);

/* After the last run: lets what is left over be compacted, too, if there are many files. */
int run_store_settle(struct run_store *store);

/* True while a compaction is under way. */
bool run_store_is_compacting(const struct run_store *store);

/* True if one should begin; it may need a moment, or find no files to take. */
bool run_store_compaction_is_due(const struct run_store *store);

/*
 * True if the next run should wait until a compaction has ended: there are as many files as may be
 * open, or a second compaction is due. More runs would only wait longer for theirs, and since the
 * newest are compacted first, some of those between would be left alone.
 */
bool run_store_is_crowded(const struct run_store *store);

struct run_store_stats {
    unsigned n_runs;
    uint64_t run_bytes;         /* of the runs as they were written */
    unsigned n_files;           /* that hold them now */
    uint64_t compacted_bytes;   /* written by compactions */
    size_t compaction_read_bytes, scan_read_bytes;      /* at a time; 0: as the kernel does */
    uint64_t n_seeks;           /* of compactions and of the scans, about */
    bool direct;                /* reading goes past the page cache */
    bool compacted;
    enum compaction_reason reason;
    unsigned width, max_files;  /* of compactions */
    struct disk_traits disk;    /* of the first directory */
};

/* What the disks are like, at any time and in any thread. */
struct run_store_disks {
    bool in_memory;             /* all of them are memory; true before the first is added */
    bool slow_to_seek;          /* one of them is */
    double seek_seconds, parallel;      /* of the slowest to seek; 0: not measured */
    double bytes_per_second;    /* of the slowest to read; 0: not measured */
    uint64_t free_bytes;        /* in all directories that are not full */
    uint64_t run_bytes;         /* of the runs that have ended */
};

/* Adds what one disk is like to what all of them are like. */
void run_store_disks_add(struct run_store_disks *disks, const struct disk_traits *disk);

void run_store_look(struct run_store *store, struct run_store_disks *disks);

void run_store_stats(const struct run_store *store, struct run_store_stats *stats);
unsigned run_store_n_runs(const struct run_store *store);

/* Databases that each of n_dirs directories gets: several if a disk is slow to seek, as long as all
   of them may have enough files open. */
unsigned run_store_choose_lanes(size_t n_dirs, bool slow_to_seek);

/* Files that each of n_databases may have open, once the limit is raised as far as it goes, which
   this does. */
unsigned run_store_most_files(size_t n_databases);

/* Memory that the scans would take for reading ahead, if they began now. */
size_t run_store_scan_bytes(const struct run_store *store);

/* True if the temporary data will not fit the page cache; of an input of unknown size (0) they will
   not if there is not much more memory than this sort may take. */
bool run_store_exceeds_memory(uint64_t input_bytes, size_t scan_bytes);

/*
 * Starts the scans, one of each database that has runs, which together read ahead within the
 * memory of the settings. Returns their number and the malloc'ed array, each to be closed by the
 * caller; or -1 after a message.
 */
int run_store_scan(struct run_store *store, struct run_scan ***scans);

#endif
