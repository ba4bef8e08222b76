/*
 * progress.h -- shows how far the sort is while it runs, accounts its phases, and takes samples.
 *
 * The stages count anyway. A thread copies their counters, and prints and samples them without
 * holding any lock of the sort; if nothing is to be shown or sampled there is no thread. It waits
 * for a condition of its own, so that it ends at once, and the ends of jobs do not wake it.
 *
 * The line on a terminal is drawn while this process is in its foreground: a process in the
 * background that writes may be stopped for it. Of two sorts in one pipe the first that draws
 * continues until it ends, then the other: a lock of the terminal says which one draws.
 *
 * Order of calls: start; enter; stop; finish. By one thread. The functions below them are pure.
 */
#ifndef ROCKSORT_SORT_PROGRESS_H
#define ROCKSORT_SORT_PROGRESS_H

#include "sort/sort_context.h"

struct progress;

/* The sort begins. Its report gets the phases and the samples. */
struct progress *progress_start(const struct sort_context *sort);

/* The sort enters a phase, which may be the one it is in. */
void progress_enter(struct progress *progress, enum sort_phase phase);

/* Ends the thread: nothing is shown any more. */
void progress_stop(struct progress *progress);

/* All is done, and what the sort held is released. Frees the progress. */
void progress_finish(struct progress *progress);

/* ---- one line of text ---- */

struct progress_facts {
    struct sample now;
    double phase_seconds;       /* since the phase began */
    bool writes_index;
    bool merges_inputs;         /* --merge: the merge reads the inputs */
    double bytes_per_second;    /* of progress_rate: read or merged; 0: unknown */
};

/* Uncompressed bytes a second: a mean in which the last seconds count most. Each phase begins with
   a new rate, with the time and the bytes of that moment. */
struct progress_rate {
    double seconds;             /* time of the last look; 0: there was none */
    uint64_t n_bytes;
    double weight;              /* of all looks so far together: 0 to 1 */
    double bytes_per_second;
};

/* To be called at each look at the counters, before progress_line. */
void progress_rate_update(struct progress_rate *rate, double seconds, uint64_t n_bytes);

/* The share of the phase that is done, 0 to 1; negative: unknown. */
double progress_share(const struct progress_facts *facts);

/* Seconds until the phase ends if its speed stays the same; negative: unknown. */
double progress_seconds_left(const struct progress_facts *facts);

/* Makes the line, in ASCII and without a newline, of at most `width` columns and room - 1 bytes.
   Leaves out the less important parts if they do not fit. Returns its length. */
size_t progress_line(char *line, size_t room, size_t width, const struct progress_facts *facts);

#endif
