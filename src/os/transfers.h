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
#ifndef ROCKSORT_OS_TRANSFERS_H
#define ROCKSORT_OS_TRANSFERS_H

#include <htslib/hfile.h>

/* Keeps why a transfer failed: for what this module does not see, or saw in another thread. */
void transfers_tell(const char *failure);

/* Why the last transfer of this thread failed, such as "the server answered 403 (permission
   denied)", or NULL. The text lasts until the thread's next transfer. */
const char *transfers_failure(void);

/* The same for a message when htslib has failed with errno `error`: never NULL. */
const char *transfers_problem(int error);

/* Opens an output. Returns NULL with errno set. If a transfer gets no answer, prints that `name`
   cannot be created, and ends the process as exception_guard.h says. */
hFILE *transfers_open_output(const char *name);

/* Completes an upload. Returns 0, or -1, perhaps without errno. */
int transfers_close_output(hFILE *file);

/* Gives an upload up: even hclose_abruptly completes it. The first request of closing one to S3
   sends the last part or completes the upload; that request fails here, and htslib aborts the
   upload. Uploads to other servers end only with the process: then the server sees that they are
   not complete. */
void transfers_abandon_output(const char *name, hFILE *file);

#endif
