/* test_thread.c -- the names of threads, which `top -H` shows. */
#include "unit_test.h"

#include "os/thread_pool.h"

#include <stdio.h>
#include <unistd.h>

static void read_name(char name[17])
{
    FILE *file = fopen("/proc/thread-self/comm", "r");
    if (!file) skip();
    assert_non_null(fgets(name, 17, file));
    assert_int_equal(fclose(file), 0);
    name[strcspn(name, "\n")] = '\0';
}

static void *read_name_in_thread(void *name)
{
    read_name(name);
    return NULL;
}

TEST(test_thread_has_its_name_from_the_beginning)
{
    char before[17], after[17], started[17];
    read_name(before);
    pthread_t thread;
    assert_int_equal(thread_start(&thread, "fifteen letters", read_name_in_thread, started), 0);
    read_name(after);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(started, "fifteen letters");
    assert_string_equal(after, before);
    assert_string_not_equal(before, "fifteen letters");
}

static void read_name_in_job(struct worker *worker, void *name)
{
    (void)worker;
    read_name(name);
}

TEST(test_workers_have_their_name_and_the_thread_that_starts_them_keeps_its_own)
{
    char before[17], worker[17], after[17];
    struct threads *threads = thread_pool_create();
    read_name(before);
    assert_int_equal(thread_pool_start(threads, 1), 0);
    assert_int_equal(thread_pool_submit(threads, read_name_in_job, worker), 0);
    assert_int_equal(thread_pool_finish_jobs(threads), 0);
    read_name(after);
    assert_string_equal(worker, "worker");
    assert_string_equal(after, before);
    thread_pool_destroy(threads);
}
