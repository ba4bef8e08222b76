/*
 * header_references.h -- makes the @SQ lines of a BAM header agree with its list of references.
 *
 * A BAM file names its references twice: in a list, to which the numbers in records refer, and in
 * the @SQ lines of its text, which are written to SAM and CRAM. If they differ, reads would move to
 * other contigs. The list takes precedence, as in all programs that read BAM. A list that cannot be
 * written as @SQ lines is refused: references without name or bases, names with a tab or newline.
 *
 * Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_INPUT_HEADER_REFERENCES_H
#define ROCKSORT_INPUT_HEADER_REFERENCES_H

#include <htslib/sam.h>
#include <stdbool.h>

/*
 * Rewrites the @SQ lines of a header that was read from BAM, and that htslib has not parsed yet,
 * unless they agree with the list. A line with the name and length in the list keeps its other
 * tags. Lines of other types keep their places. Warns unless is_quiet; `file` is the name of the
 * input in messages. If there are no @SQ lines at all, which BAM allows, adds them at the end.
 */
int header_references_settle(sam_hdr_t *header, const char *file, bool is_quiet);

#endif
