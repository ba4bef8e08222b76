/* stats_barcodes.c -- see stats_barcodes.h. */
#include "stats/stats_barcodes.h"

#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char stats_barcode_tags[STATS_N_BARCODES][3] = {"BC", "CR", "OX", "RX"};
const char stats_barcode_quals[STATS_N_BARCODES][3] = {"QT", "CY", "BZ", "QX"};

/* Files with more shapes, or longer barcodes, are damaged: the others are not counted. */
enum { MOST_SHAPES = 64, MOST_BYTES = 255 };

static int base_number(char c)
{
    static const char bases[] = "ACGTN";
    const char *at = c ? strchr(bases, c) : NULL;
    return at ? (int)(at - bases) : -1;
}

static struct barcode_shape find_shape(const char *text, size_t n)
{
    struct barcode_shape shape = {(uint32_t)n, {-1, -1}};
    for (size_t i = 0; i < n && shape.other[1] < 0; i++)
        if (base_number(text[i]) < 0) shape.other[shape.other[0] >= 0] = (int32_t)i;
    return shape;
}

static bool are_equal(const struct barcode_shape *a, const struct barcode_shape *b)
{
    return a->n == b->n && a->other[0] == b->other[0] && a->other[1] == b->other[1];
}

/* Returns the counts of a shape, or NULL if there are too many. */
static struct barcode_counts *find_counts(struct barcode_tag_counts *of,
                                          const struct barcode_shape *shape)
{
    if (of->last < of->n && are_equal(&of->shapes[of->last].shape, shape))
        return &of->shapes[of->last];
    for (of->last = 0; of->last < of->n; of->last++)
        if (are_equal(&of->shapes[of->last].shape, shape)) return &of->shapes[of->last];
    if (of->n == MOST_SHAPES) return NULL;
    xgrow(&of->shapes, &of->room, of->n + 1, of->n + 4, sizeof *of->shapes);
    struct barcode_counts *counts = &of->shapes[of->n++];
    *counts = (struct barcode_counts){.shape = *shape};
    counts->bases = xcalloc(shape->n, sizeof *counts->bases);
    counts->quals = xcalloc(shape->n, sizeof *counts->quals);
    return counts;
}

/* Returns the text of a tag and its length; 0 if it is no text. */
static size_t text_of(const struct bam_aux *aux, const char **text)
{
    if (!aux->type || !bam_aux_is_text(aux)) return 0;
    *text = (const char *)aux->value;
    return aux->value_bytes - 1;
}

void stats_barcodes_add(struct stats_barcodes *barcodes, struct barcode_order *order, int tag,
                        const struct bam_aux *aux, const struct bam_aux *aux_quals)
{
    const char *text, *quals;
    size_t n = text_of(aux, &text);
    if (n == 0 || n > MOST_BYTES) return;
    const struct barcode_shape shape = find_shape(text, n);
    struct barcode_counts *counts = find_counts(&barcodes->tags[tag], &shape);
    if (!counts) return;
    if (counts->last_part != order->part) {
        xgrow(&order->at, &order->room, order->n + 1, order->n + 4, sizeof *order->at);
        order->at[order->n++] = (struct barcode_shape_of){tag, shape};
        counts->last_part = order->part;
    }
    for (size_t i = 0; i < n && (int32_t)i != shape.other[1]; i++) {
        int base = base_number(text[i]);
        if (base >= 0) counts->bases[i][base]++;
    }
    if (text_of(aux_quals, &quals) != n) return;
    for (size_t i = 0; i < n; i++) {
        int qual = (signed char)quals[i] - '!';
        if (qual >= 0) counts->quals[i][qual]++;
    }
}

void stats_barcodes_combine(struct barcode_layout *layout, const struct barcode_order *order)
{
    for (size_t i = 0; i < order->n; i++) {
        const struct barcode_shape *shape = &order->at[i].shape;
        const int tag = order->at[i].tag;
        if (layout->n[tag] == 0) layout->n[tag] = shape->n;
        if (shape->n <= layout->n[tag] && layout->separator[tag] == 0)
            layout->separator[tag] = shape->other[0] + 1;
    }
}

struct barcode_sums {
    uint64_t (*bases)[BARCODE_N_BASES];
    uint64_t (*quals)[BARCODE_N_QUALS];
    int best;                   /* quality; -1: none */
};

/* Adds the counts of a shape, as far as samtools counts such barcodes. */
static void add_counts(const struct barcode_counts *counts, int32_t separator,
                       struct barcode_sums *sums)
{
    const struct barcode_shape *shape = &counts->shape;
    int32_t wrong = shape->other[shape->other[0] == separator];
    if (shape->other[0] < 0) wrong = -1;
    const uint32_t n = wrong < 0 ? shape->n : (uint32_t)wrong;
    for (uint32_t i = 0; i < n; i++)
        for (int k = 0; k < BARCODE_N_BASES; k++) sums->bases[i][k] += counts->bases[i][k];
    for (uint32_t i = 0; wrong < 0 && i < n; i++)
        for (int k = 0; k < BARCODE_N_QUALS; k++) {
            sums->quals[i][k] += counts->quals[i][k];
            if (counts->quals[i][k] > 0 && k > sums->best) sums->best = k;
        }
}

/* Prints the name of a section and the cycle of a place: the separator divides two barcodes. */
static void print_cycle(FILE *to, const char *name, char letter, int32_t separator, uint32_t i)
{
    const bool is_second = separator >= 0 && (int32_t)i > separator;
    (void)fprintf(to, "%s%c%d\t%u", name, letter, is_second ? 2 : 1,
                  is_second ? i - (uint32_t)separator : i + 1);
}

static void print_tag(int tag, uint32_t n, int32_t separator, const struct barcode_sums *sums,
                      FILE *to)
{
    (void)fprintf(to, "# ACGT content per cycle for barcodes. Use `grep ^%sC | cut -f 2-` to "
                  "extract this part. The columns are: cycle; A,C,G,T base counts as a percentage "
                  "of all A/C/G/T bases [%%]; and N counts as a percentage of all A/C/G/T bases "
                  "[%%]\n", stats_barcode_tags[tag]);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t *bases = sums->bases[i];
        const uint64_t n_acgt = bases[0] + bases[1] + bases[2] + bases[3];
        if ((int32_t)i == separator || n_acgt == 0) continue;
        print_cycle(to, stats_barcode_tags[tag], 'C', separator, i);
        for (int k = 0; k < BARCODE_N_BASES; k++)
            (void)fprintf(to, "\t%.2f", 100. * (double)bases[k] / (double)n_acgt);
        (void)fputc('\n', to);
    }
    (void)fprintf(to, "# Barcode Qualities. Use `grep ^%sQ | cut -f 2-` to extract this part.\n"
                  "# Columns correspond to qualities and rows to barcode cycles. First column is "
                  "the cycle number.\n", stats_barcode_quals[tag]);
    for (uint32_t i = 0; i < n; i++) {
        if ((int32_t)i == separator) continue;
        print_cycle(to, stats_barcode_quals[tag], 'Q', separator, i);
        for (int k = 0; k <= sums->best; k++)
            (void)fprintf(to, "\t%" PRIu64, sums->quals[i][k]);
        (void)fputc('\n', to);
    }
}

void stats_barcodes_print(const struct barcode_layout *layout,
                          const struct stats_barcodes *const *counters, size_t n_counters,
                          FILE *to)
{
    for (int tag = 0; tag < STATS_N_BARCODES; tag++) {
        const uint32_t n = layout->n[tag];
        const int32_t separator = layout->separator[tag] - 1;
        if (n == 0) continue;
        struct barcode_sums sums = {.best = -1};
        sums.bases = xcalloc(n, sizeof *sums.bases);
        sums.quals = xcalloc(n, sizeof *sums.quals);
        for (size_t i = 0; i < n_counters; i++) {
            const struct barcode_tag_counts *of = &counters[i]->tags[tag];
            for (size_t k = 0; k < of->n; k++)
                if (of->shapes[k].shape.n <= n) add_counts(&of->shapes[k], separator, &sums);
        }
        print_tag(tag, n, separator, &sums, to);
        free(sums.bases);
        free(sums.quals);
    }
}

void stats_barcodes_release(struct stats_barcodes *barcodes)
{
    for (int tag = 0; tag < STATS_N_BARCODES; tag++) {
        struct barcode_tag_counts *of = &barcodes->tags[tag];
        for (size_t i = 0; i < of->n; i++) {
            free(of->shapes[i].bases);
            free(of->shapes[i].quals);
        }
        free(of->shapes);
    }
}
