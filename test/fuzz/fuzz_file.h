/*
 * fuzz_file.h -- input files for the fuzz targets: in memory, but with a path that can be opened;
 * and BAM files whose blocks are whole although the fuzzer knows nothing of BGZF.
 */
#ifndef ROCKSORT_FUZZ_FILE_H
#define ROCKSORT_FUZZ_FILE_H

#include "fuzz_input.h"

struct fuzz_file {
    int fd;
    char path[64];
};

/* A file of the process that is nowhere on disk. */
void fuzz_file_create(struct fuzz_file *file);
void fuzz_file_write(struct fuzz_file *file, const uint8_t *bytes, size_t n_bytes);
uint8_t *fuzz_file_read(const struct fuzz_file *file, size_t *n_bytes);

/* How the bytes of an input become a file. */
enum fuzz_form {
    FUZZ_AS_IT_IS,
    FUZZ_BLOCKS,                /* as the uncompressed content of a BGZF file */
    FUZZ_RECORDS,               /* as the records behind a header of references a, b and c */
    FUZZ_MADE,                  /* as what fuzz_make_record makes records of, behind it */
    FUZZ_N_FORMS
};

/* Makes the file's bytes of the rest of the input; the caller frees them. */
uint8_t *fuzz_make_file(struct fuzz_input *in, enum fuzz_form form, size_t *n_bytes);

#endif
