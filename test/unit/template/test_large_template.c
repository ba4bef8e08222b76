/* test_large_template.c -- what the first walk over a large template ignores; fuzz_template.c
   compares both walks with fixmate.h. */
#include "unit_test.h"

#include "template/large_template.h"

/* Its reader refuses it later. */
TEST(test_damaged_primary_record_is_ignored)
{
    static const int64_t reference_bases[] = {3000, 1 << 20};
    const struct fixmate_rules rules = {.n_refs = 2, .reference_bases = reference_bases};
    const struct record_fields f = {.name = "q", .tid = 7, .flag = BAM_FPAIRED, .l_seq = 10};
    struct large_template *lt = large_template_create(&rules);
    uint8_t rec[100];
    (void)put_record(rec, &f, 30);
    large_template_look(lt, rec);
    assert_false(large_template_place(lt).has_first);
    large_template_end(lt);
    large_template_destroy(lt);
    large_template_destroy(NULL);
}
