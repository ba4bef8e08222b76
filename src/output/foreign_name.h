/*
 * foreign_name.h -- does the name of an output promise another format than BAM?
 *
 * A file that is named reads.fastq.gz and holds BAM misleads everybody who finds it. Extensions
 * that are known for a format of bioinformatics are recognised, whatever their case and with an
 * extension of compression after them. Unknown extensions promise nothing: as in samtools, such
 * files get BAM.
 *
 * The function is pure and may be called from any thread.
 */
#ifndef ROCKSORT_OUTPUT_FOREIGN_NAME_H
#define ROCKSORT_OUTPUT_FOREIGN_NAME_H

/* The format that the name promises, "FASTQ" for instance (a static string). NULL: that is BAM, or
   nothing. */
const char *foreign_name_format(const char *path);

#endif
