/*
 * grow.h -- arrays that get longer.
 */
#ifndef ROCKSORT_UTIL_GROW_H
#define ROCKSORT_UTIL_GROW_H

#include <stddef.h>

/*
 * Lets an allocated array, whose pointer is at `array`, have room for n items. Where it has not, it
 * gets room for some more than that, so that it is not copied for every item. Returns 0, or -1 with
 * errno set and the array as it was.
 */
int grow_array(void *array, size_t *room, size_t n, size_t some_more, size_t item_bytes);

#endif
