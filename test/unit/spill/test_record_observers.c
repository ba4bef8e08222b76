/* test_record_observers.c -- observers see each record once, and a failure of one fails the piece.
   */
#include "unit_test.h"

#include "spill/record_observers.h"

enum { N_RECORDS = 20, MOST_BYTES = 200 };

struct counter {                /* an observer that counts records */
    struct record_observer base;
    size_t n_seen, n_parts, n_lost;
    bool fails;
};

struct counted {
    struct counter *counter;
    size_t n;
};

static void *begin(const struct record_observer *observer)
{
    struct counted *part = test_alloc(sizeof *part);
    *part = (struct counted){(struct counter *)(uintptr_t)observer, 0};
    return part;
}

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *observed)
{
    struct bam_records records = observed->all;
    while (bam_records_next(&records)) ((struct counted *)part)->n++;
    return ((struct counter *)observer)->fails ? -1 : 0;
}

static int combine(struct record_observer *observer, void *part)
{
    struct counter *counter = (struct counter *)observer;
    counter->n_seen += ((struct counted *)part)->n;
    counter->n_parts++;
    free(part);
    return 0;
}

static void discard(void *part)
{
    ((struct counted *)part)->counter->n_lost++;
    free(part);
}

static const struct observer_kind kind = {.begin = begin, .add_records = add_records,
                                          .combine = combine, .discard = discard};

static size_t make_records(uint8_t *records)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < N_RECORDS; i++) {
        const struct record_fields f = {.name = "r", .l_seq = (int32_t)i};
        n_bytes += put_record(records + n_bytes, &f, 7);
    }
    return n_bytes;
}

TEST(test_all_observers_see_all_records)
{
    uint8_t records[N_RECORDS * MOST_BYTES];
    struct counter a = {.base = {&kind}}, b = {.base = {&kind}};
    struct record_observers list = {.n = 0};
    record_observers_add(&list, &a.base);
    record_observers_add(&list, NULL);
    record_observers_add(&list, &b.base);
    const struct observed_records all = {.all = {records, records + make_records(records)}};
    assert_int_equal(record_observers_look(&list, &all), 0);
    assert_int_equal(record_observers_look(NULL, &all), 0);
    struct observed_parts parts;
    struct bam_records one = all.all;
    const uint8_t *rec;
    observed_parts_begin(&parts, &list);
    while ((rec = bam_records_next(&one))) observed_parts_add(&parts, rec);
    assert_int_equal(observed_parts_end(&parts), 0);
    assert_int_equal(observed_parts_combine(&parts), 0);
    observed_parts_discard(&parts);
    assert_int_equal(a.n_seen, 2 * N_RECORDS);
    assert_int_equal(b.n_seen, 2 * N_RECORDS);
    assert_true(a.n_parts == 2 && b.n_parts == 2 && a.n_lost == 0 && b.n_lost == 0);
}

TEST(test_parts_of_a_group_that_failed_are_not_combined)
{
    uint8_t records[N_RECORDS * MOST_BYTES];
    struct counter a = {.base = {&kind}}, b = {.base = {&kind}, .fails = true};
    struct record_observers list = {.n = 0};
    record_observers_add(&list, &a.base);
    record_observers_add(&list, &b.base);
    const struct observed_records all = {.all = {records, records + make_records(records)}};
    assert_int_equal(record_observers_look(&list, &all), -1);
    struct observed_parts parts;
    observed_parts_begin(&parts, &list);
    observed_parts_add(&parts, records);
    assert_int_equal(observed_parts_end(&parts), -1);
    observed_parts_discard(&parts);
    assert_true(a.n_seen == 0 && b.n_seen == 0 && a.n_lost == 2 && b.n_lost == 2);
}
