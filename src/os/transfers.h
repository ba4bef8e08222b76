/*
 * transfers.h -- detects failed transfers of inputs and outputs that are URLs.
 *
 * htslib 1.16 transfers with libcurl. It sets no time limit, so a silent server would block a sort
 * forever. Its functions fail without errno, and hclose even returns success when errno is 0. It
 * treats an upload with a broken redirection as complete, and crashes if the request that begins or
 * completes an upload gets no answer or an empty one. So three functions of libcurl are replaced,
 * as interpose.h replaces those of the C library:
 *   curl_easy_perform       sets a time limit, keeps the failure for messages, and preserves errno;
 *                           an empty answer that would make htslib crash is a failure. htslib
 *                           writes to S3 with it
 *   curl_multi_add_handle   sets the time limit. htslib reads, and writes to other URLs, with it
 *   curl_multi_info_read    keeps the failure; an upload that was not accepted is one
 * They are called only if libcurl is a shared library. Each thread has its own state.
 */
#ifndef ROCKSORT_OS_TRANSFERS_H
#define ROCKSORT_OS_TRANSFERS_H

#include <htslib/hfile.h>

/* Stores why a transfer failed, if this module did not see it or saw it in another thread. */
void transfers_tell(const char *failure);

/* Returns why the last transfer of this thread failed, such as "the server answered 403 (permission
   denied)", or NULL. The text is valid until the thread's next transfer. */
const char *transfers_failure(void);

/* Returns the same, or the text of errno `error` with which htslib has failed; never NULL. */
const char *transfers_problem(int error);

/* Opens an output. Returns NULL with errno set. If a transfer gets no answer, prints that `name`
   cannot be created, and ends the process as exception_guard.h says. */
hFILE *transfers_open_output(const char *name);

/* Completes an upload. Returns 0, or -1, perhaps without errno. */
int transfers_close_output(hFILE *file);

/* Abandons an upload. hclose_abruptly alone would complete it: closing an upload to S3 first sends
   the last part or completes it. This module makes that request fail, so htslib aborts the upload.
   Uploads to other servers end with the process; then the server sees that they are incomplete. */
void transfers_abandon_output(const char *name, hFILE *file);

#endif
