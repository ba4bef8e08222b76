/*
 * verify.c -- --verify: are the records in order?
 *
 * The load is that of --checksum-only. Whoever has checked and summed a part of a batch also scans
 * it for its order; the scans are joined in the order of the input (order_check.h). When no order
 * is left that the file may have, loading is stopped as by a failure, but without a message.
 */
#include "pipeline/pipeline_internal.h"

#include "order/order_check.h"
#include "pipeline/input_damage.h"
#include "util/diag.h"

#include <inttypes.h>
#include <stdlib.h>

struct verification {
    struct order_claim claim;
    struct order_check *check;
    bool disproved;             /* under the pipeline's lock: every candidate is violated */
};

/* How the input is called in messages. */
static const char *input_name(const struct pipeline *p)
{
    const char *name = p->settings->inputs[0];
    return strcmp(name, "-") == 0 ? "standard input" : name;
}

int verify_prepare(struct pipeline *p, bool *nothing_to_check)
{
    const struct sort_settings *s = p->settings;
    *nothing_to_check = false;
    if (!s->verify) return 0;
    struct verification *v = p->verification = calloc(1, sizeof *v);
    if (!v) return pipeline_no_memory(p);
    if (s->verify_claim)
        order_claim_of_header(p->header, &v->claim);
    else
        order_claim_of_rules(&s->rules, &v->claim);
    if (v->claim.n_candidates == 0) {
        *nothing_to_check = true;
        diag_note("'%s' claims no order that can be verified (%s); give one: -n, -N, -t TAG, "
                  "--template-coordinate, -M or --verify=coordinate", input_name(p),
                  v->claim.header_says);
        return 0;
    }
    for (unsigned i = 0; i < v->claim.n_candidates; i++)
        if (complete_rules(p, &v->claim.candidates[i].rules) < 0) return -1;
    v->check = order_check_create(&v->claim);
    return v->check ? 0 : pipeline_no_memory(p);
}

static void report_problem(struct pipeline *p, const struct order_problem *problem)
{
    if (problem->text)
        input_damage_unfit(input_name(p), problem->record + 1, problem->read_name, problem->text);
    else
        diag_no_memory();
    pipeline_fail(p);
}

void verify_part(struct pipeline *p, const struct batch_part *part)
{
    struct verification *v = p->verification;
    if (!v || pipeline_failed(p)) return;
    struct order_problem problem;
    struct order_span *span =
        order_check_scan(v->check, part->from, part->to, part->first_record, &problem);
    if (!span) {
        report_problem(p, &problem);
        return;
    }
    pipeline_lock(p);
    v->disproved = order_check_join(v->check, span) != 0;
    bool stop = v->disproved;
    pipeline_unlock(p);
    if (stop) pipeline_fail(p);
}

/* "record 7, read 'x', flag 16, chr1:100, CB:Z:ACGT" */
static void write_record(const struct pipeline *p, const struct order_record *r, kstring_t *text)
{
    const char *reference = r->tid >= 0 ? sam_hdr_tid2name(p->header, r->tid) : "*";
    (void)ksprintf(text, "record %" PRIu64 " (read '%s', flag %u, %s:%" PRId64 "%s%s)", r->number,
                   r->name, r->flag, reference ? reference : "?", r->pos + 1,
                   *r->value ? ", " : "", r->value);
}

/* Says which records are the wrong way round. */
static void tell_pair(const struct pipeline *p, const struct order_verdict *verdict)
{
    kstring_t before = {0, 0, NULL}, after = {0, 0, NULL};
    const char *words = verdict->sorted ? verdict->candidate->note : verdict->candidate->words;
    write_record(p, &verdict->before, &before);
    write_record(p, &verdict->after, &after);
    /* --quiet leaves out the note, not that the file is not in order. */
    (verdict->sorted ? diag_note : diag_error)(
        "'%s' %s%s: %s comes before %s", input_name(p),
        verdict->sorted ? "is sorted, but " : "is not ", words,
        before.s ? before.s : "?", after.s ? after.s : "?");
    ks_free(&before);
    ks_free(&after);
}

int verify_finish(struct pipeline *p, int loaded)
{
    struct verification *v = p->verification;
    if (!v || (loaded < 0 && (!v->disproved || diag_failed()))) return loaded;
    struct order_verdict verdict;
    order_check_verdict(v->check, &verdict);
    p->report->verified = verdict.sorted;
    (void)snprintf(p->report->order_words, sizeof p->report->order_words, "%s",
                   verdict.candidate->words);
    if (verdict.has_pair && (!verdict.sorted || hts_verbose >= 2)) tell_pair(p, &verdict);
    return 0;
}

void verify_release(struct pipeline *p)
{
    if (!p->verification) return;
    order_check_destroy(p->verification->check);
    free(p->verification);
}
