/*
 * resume.h -- goes on with a checkpoint: opens what another process left, and finds out which of
 * its runs are used and where reading goes on.
 *
 * Order of calls: publish; open; open_inputs, if there is input to be read; release. One thread makes these
 * calls. Errors: functions return -1 after a message, and the checkpoint stays as it is.
 */
#ifndef ROCKSORT_RESUME_RESUME_H
#define ROCKSORT_RESUME_RESUME_H

#include "resume/checkpoint_writer.h"
#include "spill/run_label.h"

struct resume {                 /* starts as {0} */
    const struct checkpoint *checkpoint;        /* set by the caller */
    bool partial;               /* set by the caller: --partial, a part may be written */
    sam_hdr_t *header;          /* from the checkpoint file; owned */
    struct input_position start;        /* where reading goes on */
    uint32_t *dropped_runs;     /* runs to leave out; owned */
    size_t n_dropped;
};

/* True if there is input to be read: always without a checkpoint; else if the load was cut off and
   is to be finished. */
bool resume_reads_input(const struct resume *resume);

/* Finishes giving files their names, if the process was killed while it did so. Returns 1 if the
   output is complete now, 0 if the sort must be finished otherwise, or -1 after a message. */
int resume_publish(const struct checkpoint *checkpoint);

/* Opens the store, removes outputs left unfinished, and counts the records in its runs. */
int resume_open(struct resume *resume, struct checkpoint_writer *writer, struct temp_store *store,
                struct load_totals *totals, struct spill_totals *spilled);

/* Checks whether the n_records may be written. Returns 0, or -1 after a message: a part of the
   input is written only with --partial, and never over an input. */
int resume_check_part(const struct resume *resume, const struct checkpoint_writer *writer,
                      const struct output_path *output, uint64_t n_records);

/* Makes reading go on where the runs end, if the inputs have not changed. */
int resume_open_inputs(const struct resume *resume, struct bam_inputs *inputs,
                       struct load_totals *totals);

void resume_release(struct resume *resume);

#endif
