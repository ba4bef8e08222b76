/*
 * space.h -- early warnings: will temporary data and output fit their file systems?
 *
 * A sort asks once, before its first run is written, as soon as its records can be sampled; or,
 * without runs, before the output is written. --plan asks with its own sample. Both compare the
 * estimate of estimate.h with what is free, and say the same words. Too little space
 * is not an error: somebody may free some in time.
 *
 * Order of calls: space_look, space_compare or space_check. Threads: any. Errors: none; a file
 * system that says nothing is not compared.
 */
#ifndef ROCKSORT_PIPELINE_SPACE_H
#define ROCKSORT_PIPELINE_SPACE_H

#include "machine/disk_space.h"
#include "output/output_path.h"
#include "pipeline/batch.h"
#include "pipeline/record_sample.h"
#include "pipeline/sort_settings.h"

/* The places where a sort writes. */
struct space_places {
    struct disk_space temporary;        /* of the first directory; but free_bytes are those of all
                                           their file systems together */
    struct disk_space output, also;
    bool shared;                /* the output is on a file system of temporary data */
    bool also_shared;           /* likewise */
};

/* Looks at n_dirs existing directories for temporary data, and where the output file and that of
   --also will be; NULL: it is no file. */
void space_look(struct space_places *places, const char *const *dirs, size_t n_dirs,
                const char *output, const char *also);

enum { SPACE_TEXT_BYTES = PATH_MAX + 256, SPACE_MOST_TEXTS = 3 };

/* Writes a text for each lack of space. Returns how many there are. */
size_t space_compare(const struct space_places *places, const struct estimate *estimate,
                     char texts[SPACE_MOST_TEXTS][SPACE_TEXT_BYTES]);

/* Sets the facts that the settings tell. */
void space_facts(const struct sort_settings *settings, struct estimate_facts *facts);

/* A sort as it is now. */
struct space_sight {
    const struct mem_budget *budget;
    uint64_t expected_bytes;    /* of all records, uncompressed; 0: unknown */
    struct run_store *store;    /* where runs will be put; NULL: only the output will be written */
    const char *const *dirs;    /* of the store */
    size_t n_dirs;
    const struct output_path *output, *also;
};

/*
 * Warns if there is too little space for the rest of a sort. What its records need is measured on
 * the first of n_batches sorted batches, which stay as they are. Does nothing where there is more
 * space than any records need.
 */
void space_check(const struct sort_settings *settings, const struct space_sight *sight,
                 struct batch *const *batches, size_t n_batches);

#endif
