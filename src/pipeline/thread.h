/*
 * thread.h -- starts threads that have names, so that `top -H` shows which stage of a sort works.
 *
 * On Linux a new thread has the name of the thread that starts it. So the thread that starts others
 * takes their name for that moment. Nothing can fail in this, and a thread has its name from its
 * first instruction on; pthread_setname_np would open a file of /proc for each thread. Elsewhere
 * threads stay without names.
 *
 * A name has at most 15 bytes. bench/scaling.py knows the names.
 *
 * Threads: any; a name belongs to the thread that calls.
 */
#ifndef ROCKSORT_PIPELINE_THREAD_H
#define ROCKSORT_PIPELINE_THREAD_H

#include <pthread.h>

/* Like pthread_create with default attributes, which also says what is returned: 0 or an error
   number. */
int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);

/* The name that a thread had. */
struct thread_name {
    char text[16];              /* as many bytes as Linux keeps */
};

/* For a library that starts threads: between the two calls the calling thread has the name, and
   keeps its own in `own`. */
void thread_lend_name(struct thread_name *own, const char *name);
void thread_restore_name(const struct thread_name *own);

#endif
