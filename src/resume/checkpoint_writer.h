/*
 * checkpoint_writer.h -- makes the temporary directories of a sort a checkpoint, so that a later
 * process can finish the sort.
 *
 * RocksDB makes each run and its label (run_label.h) durable in one step. A later process follows
 * the chain of labels and, if the inputs are seekable, continues to read where the last run of the
 * chain ends. All other information is in the checkpoint file (checkpoint_file.h), which is written
 * when the store is made, and again when all records are in runs.
 *
 * Without -k, some records of BAM files may still be only in memory when the merge begins, because
 * they can be read again. Records of other inputs, such as pipes, must all be in runs.
 *
 * Order of calls: create; look_at_output; for a new sort remember_inputs, make_directories, begin;
 * for a resumed sort adopt, make_directories, begin, adopted; then end_load or save_part; keeps,
 * tell; end_syncs; perhaps remove_directories; destroy. Threads: the one that runs the sort; the
 * signal thread calls only functions that need the lock.
 */
#ifndef ROCKSORT_RESUME_CHECKPOINT_WRITER_H
#define ROCKSORT_RESUME_CHECKPOINT_WRITER_H

#include "input/bam_inputs.h"
#include "output/output_path.h"
#include "resume/delayed_fsync.h"
#include "resume/group_dir.h"
#include "spill/load_totals.h"

struct checkpoint_writer;

struct checkpoint_sort_parts {  /* parts of the sort; they outlive the writer */
    struct threads *threads;
    struct load_totals *totals;
    const struct output_path *output_path, *index_path;
    const struct output_path *also_path;        /* no second output if its name is NULL */
    const struct group_dir *groups;     /* no groups if its path is NULL */
    bool reads_input;           /* runs will be added (resume_reads_input) */
};

struct checkpoint_writer *checkpoint_writer_create(const struct sort_settings *settings,
                                                   const struct checkpoint_sort_parts *parts);

/* Leaves the directories, but releases their locks. Accepts NULL. */
void checkpoint_writer_destroy(struct checkpoint_writer *w);

/* ---- before loading ---- */

/* Once the output is chosen: checks whether it would overwrite an input in place. */
void checkpoint_writer_look_at_output(struct checkpoint_writer *w);

/* Remembers the inputs and their header for the checkpoint file. */
void checkpoint_writer_remember_inputs(struct checkpoint_writer *w, struct bam_inputs *inputs,
                                       sam_hdr_t *header);

/* ---- the directories ---- */

struct temp_dirs {
    const char *const *paths;
    size_t n;
    size_t n_closed;            /* the first n_closed of them get no new data */
};

/* Makes and locks a directory for each -T. In a resumed sort these are added to the directories of
   the checkpoint, and new data go only to them, because users add a directory when the others lack
   space. Stores all directories. Returns 0, or -1 after a message. */
int checkpoint_writer_make_directories(struct checkpoint_writer *w, struct temp_dirs *dirs);

/* Call it when the databases are open, n_lanes in each directory. Writes the checkpoint file of a
   new sort; a failure is only a warning. Returns 0, or -1 if the thread pool has failed. */
int checkpoint_writer_begin(struct checkpoint_writer *w, unsigned n_lanes);

/* Returns all directories, once they are made. */
struct temp_dirs checkpoint_writer_directories(const struct checkpoint_writer *w);

/* True if all sort buffers must be in runs before the merge. */
bool checkpoint_writer_needs_all_runs(const struct checkpoint_writer *w);

/* Copies the current paths of the directories, NULL-terminated. The caller frees the array only. */
char **checkpoint_writer_copy_paths(const struct checkpoint_writer *w);

/* Removes each directory, then releases its lock; or only those that were added to a checkpoint but
   that no checkpoint file lists yet. With the lock of the thread pool held, or when all other
   threads have ended. */
void checkpoint_writer_remove_directories(struct checkpoint_writer *w, bool only_unlisted);

/* ---- the checkpoint file ---- */

/* For a resumed sort: takes directories and checkpoint file from the checkpoint. `header` is the
   one in that file. */
void checkpoint_writer_adopt(struct checkpoint_writer *w, sam_hdr_t *header);

/* For a resumed sort, when its runs are known: rewrites the checkpoint file with the temporary
   outputs of this process and the added directories. Returns 0; or -1 if the thread pool has failed
   or, after a message, if the file cannot name the new directories. */
int checkpoint_writer_adopted(struct checkpoint_writer *w, unsigned n_runs);

/* True if the records read so far are saved when an error or a signal ends the input. */
bool checkpoint_writer_saves_part(const struct checkpoint_writer *w);

/* After loading and spilling, if all records are in n_runs runs: writes this into the checkpoint
   file. Returns 0, or -1 if the thread pool has failed. */
int checkpoint_writer_end_load(struct checkpoint_writer *w, unsigned n_runs);

/* If the input was cut off and all records read are in n_runs runs: writes this into the checkpoint
   file. */
void checkpoint_writer_save_part(struct checkpoint_writer *w, unsigned n_runs);

/* After a failure: writes the checkpoint file if an earlier attempt failed, usually for lack of
   space. */
void checkpoint_writer_try_again(struct checkpoint_writer *w, unsigned n_runs);

/* Before the merge: true if the output may be written. False after a message. */
bool checkpoint_writer_may_write(const struct checkpoint_writer *w);

/* ---- whether it stays ---- */

/* If the sort failed (result below 0) because data could not be made durable, prints that error. */
void checkpoint_writer_tell_failed_sync(struct checkpoint_writer *w, int result);

/* When the store is closed: ends the thread that syncs. If directories_stay, syncs their data
   first. */
void checkpoint_writer_end_syncs(struct checkpoint_writer *w, bool directories_stay);

/* True if the signal means that the result is no longer wanted: the user ended the sort, or the
   reader of its output has gone (SIGPIPE). */
bool checkpoint_writer_is_wish(int signal_number);

/* With the lock held: decides whether the directories stay after a failure (signal_number 0) or a
   signal. n_durable: number of runs that another process would find. */
bool checkpoint_writer_keeps(const struct checkpoint_writer *w, int signal_number,
                             unsigned n_durable);

/* Tells the user what happens to the directories. With the lock held. */
void checkpoint_writer_tell(const struct checkpoint_writer *w, bool kept, unsigned n_durable);

/* True if the checkpoint file says that all records, or all before the input was cut off, are in
   runs. With the lock held. */
bool checkpoint_writer_is_loaded(const struct checkpoint_writer *w);

/* Sets size and modification time of an input from the file at `path`. Returns false if there is no
   such regular file. */
bool checkpoint_describe_file(const char *path, struct checkpoint_input *input);

#endif
