/*
 * bgzf_source.h -- a source of reader_source.h: BAM as raw bytes.
 */
#ifndef ROCKSORT_INPUT_BGZF_SOURCE_H
#define ROCKSORT_INPUT_BGZF_SOURCE_H

#include "input/reader_source.h"

/* For BGZF-compressed BAM: pieces are whole blocks, which workers inflate. */
struct reader_source *bgzf_source_open(const struct reader_file *file);

/* For gzipped or uncompressed BAM: htslib inflates in the calling thread. */
struct reader_source *bgzf_source_open_plain(const struct reader_file *file);

#endif
