/*
 * pair_barcode.h -- the barcode of a pair of which only one read has one (--barcode-tag).
 *
 * samtools looks at each read alone. If only one of both has the tag, the other is compared with
 * reads without barcode, and the two may be decided differently. Here a read without barcode gets
 * that of the primary records of its name. So the mate is found wherever it is: its record need not
 * be examined, nor mapped. If they have several barcodes, because several templates have one name,
 * nobody knows which is right, and the read has none.
 *
 * Where views are made, a record has a role:
 * - A *seeker* is examined and has no barcode. Its views are set aside, by name.
 * - A *giver* has a barcode. Views of pairs have name and barcode, so they need nothing more;
 *   another giver needs a view just for that, which is set aside, too.
 * Records without mate are neither, nor are those without name ("*").
 *
 * Pure; any thread.
 */
#ifndef ROCKSORT_DUPLICATES_PAIR_BARCODE_H
#define ROCKSORT_DUPLICATES_PAIR_BARCODE_H

#include "duplicates/duplicate_view.h"

enum barcode_role {
    BARCODE_NO_ROLE,
    BARCODE_SEEKER,
    BARCODE_GIVER,              /* its view is that of a pair */
    BARCODE_GIVER_APART,        /* its view is `giver` */
};

/* How many records there are. */
struct barcode_counts {
    uint64_t n_examined, n_lacking;     /* examined reads; those that have no barcode */
    uint64_t n_unreadable;      /* record_views.lacks_barcode */
    uint64_t n_seekers, n_givers;       /* n_givers: without BARCODE_GIVER_APART */
    uint64_t n_names, n_without_coords; /* names searched for coordinates; those without */
};

void barcode_counts_join(struct barcode_counts *sum, const struct barcode_counts *other);

/*
 * The role of a record with the views that duplicate_views_make has made of it. The views of a
 * seeker get its name. *giver is set for BARCODE_GIVER_APART: a VIEW_OTHER with name and barcode,
 * which point into the record.
 */
enum barcode_role pair_barcode_role(const struct duplicate_rules *rules, const uint8_t *rec,
                                    struct record_views *views, struct duplicate_view *giver);

#endif
