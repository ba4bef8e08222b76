/*
 * find_function.h -- finds a function of a library by its name, while the program runs.
 *
 * A file that includes this defines _GNU_SOURCE first, for RTLD_DEFAULT and RTLD_NEXT. Any thread.
 */
#ifndef ROCKSORT_OS_FIND_FUNCTION_H
#define ROCKSORT_OS_FIND_FUNCTION_H

#include <dlfcn.h>
#include <string.h>

/*
 * Stores the address of a function in the pointer to a function that `function` points to; does not
 * change that pointer if no library has such a function. `where` is RTLD_DEFAULT for the first
 * definition in the order of the dynamic linker, RTLD_NEXT for the first one after this program's.
 */
static inline void find_function(void *where, const char *name, void *function)
{
    void *address = dlsym(where, name);
    if (address) memcpy(function, &address, sizeof address);
}

#endif
