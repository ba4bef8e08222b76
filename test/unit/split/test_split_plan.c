/*
 * test_split_plan.c -- to which group a record belongs, compared with an array that has the group
 * of each position; random BED files, good ones and damaged ones.
 */
#include "split_header.h"
#include "test_place.h"
#include "unit_test.h"

#include "split/split_plan.h"
#include "util/diag.h"

OWNER(struct group_list, group_list_destroy)

enum {
    N_REFS = 4, LONGEST = 120, REACH = LONGEST + 20,
    N_RECORDS = 300, RECORD_ROOM = 256, MAX_GROUPS = 400,
};

static const int64_t lengths[N_REFS] = {100, 1, LONGEST, 40};
static const char bed_name[] = "x.bed";

struct model {
    char *names[N_REFS][REACH];         /* of the interval that has this position, or NULL */
    bool overlaps;              /* intervals of different names do */
    size_t n_intervals;
};

/* Adds a line to the text, and its interval to the model. */
static void add_interval(struct rng *rng, struct model *model, FILE *text, bool may_overlap)
{
    static const char *const ends[] = {"\n", "\r\n", " \n", "\t0\t+\n"};
    size_t tid = rng_below(rng, N_REFS);
    size_t begin = rng_below(rng, (size_t)lengths[tid]), end = begin + 1 + rng_below(rng, 20);
    char name[64];
    bool named = rng_one_in(rng, 2);
    if (named)
        (void)snprintf(name, sizeof name, "n%zu", rng_below(rng, 6));
    else
        (void)snprintf(name, sizeof name, "r%zu:%zu-%zu", tid, begin + 1, end);
    bool fits = true;           /* it overlaps only intervals of its own name */
    for (size_t i = begin; i < end; i++)
        fits &= !model->names[tid][i] || strcmp(model->names[tid][i], name) == 0;
    if (!fits && !may_overlap) return;
    model->overlaps |= !fits;
    model->n_intervals++;
    for (size_t i = begin; i < end; i++) {
        free(model->names[tid][i]);
        model->names[tid][i] = strdup(name);
    }
    size_t how = rng_below(rng, 4);
    if (how == 3 && !named) how = 0;
    if (rng_one_in(rng, 5)) fputs(how & 1 ? "# r0\t0\t9\n" : "\ntrack x\n", text);
    if (named)
        fprintf(text, how == 2 ? "r%zu %zu  %zu %s%s" : "r%zu\t%zu\t%zu\t%s%s", tid, begin, end,
                name, ends[how]);
    else
        fprintf(text, "r%zu\t%zu\t%zu%s%s", tid, begin, end, how == 1 ? "\t." : "", ends[how]);
}

static char *make_bed(struct rng *rng, struct model *model, size_t *n_bytes)
{
    char *text = NULL;
    bool may_overlap = rng_one_in(rng, 4);
    *model = (struct model){.n_intervals = 0};
    FILE *stream = open_memstream(&text, n_bytes);
    for (size_t n = rng_below(rng, 30); n > 0; n--) add_interval(rng, model, stream, may_overlap);
    (void)fclose(stream);
    return text;
}

static void release_model(struct model *model)
{
    for (size_t tid = 0; tid < N_REFS; tid++)
        for (size_t i = 0; i < REACH; i++) free(model->names[tid][i]);
}

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

static const char *model_name(const struct model *model, struct placed place)
{
    if (place.tid < 0) return SPLIT_UNPLACED;
    const char *name = place.pos >= 0 ? model->names[place.tid][place.pos] : NULL;
    return name ? name : SPLIT_OUTSIDE;
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

/* Moves a cursor over records, and checks each against the model; without one, that groups come in
   order. */
static void check_cursor(struct rng *rng, const struct split_plan *plan,
                         const struct group_list *groups, const struct model *model)
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
        if (model)
            CHECK(rng, strcmp(group_list_title(groups, cursor.group),
                              model_name(model, places[i])) == 0);
        else
            CHECK(rng, i == 0 || numbers[i] >= numbers[i - 1]);
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

TEST_IN_OWN_DIR(test_records_belong_to_the_interval_of_their_position)
{
    OWNED_HEADER sam_hdr_t *header = make_header(lengths, N_REFS);
    const struct split_request request = {.kind = SPLIT_BED, .bed = bed_name};
    size_t n_good = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct rng rng = rng_start(seed);
        struct model model;
        size_t n_bytes;
        OWNED char *text = make_bed(&rng, &model, &n_bytes);
        put_file(bed_name, text, n_bytes);
        diag_renew();
        diag_silence();
        RELEASED(own_group_list_destroy) struct group_list *groups = group_list_create();
        struct split_plan *plan = split_plan_create(&request, header, groups);
        CHECK(&rng, (plan != NULL) == (model.n_intervals > 0 && !model.overlaps));
        if (plan) check_cursor(&rng, plan, groups, &model);
        n_good += plan != NULL;
        split_plan_destroy(plan);
        release_model(&model);
    }
    assert_true(n_good > 100);
    assert_int_equal(unlink(bed_name), 0);
}

TEST_IN_OWN_DIR(test_damaged_bed_files)
{
    static const char likely[] = "r01\t\t \n\r0123456789-.#\0x\xff";
    OWNED_HEADER sam_hdr_t *header = make_header(lengths, N_REFS);
    const struct split_request request = {.kind = SPLIT_BED, .bed = bed_name};
    for (uint64_t seed = 0; seed < 1500; seed++) {
        struct rng rng = rng_start(seed);
        struct model model;
        size_t n_bytes;
        OWNED char *text = make_bed(&rng, &model, &n_bytes);
        for (size_t n = 1 + rng_below(&rng, 6); n > 0 && n_bytes > 0; n--)
            text[rng_below(&rng, n_bytes)] = likely[rng_below(&rng, sizeof likely - 1)];
        put_file(bed_name, text, n_bytes);
        diag_renew();
        diag_silence();
        RELEASED(own_group_list_destroy) struct group_list *groups = group_list_create();
        struct split_plan *plan = split_plan_create(&request, header, groups);
        if (plan) {
            struct split_cursor cursor = {0};
            uint8_t rec[RECORD_ROOM];
            (void)put_at(&rng, rec, 0, 50);
            (void)split_cursor_move(&cursor, plan, rec);
            CHECK(&rng, cursor.group < plan->n_groups);
        }
        split_plan_destroy(plan);
        release_model(&model);
    }
    assert_int_equal(unlink(bed_name), 0);
}

TEST(test_each_contig_is_a_group)
{
    struct rng rng = rng_start(1);
    sam_hdr_t *header = make_header(lengths, N_REFS);
    const struct split_request request = {.kind = SPLIT_CONTIG};
    struct group_list *groups = group_list_create();
    struct split_plan *plan = split_plan_create(&request, header, groups);
    assert_int_equal(plan->n_groups, N_REFS + 1);
    assert_int_equal(plan->most_open, 1);
    check_cursor(&rng, plan, groups, NULL);
    uint8_t rec[RECORD_ROOM];
    for (int32_t tid = -1; tid < N_REFS; tid++) {
        struct split_cursor cursor = {0};
        (void)put_at(&rng, rec, tid, -1);
        assert_false(split_cursor_move(&cursor, plan, rec));
        assert_int_equal(cursor.group, tid < 0 ? N_REFS : tid);
    }
    split_plan_destroy(plan);
    group_list_destroy(groups);
    sam_hdr_destroy(header);
    header = make_header(NULL, 0);
    groups = group_list_create();
    plan = split_plan_create(&request, header, groups);
    assert_int_equal(plan->n_groups, 1);
    assert_string_equal(group_list_title(groups, 0), SPLIT_UNPLACED);
    split_plan_destroy(plan);
    split_plan_destroy(NULL);
    group_list_destroy(groups);
    sam_hdr_destroy(header);
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
            (void)observe(range_counts_observer(counts), rec, rec + n);
        }
        split_plan_set_ranges(plan, counts);
        CHECK(&rng, plan->n_groups == n_ranges + 1);
        CHECK(&rng, strlen(group_list_title(groups, 0)) ==
                        strlen(group_list_title(groups, n_ranges - 1)));
        check_cursor(&rng, plan, groups, NULL);
        check_begins(&rng, plan, header, n_ranges);
        unobserve(range_counts_observer(counts));
        split_plan_destroy(plan);
    }
}

/* Arguments of --split-by. */
TEST(test_requests_are_understood_or_refused)
{
    static const char *const bad[] = {"", "ranges:", "ranges:0", "ranges:-1", "ranges:+1",
                                      "ranges:1 ", "ranges:100001", "tag:", "tag:X", "tag:1X",
                                      "tag:XXX", "tag:X-", "ranges:18446744073709551617"};
    struct split_request request;
    diag_renew();
    diag_silence();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (split_request_parse(bad[i], &request) == 0) fail_msg("'%s' was taken", bad[i]);
    assert_int_equal(split_request_parse("ranges:100000", &request), 0);
    assert_true(request.kind == SPLIT_RANGES && request.n_ranges == SPLIT_MOST_GROUPS);
    assert_int_equal(split_request_parse("tag:X1", &request), 0);
    assert_true(request.kind == SPLIT_TAG && memcmp(request.tag, "X1", 2) == 0);
    assert_int_equal(split_request_parse("rg", &request), 0);
    assert_true(request.kind == SPLIT_READ_GROUP && memcmp(request.tag, "RG", 2) == 0);
    assert_int_equal(split_request_parse("contig", &request), 0);
    assert_true(request.kind == SPLIT_CONTIG);
    assert_int_equal(split_request_parse("contig.bed", &request), 0);
    assert_true(request.kind == SPLIT_BED && strcmp(request.bed, "contig.bed") == 0);
}

__attribute__((constructor)) static void silence_htslib(void)
{
    hts_set_log_level(HTS_LOG_OFF);
}
