/*
 * resume.h -- goes on with a checkpoint: opens what another process left, and finds out which of
 * its runs count and where reading goes on.
 *
 * Order of calls: open; open_inputs, if there is input to be read; release. By one thread. Errors:
 * -1 after a message; the checkpoint stays as it is.
 */
#ifndef ROCKSORT_PIPELINE_RESUME_H
#define ROCKSORT_PIPELINE_RESUME_H

#include "pipeline/spill.h"

struct resume {                 /* starts as {0} */
    const struct checkpoint *checkpoint;        /* set by the caller */
    bool partial;               /* likewise: write what is there, whether or not it is all */
    sam_hdr_t *header;          /* of the record; owned */
    struct input_position start;        /* where reading goes on */
    uint32_t *dropped_runs;     /* that do not count; owned */
    size_t n_dropped;
};

/* True if there is input to be read: the load was cut off, and is to be finished. Without a
   checkpoint there always is. */
bool resume_reads_input(const struct resume *resume);

/* Opens the store and takes over what its runs hold. */
int resume_open(struct resume *resume, struct checkpoint_writer *writer, struct temp_store *store,
                struct load_totals *totals, struct spiller *spiller);

/* Returns 0, or -1 after a message: without --partial only all of the input is written, and a part
   never takes the place of an input. */
int resume_check_part(const struct resume *resume, const struct checkpoint_writer *writer,
                      const struct output_path *output, uint64_t n_records);

/* Has reading go on where the runs end, if the inputs are what they were. */
int resume_open_inputs(const struct resume *resume, struct bam_inputs *inputs,
                       struct load_totals *totals);

void resume_release(struct resume *resume);

#endif
