/* verify.c -- see verify.h. */
#include "pipeline/verify.h"

#include "input/input_file.h"
#include "pipeline/violation.h"
#include "util/diag.h"
#include "util/xalloc.h"

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

int verification_finish(struct verification *v, int loaded, struct sort_report *report)
{
    if (loaded < 0 && (!v->disproved || diag_failed())) return loaded;
    struct order_verdict verdict;
    order_check_verdict(v->check, &verdict);
    report->verified = verdict.sorted;
    (void)snprintf(report->order_words, sizeof report->order_words, "%s",
                   verdict.candidate->words);
    if (verdict.has_pair && (!verdict.sorted || hts_verbose >= 2))
        violation_print_verdict(v->input, v->header, &verdict);
    return 0;
}

void verification_destroy(struct verification *v)
{
    if (!v) return;
    order_check_destroy(v->check);
    free(v);
}
