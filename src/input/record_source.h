/*
 * record_source.h -- input that is read record by record. See reader_source.h.
 *
 * Pieces are whole records in raw form. They are copied once more than those of bgzf_source.h, by
 * the reader's thread: this is for input that comes in no other way.
 */
#ifndef ROCKSORT_INPUT_RECORD_SOURCE_H
#define ROCKSORT_INPUT_RECORD_SOURCE_H

#include "input/reader_source.h"

/* True if the file failed below the records. With threads htslib may take a damaged block for the
   end of the file. */
bool record_source_bgzf_failed(const samFile *file);

/* For whatever htslib decodes, and for all that it is to filter. */
struct reader_source *record_source_open(const struct reader_file *file);

/* For BAM whose records are renamed: they change their size and cannot be inflated in place. */
struct reader_source *record_source_open_bam(const struct reader_file *file);

#endif
