/* test_thread.c -- the names of threads, which `top -H` shows. */
#include "unit_test.h"

#include "pipeline/thread.h"

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

/* What a library does between the two calls. */
TEST(test_lent_name_is_given_back)
{
    char before[17], lent[17], after[17];
    struct thread_name own;
    read_name(before);
    thread_lend_name(&own, "worker");
    read_name(lent);
    thread_restore_name(&own);
    read_name(after);
    assert_string_equal(lent, "worker");
    assert_string_equal(after, before);
}
