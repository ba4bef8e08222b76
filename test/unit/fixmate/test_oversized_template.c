/* test_oversized_template.c -- what the first walk over a large template ignores; fuzz_template.c
   compares both walks with fixmate.h. */
#include "unit_test.h"

#include "fixmate/oversized_template.h"

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
    assert_false(oversized_template_place(lt).has_first);
    oversized_template_end(lt);
    oversized_template_destroy(lt);
    oversized_template_destroy(NULL);
}
