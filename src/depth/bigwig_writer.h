/*
 * bigwig_writer.h -- the bigWig format: encodes the sections of a track (track.h), and writes them
 * with the header, the tree of chromosome names and the indexes.
 *
 * The file: header, headers of ten zoom levels, summary of all values, tree of names, sections of
 * runs and their index, then for each zoom level its sections and their index. The header is
 * written twice, at the beginning without the places of what follows.
 *
 * Order of calls: create; write, as track.h says; finish; destroy. Memory: 7 bytes for each section
 * of 1024 runs, and the numbers of the references while create sorts their names.
 * bigwig_encode is pure. Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_DEPTH_BIGWIG_WRITER_H
#define ROCKSORT_DEPTH_BIGWIG_WRITER_H

#include "bam/count_kind.h"
#include "depth/track.h"

/* A track_encode_fn without settings. */
int bigwig_encode(const void *none, struct bgzf_coder *coder, unsigned level,
                  const struct track_item *items, size_t n, struct byte_buffer *out);

struct bigwig_writer;

/* Returns NULL after a message. windows: those of the zoom levels, from [1] on. Sink and windows
   outlive the writer. */
struct bigwig_writer *bigwig_writer_create(struct count_sink *sink, sam_hdr_t *header,
                                           const int64_t *windows);

/* A function for track_settings. */
int bigwig_writer_write(void *writer, unsigned level, const struct track_section *section,
                        const uint8_t *bytes);

/* `all`: the summary of all values. */
int bigwig_writer_finish(struct bigwig_writer *writer, const struct track_item *all);

/* Accepts NULL. */
void bigwig_writer_destroy(struct bigwig_writer *writer);

#endif
