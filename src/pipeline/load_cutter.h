/*
 * load_cutter.h -- the reader's part in fixing mates: finds out which whole templates each piece of
 * an input completes, and lets workers fix them (load_jobs.h). A large template, which ends in a
 * piece or before it, comes before the templates of this piece.
 *
 * Order of calls, for each input: load_cutter_begin; load_cutter_cut for each piece in its order;
 * load_cutter_finish, with one more piece, when no other follows or the rest cannot be used.
 *
 * Threads: the reader's. Errors: -1 after a message.
 */
#ifndef ROCKSORT_PIPELINE_LOAD_CUTTER_H
#define ROCKSORT_PIPELINE_LOAD_CUTTER_H

#include "pipeline/load_jobs.h"

struct load_cutter {
    size_t max_template_bytes;  /* set by the caller */
    const struct load_large_settings *large_settings;   /* likewise */
    /* for load_cutter.c, but for reading */
    struct template_cutter cutter;
    struct load_large *large;   /* the template that is open, or NULL */
    uint64_t n_records;         /* of the input, in the stretches that were cut, and of `large` */
    bool is_at_end;             /* nothing of the input can be used after these stretches */
    uint64_t partial_offset;    /* where the record begins that the cutter has a part of */
    uint64_t end_offset;        /* of the pieces that were cut */
};

/* The most memory that the records of one template may take, as they are read. With more it is a
   large one (load_large.h). */
size_t load_cutter_max_template(const struct mem_budget *budget);

/* n_records: records of the input before the first piece. */
void load_cutter_begin(struct load_cutter *cutter, uint64_t n_records);

/* Cuts a piece whose bytes are there, or whose lines are parsed, and submits the job that fixes its
   stretch. */
int load_cutter_cut(struct load_cutter *cutter, struct load_piece *piece);

/* The same for the last template of the input; the piece has no bytes of its own. */
int load_cutter_finish(struct load_cutter *cutter, struct load_piece *piece);

/* Where the input goes on after some templates of a piece. `input` is its number. */
struct input_position load_cutter_position(const struct load_piece *piece, uint32_t input,
                                           const struct fixed_end *end);

/* True if the input ends, or cannot be used any more, within a record. */
static inline bool load_cutter_has_part(const struct load_cutter *cutter)
{
    return cutter->cutter.partial_bytes > 0;
}

void load_cutter_release(struct load_cutter *cutter);

#endif
