/*
 * test_split_plan.c -- where groups begin and end, and damaged BED files. test_split.py compares
 * the group of each record with that of a model.
 */
#include "split_header.h"
#include "test_place.h"
#include "unit_test.h"

#include "split/split_plan.h"
#include "util/diag.h"

OWNER(struct group_list, group_list_destroy)

enum {
    N_REFS = 4, LONGEST = 120,
    N_RECORDS = 300, RECORD_ROOM = 256, MAX_GROUPS = 400,
};

static const int64_t lengths[N_REFS] = {100, 1, LONGEST, 40};
static const char bed_name[] = "x.bed";

struct placed {
    int32_t tid, pos;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    /* -1 comes last, as an unsigned number. */
    if (x->tid != y->tid) return (uint32_t)x->tid < (uint32_t)y->tid ? -1 : 1;
    return (x->pos > y->pos) - (x->pos < y->pos);
}

static void random_places(struct rng *rng, struct placed *places)
{
    for (size_t i = 0; i < N_RECORDS; i++) {
        int32_t tid = (int32_t)rng_below(rng, N_REFS + 1) - 1;
        places[i].tid = tid;
        places[i].pos = (int32_t)rng_below(rng, (size_t)(tid < 0 ? 10 : lengths[tid] + 5)) - 1;
    }
    qsort(places, N_RECORDS, sizeof *places, compare_placed);
}

/* A range says where it begins if and only if it can have records; no two begin at one place. */
static void check_begins(struct rng *rng, const struct split_plan *plan, const sam_hdr_t *header,
                         unsigned n_ranges)
{
    char *before = NULL;
    for (unsigned i = 0; i < n_ranges; i++) {
        char *begin = split_plan_range_begin(plan, i, header);
        CHECK(rng, !begin || !before || strcmp(begin, before) != 0);
        int32_t tid, pos;
        if (begin) {
            uint8_t rec[RECORD_ROOM];
            struct split_cursor cursor = {0};
            CHECK(rng, sscanf(begin, "r%" SCNd32 ":%" SCNd32, &tid, &pos) == 2);
            (void)put_at(rng, rec, tid, pos - 1);
            (void)split_cursor_move(&cursor, plan, rec);
            CHECK(rng, cursor.group == i);
            free(before);
            before = begin;
        }
    }
    free(before);
    assert_null(split_plan_range_begin(plan, n_ranges, header));
}

/* Moves a cursor over records. */
static void check_cursor(struct rng *rng, const struct split_plan *plan)
{
    struct placed places[N_RECORDS];
    size_t numbers[N_RECORDS], spans[N_RECORDS], n_open = 0, most = 0;
    bool open[MAX_GROUPS] = {false};
    OWNED uint8_t *records = test_alloc(N_RECORDS * RECORD_ROOM);
    struct split_cursor cursor = {0};
    random_places(rng, places);
    for (size_t i = 0; i < N_RECORDS; i++) {
        uint8_t *rec = records + i * RECORD_ROOM;
        (void)put_at(rng, rec, places[i].tid, places[i].pos);
        if (rng_one_in(rng, 30)) cursor = (struct split_cursor){0};    /* a new output chunk */
        bool is_first = !cursor.record, same = split_cursor_move(&cursor, plan, rec);
        numbers[i] = cursor.group;
        spans[i] = cursor.span;
        CHECK(rng, cursor.group < plan->n_groups);
        CHECK(rng, i == 0 || spans[i] >= spans[i - 1]);
        CHECK(rng, same == (!is_first && numbers[i] == numbers[i - 1]));
    }
    /* A group that has ended does not come again, and never are more open than was said. */
    for (size_t i = 0; i < N_RECORDS; i++) {
        for (size_t k = 0; k < plan->n_groups; k++) {
            bool ended = spans[i] > 0 && split_plan_ends(plan, k, spans[i] - 1);
            if (ended && open[k]) n_open--;
            if (ended) open[k] = false;
            CHECK(rng, !ended || k != numbers[i]);
        }
        if (!open[numbers[i]]) n_open++;
        open[numbers[i]] = true;
        if (n_open > most) most = n_open;
    }
    CHECK(rng, most <= plan->most_open);
}

/* A good file, and damaged ones. */
TEST_IN_OWN_DIR(test_bed_files_of_any_bytes)
{
    static const char likely[] = "r01\t\t \n\r0123456789-.#\0x\xff";
    static const char good[] = "# r0\t0\t9\nr0\t0\t20\tn1\nr0\t30\t50\tn1\t0\t+\ntrack x\n"
                               "r0\t20\t25\tn2\r\nr2 5  90 n3 \nr2\t90\t110\nr3\t0\t40\t.\n";
    OWNED_HEADER sam_hdr_t *header = make_header(lengths, N_REFS);
    const struct split_request request = {.kind = SPLIT_BED, .bed = bed_name};
    size_t n_good = 0;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        struct rng rng = rng_start(seed);
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        for (size_t n = rng_below(&rng, 6); n > 0 && seed > 0; n--)
            text[rng_below(&rng, sizeof good - 1)] = likely[rng_below(&rng, sizeof likely - 1)];
        put_file(bed_name, text, sizeof good - 1);
        diag_renew();
        diag_silence();
        RELEASED(own_group_list_destroy) struct group_list *groups = group_list_create();
        struct split_plan *plan = split_plan_create(&request, header, groups);
        if (plan) check_cursor(&rng, plan);
        CHECK(&rng, plan || seed > 0);
        n_good += plan != NULL;
        split_plan_destroy(plan);
    }
    assert_true(n_good > 100);
    assert_int_equal(unlink(bed_name), 0);
}

TEST(test_ranges_are_those_of_the_counts)
{
    OWNED_HEADER sam_hdr_t *header = make_header(lengths, N_REFS);
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct rng rng = rng_start(seed);
        unsigned n_ranges = 1 + (unsigned)rng_below(&rng, MAX_GROUPS - 1);
        const struct split_request request = {.kind = SPLIT_RANGES, .n_ranges = n_ranges};
        RELEASED(own_group_list_destroy) struct group_list *groups = group_list_create();
        struct split_plan *plan = split_plan_create(&request, header, groups);
        struct range_counts *counts = range_counts_create(header);
        uint8_t rec[RECORD_ROOM];
        for (size_t i = rng_below(&rng, 200); i > 0; i--) {
            int32_t tid = (int32_t)rng_below(&rng, N_REFS);
            size_t n = put_at(&rng, rec, tid, (int32_t)rng_below(&rng, (size_t)lengths[tid]));
            (void)observe(&counts->base, rec, rec + n);
        }
        split_plan_set_ranges(plan, counts);
        CHECK(&rng, plan->n_groups == n_ranges + 1);
        CHECK(&rng, strlen(groups->all[0].title) ==
                        strlen(groups->all[n_ranges - 1].title));
        check_cursor(&rng, plan);
        check_begins(&rng, plan, header, n_ranges);
        unobserve(&counts->base);
        split_plan_destroy(plan);
    }
}

__attribute__((constructor)) static void silence_htslib(void)
{
    hts_set_log_level(HTS_LOG_OFF);
}
