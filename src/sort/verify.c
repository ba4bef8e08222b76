/* verify.c -- see verify.h. */
#include "sort/verify.h"

#include "input/input_file.h"
#include "sort/rules.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>

struct verification {
    struct record_observer base;        /* must be the first member */
    const struct sort_context *sort;
    const char *input;          /* its name in messages */
    struct order_claim claim;
    struct order_check *check;
    bool disproved;             /* under the lock: every candidate order is violated */
};

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *records)
{
    struct verification *v = (struct verification *)observer;
    struct record_problem problem;
    (void)part;
    if (thread_pool_failed(v->sort->threads)) return 0;
    /* Changing records is safe: only this worker has them. -M reverse-complements some. */
    uint8_t *from = (uint8_t *)(uintptr_t)records->all.at;
    struct order_span *span =
        order_check_scan(v->check, from, records->all.to, records->first_record, &problem);
    if (!span) {
        record_problem_print(&problem, v->input);
        return -1;
    }
    thread_pool_lock(v->sort->threads);
    v->disproved = order_check_join(v->check, span) != 0;
    if (v->disproved) thread_pool_fail_locked(v->sort->threads);
    thread_pool_unlock(v->sort->threads);
    return 0;
}

static void destroy(struct record_observer *observer)
{
    order_check_destroy(((struct verification *)observer)->check);
    free(observer);
}

int verification_create(struct sort_context *sort)
{
    static const struct observer_kind kind = {.add_records = add_records, .destroy = destroy};
    const struct sort_settings *s = sort->settings;
    struct verification *v = xcalloc(1, sizeof *v);
    *v = (struct verification){.base = {.kind = &kind}, .sort = sort,
                               .input = input_shown_name(s->inputs[0])};
    if (s->verify_claim)
        order_claim_of_header(v->sort->header, &v->claim);
    else
        order_claim_of_rules(&s->rules, &v->claim);
    if (v->claim.n_candidates == 0) {
        if (v->claim.is_unsorted)       /* an answer, not a note: --quiet prints it */
            diag_error("'%s' says that it is unsorted (%s); name an order to check, such as -n or "
                       "--verify=coordinate", v->input, v->claim.header_says);
        else
            diag_note("'%s' claims no order that can be verified (%s); give one: -n, -N, -t TAG, "
                      "--template-coordinate, -M or --verify=coordinate", v->input,
                      v->claim.header_says);
        destroy(&v->base);
        return 0;
    }
    for (unsigned i = 0; i < v->claim.n_candidates; i++) {
        struct sort_rules *rules = &v->claim.candidates[i].rules;
        if (rules_complete(&sort->rules_maker, v->sort->header, rules) == 0) continue;
        destroy(&v->base);
        return -1;
    }
    v->check = order_check_create(&v->claim);
    sort->verification = v;
    record_observers_add(&sort->observers_in, &v->base);
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
        order_violation_print_verdict(v->input, v->sort->header, &verdict);
    return 0;
}
