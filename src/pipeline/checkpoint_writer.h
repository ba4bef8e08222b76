/*
 * checkpoint_writer.h -- makes the temporary directories of a sort into a checkpoint, from which a
 * later process can go on.
 *
 * Each run has a label (run_label.h) and becomes durable with it, in one step of RocksDB's. So a
 * load needs no syncs of its own: a later process follows the chain of labels, and reads on where
 * the last of them ends, if the inputs can be read from there. The rest is in a record
 * (checkpoint_record.h), written when the store is made and once more when all records are in runs.
 *
 * What is in no run when a file has been read need not be: it can be read again. Of a pipe all must
 * be on disk before the merge begins.
 *
 * Order of calls: create; look_at_output; then either remember_inputs, make_directories and begin,
 * or, for a sort that goes on with a checkpoint, adopt and adopted; end_load or save_part; keeps,
 * tell; remove_directories or leave them; destroy. Threads: the frame of the sort. Functions that
 * ask for the lock are called by the thread that takes signals, too.
 */
#ifndef ROCKSORT_PIPELINE_CHECKPOINT_WRITER_H
#define ROCKSORT_PIPELINE_CHECKPOINT_WRITER_H

#include "input/bam_inputs.h"
#include "output/output_path.h"
#include "pipeline/crew.h"
#include "pipeline/load_totals.h"
#include "store/checkpoint.h"

struct checkpoint_writer;

struct checkpoint_settings {    /* all that it points to outlives the writer */
    struct crew *crew;
    struct load_totals *totals;
    const char *const *inputs;  /* as they were given; "-": standard input */
    size_t n_inputs;
    const char *const *temp_prefixes;   /* of each -T; NULL without -T */
    size_t n_temp_prefixes;
    const char *output;         /* as it was given; NULL: standard output */
    const char *index;          /* likewise; NULL: none */
    const struct output_path *output_path, *index_path;
    const struct checkpoint_output *asked_output;       /* as the options have it */
    const struct sort_rules *rules;                     /* likewise */
    const char *fasta;          /* -I, or NULL */
    int minhash_window;         /* -w */
    bool keeps;                 /* -k */
    bool no_resume;             /* the temporary data need not outlive the process */
    bool sum_only;              /* there will be none */
    const struct checkpoint *resumed;   /* the sort goes on with this one; NULL: it is new */
    bool partial;               /* ... without that part of its input that is not there */
};

struct checkpoint_writer *checkpoint_writer_create(const struct checkpoint_settings *settings);

/* Leaves the directories, but releases their locks. NULL is accepted. */
void checkpoint_writer_destroy(struct checkpoint_writer *w);

/* ---- before loading ---- */

/* When the output is chosen: finds out whether it would overwrite an input as it stands. */
void checkpoint_writer_look_at_output(struct checkpoint_writer *w);
bool checkpoint_writer_overwrites_input(const struct checkpoint_writer *w);

/* True if the name is that of an input that is a regular file. */
bool checkpoint_writer_is_input(const struct checkpoint_writer *w, const char *file);

/* Remembers what the record will say of the inputs and of their header. Returns 0, or -1 after a
   message. */
int checkpoint_writer_remember_inputs(struct checkpoint_writer *w, struct bam_inputs *inputs,
                                      sam_hdr_t *header);

/* Inputs as the record has them. */
const struct checkpoint_input *checkpoint_writer_inputs(const struct checkpoint_writer *w,
                                                        size_t *n);

/* ---- the directories ---- */

/* Makes a directory for each -T, and locks it. Returns 0, or -1 after a message. */
int checkpoint_writer_make_directories(struct checkpoint_writer *w);

const char *const *checkpoint_writer_directories(const struct checkpoint_writer *w, size_t *n);

/* Their absolute names, NULL-terminated, for another working directory; see free_paths. */
char **checkpoint_writer_absolute_directories(const struct checkpoint_writer *w);
void free_paths(char **paths);

/* Takes the array of the directories' names, NULL-terminated, over from the writer. */
char **checkpoint_writer_take_paths(struct checkpoint_writer *w);

/* Removes all directories, and then their locks: other processes do not touch a locked one. With
   the lock held, or with all other threads ended. */
void checkpoint_writer_remove_directories(struct checkpoint_writer *w);

/* The output's absolute name, with its index's, to be freed. NULL: standard output. */
char *checkpoint_writer_output_name(const struct checkpoint_writer *w);

/* ---- the record ---- */

/* When the store was made, with n_lanes databases in each directory: writes the record. Failing to
   is no error: there is a warning. Returns 0, or -1 if the crew has failed. */
int checkpoint_writer_begin(struct checkpoint_writer *w, unsigned n_lanes);

/* Goes on with the checkpoint of the settings: takes its directories and what its record says. The
   header is that of the record. */
void checkpoint_writer_adopt(struct checkpoint_writer *w, sam_hdr_t *header);

/* When its runs are known: writes the record anew, which names what this process will leave. */
int checkpoint_writer_adopted(struct checkpoint_writer *w, unsigned n_lanes, unsigned n_runs);

/* True if all batches must be in runs before the merge. */
bool checkpoint_writer_needs_all_runs(const struct checkpoint_writer *w);

/* True if what came is to be kept when the input ends with an error or a signal. */
bool checkpoint_writer_saves_part(const struct checkpoint_writer *w);

/* After loading and spilling, if all records are in n_runs runs: the record says so. Returns 0, or
   -1 if the crew has failed. */
int checkpoint_writer_end_load(struct checkpoint_writer *w, unsigned n_runs);

/* The input was cut off, and all that came is in n_runs runs: the record says so. */
void checkpoint_writer_save_part(struct checkpoint_writer *w, unsigned n_runs);

/* After a failure: writes the record that could not be written before, mostly for lack of space. */
void checkpoint_writer_try_again(struct checkpoint_writer *w, unsigned n_runs);

/* Before the merge: true if the output may be written. False after a message. */
bool checkpoint_writer_may_write(const struct checkpoint_writer *w);

/* ---- whether it stays ---- */

/* True if the directories stay after a failure, or after a signal (0: none). n_durable: runs that
   another process would find. With the lock held. */
bool checkpoint_writer_keeps(const struct checkpoint_writer *w, int signal_number,
                             unsigned n_durable);

/* Tells the user what becomes of them. With the lock held. */
void checkpoint_writer_tell(const struct checkpoint_writer *w, bool kept, unsigned n_durable);

/* True if the record says that all records, or all that came, are in runs. With the lock held. */
bool checkpoint_writer_is_loaded(const struct checkpoint_writer *w);

/* What a record says of a file besides its path: its size and time of change. The second is false
   if there is no such regular file. */
void checkpoint_describe(const struct stat *st, struct checkpoint_input *input);
bool checkpoint_describe_file(const char *path, struct checkpoint_input *input);

#endif
