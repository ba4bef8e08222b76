/* split_plan.c -- see split_plan.h. */
#include "split/split_plan.h"

#include "bam/bam_long.h"
#include "order/bam_key_tag.h"
#include "split/bed_file.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- the argument ---- */

static int parse_ranges(const char *text, struct split_request *request)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (isdigit((unsigned char)*text) && *end == '\0' && n >= 1 && n <= SPLIT_MOST_GROUPS) {
        request->n_ranges = (unsigned)n;
        return 0;
    }
    diag_error("option --split-by ranges takes a number from 1 to %d, not '%s'",
               SPLIT_MOST_GROUPS, text);
    return -1;
}

static int parse_tag(const char *text, struct split_request *request)
{
    if (strlen(text) == 2 && isalpha((unsigned char)text[0]) && isalnum((unsigned char)text[1])) {
        memcpy(request->tag, text, 2);
        return 0;
    }
    diag_error("option --split-by tag takes a tag of two characters such as tag:CB, not '%s'",
               text);
    return -1;
}

int split_request_parse(const char *text, struct split_request *request)
{
    static const char ranges[] = "ranges:", tag[] = "tag:";
    *request = (struct split_request){.kind = SPLIT_BED, .bed = text};
    if (strcmp(text, "contig") == 0) {
        request->kind = SPLIT_CONTIG;
    } else if (strcmp(text, "rg") == 0) {
        request->kind = SPLIT_READ_GROUP;
        memcpy(request->tag, "RG", 2);
    } else if (strncmp(text, ranges, sizeof ranges - 1) == 0) {
        request->kind = SPLIT_RANGES;
        return parse_ranges(text + sizeof ranges - 1, request);
    } else if (strncmp(text, tag, sizeof tag - 1) == 0) {
        request->kind = SPLIT_TAG;
        return parse_tag(text + sizeof tag - 1, request);
    } else if (!*text) {
        diag_error("option --split-by takes contig, ranges:N, rg, tag:XX or a BED file, not ''");
        return -1;
    }
    return 0;
}

/* ---- ranges of about equal size ---- */

static int64_t windows_of(const struct range_counts *counts, int64_t n_bases)
{
    int64_t n = n_bases / counts->window_bases + (n_bases % counts->window_bases > 0);
    return n > 0 ? n : 1;
}

static size_t window_of(const struct range_counts *counts, int32_t tid, int64_t pos)
{
    size_t first = counts->first_window[tid], last = counts->first_window[tid + 1] - 1;
    size_t window = first + (size_t)((pos > 0 ? pos : 0) / counts->window_bases);
    return window < last ? window : last;
}

static int count_records(struct record_observer *observer, void *part,
                         const struct observed_records *observed)
{
    struct range_counts *counts = (struct range_counts *)observer;
    struct bam_records records = observed->all;
    size_t window = 0, n_bytes = 0;
    (void)part;
    for (const uint8_t *rec; (rec = bam_records_next(&records));) {
        int32_t tid = bam_record_tid(rec);
        if (tid < 0) continue;
        size_t now = window_of(counts, tid, bam_record_true_pos(rec));
        if (now != window && n_bytes > 0) {
            (void)atomic_fetch_add_explicit(&counts->bytes[window], n_bytes, memory_order_relaxed);
            n_bytes = 0;
        }
        window = now;
        n_bytes += bam_record_bytes(rec);
    }
    (void)atomic_fetch_add_explicit(&counts->bytes[window], n_bytes, memory_order_relaxed);
    return 0;
}

static void destroy_counts(struct record_observer *observer)
{
    struct range_counts *counts = (struct range_counts *)observer;
    free(counts->first_window);
    free(counts->bytes);
    free(counts);
}

struct range_counts *range_counts_create(const sam_hdr_t *header)
{
    static const struct observer_kind kind = {.add_records = count_records,
                                              .destroy = destroy_counts};
    struct range_counts *counts = xcalloc(1, sizeof *counts);
    double n_bases = 0;
    counts->base.kind = &kind;
    counts->n_refs = sam_hdr_nref(header);
    for (int32_t tid = 0; tid < counts->n_refs; tid++)
        n_bases += (double)sam_hdr_tid2len(header, tid);
    counts->window_bases = (int64_t)(n_bases / RANGE_COUNTS_WINDOWS) + 1;
    counts->first_window = xcalloc((size_t)counts->n_refs + 1, sizeof *counts->first_window);
    for (int32_t tid = 0; tid < counts->n_refs; tid++)
        counts->first_window[tid + 1] =
            counts->first_window[tid] + (size_t)windows_of(counts, sam_hdr_tid2len(header, tid));
    counts->bytes = xcalloc(counts->first_window[counts->n_refs] + 1, sizeof *counts->bytes);
    return counts;
}

void range_counts_divide(const struct range_counts *counts, unsigned n,
                         struct range_place *begins)
{
    uint64_t all = 0, before = 0;
    for (size_t i = 0; i < counts->first_window[counts->n_refs]; i++)
        all += atomic_load_explicit(&counts->bytes[i], memory_order_relaxed);
    unsigned next = 0;
    for (int32_t tid = 0; tid < counts->n_refs; tid++) {
        size_t first = counts->first_window[tid], end = counts->first_window[tid + 1];
        for (size_t i = first; i < end; i++) {
            /* A window belongs to the range that contains the middle of its bytes. */
            uint64_t here = atomic_load_explicit(&counts->bytes[i], memory_order_relaxed);
            double middle = (double)before + (double)here / 2;
            for (; next < n && (next == 0 || middle > (double)all / n * next); next++)
                begins[next] = (struct range_place){tid, (int64_t)(i - first) *
                                                             counts->window_bases};
            before += here;
        }
    }
    for (; next < n; next++) begins[next] = (struct range_place){counts->n_refs, 0};
}

/* ---- places ---- */

/* Sorts after all references: records without one come last. */
enum { NO_REFERENCE = INT32_MAX };

static struct range_place place_of(const uint8_t *rec)
{
    int32_t tid = bam_record_tid(rec);
    return tid < 0 ? (struct range_place){NO_REFERENCE, 0}
                   : (struct range_place){tid, bam_record_true_pos(rec)};
}

static bool is_before(struct range_place a, struct range_place b)
{
    return a.tid != b.tid ? a.tid < b.tid : a.pos < b.pos;
}

static struct range_place begin_of(const struct split_span *span)
{
    return (struct range_place){span->tid, span->pos};
}

/* ---- making a plan ---- */

void split_plan_refuse(enum split_kind kind)
{
    static const char *const advice[] = {
        [SPLIT_CONTIG] = "divide by ranges:N, or by a BED file that gives contigs the same name",
        [SPLIT_BED] = "give intervals the same name in the BED file, or divide by ranges:N",
        [SPLIT_READ_GROUP] = "divide by contig or by ranges:N",
        [SPLIT_TAG] = "the tag has too many values; divide by contig, by ranges:N or by another "
                      "tag",
    };
    diag_error_of(DIAG_HOPELESS, "--split-by would write more than %d files: %s",
                  SPLIT_MOST_GROUPS, advice[kind]);
}

static int check_number(enum split_kind kind, size_t n_groups)
{
    if (n_groups <= SPLIT_MOST_GROUPS) return 0;
    split_plan_refuse(kind);
    return -1;
}

/* Adds a span after all others, unless it continues the group of the last one. */
static void add_span(struct split_plan *plan, int32_t tid, int64_t pos, size_t group)
{
    if (plan->n_spans > 0 && plan->spans[plan->n_spans - 1].group == group) return;
    xgrow(&plan->spans, &plan->spans_room, plan->n_spans + 1, plan->n_spans / 4 + 16,
          sizeof *plan->spans);
    plan->spans[plan->n_spans++] = (struct split_span){pos, tid, (uint32_t)group};
}

/* Finds the last span of each group, and how many groups are open at the same time. */
static void finish_spans(struct split_plan *plan)
{
    uint32_t *first = xcalloc(plan->n_groups, sizeof *first);
    plan->last_span = xcalloc(plan->n_groups, sizeof *plan->last_span);
    for (size_t i = plan->n_spans; i > 0; i--) first[plan->spans[i - 1].group] = (uint32_t)i - 1;
    for (size_t i = 0; i < plan->n_spans; i++) plan->last_span[plan->spans[i].group] = (uint32_t)i;
    size_t n_open = 0;
    for (size_t i = 0; i < plan->n_spans; i++) {
        size_t group = plan->spans[i].group;
        if (first[group] == i) n_open++;
        if (n_open > plan->most_open) plan->most_open = n_open;
        if (plan->last_span[group] == i) n_open--;
    }
    free(first);
}

static int plan_contigs(struct split_plan *plan, const sam_hdr_t *header, struct group_list *groups)
{
    int32_t n = sam_hdr_nref(header);
    if (check_number(SPLIT_CONTIG, (size_t)n + 1) < 0) return -1;
    for (int32_t tid = 0; tid < n; tid++)
        add_span(plan, tid, INT64_MIN, group_list_add(groups, sam_hdr_tid2name(header, tid)));
    add_span(plan, NO_REFERENCE, INT64_MIN, group_list_add(groups, SPLIT_UNPLACED));
    return 0;
}

/* Makes a group for each name, in genome order. An interval without a name is called
   reference:begin-end, like a region of samtools. Stops when there are too many groups. */
static void name_groups(const struct bed_intervals *bed, const sam_hdr_t *header,
                        struct group_list *groups, uint32_t *numbers)
{
    for (size_t i = 0; i < bed->n && groups->n <= SPLIT_MOST_GROUPS; i++) {
        const struct bed_interval *interval = &bed->intervals[i];
        char *name = interval->name ? xstrdup(interval->name)
                                    : xasprintf("%s:%" PRId64 "-%" PRId64,
                                                sam_hdr_tid2name(header, interval->tid),
                                                interval->begin + 1, interval->end);
        ssize_t known = group_list_find(groups, name);
        numbers[i] = (uint32_t)(known >= 0 ? (size_t)known : group_list_add(groups, name));
        free(name);
    }
}

/* Adds the spans of intervals and of the gaps between them. Only intervals of the same group may
   overlap; `last` is the one that ends last. */
static int add_intervals(struct split_plan *plan, const struct bed_intervals *bed,
                         const uint32_t *numbers, size_t outside)
{
    const struct bed_interval *last = NULL;
    size_t last_group = outside;
    for (size_t i = 0; i < bed->n; i++) {
        const struct bed_interval *here = &bed->intervals[i];
        bool is_near = last && last->tid == here->tid && last->end >= here->begin;
        bool overlaps = is_near && last->end > here->begin;
        if (overlaps && numbers[i] != last_group) {
            diag_error("'%s': the intervals of lines %zu and %zu overlap, but a record can be in "
                       "only one group: give both the same name", plan->request.bed, last->line,
                       here->line);
            return -1;
        }
        if (last && !is_near) add_span(plan, last->tid, last->end, outside);
        add_span(plan, here->tid, here->begin, numbers[i]);
        if (!overlaps || here->end > last->end) last = here;
        last_group = numbers[i];
    }
    if (last) add_span(plan, last->tid, last->end, outside);
    return 0;
}

static int plan_bed(struct split_plan *plan, sam_hdr_t *header, struct group_list *groups)
{
    struct bed_intervals bed;
    static const struct bed_rules rules = {
        .takes = "option --split-by takes contig, ranges:N, rg, tag:XX or a BED file"};
    if (bed_file_read(plan->request.bed, header, &rules, &bed) < 0) return -1;
    uint32_t *numbers = xcalloc(bed.n, sizeof *numbers);
    name_groups(&bed, header, groups, numbers);
    int r = check_number(SPLIT_BED, groups->n + 2);
    if (r == 0) {
        size_t outside = group_list_add(groups, SPLIT_OUTSIDE);
        add_span(plan, 0, INT64_MIN, outside);
        r = add_intervals(plan, &bed, numbers, outside);
        add_span(plan, NO_REFERENCE, INT64_MIN, group_list_add(groups, SPLIT_UNPLACED));
    }
    bed_intervals_release(&bed);
    free(numbers);
    return r;
}

/* All numbers have as many digits as the largest, so that they sort as text. */
static void name_ranges(unsigned n, struct group_list *groups)
{
    char last[16], name[16];
    int n_digits = snprintf(last, sizeof last, "%u", n);
    for (unsigned i = 1; i <= n; i++) {
        (void)snprintf(name, sizeof name, "%0*u", n_digits, i);
        (void)group_list_add(groups, name);
    }
    (void)group_list_add(groups, SPLIT_UNPLACED);
}

static int name_read_groups(sam_hdr_t *header, struct group_list *groups)
{
    int n = sam_hdr_count_lines(header, "RG");
    for (int i = 0; i < n; i++) {
        const char *id = sam_hdr_line_name(header, "RG", i);
        if (id) (void)group_list_add(groups, id);
    }
    (void)group_list_add(groups, SPLIT_NO_VALUE);
    return check_number(SPLIT_READ_GROUP, groups->n);
}

static int make_plan(struct split_plan *plan, sam_hdr_t *header, struct group_list *groups)
{
    switch (plan->request.kind) {
    case SPLIT_CONTIG: return plan_contigs(plan, header, groups);
    case SPLIT_BED: return plan_bed(plan, header, groups);
    case SPLIT_RANGES: name_ranges(plan->request.n_ranges, groups); return 0;
    case SPLIT_READ_GROUP: return name_read_groups(header, groups);
    default: (void)group_list_add(groups, SPLIT_NO_VALUE); return 0;
    }
}

struct split_plan *split_plan_create(const struct split_request *request, sam_hdr_t *header,
                                     struct group_list *groups)
{
    struct split_plan *plan = xcalloc(1, sizeof *plan);
    plan->request = *request;
    plan->most_open = 1;
    if (make_plan(plan, header, groups) < 0) {
        split_plan_destroy(plan);
        return NULL;
    }
    plan->n_groups = groups->n;
    if (plan->n_spans > 0) finish_spans(plan);
    return plan;
}

void split_plan_destroy(struct split_plan *plan)
{
    if (!plan) return;
    free(plan->last_span);
    free(plan->spans);
    free(plan);
}

void split_plan_set_ranges(struct split_plan *plan, const struct range_counts *counts)
{
    unsigned n = plan->request.n_ranges;
    struct range_place *begins = xcalloc(n, sizeof *begins);
    range_counts_divide(counts, n, begins);
    for (unsigned i = 0; i < n; i++)
        /* A range at the start of a reference also gets its reads without a position. */
        add_span(plan, begins[i].tid, begins[i].pos > 0 ? begins[i].pos : INT64_MIN, i);
    add_span(plan, NO_REFERENCE, INT64_MIN, n);
    free(begins);
    finish_spans(plan);
}

/* ---- looking up ---- */

char *split_plan_range_begin(const struct split_plan *plan, size_t group, const sam_hdr_t *header)
{
    if (plan->request.kind != SPLIT_RANGES || group >= plan->request.n_ranges || !plan->last_span)
        return NULL;
    const struct split_span *span = &plan->spans[plan->last_span[group]];
    if (span->group != group || span->tid >= sam_hdr_nref(header)) return NULL;
    /* Of ranges with the same start, the last one gets the records. */
    if (!is_before(begin_of(span), begin_of(span + 1))) return NULL;
    int64_t pos = span->pos > 0 ? span->pos : 0;
    return xasprintf("%s:%" PRId64, sam_hdr_tid2name(header, span->tid), pos + 1);
}

size_t split_plan_bytes(const struct split_plan *plan)
{
    return plan->n_spans * sizeof *plan->spans + plan->n_groups * sizeof *plan->last_span;
}

bool split_plan_ends(const struct split_plan *plan, size_t group, size_t span)
{
    return plan->last_span[group] <= span;
}

/* The last span that begins at or before a place. */
static size_t find_span(const struct split_plan *plan, struct range_place place)
{
    size_t low = 0, high = plan->n_spans;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (is_before(place, begin_of(&plan->spans[middle])))
            high = middle;
        else
            low = middle;
    }
    return low;
}

static bool move_to_place(struct split_cursor *cursor, const struct split_plan *plan,
                          const uint8_t *rec)
{
    struct range_place place = place_of(rec);
    size_t next = cursor->span + 1;
    if (cursor->record && (next == plan->n_spans || is_before(place, begin_of(&plan->spans[next]))))
        return true;
    bool is_first = !cursor->record;
    size_t before = cursor->group;
    cursor->span = find_span(plan, place);
    cursor->group = plan->spans[cursor->span].group;
    return !is_first && cursor->group == before;
}

bool split_cursor_move(struct split_cursor *cursor, const struct split_plan *plan,
                       const uint8_t *rec)
{
    bool same = split_is_by_place(plan->request.kind)
                    ? move_to_place(cursor, plan, rec)
                    : cursor->record &&
                          bam_key_tag_compare(plan->request.tag, cursor->record, rec) == 0;
    cursor->record = rec;
    return same;
}

uint8_t *split_plan_value(const struct split_plan *plan, const uint8_t *rec, size_t *n_bytes)
{
    size_t n = bam_key_tag_encode(plan->request.tag, rec, NULL, 0);
    uint8_t *value = xmalloc(n);
    *n_bytes = bam_key_tag_encode(plan->request.tag, rec, value, n);
    return value;
}

/* ---- values while records are read ---- */

enum { N_SLOTS = 1 << 17 };
_Static_assert(SPLIT_MOST_GROUPS < N_SLOTS / 5 * 4, "probing stays short");

/* A lock-free hash table with linear probing. */
struct value_counts {
    struct record_observer base;        /* must be the first member */
    char tag[2];
    atomic_uint n;
    _Atomic uint64_t slots[N_SLOTS];    /* 0: free */
};

static uint64_t hash_of(const struct value_counts *counts, const uint8_t *rec)
{
    uint8_t value[512];
    size_t n = bam_key_tag_encode(counts->tag, rec, value, sizeof value);
    uint64_t hash = XXH3_64bits(value, n < sizeof value ? n : sizeof value);
    return hash ? hash : 1;
}

/* Puts a hash into the table if it is not there. */
static void put_hash(struct value_counts *counts, uint64_t hash)
{
    for (size_t i = hash % N_SLOTS;; i = (i + 1) % N_SLOTS) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&counts->slots[i], &there, hash)) {
            (void)atomic_fetch_add(&counts->n, 1);
            return;
        }
        if (there == hash) return;
    }
}

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *observed)
{
    struct value_counts *counts = (struct value_counts *)observer;
    struct bam_records records = observed->all;
    (void)part;
    for (const uint8_t *rec; (rec = bam_records_next(&records));) {
        /* Other threads may add one value each before they check. */
        if (check_number(SPLIT_TAG, atomic_load(&counts->n)) < 0) return -1;
        put_hash(counts, hash_of(counts, rec));
    }
    return check_number(SPLIT_TAG, atomic_load(&counts->n));
}

static void destroy(struct record_observer *observer)
{
    free(observer);
}

struct record_observer *split_values_observer(const char tag[2])
{
    static const struct observer_kind kind = {.add_records = add_records, .destroy = destroy};
    struct value_counts *counts = xcalloc(1, sizeof *counts);
    counts->base.kind = &kind;
    memcpy(counts->tag, tag, sizeof counts->tag);
    return &counts->base;
}
