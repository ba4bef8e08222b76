/* version.h -- the version of rocksort. */
#ifndef ROCKSORT_UTIL_VERSION_H
#define ROCKSORT_UTIL_VERSION_H

#define ROCKSORT_VERSION "0.1.0"

#endif
