/*
 * thread.c -- see thread.h.
 */
#include "pipeline/thread.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif

void thread_lend_name(struct thread_name *own, const char *name)
{
    *own = (struct thread_name){{0}};
#ifdef __linux__
    /* Both fail only if the address is bad. */
    (void)prctl(PR_GET_NAME, own->text);
    (void)prctl(PR_SET_NAME, name);
#else
    (void)name;
#endif
}

void thread_restore_name(const struct thread_name *own)
{
#ifdef __linux__
    (void)prctl(PR_SET_NAME, own->text);
#else
    (void)own;
#endif
}

int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
    struct thread_name own;
    thread_lend_name(&own, name);
    int error = pthread_create(thread, NULL, run, arg);
    thread_restore_name(&own);
    return error;
}
