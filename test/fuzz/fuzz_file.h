/*
 * fuzz_file.h -- files for the fuzz targets: in memory, but with a path that can be opened. The
 * blocks of BGZF in them are whole, which the fuzzer alone would hardly ever find.
 */
#ifndef ROCKSORT_FUZZ_FILE_H
#define ROCKSORT_FUZZ_FILE_H

#include "fuzz_input.h"

struct fuzz_file {
    int fd;
    char path[64];
};

void fuzz_file_create(struct fuzz_file *file);
void fuzz_file_write(struct fuzz_file *file, const uint8_t *bytes, size_t n_bytes);
uint8_t *fuzz_file_read(const struct fuzz_file *file, size_t *n_bytes);

/* True for formats that htslib alone decodes: no target tests htslib 1.16. */
static inline bool fuzz_is_for_htslib(const uint8_t *bytes, size_t n)
{
    return n >= 4 && (memcmp(bytes, "CRAM", 4) == 0 || memcmp(bytes, "BZh", 3) == 0 ||
                      memcmp(bytes, "\xfd" "7zX", 4) == 0);
}

/* How the bytes of an input become a file. */
enum fuzz_form {
    FUZZ_AS_IT_IS,
    FUZZ_BLOCKS,                /* as the uncompressed content of a BGZF file */
    FUZZ_RECORDS,               /* as the records after a header with references a, b and c */
    FUZZ_MADE,                  /* as that from which fuzz_make_record makes records, after it */
    FUZZ_N_FORMS
};

/* Makes the bytes of a file from the rest of the input; the caller frees them. */
uint8_t *fuzz_make_file(struct fuzz_input *in, enum fuzz_form form, size_t *n_bytes);

#endif
