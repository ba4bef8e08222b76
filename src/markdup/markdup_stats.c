/*
 * markdup_stats.c -- see markdup_stats.h.
 *
 * samtools counts reads, Picard counts pairs. Results of stdio functions are ignored, because the
 * stream keeps its error flag.
 */
#include "markdup/markdup_stats.h"

#include "util/json_writer.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void duplicate_counts_join(struct duplicate_counts *sum, const struct duplicate_counts *other)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)other;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) to[i] += from[i];
}

struct duplicate_counts duplicate_counts_sum(const struct duplicate_counts *counts, size_t n)
{
    struct duplicate_counts sum = {0};
    for (size_t i = 0; i < n; i++) duplicate_counts_join(&sum, &counts[i]);
    return sum;
}

/* ---- counts of groups ---- */

struct group_totals {
    size_t n;
    struct duplicate_counts *counts, *marked;
    pthread_mutex_t lock;       /* guards counts */
};

struct group_totals *group_totals_create(size_t n)
{
    struct group_totals *totals = xcalloc(1, sizeof *totals);
    totals->n = n;
    totals->counts = xcalloc(n, sizeof *totals->counts);
    totals->marked = xcalloc(n, sizeof *totals->marked);
    (void)pthread_mutex_init(&totals->lock, NULL);
    return totals;
}

void group_totals_destroy(struct group_totals *totals)
{
    if (!totals) return;
    free(totals->counts);
    free(totals->marked);
    (void)pthread_mutex_destroy(&totals->lock);
    free(totals);
}

void group_totals_mark(struct group_totals *totals)
{
    memcpy(totals->marked, totals->counts, totals->n * sizeof *totals->counts);
}

void group_totals_undo(struct group_totals *totals)
{
    memcpy(totals->counts, totals->marked, totals->n * sizeof *totals->counts);
}

const struct duplicate_counts *group_totals_counts(const struct group_totals *totals, size_t *n)
{
    *n = totals ? totals->n : 0;
    return totals ? totals->counts : NULL;
}

static void empty_place(struct group_place *place, struct group_totals *totals)
{
    (void)pthread_mutex_lock(&totals->lock);
    duplicate_counts_join(&totals->counts[place->group], &place->counts);
    (void)pthread_mutex_unlock(&totals->lock);
    *place = (struct group_place){.is_used = false};
}

struct duplicate_counts *group_counts_of(struct group_counts *part, struct group_totals *totals,
                                         size_t group)
{
    struct group_place *place = &part->places[group % GROUP_COUNTS_PLACES];
    if (place->is_used && place->group != group) empty_place(place, totals);
    place->is_used = true;
    place->group = group;
    return &place->counts;
}

void group_counts_end(struct group_counts *part, struct group_totals *totals)
{
    for (size_t i = 0; i < GROUP_COUNTS_PLACES; i++)
        if (part->places[i].is_used) empty_place(&part->places[i], totals);
}

/* ---- the size of the library ---- */

/*
 * Drawing n pairs with replacement from a library of x molecules gives x * (1 - exp(-n / x))
 * distinct ones on average. Returns by how much `unique` exceeds this number, divided by x.
 */
static double surplus(double x, double unique, double n)
{
    return unique / x - 1 + exp(-n / x);
}

/*
 * The surplus falls as x grows; its zero is the size. It is searched between 1 and 100 times the
 * unique pairs, or above. The steps are those of Picard and samtools, because the last digits of
 * the result depend on them.
 */
uint64_t duplicate_library_size(uint64_t n_pairs, uint64_t n_unique_pairs)
{
    enum { STEPS = 40 };
    const double n = (double)n_pairs, unique = (double)n_unique_pairs;
    double low = 1, high = 100;
    if (n_unique_pairs == 0 || n_pairs <= n_unique_pairs || surplus(low * unique, unique, n) < 0)
        return 0;
    while (surplus(high * unique, unique, n) > 0) high *= 10;
    for (int i = 0; i < STEPS; i++) {
        double middle = (low + high) / 2, at_middle = surplus(middle * unique, unique, n);
        if (at_middle > 0)
            low = middle;
        else if (at_middle < 0)
            high = middle;
        else
            break;
    }
    double size = unique * (low + high) / 2;
    return size < (double)INT64_MAX ? (uint64_t)size : INT64_MAX;
}

/* The library size from counts of reads. As in samtools, 0 unless some pair is a duplicate that is
   not optical. */
static uint64_t library_size(const struct duplicate_counts *counts)
{
    uint64_t n_duplicates = (counts->paired_duplicates - counts->paired_optical) / 2;
    if (n_duplicates == 0) return 0;
    return duplicate_library_size((counts->paired - counts->paired_optical) / 2,
                                  (counts->paired - counts->paired_duplicates) / 2);
}

/* ---- the report of samtools ---- */

enum { N_LINES = 15, JSON_INDENT = 4 };

struct line {
    const char *name;
    uint64_t value;
};

static void list_lines(const struct duplicate_counts *counts, struct line lines[N_LINES])
{
    const uint64_t primary = counts->single_duplicates + counts->paired_duplicates;
    const struct line all[N_LINES] = {
        {"READ", counts->read},
        {"WRITTEN", counts->written},
        {"EXCLUDED", counts->excluded},
        {"EXAMINED", counts->examined},
        {"PAIRED", counts->paired},
        {"SINGLE", counts->single},
        {"DUPLICATE PAIR", counts->paired_duplicates},
        {"DUPLICATE SINGLE", counts->single_duplicates},
        {"DUPLICATE PAIR OPTICAL", counts->paired_optical},
        {"DUPLICATE SINGLE OPTICAL", counts->single_optical},
        {"DUPLICATE NON PRIMARY", counts->other_duplicates},
        {"DUPLICATE NON PRIMARY OPTICAL", counts->other_optical},
        {"DUPLICATE PRIMARY TOTAL", primary},
        {"DUPLICATE TOTAL", primary + counts->other_duplicates},
        {"ESTIMATED_LIBRARY_SIZE", library_size(counts)},
    };
    memcpy(lines, all, sizeof all);
}

static void write_part(FILE *to, const char *title, const char *name,
                       const struct duplicate_counts *counts)
{
    struct line lines[N_LINES];
    list_lines(counts, lines);
    (void)fprintf(to, "%s: %s\n", title, name);
    for (size_t i = 0; i < N_LINES; i++)
        (void)fprintf(to, "%s: %" PRIu64 "\n", lines[i].name, lines[i].value);
    (void)fputc('\n', to);
}

static void write_json_part(struct json_writer *json, const char *title, const char *name,
                            const struct duplicate_counts *counts)
{
    struct line lines[N_LINES];
    list_lines(counts, lines);
    json_string(json, title, name);
    for (size_t i = 0; i < N_LINES; i++) json_unsigned(json, lines[i].name, lines[i].value);
}

static const char *group_name(const struct read_groups *groups, size_t group)
{
    return group == 0 ? "ungrouped" : groups->ids.names[group - 1];
}

static void write_json(FILE *to, const char *command, const struct duplicate_counts *sum,
                       const struct duplicate_counts *counts, const struct read_groups *groups)
{
    struct json_writer json;
    json_start(&json, to);
    json.indent = JSON_INDENT;
    json_begin_object(&json, NULL);
    write_json_part(&json, "COMMAND", command, sum);
    if (groups) json_begin_array(&json, "READ GROUPS");
    for (size_t i = 0; groups && i <= groups->ids.n; i++) {
        if (i == 0 && counts[0].read == 0) continue;
        json_begin_object(&json, NULL);
        write_json_part(&json, "READ GROUP", group_name(groups, i), &counts[i]);
        json_end(&json);
    }
    if (groups) json_end(&json);
    json_end(&json);
}

void markdup_stats_write(FILE *to, bool json, const char *command,
                         const struct duplicate_counts *counts, const struct read_groups *groups)
{
    size_t n_groups = groups ? groups->ids.n : 0;
    const struct duplicate_counts sum = duplicate_counts_sum(counts, n_groups + 1);
    if (json) {
        write_json(to, command, &sum, counts, groups);
        return;
    }
    write_part(to, "COMMAND", command, &sum);
    for (size_t i = 0; groups && i <= n_groups; i++)
        if (i > 0 || counts[0].read > 0)
            write_part(to, "READ GROUP", group_name(groups, i), &counts[i]);
}

/* ---- Picard's metrics ---- */

/* Picard's metrics of a library. */
struct metrics {
    uint64_t n_pairs, n_duplicates, n_optical;  /* pairs */
    uint64_t library_size;      /* 0: unknown */
};

static struct metrics metrics_of(const struct duplicate_counts *counts)
{
    struct metrics m = {counts->paired / 2, counts->paired_duplicates / 2,
                        counts->paired_optical / 2, 0};
    m.library_size = duplicate_library_size(m.n_pairs - m.n_optical, m.n_pairs - m.n_duplicates);
    return m;
}

/* Writes a number with at most six decimals, as Picard does. */
static void write_decimal(FILE *to, double value)
{
    char text[400];             /* any double */
    int n = snprintf(text, sizeof text, "%.6f", value);
    while (n > 0 && text[n - 1] == '0') n--;
    if (n > 0 && text[n - 1] == '.') n--;
    (void)fprintf(to, "%.*s", n, text);
}

static void write_library(FILE *to, const char *name, const struct duplicate_counts *counts)
{
    struct metrics m = metrics_of(counts);
    double n_examined = (double)counts->single + 2 * (double)m.n_pairs;
    double n_duplicates = (double)counts->single_duplicates + 2 * (double)m.n_duplicates;
    (void)fprintf(to, "%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
                  "\t%" PRIu64 "\t%" PRIu64 "\t",
                  name, counts->single, m.n_pairs, counts->other_alignments, counts->unmapped,
                  counts->single_duplicates, m.n_duplicates, m.n_optical);
    write_decimal(to, n_examined > 0 ? n_duplicates / n_examined : 0);
    if (m.library_size > 0)
        (void)fprintf(to, "\t%" PRIu64 "\n", m.library_size);
    else
        (void)fputs("\t\n", to);
}

/* Writes, for each x, by what factor the unique pairs would grow with x times as many reads. */
static void write_histogram(FILE *to, const struct duplicate_counts *counts)
{
    enum { MOST_TIMES = 100 };
    struct metrics m = metrics_of(counts);
    if (m.library_size == 0) return;
    double size = (double)m.library_size, n_unique = (double)(m.n_pairs - m.n_duplicates);
    (void)fputs("\n## HISTOGRAM\tjava.lang.Double\nBIN\tCoverageMult\n", to);
    for (int x = 1; x <= MOST_TIMES; x++) {
        (void)fprintf(to, "%d.0\t", x);
        write_decimal(to, size * (1 - exp(-(x * (double)m.n_pairs) / size)) / n_unique);
        (void)fputc('\n', to);
    }
}

void markdup_metrics_write(FILE *to, const char *command, const char *started,
                           const struct duplicate_counts *counts, const struct read_groups *groups)
{
    size_t n_libraries = groups ? groups->libraries.n : 0;
    bool has_unknown = counts[0].read > 0 || n_libraries == 0;
    (void)fprintf(to,
                  "## htsjdk.samtools.metrics.StringHeader\n"
                  "# %s\n"
                  "## htsjdk.samtools.metrics.StringHeader\n"
                  "# Started on: %s\n"
                  "\n"
                  "## METRICS CLASS\tpicard.sam.DuplicationMetrics\n"
                  "LIBRARY\tUNPAIRED_READS_EXAMINED\tREAD_PAIRS_EXAMINED\t"
                  "SECONDARY_OR_SUPPLEMENTARY_RDS\tUNMAPPED_READS\tUNPAIRED_READ_DUPLICATES\t"
                  "READ_PAIR_DUPLICATES\tREAD_PAIR_OPTICAL_DUPLICATES\tPERCENT_DUPLICATION\t"
                  "ESTIMATED_LIBRARY_SIZE\n",
                  command, started);
    if (has_unknown) write_library(to, "Unknown Library", &counts[0]);
    for (size_t i = 1; i <= n_libraries; i++)
        write_library(to, groups->libraries.names[i - 1], &counts[i]);
    /* No empty line follows the table, as in Picard's files: MultiQC 1.35 would take the first
       library for all. */
    if (n_libraries + has_unknown == 1) write_histogram(to, &counts[has_unknown ? 0 : 1]);
}
