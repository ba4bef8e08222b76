/*
 * verify.h -- what --verify does: checks whether the records are in order.
 *
 * The load is that of --checksum-only. The worker that has checked some records also scans them for
 * their order. The scans are joined in the order of the input (order_check.h). When every order
 * that the file may have is disproved, the load is stopped as by a failure, without a message.
 *
 * Order of calls: create, with the header at hand; finish after the load.
 */
#ifndef ROCKSORT_SORT_VERIFY_H
#define ROCKSORT_SORT_VERIFY_H

#include "sort/sort_context.h"

/* Makes sort->verification and adds it to the observers of the input, which destroy it. It fails
   the thread pool when all is known. If the header claims no order, there is none, but a message,
   and nothing need be read. Returns 0, or -1 after a message. */
int verification_create(struct sort_context *sort);

/* After the load, whose result is passed: puts what was found into the report, and prints a message
   if records are not in order. Returns 0 if that is known, else -1. */
int verification_finish(struct verification *v, int loaded, struct sort_report *report);

#endif
