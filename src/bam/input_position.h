/*
 * input_position.h -- a position between two records of the inputs, where a resumed sort begins.
 */
#ifndef ROCKSORT_BAM_INPUT_POSITION_H
#define ROCKSORT_BAM_INPUT_POSITION_H

#include <stdint.h>

#define INPUT_OFFSET_UNKNOWN UINT64_MAX

struct input_position {         /* {0}: before the first record of the first input */
    uint32_t input;             /* number of the input, from 0 */
    uint64_t offset;            /* BGZF virtual offset in this input; 0: before its first record */
    uint64_t n_records;         /* number of records of this input before the place */
};

#endif
