/* rules.c -- see rules.h. */
#include "sort/rules.h"

#include "bam/bam_long.h"
#include "bam/header_text.h"
#include "order/bam_key_template.h"
#include "order/minhash_index.h"
#include "util/diag.h"
#include "util/terminal_text.h"
#include "util/version.h"
#include "util/xalloc.h"

#include <htslib/kstring.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int rules_header_error(const char *name)
{
    diag_error("cannot change the header of '%s': it is damaged, or memory is short", name);
    return -1;
}

static int add_template_ends(struct rules_maker *maker, sam_hdr_t *header,
                             struct sort_rules *rules)
{
    if (!maker->template_ends) maker->template_ends = bam_key_template_create(header);
    if (!maker->template_ends) return rules_header_error(maker->header_name);
    rules->template_ends = maker->template_ends;
    return 0;
}

static int add_minhash_index(struct rules_maker *maker, struct sort_rules *rules)
{
    struct minhash_settings *m = &rules->minhash;
    if (!maker->minhash_index)
        maker->minhash_index =
            minhash_index_load(maker->fasta, m->k, maker->minhash_window, m->squeeze);
    m->index = maker->minhash_index;
    return m->index ? 0 : -1;
}

int rules_complete(struct rules_maker *maker, sam_hdr_t *header, struct sort_rules *rules)
{
    if (bam_header_long_reference(header) >= 0) {
        rules->long_positions = true;
        if (rules->order == SORT_COORDINATE) rules->order = SORT_COORDINATE_LONG;
    }
    if (rules->order == SORT_TEMPLATE) return add_template_ends(maker, header, rules);
    if (rules->order == SORT_MINHASH && maker->fasta) return add_minhash_index(maker, rules);
    return 0;
}

/* True if the PP of no line names the last program of a chain, or there are no programs. */
static bool programs_have_end(sam_hdr_t *header)
{
    kstring_t id = KS_INITIALIZE, line = KS_INITIALIZE;
    int n = sam_hdr_count_lines(header, "PG");
    bool have_end = n <= 0;
    while (!have_end && --n >= 0)
        have_end = sam_hdr_find_tag_pos(header, "PG", n, "ID", &id) < 0 ||
                   sam_hdr_find_line_id(header, "PG", "PP", ks_str(&id), &line) == -1;
    ks_free(&id);
    ks_free(&line);
    return have_end;
}

/* If the PP fields form a cycle, a chain has no end, and htslib 1.16 reads beyond its array. Then
   our line gets no PP, as with newer versions. */
int rules_add_program(const struct rules_maker *maker, sam_hdr_t *header,
                      const char *command_line)
{
    const char *cl = command_line ? "CL" : NULL;
    const char *name = "samtools-rocksort", *version = ROCKSORT_VERSION;
    bool have_end = programs_have_end(header);
    const char *id = have_end ? NULL : sam_hdr_pg_id(header, name);
    if (!have_end && !id) return rules_header_error(maker->header_name);
    int r = have_end ? sam_hdr_add_pg(header, name, "VN", version, cl, command_line, NULL)
                     : sam_hdr_add_line(header, "PG", "ID", id, "PN", name, "VN", version, cl,
                                        command_line, NULL);
    return r < 0 ? rules_header_error(maker->header_name) : 0;
}

/* Returns a reference of length 0, which the binary header of BAM may have whatever its text says;
   or -1. */
static int32_t find_empty_reference(sam_hdr_t *header)
{
    int32_t n = sam_hdr_nref(header);
    for (int32_t tid = 0; tid < n; tid++)
        if (sam_hdr_tid2len(header, tid) == 0) return tid;
    return -1;
}

/* Checks that names are UTF-8, as columns need. */
static int check_names(sam_hdr_t *header)
{
    int32_t n = sam_hdr_nref(header);
    for (int32_t tid = 0; tid < n; tid++) {
        const char *name = sam_hdr_tid2name(header, tid);
        if (utf8_is_valid(name, strlen(name))) continue;
        diag_error("reference '%s' has a name that is not UTF-8, which columns cannot hold: write "
                   "BAM with -O bam", name);
        return -1;
    }
    return 0;
}

int rules_check_format(sam_hdr_t *header, const struct output_format *format)
{
    if (output_format_has_columns(format) && check_names(header) < 0) return -1;
    int32_t tid = format->kind == OUTPUT_CRAM ? find_empty_reference(header) : -1;
    if (tid >= 0) {
        diag_error("reference '%s' has 0 bases, with which no program reads a CRAM: write BAM with "
                   "-O bam", sam_hdr_tid2name(header, tid));
        return -1;
    }
    tid = bam_header_long_reference(header);
    if (tid < 0 || output_format_is_sam(format)) return 0;
    diag_error("reference '%s' has %" PRId64 " bases, more than %s can hold: write SAM with -O sam",
               sam_hdr_tid2name(header, tid), (int64_t)sam_hdr_tid2len(header, tid),
               output_format_name(format));
    return -1;
}

void rules_complete_fixmate(struct rules_maker *maker, const sam_hdr_t *header,
                            struct fixmate_rules *rules)
{
    int32_t n_refs = sam_hdr_nref(header);
    maker->reference_bases = xcalloc((size_t)n_refs + 1, sizeof *maker->reference_bases);
    for (int32_t tid = 0; tid < n_refs; tid++)
        maker->reference_bases[tid] = sam_hdr_tid2len(header, tid);
    rules->n_refs = n_refs;
    rules->reference_bases = maker->reference_bases;
}

void rules_release(struct rules_maker *maker)
{
    free(maker->reference_bases);
    bam_key_template_destroy(maker->template_ends);
    minhash_index_destroy(maker->minhash_index);
}

/* ---- records out of order ---- */

/* Writes a record as "record 7 (read 'x', flag 16, chr1:100, CB:Z:ACGT)". */
static void write_record(sam_hdr_t *header, const struct order_record *r, kstring_t *text)
{
    const char *reference = r->tid >= 0 ? sam_hdr_tid2name(header, r->tid) : "*";
    (void)ksprintf(text, "record %" PRIu64 " (read '%s', flag %u, %s:%" PRId64 "%s%s)", r->number,
                   r->name, r->flag, reference ? reference : "?", r->pos + 1,
                   *r->value ? ", " : "", r->value);
}

void order_violation_print_verdict(const char *input, sam_hdr_t *header,
                                   const struct order_verdict *verdict)
{
    kstring_t before = {0, 0, NULL}, after = {0, 0, NULL};
    const char *words = verdict->sorted ? verdict->candidate->note : verdict->candidate->words;
    write_record(header, &verdict->before, &before);
    write_record(header, &verdict->after, &after);
    /* --quiet hides the note, but not the error. */
    (verdict->sorted ? diag_note : diag_error)(
        "'%s' %s%s: %s comes before %s", input, verdict->sorted ? "is sorted, but " : "is not ",
        words, before.s ? before.s : "?", after.s ? after.s : "?");
    ks_free(&before);
    ks_free(&after);
}

/* Appends a copy of a record in its original form. Returns its end. */
static uint8_t *copy_record(const struct sort_rules *rules, const uint8_t *rec, uint8_t *out)
{
    memcpy(out, rec, bam_record_bytes(rec));
    sort_rules_restore(rules->order, out);
    return out + bam_record_bytes(out);
}

void order_violation_print(const struct sort_rules *rules, sam_hdr_t *header, const char *input,
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
        order_violation_print_verdict(input, header, &verdict);
    } else {                    /* both had a key when they were read */
        record_problem_print(&problem, input);
    }
    order_check_destroy(check);
    free(two);
}
