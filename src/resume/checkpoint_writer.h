/*
 * checkpoint_writer.h -- makes a checkpoint of the temporary directories of a sort, so that a later
 * process can finish the sort.
 *
 * RocksDB makes each run and its label (run_label.h) durable in one step. A later process follows
 * the chain of labels and goes on reading where the last run of the chain ends, if the inputs can
 * be read from there. Everything else that it needs is in the checkpoint file (checkpoint_file.h),
 * which is written when the store is made, and again when all records are in runs.
 *
 * Without -k, records of BAM files need not all be in runs when the merge begins, since they can be
 * read again. Records of other inputs, such as pipes, must be.
 *
 * Order of calls: create; look_at_output; for a new sort remember_inputs, then the hooks; for a
 * sort that is resumed adopt, the hooks, adopted; then end_load or save_part; keeps, tell;
 * end_syncs; remove_directories or leave them; destroy. All by the thread that runs the sort. The
 * thread that handles signals also calls functions, but only those that need the lock.
 */
#ifndef ROCKSORT_RESUME_CHECKPOINT_WRITER_H
#define ROCKSORT_RESUME_CHECKPOINT_WRITER_H

#include "input/bam_inputs.h"
#include "output/output_path.h"
#include "resume/delayed_fsync.h"
#include "resume/group_dir.h"
#include "spill/temp_store.h"

struct checkpoint_writer;

struct checkpoint_sort_parts {       /* of the sort; they outlive the writer */
    struct threads *threads;
    struct load_totals *totals;
    const struct output_path *output_path, *index_path;
    const struct output_path *also_path;        /* its name is NULL: there is no second output */
    const struct group_dir *groups;     /* of the output; its path is NULL: it is one file */
    bool reads_input;           /* runs will be added (resume_reads_input) */
};

struct checkpoint_writer *checkpoint_writer_create(const struct sort_settings *settings,
                                                   const struct checkpoint_sort_parts *parts);

/* Leaves the directories, but releases their locks. NULL is accepted. */
void checkpoint_writer_destroy(struct checkpoint_writer *w);

/* ---- before loading ---- */

/* Once the output is chosen: finds out whether writing it in place would overwrite an input. */
void checkpoint_writer_look_at_output(struct checkpoint_writer *w);

/* True if `file` is a regular file and one of the inputs. */
bool checkpoint_writer_is_input(const struct checkpoint_writer *w, const char *file);

/* Remembers the inputs and their header for the checkpoint file. */
void checkpoint_writer_remember_inputs(struct checkpoint_writer *w, struct bam_inputs *inputs,
                                       sam_hdr_t *header);

/* ---- the directories ---- */

/* What the store calls. It makes a directory for each -T, and locks it; a sort that goes on with a
   checkpoint adds them to those that it has, and puts no new data into these: who adds a directory
   has too little space in the others, or wants no more data there. When the databases of a new sort
   are open, the checkpoint file is written; if that fails there is only a warning. */
struct temp_store_hooks checkpoint_writer_hooks(struct checkpoint_writer *w);

/* Copies the paths of the directories as they are, NULL-terminated; free_paths (delayed_fsync.h)
   frees them. */
char **checkpoint_writer_copy_paths(const struct checkpoint_writer *w);

/* Removes each directory, then releases its lock. With the lock of the thread pool held, or when
   all other threads have ended. */
void checkpoint_writer_remove_directories(struct checkpoint_writer *w);

/* Removes the directories that were added to a checkpoint and that no checkpoint file lists yet:
   the checkpoint does not need them. */
void checkpoint_writer_remove_unlisted(struct checkpoint_writer *w);

/* ---- the checkpoint file ---- */

/* For a sort that is resumed: takes its directories from the checkpoint, and what its checkpoint
   file says. `header` is the one in that file. */
void checkpoint_writer_adopt(struct checkpoint_writer *w, sam_hdr_t *header);

/* For a sort that is resumed, when its runs are known: writes the checkpoint file again, with the
   temporary outputs of this process and directories that were added. Returns 0; or -1 if the
   thread pool has failed or, after a message, if the file cannot name the new directories. */
int checkpoint_writer_adopted(struct checkpoint_writer *w, unsigned n_runs);

/* True if the records that were read are saved when an error or a signal ends the input. */
bool checkpoint_writer_saves_part(const struct checkpoint_writer *w);

/* After loading and spilling, if all records are in n_runs runs: writes that into the checkpoint
   file. Returns 0, or -1 if the thread pool has failed. */
int checkpoint_writer_end_load(struct checkpoint_writer *w, unsigned n_runs);

/* If the input was cut off and all records that were read are in n_runs runs: writes that into the
   checkpoint file. */
void checkpoint_writer_save_part(struct checkpoint_writer *w, unsigned n_runs);

/* After a failure: tries again to write the checkpoint file if it could not be written before,
   mostly for lack of space. */
void checkpoint_writer_try_again(struct checkpoint_writer *w, unsigned n_runs);

/* Before the merge: true if the output may be written. False after a message. */
bool checkpoint_writer_may_write(const struct checkpoint_writer *w);

/* ---- whether it stays ---- */

/* If the sort failed (result below 0) because data could not be made durable, prints that error. */
void checkpoint_writer_tell_failed_sync(struct checkpoint_writer *w, int result);

/* When the store is closed: ends the thread that syncs. If directories_stay, their data are made
   durable. */
void checkpoint_writer_end_syncs(struct checkpoint_writer *w, bool directories_stay);

/* True if the user has ended the sort, or the program that reads its output has (SIGPIPE): then
   nobody waits for the rest. */
bool checkpoint_writer_is_wish(int signal_number);

/* With the lock held: decides whether the directories stay after a failure (signal_number is 0) or
   after a signal. n_durable: the number of runs that another process would find. */
bool checkpoint_writer_keeps(const struct checkpoint_writer *w, int signal_number,
                             unsigned n_durable);

/* Tells the user what becomes of the directories. With the lock held. */
void checkpoint_writer_tell(const struct checkpoint_writer *w, bool kept, unsigned n_durable);

/* True if the checkpoint file says that all records are in runs, or all that were read before the
   input was cut off. With the lock held. */
bool checkpoint_writer_is_loaded(const struct checkpoint_writer *w);

/* Sets what the checkpoint file says of a file besides its path: its size and time of change.
   Returns false if there is no such regular file. */
bool checkpoint_describe_file(const char *path, struct checkpoint_input *input);

#endif
