/*
 * resume.h -- resumes a sort from a checkpoint: finds its valid runs, and where in the input to
 * continue.
 *
 * Order of calls: publish; open; open_inputs, if input is to be read; release. Threads: one.
 * Errors: -1 after a message; the checkpoint is unchanged.
 */
#ifndef ROCKSORT_RESUME_RESUME_H
#define ROCKSORT_RESUME_RESUME_H

#include "resume/temp_store.h"
#include "spill/run_label.h"

struct resume {                 /* starts as {0} */
    const struct checkpoint *checkpoint;        /* set by the caller */
    bool partial;               /* set by the caller: --partial */
    sam_hdr_t *header;          /* from the checkpoint file; owned */
    struct input_position start;        /* where to continue reading */
    uint32_t *dropped_runs;     /* runs to ignore; owned */
    size_t n_dropped;
};

/* True if input is to be read: always without a checkpoint; else if the load must be finished. */
bool resume_reads_input(const struct resume *resume);

/* Renames the remaining files if the process was killed during publish. Returns 1 if the output is
   complete now, 0 if the sort must still be resumed, or -1 after a message. */
int resume_publish(const struct checkpoint *checkpoint);

/* Opens the store, removes unfinished outputs, and counts the records in the valid runs. */
int resume_open(struct resume *resume, struct checkpoint_writer *writer, struct temp_store *store,
                struct load_totals *totals, struct spill_totals *spilled);

/* Checks whether the n_records may be written: a part of the input only with --partial, and never
   over an input. Returns 0, or -1 after a message. */
int resume_check_part(const struct resume *resume, const struct sort_settings *settings,
                      const struct output_path *output, uint64_t n_records);

/* Opens the inputs where the runs end, if the files have not changed. */
int resume_open_inputs(const struct resume *resume, struct bam_inputs *inputs,
                       struct load_totals *totals);

void resume_release(struct resume *resume);

#endif
