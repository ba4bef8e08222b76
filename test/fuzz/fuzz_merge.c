/*
 * fuzz_merge.c -- batches, cuts and merges of arbitrary records: the result is a stable sort of the
 * input, however it was divided, and both ends of the memory of a batch never meet.
 *
 * Records are put into batches as the loader does it: in pieces of any size, with records that
 * straddle two batches. The batches are the sources of a merge, which are cut at the bounds of some
 * of their records.
 */
#include "fuzz_record.h"

#include "bam/bam_check.h"
#include "bam/bam_long.h"
#include "bam/cut_names.h"
#include "input/record_entries.h"
#include "order/slice_merge.h"
#include "spill/sort_buffer.h"

enum {
    MAX_BATCHES = 20,
    MAX_SOURCES = 2 * MAX_BATCHES,
    MAX_RECORDS = 200,
    BATCH_BYTES = 64 << 10,
    STREAM_BYTES = 96 << 10,
    CHOICES = 200,
};

struct stream {
    uint8_t *bytes;
    size_t n_bytes, n_records;
    size_t starts[MAX_RECORDS + 1];
};

static struct bam_key_template *template_ends;

void fuzz_begin(void)
{
    template_ends = fuzz_template_ends();
}

static struct sort_rules choose_rules(struct fuzz_input *in)
{
    static const enum sort_order orders[] = {SORT_COORDINATE, SORT_NAME_NATURAL, SORT_NAME_LEXICAL,
                                             SORT_TAG, SORT_TEMPLATE, SORT_MINHASH,
                                             SORT_COORDINATE_LONG, SORT_SHUFFLE};
    struct sort_rules rules = {.order = orders[fuzz_below(in, 8)], .template_ends = template_ends,
                               .minhash = {.k = MINHASH_K}};
    rules.below = fuzz_below(in, 3);
    rules.long_positions = rules.order == SORT_COORDINATE_LONG;
    memcpy(rules.tag, &"RGMICGCB"[2 * fuzz_below(in, 4)], 2);
    return rules;
}

/* Makes records that have a key. Some occur several times, for ties. */
static void make_stream(struct fuzz_input *in, const struct sort_rules *rules, struct stream *s)
{
    OWNED uint8_t *made = fuzz_alloc(FUZZ_MAX_RECORD);
    const char *problem;
    *s = (struct stream){.bytes = fuzz_alloc(STREAM_BYTES + FUZZ_MAX_RECORD)};
    while (s->n_bytes < STREAM_BYTES && fuzz_left(in) > 0 && s->n_records < MAX_RECORDS) {
        size_t size = fuzz_make_record(in, made);
        if (bam_record_check(made, FUZZ_N_REFS) || bam_record_is_long(made)) continue;
        if (!sort_order_is_fixed(rules->order) && !sort_key_bytes(rules, made, &problem)) continue;
        for (unsigned times = 1 + fuzz_below(in, 8); times > 0; times--) {
            if (s->n_records == MAX_RECORDS || s->n_bytes >= STREAM_BYTES) break;
            memcpy(s->bytes + s->n_bytes, made, size);
            s->n_bytes += size;
            s->starts[++s->n_records] = s->n_bytes;
        }
    }
}

static void check_ends(const struct sort_buffer *b)
{
    FUZZ_CHECK(b->raw_bytes + atomic_load(&b->result_bytes) <= atomic_load(&b->top));
    FUZZ_CHECK(atomic_load(&b->top) <= b->mem_bytes);
}

/* Adds and indexes records of the stream from `first` on, some at a time, at most until the batch
   is full. Returns the number of the first one that was not added. */
static size_t fill_buffer(struct fuzz_input *in, struct sort_buffer *b, const struct stream *s,
                          size_t first, struct content_sum *sum)
{
    struct record_problem problem;
    for (size_t n; first < s->n_records && !fuzz_one_in(in, 3); first += n) {
        size_t from = s->starts[first], most = fuzz_u16(in), room = sort_buffer_room(b);
        for (n = 0; first + n < s->n_records; n++) {
            size_t n_bytes = s->starts[first + n + 1] - from;
            if (n_bytes > room || (n > 0 && n_bytes > most)) break;
        }
        if (n == 0) break;
        struct sort_buffer_part *part =
            sort_buffer_add_part(b, s->bytes + from, s->starts[first + n] - from, n, first);
        check_ends(b);
        FUZZ_CHECK(record_entries_index_part(part, FUZZ_N_REFS, sum, &problem) == 0);
        check_ends(b);
    }
    return first;
}

/* Divides the stream into sorted batches; returns their number. */
static size_t make_buffers(struct fuzz_input *in, const struct sort_rules *rules,
                           const struct stream *s, struct sort_buffer *buffers[MAX_BATCHES])
{
    struct content_sum sum = {0}, wanted = {0};
    RELEASED(merge_space_release) struct merge_space space = {0};
    size_t n_buffers = 0, n_records = 0;
    for (; n_buffers < MAX_BATCHES && n_records < s->n_records; n_buffers++) {
        buffers[n_buffers] = sort_buffer_create(rules, NULL, BATCH_BYTES);
        n_records = fill_buffer(in, buffers[n_buffers], s, n_records, &sum);
    }
    for (size_t i = 0; i < n_records; i++) {
        OWNED uint8_t *rec = fuzz_copy(s->bytes + s->starts[i], s->starts[i + 1] - s->starts[i]);
        cut_names_cut(NULL, rec, 0);            /* as sort_buffer_index_part does */
        (void)bam_record_restore_cigar(rec);
        sort_rules_admit(rules, rec, &wanted);
    }
    FUZZ_CHECK(content_sum_equal(&sum, &wanted));
    for (size_t i = 0; i < n_buffers; i++) sort_buffer_sort(buffers[i], &space);
    return n_buffers;
}

/* Sets the bound to that of record *index of source *which. False if that source has no records. */
static bool choose_bound(struct fuzz_input *in, const struct sort_rules *rules,
                         const struct merge_source *sources, size_t n, struct merge_bound *bound,
                         size_t *which, size_t *index)
{
    *which = fuzz_below(in, (unsigned)n);
    const struct merge_source *source = &sources[*which];
    if (source->n_entries == 0) return false;
    *index = fuzz_u16(in) % source->n_entries;
    merge_bound_set(bound, rules->order, source, *index);
    return true;
}

struct place {                  /* a record in the sources */
    struct merge_bound bound;
    const void *ref;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return merge_bound_compare(&x->bound, &y->bound);
}

/* All records in the order of their bounds, which merging them must give, too. */
static struct place *sort_places(const struct sort_rules *rules, const struct merge_source *sources,
                                 size_t n_sources, size_t *n_places)
{
    size_t n = 0;
    for (size_t i = 0; i < n_sources; i++) n += sources[i].n_entries;
    struct place *places = fuzz_alloc(n * sizeof *places), *at = places;
    for (size_t i = 0; i < n_sources; i++) {
        for (size_t k = 0; k < sources[i].n_entries; k++, at++) {
            const struct sort_entry *entry = &sources[i].entries[k];
            *at = (struct place){.ref = entry->ref};
            merge_bound_set(&at->bound, rules->order, &sources[i], k);
            FUZZ_CHECK(at->bound.n_bytes == merge_bound_bytes(rules->order, entry));
        }
    }
    qsort(places, n, sizeof *places, compare_places);
    *n_places = n;
    return places;
}

/* Merges all sources output chunk by output chunk: each record comes out once, in its place. */
static void merge_all(struct fuzz_input *in, const struct sort_rules *rules,
                      const struct merge_source *sources, size_t n)
{
    struct merge_slice slices[MAX_SOURCES];
    RELEASED(merge_bound_release) struct merge_bound bound = {0};
    RELEASED(merge_space_release) struct merge_space space = {0};
    size_t from[MAX_SOURCES] = {0}, n_out = 0, n_places, which = 0, index = 0;
    const struct sort_entry *merged;
    OWNED struct place *places = sort_places(rules, sources, n, &n_places);
    while (n_out < n_places) {
        bool have = fuzz_left(in) > 0 &&
                    choose_bound(in, rules, sources, n, &bound, &which, &index);
        size_t n_wanted = 0;
        if (!have) merge_bound_release(&bound);
        for (size_t i = 0; i < n; i++) {
            size_t to = merge_cut(rules, &sources[i], &bound);
            FUZZ_CHECK(to <= sources[i].n_entries && (!have || i != which || to == index));
            if (to < from[i]) to = from[i];
            slices[i] = (struct merge_slice){sources[i].entries + from[i], to - from[i]};
            n_wanted += to - from[i];
            from[i] = to;
        }
        size_t n_merged = merge_slices(rules, slices, n, &space, &merged);
        FUZZ_CHECK(n_merged == n_wanted);
        for (size_t i = 0; i < n_wanted; i++) FUZZ_CHECK(merged[i].ref == places[n_out++].ref);
    }
    for (size_t i = 0; i < n_places; i++) merge_bound_release(&places[i].bound);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    struct sort_rules rules = choose_rules(&in);
    struct stream stream;
    struct sort_buffer *buffers[MAX_BATCHES];
    struct merge_source sources[MAX_SOURCES];
    /* The choices come from bytes before the records, so that they do not run out. */
    uint8_t choices[CHOICES];
    fuzz_fill(&in, choices, sizeof choices);
    make_stream(&in, &rules, &stream);
    in = (struct fuzz_input){choices, choices + sizeof choices};
    size_t n = make_buffers(&in, &rules, &stream, buffers);
    /* Two sources for each sort buffer, as blocks of a run. */
    for (size_t i = 0; i < n; i++) {
        size_t n_all = buffers[i]->n_records, n_first = n_all * fuzz_below(&in, 5) / 4;
        static const struct sort_entry none;    /* nothing may be added to NULL */
        const struct sort_entry *entries = n_all > 0 ? buffers[i]->entries : &none;
        sources[2 * i] = (struct merge_source){entries, n_first, (uint32_t)i, 0};
        sources[2 * i + 1] = (struct merge_source){entries + n_first, n_all - n_first, (uint32_t)i,
                                                   n_first};
    }
    if (n > 0) merge_all(&in, &rules, sources, 2 * n);
    for (size_t i = 0; i < n; i++) sort_buffer_destroy(buffers[i]);
    free(stream.bytes);
    return 0;
}
