/* sort_phase.h -- the phases of a sort, by which progress and reports are divided. */
#ifndef ROCKSORT_PIPELINE_SORT_PHASE_H
#define ROCKSORT_PIPELINE_SORT_PHASE_H

enum sort_phase {
    SORT_PHASE_LOAD,            /* input to sorted batches and runs */
    SORT_PHASE_SETTLE,          /* the last runs, and compactions that are waited for */
    SORT_PHASE_MERGE,           /* runs and batches to output */
    SORT_PHASE_CLOSE,           /* end of the output, index, removal of temporary data */
    SORT_N_PHASES
};

/* "load", "settle", "merge", "close". */
static inline const char *sort_phase_name(enum sort_phase phase)
{
    static const char *const names[SORT_N_PHASES] = {"load", "settle", "merge", "close"};
    return names[phase];
}

#endif
