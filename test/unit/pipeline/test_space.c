/*
 * test_space.c -- what is said when space is short: one text for each lack, and none where the data
 * fit or nothing is known of the file system.
 */
#include "random_records.h"

#include "pipeline/space.h"

static const uint64_t mb = 1000000;

/* Temporary data of 88 MB and an output of 50 MB, on two file systems. */
static struct space_places places_of(uint64_t temporary_mb, uint64_t output_mb)
{
    return (struct space_places){
        .temporary = {.known = true, .free_bytes = temporary_mb * mb, .mount = "/fast"},
        .output = {.known = true, .free_bytes = output_mb * mb, .mount = "/large"},
    };
}

static const struct estimate both = {.needed_bytes = 88e6, .output_bytes = 50e6};

/* Checks that there are n texts, the first of which has the words. */
static void check(const struct space_places *places, const struct estimate *estimate, size_t n,
                  const char *words)
{
    char texts[SPACE_MOST_TEXTS][SPACE_TEXT_BYTES];
    assert_int_equal(space_compare(places, estimate, texts), n);
    if (n > 0 && !strstr(texts[0], words)) fail_msg("'%s' lacks '%s'", texts[0], words);
}

static void test_two_file_systems(void **state)
{
    (void)state;
    struct space_places places = places_of(88, 50);
    check(&places, &both, 0, NULL);
    places = places_of(60, 50);
    check(&places, &both, 1, "temporary data will need about 88.0 MB, but file system '/fast' has "
                             "60.0 MB free; choose other places with -T");
    places = places_of(88, 49);
    check(&places, &both, 1, "the output will need about 50.0 MB, but file system '/large' has "
                             "49.0 MB free; free space there");
    places = places_of(30, 30);
    check(&places, &both, 2, "temporary data will");
}

static void test_shared(void **state)
{
    (void)state;
    struct space_places places = places_of(138, 138);
    places.shared = true;
    check(&places, &both, 0, NULL);
    places.temporary.free_bytes--;
    check(&places, &both, 1, "temporary data and output will need about 138.0 MB");
    /* Several directories have space, but not the one that the output is in. */
    places = places_of(500, 40);
    places.shared = true;
    check(&places, &both, 1, "the output will need");
}

static void test_unknown(void **state)
{
    (void)state;
    struct space_places places = places_of(1, 1);
    places.temporary.known = places.output.known = false;
    check(&places, &both, 0, NULL);
}

static void test_in_memory(void **state)
{
    (void)state;
    struct space_places places = places_of(0, 50);
    const struct estimate in_memory = {.in_memory = true, .output_bytes = 50e6};
    check(&places, &in_memory, 0, NULL);
    places.shared = true;
    places.output.free_bytes = 0;
    check(&places, &in_memory, 1, "the output will need about 50.0 MB");
}

/* The output of --also stands beside that of -o, elsewhere, or on a disk of temporary data. */
static void test_second_output(void **state)
{
    (void)state;
    const struct estimate two = {.needed_bytes = 88e6, .output_bytes = 50e6, .also_bytes = 20e6};
    struct space_places places = places_of(88, 69);
    places.also = places.output;
    check(&places, &two, 1, "the output will need about 70.0 MB");
    places.output.free_bytes = 70000000;
    check(&places, &two, 0, NULL);
    places.also.device = 77;
    places.output.free_bytes = 50000000;
    check(&places, &two, 0, NULL);
    places.also.free_bytes = 19000000;
    check(&places, &two, 1, "the output of --also will need about 20.0 MB");
    places.also.free_bytes = 100000000;
    places.also_shared = true;
    check(&places, &two, 1, "the output of --also will need about 108.0 MB");
}

static void test_look(void **state)
{
    (void)state;
    struct space_places places;
    const char *const dirs[] = {"/", "/", "/nowhere/at/all"};
    space_look(&places, dirs, 3, "/out.bam", "/out.parquet");
    assert_true(places.temporary.known && places.output.known && places.shared);
    assert_true(places.also.known && places.also_shared);
    /* One file system counts once. */
    assert_true(places.temporary.free_bytes < places.output.free_bytes * 3 / 2 + 1);
    space_look(&places, NULL, 0, NULL, NULL);
    assert_false(places.temporary.known || places.output.known || places.shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_file_systems),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_in_memory),
        cmocka_unit_test(test_second_output),
        cmocka_unit_test(test_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
