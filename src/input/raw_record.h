/*
 * raw_record.h -- puts a record that htslib has parsed into a buffer of raw records.
 *
 * Threads: any, each buffer one at a time.
 */
#ifndef ROCKSORT_INPUT_RAW_RECORD_H
#define ROCKSORT_INPUT_RAW_RECORD_H

#include <htslib/sam.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes the record in raw form to the place `at` of a growing buffer of *room bytes. With
 * long_positions it may lie beyond 2^31 - 1. Returns NULL, or what is wrong with a record that has
 * no raw form.
 */
const char *raw_record_put(const bam1_t *record, bool long_positions, uint8_t **buffer,
                           size_t *room, size_t at);

#endif
