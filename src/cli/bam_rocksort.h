/* bam_rocksort.h -- the subcommand `samtools rocksort`. */
#ifndef ROCKSORT_CLI_BAM_ROCKSORT_H
#define ROCKSORT_CLI_BAM_ROCKSORT_H

/* argv[0] is "rocksort"; returns the exit status: 0, or 1 after a message on standard error. */
int main_rocksort(int argc, char **argv);

#endif
