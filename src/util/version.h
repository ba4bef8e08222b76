/* version.h -- the one place where the version of rocksort is written. */
#ifndef ROCKSORT_UTIL_VERSION_H
#define ROCKSORT_UTIL_VERSION_H

#define ROCKSORT_VERSION "0.1.0"

#endif
