/* picard_reference.h */
#ifndef ROCKSORT_PICARD_PICARD_REFERENCE_H
#define ROCKSORT_PICARD_PICARD_REFERENCE_H

#include <stdint.h>

struct picard_window {          /* bases of a reference, as codes of BAM */
    int64_t begin, end;         /* positions of those in `codes` */
    int64_t n_bases;            /* of the whole reference */
    const uint8_t *codes;
};

#endif
