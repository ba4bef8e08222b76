/*
 * sam_line.h -- what htslib 1.16 reads as something else than a line of SAM says, without a word.
 *
 * A FLAG above 65535 becomes 65535, a MAPQ above 255 becomes 255; in arrays what is no number
 * becomes one, and what is negative in a type without a sign becomes 0: these are errors. htslib
 * 1.24 refuses them, too, but for the last, where it changes the type. U among the bases becomes N,
 * and T in 1.24: it is replaced by T.
 *
 * A pure function of the line, which must have no NUL in it. No messages.
 */
#ifndef ROCKSORT_INPUT_SAM_LINE_H
#define ROCKSORT_INPUT_SAM_LINE_H

/* Returns NULL, with U replaced, or what is wrong with the line. */
const char *sam_line_correct(char *line);

#endif
