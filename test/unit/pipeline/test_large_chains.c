/* test_large_chains.c -- chains that are sorted on the disk, against those in memory. */
#include "random_chains.h"
#include "test_place.h"

#include "pipeline/large_chains.h"

/* What was taken or sent of each member, whose number is its index. */
struct taken {
    const struct duplicate_rules *rules;
    const struct chain_member *members; /* decided in memory */
    const struct chain_member *const *ends;     /* of those that are routed */
    size_t n;
    bool *is_taken;
};

static void check_name(const struct duplicate_view *got, const struct duplicate_view *want)
{
    assert_int_equal(got->name_bytes, want->name_bytes);
    assert_memory_equal(got->name, want->name, want->name_bytes);
}

static void mark_taken(const struct taken *taken, uint32_t index)
{
    assert_in_range(index, 0, taken->n - 1);
    assert_false(taken->is_taken[index]);
    taken->is_taken[index] = true;
}

static int take(void *arg, const struct chain_member *got)
{
    const struct taken *taken = arg;
    const struct chain_member *want = &taken->members[got->view.index];
    mark_taken(taken, got->view.index);
    assert_int_equal(got->run, want->run);
    assert_int_equal(got->is_duplicate, want->is_duplicate);
    check_name(&got->view, &want->view);
    assert_int_equal(got->view.kind, want->view.kind);
    assert_int_equal(got->view.ref, want->view.ref);
    assert_int_equal(got->view.pos, want->view.pos);
    assert_int_equal(got->view.is_reverse, want->view.is_reverse);
    assert_int_equal(got->view.has_others, want->view.has_others);
    assert_int_equal(got->view.was_marked, want->view.was_marked);
    if (!got->is_duplicate) {
        assert_int_equal(got->count, want->count);
        return 0;
    }
    assert_int_equal(got->is_optical, want->is_optical);
    assert_int_equal(got->was_optical, want->was_optical);
    assert_true(got->view.ordinal == want->view.ordinal);
    assert_true(got->found_by->view.ordinal == want->found_by->view.ordinal);
    assert_int_equal(got->found_by->run, want->found_by->run);
    assert_int_equal(duplicate_view_place(&got->found_by->view),
                     duplicate_view_place(&want->found_by->view));
    if (!taken->rules->names_original) return 0;
    check_name(&got->original->view, &want->original->view);
    if (want->view.has_others) check_name(&got->found_by->view, &want->found_by->view);
    return 0;
}

static int send(void *arg, const struct duplicate_view *single, uint32_t run,
                const struct duplicate_view *end)
{
    const struct taken *taken = arg;
    const struct chain_member *want = taken->ends[single->index];
    mark_taken(taken, single->index);
    assert_non_null(want);
    assert_int_equal(run, taken->members[single->index].run);
    assert_int_equal(end->index, want->view.index);
    assert_int_equal(end->other_place, want->view.other_place);
    return 0;
}

/* Which kinds there are, as the caller of large_chains_create says. */
static struct large_chains_settings settings_for(struct taken *taken, const char *const *prefix)
{
    struct large_chains_settings settings = {
        .rules = taken->rules, .places = {prefix, 1, NULL},
        .taker = {take, taken},
    };
    for (size_t i = 0; i < taken->n; i++) {
        enum view_kind kind = taken->members[i].view.kind;
        settings.has_singles |= kind == VIEW_SINGLE;
        settings.has_pairs |= kind == VIEW_PAIR;
        settings.has_ends |= kind == VIEW_END;
    }
    return settings;
}

static void add_all(struct large_chains *chains, const struct chain_member *members, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(large_chains_add(chains, &members[i].view, members[i].run), 0);
}

/* All duplicates and all counts were taken, and nothing else. */
static void check_all_taken(const struct rng *rng, const struct taken *taken)
{
    for (size_t i = 0; i < taken->n; i++) {
        const struct chain_member *m = &taken->members[i];
        bool is_elsewhere = m->view.kind == VIEW_END || (taken->ends && taken->ends[i]);
        bool is_expected = !is_elsewhere && (m->is_duplicate || m->count > 1);
        CHECK(rng, taken->is_taken[i] == is_expected);
    }
}

static void decide_large(const struct rng *rng, struct taken *taken, const char *path)
{
    const char *const prefix[] = {path};
    const struct large_chains_settings settings = settings_for(taken, prefix);
    struct large_chains *chains = large_chains_create(&settings);
    memset(taken->is_taken, 0, taken->n);
    add_all(chains, taken->members, taken->n);
    assert_int_equal(large_chains_decide(chains), 0);
    large_chains_destroy(chains);
    check_all_taken(rng, taken);
}

/* Some barcodes, or none: few letters, two lengths. */
static void set_barcode(struct rng *rng, struct duplicate_view *view, char *text)
{
    if (rng_one_in(rng, 8)) return;
    name_of_letters(rng, text, rng_one_in(rng, 6) ? 2 : 3, "AAAACCG");
    view->barcode = 1;
    for (const char *c = text; *c; c++) view->barcode = view->barcode * 31 + (uint8_t)*c;
    view->barcode_text = (const uint8_t *)text;
    view->barcode_bytes = (uint8_t)strlen(text);
}

static struct duplicate_rules more_rules(struct rng *rng)
{
    struct duplicate_rules rules = random_rules(rng);
    rules.names_original = !rng_one_in(rng, 3);
    rules.barcode_mismatches = rng_one_in(rng, 3);
    return rules;
}

enum { TEXT_ROOM = 4 };

struct reads {
    struct chain_member *members;
    char (*names)[NAME_ROOM], (*barcodes)[TEXT_ROOM];
    bool *is_taken;
};

static struct reads make_reads(size_t most)
{
    return (struct reads){
        test_alloc(most * sizeof(struct chain_member)), test_alloc(most * NAME_ROOM),
        test_alloc(most * TEXT_ROOM), test_alloc(most),
    };
}

static void free_reads(struct reads *reads)
{
    free(reads->members);
    free(reads->names);
    free(reads->barcodes);
    free(reads->is_taken);
}

static void fill_reads(struct rng *rng, const struct duplicate_rules *rules, struct reads *reads,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct duplicate_view view = random_view(rng, rules, reads->names[i]);
        view.index = (uint32_t)i;
        view.ordinal = ((UINT64_C(1) << 39) - i) & DUPLICATE_ORDINAL_MASK;
        view.has_others = rng_one_in(rng, 4);
        view.was_marked = rng_one_in(rng, 4);
        if (rules->barcode_mismatches > 0) set_barcode(rng, &view, reads->barcodes[i]);
        reads->members[i] = (struct chain_member){.view = view,
                                                  .run = (uint32_t)rng_below(rng, 3)};
    }
}

static void test_against_memory(void **state)
{
    const struct place *place = *state;
    struct rng rng = rng_start(711);
    struct reads reads = make_reads(MOST);
    for (int i = 0; i < 6000; i++) {
        const struct duplicate_rules rules = more_rules(&rng);
        struct taken taken = {.rules = &rules, .members = reads.members,
                              .n = 1 + rng_below(&rng, MOST - 1), .is_taken = reads.is_taken};
        fill_reads(&rng, &rules, &reads, taken.n);
        if (rng_one_in(&rng, 4))        /* only single reads, or only pairs */
            for (size_t j = 0; j < taken.n; j++)
                reads.members[j].view.kind = i % 2 ? VIEW_SINGLE : VIEW_PAIR;
        assert_null(duplicate_chains_decide(&rules, reads.members, taken.n));
        decide_large(&rng, &taken, place->path);
    }
    free_reads(&reads);
}

/* So many that each sort has many streams, and cells have many reads. */
static void test_many(void **state)
{
    enum { N = 60000 };
    const struct place *place = *state;
    struct rng rng = rng_start(712);
    struct reads reads = make_reads(N);
    for (int i = 0; i < 6; i++) {
        struct duplicate_rules rules = more_rules(&rng);
        struct taken taken = {.rules = &rules, .members = reads.members, .n = N,
                              .is_taken = reads.is_taken};
        rules.optical_distance = i < 2 ? 40 : i < 4 ? 3 : 0;
        rules.barcode_mismatches = i % 2 ? 1 : 0;
        fill_reads(&rng, &rules, &reads, N);
        for (size_t j = 0; j < N && i != 3; j++)        /* spread, but for one round */
            (void)snprintf(reads.names[j], NAME_ROOM, "M:%zu:%05zu:%05zu", rng_below(&rng, 3),
                           rng_below(&rng, 3000), rng_below(&rng, 3000));
        for (size_t j = 0; j < N; j++) set_name(&reads.members[j].view, reads.names[j]);
        assert_null(duplicate_chains_decide(&rules, reads.members, N));
        decide_large(&rng, &taken, place->path);
    }
    free_reads(&reads);
}

/* Single reads that belong to pairs elsewhere are sent there, and the others decided. */
static void test_route(void **state)
{
    const struct place *place = *state;
    const char *const prefix[] = {place->path};
    struct rng rng = rng_start(713);
    struct reads reads = make_reads(MOST), here = make_reads(MOST);
    size_t n_sent = 0;
    for (int i = 0; i < 3000; i++) {
        struct duplicate_rules rules = more_rules(&rng);
        const struct chain_member *ends[MOST];
        struct taken taken = {.rules = &rules, .members = reads.members, .ends = ends,
                              .n = 1 + rng_below(&rng, MOST - 1), .is_taken = reads.is_taken};
        rules.by_sequence = false;
        fill_reads(&rng, &rules, &reads, taken.n);
        for (size_t j = 0; j < taken.n; j++) {
            struct duplicate_view *view = &reads.members[j].view;
            view->ref = 0;
            view->here = 0;
            if (view->orientation != PAIR_FF && view->orientation != PAIR_RR) view->other_place = 0;
            if (view->kind == VIEW_SINGLE) view->other_place = 0;
            if (view->kind != VIEW_PAIR || !rng_one_in(&rng, 4)) continue;
            view->kind = VIEW_END;
            view->orientation = PAIR_FF;        /* only these have one */
            view->other_place = 5;
        }
        n_sent += duplicate_chains_route(&rules, reads.members, taken.n, ends);
        const struct large_chains_settings settings = settings_for(&taken, prefix);
        struct large_chains *chains = large_chains_create(&settings);
        memset(reads.is_taken, 0, taken.n);
        add_all(chains, reads.members, taken.n);
        assert_int_equal(large_chains_route(chains, send, &taken), 0);
        large_chains_destroy(chains);
        for (size_t j = 0; j < taken.n; j++) CHECK(&rng, reads.is_taken[j] == (ends[j] != NULL));

        /* In memory, those that are decided here. */
        size_t n = 0;
        for (size_t j = 0; j < taken.n; j++)
            if (!ends[j] && reads.members[j].view.kind != VIEW_END)
                here.members[n++] = reads.members[j];
        assert_null(duplicate_chains_decide(&rules, here.members, n));
        for (size_t j = 0; j < n; j++) reads.members[here.members[j].view.index] = here.members[j];
        decide_large(&rng, &taken, place->path);
    }
    assert_true(n_sent > 2500);
    free_reads(&reads);
    free_reads(&here);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_against_memory, enter_place, leave_place),
        cmocka_unit_test_setup_teardown(test_many, enter_place, leave_place),
        cmocka_unit_test_setup_teardown(test_route, enter_place, leave_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
