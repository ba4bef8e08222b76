/*
 * transfers.h -- watches what libcurl transfers for htslib: inputs and outputs that are URLs.
 *
 * htslib 1.16 sets no time limit, so a server that falls silent would keep a sort waiting for ever.
 * Its functions fail without errno, and hclose even returns success when errno is 0. It takes an
 * upload that was redirected to nowhere for done, and crashes if the request that begins or
 * completes an upload gets no answer, or an empty one. So three functions of libcurl are replaced,
 * as interpose.h replaces those of the C library:
 *   curl_easy_perform       gets a time limit; its failure is kept for messages; errno stays; an
 *                           empty answer that would make htslib crash is a failure. htslib writes
 *                           to S3 with it
 *   curl_multi_add_handle   sets the time limit. htslib reads, and writes to other URLs, with it
 *   curl_multi_info_read    keeps the failure; an upload that was not taken is one
 * They are called only if libcurl is a shared library. The state is that of the calling thread.
 */
#ifndef ROCKSORT_MACHINE_TRANSFERS_H
#define ROCKSORT_MACHINE_TRANSFERS_H

#include <stdbool.h>

/* Forgets the last failure of this thread. */
void transfers_forget(void);

/* Keeps why a transfer failed: for what this module does not see, or saw in another thread. */
void transfers_tell(const char *failure);

/* Why the last transfer of this thread failed, such as "the server answered 403 (permission
   denied)", or NULL. The text lasts until the thread's next transfer. */
const char *transfers_failure(void);

/* The same for a message when htslib has failed with errno `error`: never NULL. */
const char *transfers_problem(int error);

/*
 * Until `name` is NULL: if a transfer of this thread gets no answer, prints that `name` cannot be
 * created, and ends the process as exception_guard.h says. To be called around opening an output.
 */
void transfers_end_without_answer(const char *name);

/* Forgets the last failure. Until this is called with false, each transfer that ends in this thread
   is an upload. */
void transfers_closing(bool closing);

/*
 * The next transfer of this thread fails at once. Returns false if that cannot be promised. htslib
 * then aborts an upload in parts when it is closed, instead of completing it.
 */
bool transfers_refuse_next(void);

/* Ends transfers_refuse_next. */
void transfers_allow(void);

#endif
