/*
 * record_source.h -- a source of reader_source.h: input that is read record by record.
 *
 * Pieces are whole records in raw form. The reader's thread copies each record once more than
 * bgzf_source.h needs. So this source is only for input that the others cannot read.
 */
#ifndef ROCKSORT_INPUT_RECORD_SOURCE_H
#define ROCKSORT_INPUT_RECORD_SOURCE_H

#include "input/reader_source.h"

/* True if BGZF reported an error. This must be asked at the end of the file: with threads htslib
   may return "end of file" for a damaged block. */
bool record_source_bgzf_failed(const samFile *file);

/* For formats that htslib decodes, and for BAM and CRAM that htslib filters. */
struct reader_source *record_source_open(const struct reader_file *file);

/* For SAM that is filtered: only one thread at a time can use htslib's filter. */
struct reader_source *record_source_open_lines(const struct reader_file *file);

#endif
