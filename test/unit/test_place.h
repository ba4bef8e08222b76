/* test_place.h -- a directory of its own for a test that works with files. */
#ifndef ROCKSORT_TEST_PLACE_H
#define ROCKSORT_TEST_PLACE_H

#include "random_records.h"

#include <fcntl.h>
#include <unistd.h>

struct place {
    char path[64];
    int home;                   /* the working directory before */
};

/* Setup of a test: makes the directory and works in it. The teardown goes home and removes it. */
static inline int enter_place(void **state)
{
    struct place *place = test_alloc(sizeof *place);
    strcpy(place->path, "/tmp/rocksort-test-XXXXXX");
    place->home = open(".", O_RDONLY | O_DIRECTORY);
    *state = place;
    return place->home < 0 || !mkdtemp(place->path) || chdir(place->path) != 0;
}

/* Fails if the test, or what it tests, left anything. */
static inline int leave_place(void **state)
{
    struct place *place = *state;
    int r = fchdir(place->home) != 0 || close(place->home) != 0 || rmdir(place->path) != 0;
    free(place);
    return r;
}

#endif
