/* verify.c -- see verify.h. */
#include "pipeline/verify.h"

#include "input/input_file.h"
#include "pipeline/violation.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>

struct verification {
    struct record_observer base;        /* must be the first member */
    struct crew *crew;
    const char *input;          /* its name in messages */
    sam_hdr_t *header;
    struct order_claim claim;
    struct order_check *check;
    bool disproved;             /* under the lock: every candidate is violated */
};

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *records)
{
    struct verification *v = (struct verification *)observer;
    struct record_problem problem;
    (void)part;
    if (crew_failed(v->crew)) return 0;
    /* The load gives each record to one worker at a time, and the order may turn it round. */
    uint8_t *from = (uint8_t *)(uintptr_t)records->all.at;
    struct order_span *span =
        order_check_scan(v->check, from, records->all.to, records->first_record, &problem);
    if (!span) {
        record_problem_print(&problem, v->input);
        return -1;
    }
    crew_lock(v->crew);
    v->disproved = order_check_join(v->check, span) != 0;
    if (v->disproved) crew_fail_locked(v->crew);
    crew_unlock(v->crew);
    return 0;
}

static void destroy(struct record_observer *observer)
{
    order_check_destroy(((struct verification *)observer)->check);
    free(observer);
}

struct record_observer *verification_observer(struct verification *v)
{
    return v ? &v->base : NULL;
}

int verification_create(struct crew *crew, const struct verify_settings *settings,
                        struct rules_maker *maker, sam_hdr_t *header,
                        struct verification **verification)
{
    static const struct observer_kind kind = {.add_records = add_records, .destroy = destroy};
    struct verification *v = xcalloc(1, sizeof *v);
    v->base.kind = &kind;
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
        destroy(&v->base);
        return 0;
    }
    if (v->claim.n_candidates == 0) {
        diag_note("'%s' claims no order that can be verified (%s); give one: -n, -N, -t TAG, "
                  "--template-coordinate, -M or --verify=coordinate", v->input,
                  v->claim.header_says);
        destroy(&v->base);
        return 0;
    }
    for (unsigned i = 0; i < v->claim.n_candidates; i++) {
        if (rules_complete(maker, header, &v->claim.candidates[i].rules) == 0) continue;
        destroy(&v->base);
        return -1;
    }
    v->check = order_check_create(&v->claim);
    *verification = v;
    return 0;
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
