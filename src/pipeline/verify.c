/* verify.c -- see verify.h. */
#include "pipeline/verify.h"

#include "input/input_file.h"
#include "order/order_check.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct verification {
    struct crew *crew;
    const char *input;          /* its name in messages */
    sam_hdr_t *header;
    struct order_claim claim;
    struct order_check *check;
    bool disproved;             /* under the lock: every candidate is violated */
};

int verification_create(struct crew *crew, const struct verify_settings *settings,
                        struct rules_maker *maker, sam_hdr_t *header,
                        struct verification **verification)
{
    struct verification *v = xcalloc(1, sizeof *v);
    v->crew = crew;
    v->header = header;
    v->input = input_shown_name(settings->input);
    *verification = NULL;
    if (settings->claim)
        order_claim_of_header(header, &v->claim);
    else
        order_claim_of_rules(settings->rules, &v->claim);
    if (v->claim.n_candidates == 0 && v->claim.is_unsorted) {
        /* --quiet does not leave this out: the answer is no. */
        diag_error("'%s' says that it is unsorted (%s); name an order to check, such as -n or "
                   "--verify=coordinate", v->input, v->claim.header_says);
        verification_destroy(v);
        return 0;
    }
    if (v->claim.n_candidates == 0) {
        diag_note("'%s' claims no order that can be verified (%s); give one: -n, -N, -t TAG, "
                  "--template-coordinate, -M or --verify=coordinate", v->input,
                  v->claim.header_says);
        verification_destroy(v);
        return 0;
    }
    for (unsigned i = 0; i < v->claim.n_candidates; i++) {
        if (rules_complete(maker, header, &v->claim.candidates[i].rules) == 0) continue;
        verification_destroy(v);
        return -1;
    }
    v->check = order_check_create(&v->claim);
    *verification = v;
    return 0;
}

static void report_problem(struct verification *v, const struct record_problem *problem)
{
    record_problem_print(problem, v->input);
    crew_fail(v->crew);
}

void verification_check(struct verification *v, const struct batch_part *part)
{
    if (crew_failed(v->crew)) return;
    struct record_problem problem;
    struct order_span *span =
        order_check_scan(v->check, part->from, part->to, part->first_record, &problem);
    if (!span) {
        report_problem(v, &problem);
        return;
    }
    crew_lock(v->crew);
    v->disproved = order_check_join(v->check, span) != 0;
    if (v->disproved) crew_fail_locked(v->crew);
    crew_unlock(v->crew);
}

/* Writes a record as in "record 7 (read 'x', flag 16, chr1:100, CB:Z:ACGT)". */
static void write_record(const struct verification *v, const struct order_record *r,
                         kstring_t *text)
{
    const char *reference = r->tid >= 0 ? sam_hdr_tid2name(v->header, r->tid) : "*";
    (void)ksprintf(text, "record %" PRIu64 " (read '%s', flag %u, %s:%" PRId64 "%s%s)", r->number,
                   r->name, r->flag, reference ? reference : "?", r->pos + 1,
                   *r->value ? ", " : "", r->value);
}

/* Says which two records are the wrong way round. */
static void tell_pair(const struct verification *v, const struct order_verdict *verdict)
{
    kstring_t before = {0, 0, NULL}, after = {0, 0, NULL};
    const char *words = verdict->sorted ? verdict->candidate->note : verdict->candidate->words;
    write_record(v, &verdict->before, &before);
    write_record(v, &verdict->after, &after);
    /* --quiet leaves out the note, but not that the file is not in order. */
    (verdict->sorted ? diag_note : diag_error)(
        "'%s' %s%s: %s comes before %s", v->input, verdict->sorted ? "is sorted, but " : "is not ",
        words, before.s ? before.s : "?", after.s ? after.s : "?");
    ks_free(&before);
    ks_free(&after);
}

int verification_finish(struct verification *v, int loaded, struct sort_report *report)
{
    if (loaded < 0 && (!v->disproved || diag_failed())) return loaded;
    struct order_verdict verdict;
    order_check_verdict(v->check, &verdict);
    report->verified = verdict.sorted;
    (void)snprintf(report->order_words, sizeof report->order_words, "%s",
                   verdict.candidate->words);
    if (verdict.has_pair && (!verdict.sorted || hts_verbose >= 2)) tell_pair(v, &verdict);
    return 0;
}

void verification_destroy(struct verification *v)
{
    if (!v) return;
    order_check_destroy(v->check);
    free(v);
}
