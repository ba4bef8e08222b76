/*
 * tag_schema_scan.h -- an observer that collects which tags the input has: only these get columns.
 *
 * Threads: any may add; read it when all have ended.
 */
#ifndef ROCKSORT_COLUMNS_TAG_SCHEMA_SCAN_H
#define ROCKSORT_COLUMNS_TAG_SCHEMA_SCAN_H

#include "bam/record_observer.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TAG_SCAN_WORDS = (1 << 14) / 64 };       /* two letters of 7 bits */

struct tag_schema_scan {
    struct record_observer base;        /* an observer of the input */
    _Atomic uint64_t seen[TAG_SCAN_WORDS];
};

/* Destroyed by its base. */
struct tag_schema_scan *tag_schema_scan_create(void);

/* True if a record has a tag with these two letters. */
bool tag_schema_scan_has(const struct tag_schema_scan *tag_scan, const char tag[2]);

#endif
