/* open_files.h -- how many files this process may have open. Any thread; no messages. */
#ifndef ROCKSORT_MACHINE_OPEN_FILES_H
#define ROCKSORT_MACHINE_OPEN_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Raises the limit as far as it goes, and returns it: 2^20 at most, 0 if it is not known. */
size_t open_files_raise_limit(void);

/* Raises the limit, too. True if so many files can be open, or if the limit is not known. *limit:
   the limit. */
bool open_files_suffice(size_t needed, size_t *limit);

#endif
