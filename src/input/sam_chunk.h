/*
 * sam_chunk.h -- parses a piece of SAM, which consists of whole lines, into raw records.
 *
 * Threads: any, each span one at a time. Errors: no messages; span->lines describes a bad line.
 */
#ifndef ROCKSORT_INPUT_SAM_CHUNK_H
#define ROCKSORT_INPUT_SAM_CHUNK_H

#include "input/reader_source.h"

/*
 * Parses the lines of a span into records, up to the first bad line. `record` is scratch space of
 * the caller. Overwrites the lines, but does not change their size.
 */
void sam_chunk_parse(struct bam_reader *reader, struct record_span *span, bam1_t *record);

/*
 * Refuses or corrects values that htslib 1.16 would change without a message:
 *   - a FLAG above 65535 (htslib makes it 65535) or a MAPQ above 255 (255) is an error here;
 *   - an array element is an error here if it is not a number (htslib makes it a number), or if it
 *     is negative and the type of the array has no sign (htslib makes it 0);
 *   - U among the bases is replaced by T (htslib replaces it by N).
 * htslib 1.24 does the same, except that it changes the type of an array with a negative number.
 *
 * The line ends with a NUL. Returns NULL, or what is wrong with the line.
 */
const char *sam_line_correct(char *line);

#endif
