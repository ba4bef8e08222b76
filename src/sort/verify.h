/*
 * verify.h -- --verify: checks whether the records of an input are in order.
 *
 * The load is that of --checksum-only. The worker that has checked some records also checks their
 * order. The results are joined in input order (order_check.h). When every possible order is
 * disproved, the load is stopped as after a failure, but without a message.
 *
 * Order of calls: create, when sort->header is set; finish after the load.
 */
#ifndef ROCKSORT_SORT_VERIFY_H
#define ROCKSORT_SORT_VERIFY_H

#include "sort/sort_context.h"

/* Makes sort->verification and adds it to the observers of the input, which own it. Once the result
   is known, it calls thread_pool_fail to stop the load. If the header claims no order, prints a
   message and makes none: the input need not be read. Returns 0, or -1 after a message. */
int verification_create(struct sort_context *sort);

/* After the load, whose result is `loaded`: puts the verdict into the report, and prints a message
   if records are not in order. Returns 0 if there is a verdict, else -1. */
int verification_finish(struct verification *v, int loaded, struct sort_report *report);

#endif
