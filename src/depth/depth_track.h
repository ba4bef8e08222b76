/*
 * depth_track.h -- an observer of the output that writes the depth as a track (track.h), for
 * --bedgraph and --bigwig; parses their options.
 *
 * As in bedtools genomecov, a record covers the bases of its M, =, X and N operations, with -split
 * not those of N, with -ignoreD also those of D.
 */
#ifndef ROCKSORT_DEPTH_DEPTH_TRACK_H
#define ROCKSORT_DEPTH_DEPTH_TRACK_H

#include "bam/count_kind.h"
#include "depth/track.h"

extern const struct count_kind bedgraph_kind, bigwig_kind;

/* ---- for the two kinds ---- */

struct depth_track_format {
    bool has_zooms;
    track_encode_fn *encode;    /* its argument is the header */
    /* Opens the file, and returns the argument of the next three; NULL after a message. The last
       two may be NULL. */
    void *(*open)(const struct count_setup *setup, const struct track_settings *settings);
    int (*write)(void *file, unsigned level, const struct track_section *section,
                 const uint8_t *bytes);
    int (*finish)(void *file, const struct track_item *all);
    void (*close)(void *file);
};

/* Functions of a count_kind. */
void *depth_track_parse(int argc, char **argv);
bool depth_track_is_streamed(const void *options, unsigned i);
struct record_observer *depth_track_observe(const struct count_setup *setup,
                                            const struct depth_track_format *format);

#endif
