/* test_resolve_sets.c -- sets of duplicates, in memory and on the disk. test_markdup.py compares
   random ones with samtools. */
#include "test_place.h"
#include "unit_test.h"

#include "markdup/markdup_partition.h"
#include "markdup/resolve_sets.h"
#include "util/diag.h"
#include "util/xalloc.h"

/* ---- random reads of few places: few keys, scores and coordinates ---- */

static void set_name(struct read_ends *ends, const char *name)
{
    ends->name = (const uint8_t *)name;
    ends->name_bytes = (uint8_t)strlen(name);
}

enum { NAME_ROOM = 40 };

static void random_name(struct rng *rng, char *name)
{
    static const char *const tiles[] = {"M:1:", "M:1:", "M:2:", "M:12:", "M:1:1:"};
    const char *tile = tiles[rng_below(rng, sizeof tiles / sizeof *tiles)];
    if (rng_one_in(rng, 12))
        (void)snprintf(name, NAME_ROOM, "q%zu", rng_below(rng, 4));
    else
        (void)snprintf(name, NAME_ROOM, "%s%d:%d%s", tile, (int)rng_below(rng, 24) - 12,
                       (int)rng_below(rng, 24) - 12, rng_one_in(rng, 3) ? "x" : "");
}

/* The strand of a pair's read whose `here` is its 5' end follows from its key. */
static bool strand_at_five_end(const struct markdup_rules *rules, const struct read_ends *ends)
{
    bool turned =
        ends->orientation == PAIR_RF || (rules->by_sequence && ends->orientation == PAIR_RR);
    return ends->is_left == turned;
}

static struct read_ends random_ends(struct rng *rng, const struct markdup_rules *rules, char *name)
{
    static const enum read_ends_kind kinds[] = {READ_ENDS_SINGLE, READ_ENDS_PAIR, READ_ENDS_PAIR,
                                                READ_ENDS_PAIR};
    struct read_ends ends = {
        .kind = kinds[rng_below(rng, sizeof kinds / sizeof *kinds)],
        .ref = (int32_t)rng_below(rng, 2),
        .pos = (int64_t)rng_below(rng, 4),
        .here = rng_one_in(rng, 4),
        .there = rng_one_in(rng, 4),
        .orientation = rng_one_in(rng, 2) ? PAIR_FR : (uint8_t)rng_below(rng, 4),
        .is_left = rng_one_in(rng, 2),
        .is_reverse = rng_one_in(rng, 2),
        .failed_qc = rng_one_in(rng, 6),
        .score = (int64_t)rng_below(rng, 4),
    };
    bool same_strand = ends.orientation == PAIR_FF || ends.orientation == PAIR_RR;
    ends.other_place = ends.here;
    if (ends.kind == READ_ENDS_PAIR && same_strand && !rules->by_sequence)
        ends.other_place = rng_one_in(rng, 4);
    else if (ends.kind == READ_ENDS_PAIR)
        ends.is_reverse = strand_at_five_end(rules, &ends);
    if (rules->ignores_strand) {
        ends.orientation = PAIR_FF;
        ends.other_place = (int64_t)rng_below(rng, 4);
    }
    random_name(rng, name);
    set_name(&ends, name);
    return ends;
}

static struct markdup_rules random_rules(struct rng *rng)
{
    return (struct markdup_rules){.by_sequence = rng_one_in(rng, 2),
                                    .ignores_strand = rng_one_in(rng, 4),
                                    .names_original = true,
                                    .counts = true,
                                    .optical_distance =
                                        rng_one_in(rng, 4) ? 0 : 1 + (int64_t)rng_below(rng, 6),
                                    .checks_chains = !rng_one_in(rng, 4)};
}

/* ---- what is tested ---- */

struct member {
    struct read_ends ends;
    uint32_t run;
    /* results */
    bool is_duplicate, is_optical, was_optical;
    uint32_t count;
    char original[NAME_ROOM];
};

static size_t memory_bytes; /* for resolve_sets */
static size_t barcode_bytes = 16 << 20; /* for the barcodes of one key */
static struct threads *threads;

static int enter_sets(void **state)
{
    threads = thread_pool_create();
    return enter_place(state);
}

static int leave_sets(void **state)
{
    thread_pool_destroy(threads);
    return leave_place(state);
}

#define TEST_OF_SETS(test) TEST_WITH(test, enter_sets, leave_sets)

/* Sent items, to be added again. */
struct sent {
    uint8_t bytes[2048];
    size_t n_bytes;
};

struct results {
    struct member *members;
    struct sent *sent;
    size_t n_sent, room;
};

static int take(void *arg, const struct item_read *read, struct read_name original)
{
    struct member *m = &((struct results *)arg)->members[read->index];
    assert_false(m->is_duplicate);
    assert_int_equal(m->run, read->run);
    m->is_duplicate = true;
    m->is_optical = read->is_optical;
    m->was_optical = read->was_optical;
    assert_in_range(original.n_bytes, 0, NAME_ROOM - 1);
    if (original.n_bytes > 0) memcpy(m->original, original.text, original.n_bytes);
    m->original[original.n_bytes] = '\0';
    return 0;
}

static int take_count(void *arg, const struct item_read *best, uint64_t count)
{
    ((struct results *)arg)->members[best->index].count = (uint32_t)count;
    return 0;
}

static int send(void *arg, int32_t ref, int64_t here, const uint8_t *item, size_t n_bytes)
{
    struct results *results = arg;
    (void)ref;
    (void)here;
    xgrow(&results->sent, &results->room, results->n_sent + 1, results->n_sent + 64,
          sizeof *results->sent);
    memcpy(results->sent[results->n_sent].bytes, item, n_bytes);
    results->sent[results->n_sent++].n_bytes = n_bytes;
    return 0;
}

static void add_end(struct resolve_sets *sets, const struct markdup_rules *rules,
                    const struct member *m)
{
    struct read_ends end = m->ends;
    if (!read_ends_meets_singles(rules, &end)) {
        end.kind = READ_ENDS_END;
        end.here = m->ends.other_place;
        end.other_place = m->ends.here;
    }
    assert_int_equal(resolve_sets_add(sets, ROLE_END, &end, m->run), 0);
}

static int resolve_all(struct resolve_sets *sets, const struct markdup_rules *rules,
                       struct results *results, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct member *m = &results->members[i];
        m->ends.index = (uint32_t)i;
        m->is_duplicate = m->is_optical = m->was_optical = false;
        m->count = 1;
        if (m->ends.kind == READ_ENDS_SINGLE)
            assert_int_equal(resolve_sets_add(sets, ROLE_SINGLE, &m->ends, m->run), 0);
        else
            add_end(sets, rules, m);
    }
    if (resolve_sets_end(sets, true) < 0) return -1;
    for (size_t i = 0; i < n; i++)
        if (results->members[i].ends.kind == READ_ENDS_PAIR)
            assert_int_equal(resolve_sets_add(sets, ROLE_PAIR, &results->members[i].ends,
                                              results->members[i].run),
                             0);
    for (size_t i = 0; i < results->n_sent; i++)
        assert_int_equal(resolve_sets_add_sent(sets, results->sent[i].bytes), 0);
    return resolve_sets_end(sets, false);
}

static int try_to_resolve(const struct markdup_rules *rules, struct member *members, size_t n)
{
    static const char *const prefixes[] = {"./"};
    struct results results = {.members = members};
    struct barcode_room room = {.threads = threads, .small_bytes = 40, .most_bytes = barcode_bytes};
    (void)pthread_mutex_init(&room.lock, NULL);
    const struct resolve_sets_settings settings = {
        .rules = rules,
        .sort = {.memory_bytes = memory_bytes, .places = {prefixes, 1, NULL}},
        .barcode_room = &room,
        .take = take,
        .take_count = take_count,
        .send = send,
        .arg = &results,
    };
    struct resolve_sets *sets = resolve_sets_create(&settings);
    int r = resolve_all(sets, rules, &results, n);
    resolve_sets_destroy(sets);
    free(results.sent);
    (void)pthread_mutex_destroy(&room.lock);
    return r;
}

static void resolve(const struct markdup_rules *rules, struct member *members, size_t n)
{
    assert_int_equal(try_to_resolve(rules, members, n), 0);
}

static bool has_original(const struct member *m, const struct member *original)
{
    return strcmp(m->original, (const char *)original->ends.name) == 0;
}

/* Some barcodes, or none: few letters, two lengths. */
static void set_barcode(struct rng *rng, struct read_ends *ends, char *text)
{
    if (rng_one_in(rng, 8)) return;
    name_of_letters(rng, text, rng_one_in(rng, 6) ? 2 : 3, "AAAACCG");
    ends->barcode = 1;
    for (const char *c = text; *c; c++)
        ends->barcode = ends->barcode * 31 + (uint8_t)*c;
    ends->barcode_text = (const uint8_t *)text;
    ends->barcode_bytes = (uint8_t)strlen(text);
}

static void check_same(const struct member *a, const struct member *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(a[i].is_duplicate, b[i].is_duplicate);
        assert_int_equal(a[i].is_optical, b[i].is_optical);
        assert_int_equal(a[i].was_optical, b[i].was_optical);
        assert_int_equal(a[i].count, b[i].count);
        if (a[i].is_duplicate) assert_string_equal(a[i].original, b[i].original);
    }
}

TEST_OF_SETS(sets_on_the_disk_are_those_in_memory)
{
    enum { N = 40000, TEXT_ROOM = 4 };
    struct rng rng = rng_start(712);
    OWNED struct member *members = test_alloc(N * sizeof *members);
    OWNED struct member *copy = test_alloc(N * sizeof *copy);
    OWNED char(*names)[NAME_ROOM] = test_alloc(N * NAME_ROOM);
    OWNED char(*barcodes)[TEXT_ROOM] = test_alloc(N * TEXT_ROOM);
    for (int i = 0; i < 6; i++) {
        struct markdup_rules rules = random_rules(&rng);
        rules.optical_distance = i < 2 ? 40 : i < 4 ? 3 : 0;
        rules.barcode_mismatches = i % 2 ? 1 : 0;
        for (size_t j = 0; j < N; j++) {
            members[j] = (struct member){.ends = random_ends(&rng, &rules, names[j]),
                                         .run = (uint32_t)rng_below(&rng, 3)};
            if (i != 3) /* spread, but for one round */
                (void)snprintf(names[j], NAME_ROOM, "M:%zu:%05zu:%05zu", rng_below(&rng, 3),
                               rng_below(&rng, 3000), rng_below(&rng, 3000));
            set_name(&members[j].ends, names[j]);
            members[j].ends.ordinal = ((UINT64_C(1) << 39) - j) & DUPLICATE_ORDINAL_MASK;
            members[j].ends.has_others = rng_one_in(&rng, 4);
            if (i % 2) set_barcode(&rng, &members[j].ends, barcodes[j]);
        }
        memcpy(copy, members, N * sizeof *copy);
        memory_bytes = 512 << 20;
        resolve(&rules, members, N);
        memory_bytes = 0;
        resolve(&rules, copy, N);
        check_same(members, copy, N);
    }
}

/* ---- by hand ---- */

static struct member pair_member(const char *name, int64_t score, uint32_t index)
{
    struct member m = {.ends = {.kind = READ_ENDS_PAIR,
                                .pos = 5,
                                .here = 6,
                                .other_place = 6,
                                .there = 90,
                                .orientation = PAIR_FR,
                                .is_left = true,
                                .ordinal = index,
                                .score = score}};
    set_name(&m.ends, name);
    return m;
}

static struct member single_member(const char *name, int64_t score, uint32_t index)
{
    struct member m = pair_member(name, score, index);
    m.ends.kind = READ_ENDS_SINGLE;
    return m;
}

static const struct markdup_rules tags = {
    .names_original = true, .counts = true, .optical_distance = 10, .checks_chains = true};

/* A duplicate that was far from the best read of its time is near to the final one; another is near
   to a better duplicate only. */
TEST_OF_SETS(markdup_are_compared_with_the_best_of_the_set_and_each_other)
{
    struct member m[] = {
        pair_member("M:1:500:1", 10, 0),   pair_member("M:1:100:1", 9, 1),
        pair_member("M:1:90:1", 20, 2),    pair_member("M:1:505:11", 8, 3),
        single_member("M:1:700:1", 50, 4), single_member("q", 50, 5),
    };
    resolve(&tags, m, 6);
    assert_true(!m[2].is_duplicate && m[2].count == 4 + 0);
    for (size_t i = 0; i < 6; i++)
        if (i != 2) assert_true(m[i].is_duplicate && has_original(&m[i], &m[2]));
    assert_true(!m[0].is_optical && m[1].is_optical && !m[1].was_optical);
    assert_true(m[3].is_optical && !m[4].is_optical && !m[5].is_optical);
    struct markdup_rules plain = tags;
    plain.checks_chains = false;
    resolve(&plain, m, 6);
    assert_true(has_original(&m[1], &m[0]));
    assert_false(m[1].is_optical);
}

TEST_OF_SETS(pairs_that_meet_need_a_score)
{
    struct member m[] = {pair_member("a", 10, 0), pair_member("b", 9, 1)};
    m[1].ends.lacks_score = true;
    assert_int_equal(try_to_resolve(&tags, m, 2), -1);
    m[1].ends.failed_qc = true;
    resolve(&tags, m, 2);
    assert_true(m[1].is_duplicate);
}

TEST_OF_SETS(time_and_memory_of_a_pile_are_bounded)
{
    enum { N = 200000, ROOM = 32 };
    struct rng rng = rng_start(612);
    OWNED struct member *m = test_alloc(N * sizeof *m);
    OWNED char(*names)[ROOM] = test_alloc(N * ROOM);
    for (size_t spread = 1; spread <= 1000000; spread *= 1000) {
        memory_bytes = spread == 1000 ? 1 << 20 : 64 << 20;
        for (size_t i = 0; i < N; i++) {
            (void)snprintf(names[i], ROOM, "M:1:%zu:%zu", rng_below(&rng, spread), i % spread);
            m[i] = pair_member(names[i], (int64_t)i, (uint32_t)i);
        }
        resolve(&tags, m, N);
        size_t n_optical = 0;
        for (size_t i = 0; i + 1 < N; i++) {
            assert_true(has_original(&m[i], &m[N - 1]));
            n_optical += m[i].is_optical;
        }
        assert_int_equal(m[N - 1].count, N);
        if (spread == 1) assert_int_equal(n_optical, N - 1);
        if (spread == 1000) assert_in_range(n_optical, N - 5000, N - 1000);
    }
}

/* Also of records without a position or reference, which the flags call mapped. */
TEST(moments_are_in_the_order_of_the_file)
{
    static const struct read_ends in_order[] = {
        {.ref = -1, .pos = -1},
        {.ref = 0, .pos = -1},
        {.ref = 0, .pos = -1, .is_reverse = true},
        {.ref = 0, .pos = 0},
        {.ref = 0, .pos = 0, .is_reverse = true},
        {.ref = 0, .pos = INT64_C(1) << 38},
        {.ref = 1, .pos = -1},
        {.ref = 1, .pos = 5},
        {.ref = 1, .pos = 5, .ordinal = 1},
        {.ref = INT32_MAX, .pos = INT64_C(1) << 61},
    };
    for (size_t i = 1; i < sizeof in_order / sizeof *in_order; i++) {
        struct item_read a, b;
        item_read_ends(&in_order[i - 1], 3, &a);
        item_read_ends(&in_order[i], 3, &b);
        assert_true(read_moment_compare(&a.moment, &b.moment) < 0);
    }
}

/* ---- barcodes ---- */

/* Reads of one place with these barcodes; which of them are no duplicates. */
static void check_barcodes(const char *const *barcodes, size_t n, const char *best,
                           enum read_ends_kind kind)
{
    struct markdup_rules rules = tags;
    struct member m[64];
    char names[64][8];
    assert_true(n <= sizeof m / sizeof *m);
    rules.barcode_mismatches = 1;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof names[i], "q%zu", i);
        m[i] = pair_member(names[i], (int64_t)(n - i), (uint32_t)i);
        m[i].ends.kind = kind;
        if (!*barcodes[i]) continue;
        m[i].ends.barcode_text = (const uint8_t *)barcodes[i];
        m[i].ends.barcode_bytes = (uint8_t)strlen(barcodes[i]);
        for (const uint8_t *c = m[i].ends.barcode_text; *c; c++)
            m[i].ends.barcode = m[i].ends.barcode * 31 + *c;
    }
    resolve(&rules, m, n);
    for (size_t i = 0; i < n; i++)
        if (m[i].is_duplicate != (best[i] != 'b'))
            fail_msg("read %zu of kind %d, %s", i, (int)kind, barcodes[i]);
}

/* test_markdup.py compares random barcodes with a model. */
static void check_both_kinds(const char *const *barcodes, size_t n, const char *best)
{
    check_barcodes(barcodes, n, best, READ_ENDS_PAIR);
    check_barcodes(barcodes, n, best, READ_ENDS_SINGLE);
}

TEST_OF_SETS(barcodes_are_joined_by_the_directional_method)
{
    static const char *const similar[] = {"ACGT", "ACGA", "ACTA", "TTTT", "", "", "ACGTA"};
    check_both_kinds(similar, 7, "b..bb.b");
    static const char *const separators[] = {"AC+GT", "AC-GT", "AC+GG"};
    check_both_kinds(separators, 3, "b..");
    /* three reads take in two, not three */
    static const char *const three_two[] = {"AAAA", "AAAA", "AAAA", "AAAC", "AAAC"};
    check_both_kinds(three_two, 5, "b....");
    static const char *const three_three[] = {"AAAA", "AAAA", "AAAA", "AAAC", "AAAC", "AAAC"};
    check_both_kinds(three_three, 6, "b..b..");
    /* the bridge belongs to the first; the third stays, as the bridge is not frequent enough */
    static const char *const bridge[] = {"AAAA", "AAAA", "AAAA", "AAAC", "AACC", "AACC", "AACC"};
    check_both_kinds(bridge, 7, "b...b..");
}

/* All reads of a barcode count, also of the last one that the memory holds. */
TEST_OF_SETS(barcodes_that_just_fit_in_memory_are_joined_alike)
{
    static const char *const two[] = {"AAAA", "AAAA", "AAAA", "AAAC", "AAAC", "AAAC"};
    const size_t most = barcode_bytes;
    barcode_bytes = 2 * (BARCODE_LIST_BYTES + 4 + 1);
    check_both_kinds(two, 6, "b..b..");
    barcode_bytes = most;
}

TEST_OF_SETS(barcodes_that_do_not_fit_in_memory_are_an_error_with_their_number)
{
    static const char *const barcodes[] = {"AAAA", "CCCC", "GGGG", "GGGG", "TTTT"};
    struct markdup_rules rules = tags;
    struct member m[5];
    const size_t most = barcode_bytes;
    rules.barcode_mismatches = 1;
    barcode_bytes = 2 * (BARCODE_LIST_BYTES + 4 + 1);
    for (uint32_t i = 0; i < 5; i++) {
        m[i] = pair_member("q", i, i);
        m[i].ends.barcode_text = (const uint8_t *)barcodes[i];
        m[i].ends.barcode_bytes = 4;
    }
    diag_renew();
    assert_int_equal(try_to_resolve(&rules, m, 5), -1);
    assert_non_null(strstr(diag_error_text(), "4 different barcodes are at position 6 of reference "
                                              "1: to join those with mismatches --markdup needs "
                                              "--max-memory 8M"));
    barcode_bytes = most;
}

/* Whatever the pile, a sort that has failed ends soon. */
TEST_OF_SETS(barcodes_are_not_joined_once_the_sort_has_failed)
{
    struct markdup_rules rules = tags;
    rules.barcode_mismatches = 1;
    struct member m[] = {pair_member("a", 10, 0), pair_member("b", 9, 1)};
    for (size_t i = 0; i < 2; i++) {
        m[i].ends.barcode_text = (const uint8_t *)"ACGT";
        m[i].ends.barcode_bytes = 4;
    }
    assert_int_equal(try_to_resolve(&rules, m, 2), 0);
    thread_pool_fail(threads);
    assert_int_equal(try_to_resolve(&rules, m, 2), -1);
}

TEST(shares_of_all_jobs_are_not_more_than_the_memory)
{
    struct rng rng = rng_start(614);
    for (int i = 0; i < 1000; i++) {
        unsigned n = 1 + (unsigned)rng_below(&rng, 64);
        size_t all = ((size_t)4 << 20) + rng_below(&rng, (size_t)1 << 36);
        const struct resolve_shares plain = resolve_share(all, n, false);
        const struct resolve_shares joins = resolve_share(all, n, true);
        assert_true(n * (plain.filter_bytes + plain.sort_bytes) <= all);
        assert_true(n * (joins.filter_bytes + joins.sort_bytes + joins.small_bytes) +
                        joins.barcode_bytes <= all);
        assert_true(joins.sort_bytes > all / n / 3 && joins.barcode_bytes > all / 3);
        assert_int_equal(plain.sort_bytes, all / n - plain.filter_bytes);
    }
    assert_int_equal(resolve_share(1 << 20, 1, true).barcode_bytes, 1 << 20);
}

/* Reads of pairs and single reads of one place, all of one molecule. */
TEST_OF_SETS(barcodes_of_single_reads_and_pairs_are_joined)
{
    struct markdup_rules rules = tags;
    rules.barcode_mismatches = 1;
    struct member m[] = {pair_member("a", 10, 0), single_member("b", 99, 1),
                         pair_member("c", 11, 2), single_member("d", 99, 3)};
    static const char *const barcodes[] = {"ACGT", "ACGA", "ACGC", "GGGG"};
    for (size_t i = 0; i < 4; i++) {
        m[i].ends.barcode = i + 1;
        m[i].ends.barcode_text = (const uint8_t *)barcodes[i];
        m[i].ends.barcode_bytes = 4;
    }
    resolve(&rules, m, 4);
    assert_true(m[0].is_duplicate && m[1].is_duplicate && !m[2].is_duplicate);
    assert_true(has_original(&m[0], &m[2]) && has_original(&m[1], &m[2]) && !m[3].is_duplicate);
    rules.barcode_mismatches = 0;
    resolve(&rules, m, 4);
    for (size_t i = 0; i < 4; i++)
        assert_false(m[i].is_duplicate);
}
