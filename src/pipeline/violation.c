/* violation.c -- see violation.h. */
#include "pipeline/violation.h"

#include "util/diag.h"
#include "util/xalloc.h"

#include <htslib/kstring.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Writes a record as in "record 7 (read 'x', flag 16, chr1:100, CB:Z:ACGT)". */
static void write_record(sam_hdr_t *header, const struct order_record *r, kstring_t *text)
{
    const char *reference = r->tid >= 0 ? sam_hdr_tid2name(header, r->tid) : "*";
    (void)ksprintf(text, "record %" PRIu64 " (read '%s', flag %u, %s:%" PRId64 "%s%s)", r->number,
                   r->name, r->flag, reference ? reference : "?", r->pos + 1,
                   *r->value ? ", " : "", r->value);
}

void violation_print_verdict(const char *input, sam_hdr_t *header,
                             const struct order_verdict *verdict)
{
    kstring_t before = {0, 0, NULL}, after = {0, 0, NULL};
    const char *words = verdict->sorted ? verdict->candidate->note : verdict->candidate->words;
    write_record(header, &verdict->before, &before);
    write_record(header, &verdict->after, &after);
    /* --quiet leaves out the note, but not that the file is not in order. */
    (verdict->sorted ? diag_note : diag_error)(
        "'%s' %s%s: %s comes before %s", input, verdict->sorted ? "is sorted, but " : "is not ",
        words, before.s ? before.s : "?", after.s ? after.s : "?");
    ks_free(&before);
    ks_free(&after);
}

/* Appends a copy of a record, in the form in which it was read. Returns its end. */
static uint8_t *copy_record(const struct sort_rules *rules, const uint8_t *rec, uint8_t *out)
{
    memcpy(out, rec, bam_record_bytes(rec));
    sort_rules_restore(rules->order, out);
    return out + bam_record_bytes(out);
}

void violation_print(const struct sort_rules *rules, sam_hdr_t *header, const char *input,
                     const uint8_t *before, const uint8_t *after, uint64_t number)
{
    struct order_claim claim;
    struct order_verdict verdict;
    struct record_problem problem;
    order_claim_of_rules(rules, &claim);
    claim.candidates[0].rules = *rules;
    uint8_t *two = xmalloc(bam_record_bytes(before) + bam_record_bytes(after));
    const uint8_t *end = copy_record(rules, after, copy_record(rules, before, two));
    struct order_check *check = order_check_create(&claim);
    struct order_span *span = order_check_scan(check, two, end, 0, &problem);
    if (span) {
        (void)order_check_join(check, span);
        order_check_verdict(check, &verdict);
        verdict.before.number += number - 1;
        verdict.after.number += number - 1;
        violation_print_verdict(input, header, &verdict);
    } else {                    /* both had a key before */
        record_problem_print(&problem, input);
    }
    order_check_destroy(check);
    free(two);
}
