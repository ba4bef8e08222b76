/*
 * foreign_name.h -- checks whether the name of an output promises another format than BAM.
 *
 * A file that is named reads.fastq.gz and holds BAM misleads everybody who finds it. The usual
 * extensions of bioinformatics formats are recognised, in upper or lower case, also if an extension
 * of a compression format follows. Unknown extensions promise nothing: as in samtools, such files
 * get BAM.
 *
 * The function is pure and may be called from any thread.
 */
#ifndef ROCKSORT_OUTPUT_FOREIGN_NAME_H
#define ROCKSORT_OUTPUT_FOREIGN_NAME_H

/* The format that the name promises, "FASTQ" for instance (a static string). NULL: the name
   promises BAM, or nothing. */
const char *foreign_name_format(const char *path);

#endif
