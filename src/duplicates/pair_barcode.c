/* pair_barcode.c -- see pair_barcode.h. */
#include "duplicates/pair_barcode.h"

#include "bam/bam_long.h"
#include "duplicates/read_barcode.h"

#include <string.h>

void barcode_counts_join(struct barcode_counts *sum, const struct barcode_counts *other)
{
    sum->n_examined += other->n_examined;
    sum->n_lacking += other->n_lacking;
    sum->n_names += other->n_names;
    sum->n_without_coords += other->n_without_coords;
    sum->n_unreadable += other->n_unreadable;
    sum->n_seekers += other->n_seekers;
    sum->n_givers += other->n_givers;
}

/* True for a primary record that says that it has a mate. An unmapped mate counts: it may have the
   barcode. */
static bool has_mate(const uint8_t *rec)
{
    uint32_t flag = bam_record_flag(rec);
    return (flag & BAM_FPAIRED) && !(flag & (BAM_FSECONDARY | BAM_FSUPPLEMENTARY)) &&
           !(bam_record_mate_tid(rec) == -1 && bam_record_mate_pos(rec) == -1) &&
           strcmp((const char *)bam_record_name(rec), "*") != 0;
}

static enum barcode_role give_apart(const struct duplicate_rules *rules, const uint8_t *rec,
                                    struct duplicate_view *giver)
{
    struct read_barcode barcode = read_barcode_of(rules, rec);
    if (!barcode.text) return BARCODE_NO_ROLE;
    *giver = (struct duplicate_view){.kind = VIEW_OTHER};
    duplicate_view_take_name(rec, giver);
    duplicate_view_take_barcode(rules, &barcode, giver);
    return BARCODE_GIVER_APART;
}

enum barcode_role pair_barcode_role(const struct duplicate_rules *rules, const uint8_t *rec,
                                    struct record_views *views, struct duplicate_view *giver)
{
    if (!duplicate_rules_share_barcodes(rules) || !has_mate(rec)) return BARCODE_NO_ROLE;
    bool has_barcode = views->as != EXAMINED_NOT && views->view[0].barcode != 0;
    if (has_barcode && views->as == EXAMINED_AS_PAIR && views->n > 0) return BARCODE_GIVER;
    if (has_barcode || views->as == EXAMINED_NOT || views->n == 0)
        return give_apart(rules, rec, giver);
    if (!views->view[0].name) duplicate_view_take_name(rec, &views->view[0]);
    return BARCODE_SEEKER;
}
