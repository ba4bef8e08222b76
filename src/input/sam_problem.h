/*
 * sam_problem.h -- says why a line is not a SAM record, when htslib has refused it.
 *
 * htslib prints a reason for some faults only, without the read, to a log that may be off. So the
 * reason is found here again: the first fault of the line, in the order of its fields.
 *
 * Pure; any thread.
 */
#ifndef ROCKSORT_INPUT_SAM_PROBLEM_H
#define ROCKSORT_INPUT_SAM_PROBLEM_H

#include <stdbool.h>

enum { SAM_PROBLEM_BYTES = 200 };

/* Writes what is wrong with the line, which ends with a NUL, to be put after "is damaged: ". n_refs:
   number of @SQ lines of the header. is_cut: the file ends within the line. */
void sam_problem_find(const char *line, int n_refs, bool is_cut, char problem[SAM_PROBLEM_BYTES]);

/* True if the line begins with a read name: a FLAG follows. */
bool sam_problem_has_name(const char *line);

#endif
