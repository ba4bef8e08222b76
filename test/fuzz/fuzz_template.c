/*
 * fuzz_template.c -- --fixmate of a stream of records, sound or not. However the stream is cut into
 * spans of whole templates, and whichever templates are taken as large ones, the same records must
 * come out as from the stream in one piece, or both must fail.
 *
 * The first byte of the input says what the stream is: the rest of the input, or records made of it
 * that often share their name.
 */
#include "fuzz_record.h"

#include "fixmate/fixed_records.h"
#include "fixmate/template_cut.h"
#include "util/xalloc.h"

enum { MAX_RECORDS = 24 };

static const int64_t reference_bases[FUZZ_N_REFS] = {1000, 1 << 29, INT32_MAX};

struct record_bytes {
    uint8_t *at;
    size_t n_bytes, room;
};

struct run {
    struct fuzz_input *in;
    struct fixmate_rules rules;
    struct fixed_records fixed;
    struct record_bytes out;
    struct record_bytes large;  /* records of a large template */
    bool failed;
};

static void put(struct record_bytes *to, const uint8_t *bytes, size_t n)
{
    if (n == 0) return;
    xgrow(&to->at, &to->room, to->n_bytes + n, to->n_bytes, 1);
    memcpy(to->at + to->n_bytes, bytes, n);
    to->n_bytes += n;
}

/* Takes what was fixed, in groups of any size. */
static void take_fixed(struct run *run)
{
    struct fixed_group group;
    size_t n_before = 0, n_taken = 0, room = fuzz_below(run->in, 200) * 8;
    for (; fixed_records_take(&run->fixed, room, &group); n_taken = run->fixed.n_taken) {
        FUZZ_CHECK(group.n_before == n_before);
        FUZZ_CHECK(group.n_bytes <= room || run->fixed.n_taken == n_taken + 1);
        n_before = group.end.n_records;
        size_t n = 0;
        for (size_t at = 0; at < group.n_bytes; n++) {
            FUZZ_CHECK(bam_record_bytes(group.at + at) <= group.n_bytes - at);
            at += bam_record_bytes(group.at + at);
        }
        FUZZ_CHECK(n == group.n_records);
        put(&run->out, group.at, group.n_bytes);
    }
}

/* Fixes the template that was collected, in parts. */
static void fix_large(struct run *run)
{
    struct oversized_template *lt = oversized_template_create(&run->rules);
    struct bam_records records = {run->large.at, run->large.at + run->large.n_bytes};
    struct record_problem problem = {.record = 0};
    for (const uint8_t *rec; (rec = bam_records_next(&records));) oversized_template_look(lt, rec);
    oversized_template_end(lt);
    size_t rec_bytes;
    fixed_records_empty(&run->fixed);
    for (size_t at = 0; at < run->large.n_bytes && !run->failed; at += rec_bytes) {
        rec_bytes = bam_record_bytes(run->large.at + at);
        run->failed = fixed_records_add(&run->fixed, &run->rules, lt, run->large.at + at,
                                        &problem) < 0;
        if (run->failed || !fuzz_one_in(run->in, 3)) continue;
        take_fixed(run);
        fixed_records_empty(&run->fixed);
    }
    if (!run->failed) take_fixed(run);
    oversized_template_destroy(lt);
    run->large.n_bytes = 0;
}

static void fix_span(struct run *run, uint8_t *span, size_t n_bytes)
{
    struct record_problem problem = {.record = 0};
    size_t at = 0, n_large;     /* fixing it overwrites run->fixed */
    do {
        run->failed =
            fixed_records_make(&run->fixed, &run->rules, span, &at, n_bytes, &problem) < 0;
        if (run->failed) return;
        take_fixed(run);
        n_large = run->fixed.too_large;
        for (size_t i = 0; i < n_large; i++) {
            const uint8_t *rec = run->fixed.space.drafts[i].rec;
            put(&run->large, rec, bam_record_bytes(rec));
        }
        if (n_large > 0) fix_large(run);
    } while (at < n_bytes && !run->failed);
}

/* Finds the whole records of a stream, up to one that claims an impossible size. */
static size_t whole_bytes(const uint8_t *stream, size_t n_bytes, size_t *n_records)
{
    struct bam_walk walk = {.at = stream, .end = n_bytes > 0 ? stream + n_bytes : stream};
    for (*n_records = 0; bam_walk_next(&walk); (*n_records)++) continue;
    return (size_t)(walk.at - stream);
}

/* The bytes of the first template. */
static size_t first_template(const uint8_t *from, const uint8_t *to)
{
    const uint8_t *at = from;
    while (at < to && template_same_name(from, at)) at += bam_record_bytes(at);
    return at == from ? bam_record_bytes(from) : (size_t)(at - from);   /* a name may not fit */
}

static void fix_in_spans(struct run *run, const uint8_t *stream, size_t n_bytes)
{
    size_t most = 1 + fuzz_u16(run->in), to = 0, n, n_records;
    for (size_t at = 0; at < n_bytes && !run->failed; at += n) {
        size_t more = to < n_bytes ? bam_record_bytes(stream + to) : 0;
        more += fuzz_u16(run->in) % most;
        to += whole_bytes(stream + to, more < n_bytes - to ? more : n_bytes - to, &n_records);
        n = to < n_bytes ? template_find_last(stream + at, stream + to).at : to - at;
        FUZZ_CHECK(n < to - at || to == n_bytes);
        bool is_large = n > 0 && fuzz_one_in(run->in, 4);
        if (is_large) n = first_template(stream + at, stream + to);
        OWNED uint8_t *span = fuzz_copy(stream + at, n);
        if (is_large) {
            put(&run->large, span, n);
            fix_large(run);
        } else {
            fix_span(run, span, n);
        }
    }
}

static void fix_at_once(struct run *run, const uint8_t *stream, size_t n_bytes)
{
    OWNED uint8_t *all = fuzz_copy(stream, n_bytes);
    fix_span(run, all, n_bytes);
}

/* Gives a record another name; there must be room. Returns its size. */
static size_t rename_record(uint8_t *rec, const char *name)
{
    size_t n_bytes = bam_record_bytes(rec), old = bam_record_name_bytes(rec);
    size_t n = strlen(name) + 1;
    memmove(rec + 36 + n, rec + 36 + old, n_bytes - 36 - old);
    memcpy(rec + 36, name, n);
    rec[12] = (uint8_t)n;
    (void)put_u32(rec, n_bytes - old + n - 4);
    return n_bytes - old + n;
}

static uint8_t *make_stream(struct fuzz_input *in, size_t *n_bytes)
{
    uint8_t *stream = fuzz_alloc((MAX_RECORDS + 1) * (FUZZ_MAX_RECORD + 8));
    const char *name = "q";
    *n_bytes = 0;
    for (int i = 0; i < MAX_RECORDS && fuzz_left(in) > 0; i++) {
        static const char *const names[] = {"q", "r", "qq", ""};
        if (fuzz_one_in(in, 4)) name = names[fuzz_below(in, 4)];
        uint8_t *rec = stream + *n_bytes;
        size_t size = fuzz_make_record(in, rec);
        if (bam_record_name_bytes(rec) + 36 <= size && bam_record_bytes(rec) == size)
            size = rename_record(rec, name);
        *n_bytes += size;
    }
    return stream;
}

static struct fixmate_rules make_rules(struct fuzz_input *in)
{
    unsigned bits = fuzz_u8(in);
    return (struct fixmate_rules){
        .removes = bits & 1, .any_orientation = bits & 2, .template_cigar = bits & 4,
        .base_mods = bits & 8, .sanitize = bits & 16 ? fuzz_u8(in) & 127u : 0,
        .n_refs = FUZZ_N_REFS, .reference_bases = reference_bases};
}

static void release(struct run *run)
{
    fixed_records_release(&run->fixed);
    free(run->out.at);
    free(run->large.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    bool is_made = fuzz_u8(&in) & 1;
    struct run one = {.in = &in, .rules = make_rules(&in)}, many = {.in = &in, .rules = one.rules};
    many.rules.max_template_bytes = fuzz_one_in(&in, 3) ? 600 : 0;
    many.rules.usual_bytes = fuzz_one_in(&in, 2) ? 300 : 0;
    /* The sizes of spans come from bytes before the stream, so that they do not run out. */
    uint8_t choices[128];
    fuzz_fill(&in, choices, sizeof choices);
    size_t stream_bytes = fuzz_left(&in);
    uint8_t *stream = is_made ? make_stream(&in, &stream_bytes) : fuzz_copy(in.at, stream_bytes);
    in = (struct fuzz_input){choices, choices + sizeof choices};
    size_t n_records;
    stream_bytes = whole_bytes(stream, stream_bytes, &n_records);
    fix_at_once(&one, stream, stream_bytes);
    fix_in_spans(&many, stream, stream_bytes);
    FUZZ_CHECK(one.failed == many.failed);
    if (!one.failed) {
        FUZZ_CHECK(one.out.n_bytes == many.out.n_bytes);
        FUZZ_CHECK(one.out.n_bytes == 0 ||
                   memcmp(one.out.at, many.out.at, one.out.n_bytes) == 0);
    }
    free(stream);
    release(&one);
    release(&many);
    return 0;
}
