/* test_oversized_template.c -- what the first pass over an oversized template ignores;
   fuzz_template.c compares both passes with fixmate.h. */
#include "unit_test.h"

#include "fixmate/fixed_records.h"

/* Its reader refuses it later. */
TEST(test_damaged_primary_record_is_ignored)
{
    static const int64_t reference_bases[] = {3000, 1 << 20};
    const struct fixmate_rules rules = {.n_refs = 2, .reference_bases = reference_bases};
    const struct record_fields f = {.name = "q", .tid = 7, .flag = BAM_FPAIRED, .l_seq = 10};
    struct oversized_template *lt = oversized_template_create(&rules);
    uint8_t rec[100];
    (void)put_record(rec, &f, 30);
    oversized_template_look(lt, rec);
    oversized_template_end(lt);
    RELEASED(fixmate_release) struct fixmate_space space = {.n_out = 0};
    const struct record_fields other = {.name = "q", .flag = BAM_FPAIRED | BAM_FSUPPLEMENTARY};
    size_t n_bytes = put_record(rec, &other, 0);
    assert_null(oversized_template_fix(lt, &space, rec));
    assert_in_range(space.out_bytes, n_bytes, n_bytes + 20);    /* no mate's tags */
    oversized_template_destroy(lt);
    oversized_template_destroy(NULL);
}
