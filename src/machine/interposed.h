/*
 * interposed.h -- functions that this program defines before those of the C library, and the ones
 * that would have been called without: the C library's, or ones that were preloaded.
 */
#ifndef ROCKSORT_MACHINE_INTERPOSED_H
#define ROCKSORT_MACHINE_INTERPOSED_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

/* Finds the next function of that name, once, and stores its address in *function, which points to
   a function pointer. *known keeps it between calls. Any thread. (_GNU_SOURCE, for RTLD_NEXT.) */
static inline void interposed_next(void *_Atomic *known, const char *name, void *function)
{
    void *address = atomic_load(known);
    if (!address) {
        address = dlsym(RTLD_NEXT, name);
        atomic_store(known, address);
    }
    memcpy(function, &address, sizeof address);
}

#endif
