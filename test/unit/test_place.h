/* test_place.h -- gives each test that works with files a directory of its own. */
#ifndef ROCKSORT_TEST_PLACE_H
#define ROCKSORT_TEST_PLACE_H

#include "random_records.h"

#include <fcntl.h>
#include <unistd.h>

struct place {
    char path[64];
    int home;                   /* descriptor of the working directory before the test */
};

/* Setup of a test: makes a directory and makes it the working directory. */
static inline int enter_place(void **state)
{
    struct place *place = test_alloc(sizeof *place);
    strcpy(place->path, "/tmp/rocksort-test-XXXXXX");
    place->home = open(".", O_RDONLY | O_DIRECTORY);
    *state = place;
    return place->home < 0 || !mkdtemp(place->path) || chdir(place->path) != 0;
}

/* Teardown: goes back and removes the directory. Fails if the test left anything in it. */
static inline int leave_place(void **state)
{
    OWNED struct place *place = *state;
    int r = fchdir(place->home) != 0 || close(place->home) != 0 || rmdir(place->path) != 0;
    return r;
}

/* A test (unit_test.h) that runs in such a directory. */
#define TEST_IN_OWN_DIR(test) TEST_WITH(test, enter_place, leave_place)

#endif
