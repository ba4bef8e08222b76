/*
 * header_references.h -- makes the @SQ lines of a BAM header agree with its list of references.
 *
 * A BAM file names its references twice: in a list, to which the numbers in records refer, and in
 * the @SQ lines of its text, which SAM and CRAM take over. If the lines differ from the list, reads
 * would get onto other contigs. The list decides, as for all programs that read BAM. A list that
 * @SQ lines cannot hold is refused: a reference without a name or of no bases, a tab or a newline
 * in a name.
 *
 * Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_INPUT_HEADER_REFERENCES_H
#define ROCKSORT_INPUT_HEADER_REFERENCES_H

#include <htslib/sam.h>
#include <stdbool.h>

/*
 * Rewrites the @SQ lines of a header as it was read from BAM, before htslib has parsed it, unless
 * they agree with the list. A line of the list's name and length keeps its other tags. The lines
 * keep their places among those of other types. Warns unless is_quiet; `file` is the name of the
 * input in messages. If there are no @SQ lines at all, which BAM allows, adds them at the end.
 */
int header_references_settle(sam_hdr_t *header, const char *file, bool is_quiet);

#endif
