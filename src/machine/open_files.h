/* open_files.h -- how many files this process may have open. Any thread; no messages. */
#ifndef ROCKSORT_MACHINE_OPEN_FILES_H
#define ROCKSORT_MACHINE_OPEN_FILES_H

#include <stddef.h>

/* Raises the limit as far as it goes, and returns it: 2^20 at most, 0 if it is not known. */
size_t open_files_raise_limit(void);

#endif
