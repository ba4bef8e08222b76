/*
 * input_position.h -- a place between two records of the inputs, at which reading can begin again.
 */
#ifndef ROCKSORT_BAM_INPUT_POSITION_H
#define ROCKSORT_BAM_INPUT_POSITION_H

#include <stdint.h>

#define INPUT_OFFSET_UNKNOWN UINT64_MAX

struct input_position {         /* {0}: the start */
    uint32_t input;             /* number of the input */
    uint64_t offset;            /* BGZF virtual offset in it; 0: its first record */
    uint64_t n_records;         /* of it, before this place */
};

#endif
