/*
 * unit_test.h -- tests that list themselves, and main, which runs them. One file of each program
 * includes it.
 *
 *     TEST(test_words)                                     a test; `state` is cmocka's
 *     {
 *         assert_true(...);
 *     }
 *
 * TEST_WITH(name, setup, teardown) also names cmocka's functions that run before and after it.
 */
#ifndef ROCKSORT_UNIT_TEST_H
#define ROCKSORT_UNIT_TEST_H

#include "random_records.h"

/* cmocka passes over the tests without a name. */
static struct CMUnitTest unit_tests[64];

static void unit_test_add(struct CMUnitTest test)
{
    size_t i = 0;
    while (unit_tests[i].name) i++;
    if (i == sizeof unit_tests / sizeof *unit_tests - 1) abort();
    unit_tests[i] = test;
}

/* Constructors of a file run in the order in which they stand there. */
#define TEST_WITH(test, setup, teardown)                                       \
    static void test(void **state);                                            \
    __attribute__((constructor)) static void test##_add(void)                  \
    {                                                                          \
        unit_test_add((struct CMUnitTest)                                      \
                      cmocka_unit_test_setup_teardown(test, setup, teardown)); \
    }                                                                          \
    static void test(__attribute__((unused)) void **state)

#define TEST(test) TEST_WITH(test, NULL, NULL)

int main(void)
{
    return cmocka_run_group_tests(unit_tests, NULL, NULL);
}

#endif
