/*
 * test_large_template.c -- two walks over the records of a template, the second one in any parts,
 * give what fixmate.h gives.
 */
#include "unit_test.h"

#include "template/large_template.h"

enum { MAX_RECORDS = 40, RECORD_BYTES = 600, N_CASES = 3000 };

static const int64_t reference_bases[] = {3000, 1 << 20};

static size_t put_tag(struct rng *rng, uint8_t *out)
{
    static const char *const texts[] = {"MCZ9M", "ctZold", "XXZkept", "MMZC+m,0;", "NMZ1"};
    size_t kind = rng_below(rng, 9);
    if (kind < 5) {
        memcpy(out, texts[kind], strlen(texts[kind]) + 1);
        return strlen(texts[kind]) + 1;
    }
    static const char integers[][4] = {"MQC", "msC", "MNC", "XYc"};
    memcpy(out, integers[kind - 5], 3);
    out[3] = (uint8_t)rng_below(rng, 100);
    return 4;
}

static size_t put_random(struct rng *rng, uint8_t *out, size_t primaries)
{
    uint32_t flag = (uint32_t)rng_next(rng) & (BAM_FPAIRED | BAM_FPROPER_PAIR | BAM_FMUNMAP |
                                               BAM_FREVERSE | BAM_FMREVERSE | BAM_FREAD1 |
                                               BAM_FREAD2 | BAM_FQCFAIL);
    if (rng_one_in(rng, 4)) flag |= BAM_FUNMAP;
    if (!rng_one_in(rng, primaries))
        flag |= rng_one_in(rng, 2) ? BAM_FSECONDARY : BAM_FSUPPLEMENTARY;
    struct record_fields f = {
        .name = "q", .flag = flag, .tid = (int32_t)rng_below(rng, 3) - 1,
        .pos = (int32_t)rng_below(rng, 2950) - 1, .l_seq = (int32_t)rng_below(rng, 40)};
    if (f.l_seq > 0) f.n_cigar = (uint32_t)rng_below(rng, 12);
    size_t n = put_record(out, &f, (uint8_t)rng_below(rng, 40));
    for (size_t i = rng_below(rng, 4); i > 0; i--) n += put_tag(rng, out + n);
    out[BAM_MAPQ_AT] = (uint8_t)rng_below(rng, 61);
    test_put_u32(out, (uint32_t)n - 4);
    return n;
}

struct records {
    uint8_t *at;
    size_t starts[MAX_RECORDS + 1], n;
};

static void make_records(struct rng *rng, struct records *records)
{
    size_t primaries = 1 + rng_below(rng, 10), at = 0;
    records->n = 1 + rng_below(rng, MAX_RECORDS);
    for (size_t i = 0; i < records->n; i++) {
        records->starts[i] = at;
        at += put_random(rng, records->at + at, primaries);
    }
}

static struct fixmate_rules random_rules(struct rng *rng)
{
    return (struct fixmate_rules){
        .removes = rng_one_in(rng, 4), .any_orientation = rng_one_in(rng, 4),
        .template_cigar = rng_one_in(rng, 2), .base_mods = rng_one_in(rng, 3),
        .sanitize = rng_one_in(rng, 3) ? 0 : SANITIZE_ALL, .n_refs = 2,
        .reference_bases = reference_bases};
}

static bool same_place(struct large_place a, struct large_place b)
{
    return a.has_first == b.has_first &&
           (!a.has_first || (a.flag == b.flag && a.tid == b.tid && a.pos == b.pos));
}

/* Fixes the records in parts that begin at places of the first walk. */
static void walk_in_parts(struct rng *rng, const struct large_template *lt,
                          const struct records *records, const struct large_place *places,
                          struct fixmate_space *space)
{
    for (size_t i = 0; i < records->n;) {
        struct large_walk walk;
        size_t end = i + 1 + rng_below(rng, records->n - i);
        large_walk_begin(&walk, lt, &places[i]);
        for (; i < end; i++) {
            CHECK(rng, same_place(large_walk_place(&walk), places[i]));
            CHECK(rng, !large_walk_fix(&walk, space, records->at + records->starts[i]));
        }
    }
}

TEST(test_like_fixmate)
{
    struct rng rng = rng_start(1);
    struct records records = {.at = test_alloc(MAX_RECORDS * RECORD_BYTES)};
    RELEASED(fixmate_release) struct fixmate_space want = {.n_out = 0}, got = {.n_out = 0};
    for (int i = 0; i < N_CASES; i++) {
        struct fixmate_rules rules = random_rules(&rng);
        struct large_place places[MAX_RECORDS];
        make_records(&rng, &records);
        fixmate_empty(&want);
        fixmate_empty(&got);
        struct large_template *lt = large_template_create(&rules);
        for (size_t k = 0; k < records.n; k++) {
            const uint8_t *rec = records.at + records.starts[k];
            CHECK(&rng, !fixmate_add(&rules, &want, rec));
            places[k] = large_template_place(lt);
            /* It keeps copies. */
            OWNED uint8_t *copy = test_alloc(bam_record_bytes(rec));
            memcpy(copy, rec, bam_record_bytes(rec));
            large_template_look(lt, copy);
        }
        CHECK(&rng, fixmate_finish(&rules, &want));
        large_template_end(lt);
        walk_in_parts(&rng, lt, &records, places, &got);
        CHECK(&rng, got.n_out == want.n_out && got.out_bytes == want.out_bytes);
        CHECK(&rng, got.n_out == 0 || memcmp(got.out, want.out, want.out_bytes) == 0);
        large_template_destroy(lt);
    }
    free(records.at);
}

/* A damaged primary record is ignored by the first walk, and refused by nobody but its reader. */
TEST(test_damaged_primary_record_is_ignored)
{
    struct rng rng = rng_start(2);
    const struct fixmate_rules rules = {.n_refs = 2, .reference_bases = reference_bases};
    struct large_template *lt = large_template_create(&rules);
    uint8_t rec[RECORD_BYTES];
    for (int i = 0; i < 20; i++) {
        (void)put_random(&rng, rec, 1);
        test_put_u32(rec + BAM_TID_AT, 7);
        large_template_look(lt, rec);
        assert_false(large_template_place(lt).has_first);
    }
    large_template_end(lt);
    large_template_destroy(lt);
    large_template_destroy(NULL);
}
