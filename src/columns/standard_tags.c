/*
 * standard_tags.c -- see standard_tags.h.
 *
 * The list is that of the SAM optional fields specification, section 1, without those that are
 * reserved or of no use today, and without CG, which holds the CIGAR of a long read.
 */
#include "columns/standard_tags.h"

const struct standard_tag standard_tags[] = {
    {"AM", COLUMN_INT64}, {"AS", COLUMN_INT64}, {"BC", COLUMN_TEXT}, {"BQ", COLUMN_TEXT},
    {"BZ", COLUMN_TEXT}, {"CB", COLUMN_TEXT}, {"CC", COLUMN_TEXT}, {"CM", COLUMN_INT64},
    {"CO", COLUMN_TEXT}, {"CP", COLUMN_INT64}, {"CQ", COLUMN_TEXT}, {"CR", COLUMN_TEXT},
    {"CS", COLUMN_TEXT}, {"CT", COLUMN_TEXT}, {"CY", COLUMN_TEXT}, {"E2", COLUMN_TEXT},
    {"FI", COLUMN_INT64}, {"FS", COLUMN_TEXT}, {"FZ", COLUMN_UINT16_LIST}, {"H0", COLUMN_INT64},
    {"H1", COLUMN_INT64}, {"H2", COLUMN_INT64}, {"HI", COLUMN_INT64}, {"IH", COLUMN_INT64},
    {"LB", COLUMN_TEXT}, {"MC", COLUMN_TEXT}, {"MD", COLUMN_TEXT}, {"MI", COLUMN_TEXT},
    {"ML", COLUMN_UINT8_LIST}, {"MM", COLUMN_TEXT}, {"MN", COLUMN_INT64}, {"MQ", COLUMN_INT64},
    {"NH", COLUMN_INT64}, {"NM", COLUMN_INT64}, {"OA", COLUMN_TEXT}, {"OC", COLUMN_TEXT},
    {"OP", COLUMN_INT64}, {"OQ", COLUMN_TEXT}, {"OX", COLUMN_TEXT}, {"PG", COLUMN_TEXT},
    {"PQ", COLUMN_INT64}, {"PT", COLUMN_TEXT}, {"PU", COLUMN_TEXT}, {"Q2", COLUMN_TEXT},
    {"QT", COLUMN_TEXT}, {"QX", COLUMN_TEXT}, {"R2", COLUMN_TEXT}, {"RG", COLUMN_TEXT},
    {"RX", COLUMN_TEXT}, {"SA", COLUMN_TEXT}, {"SM", COLUMN_INT64}, {"TC", COLUMN_INT64},
    {"TS", COLUMN_CHAR}, {"U2", COLUMN_TEXT}, {"UQ", COLUMN_INT64},
};

const unsigned n_standard_tags = sizeof standard_tags / sizeof *standard_tags;

const struct standard_tag *standard_tag_find(const char letters[2])
{
    for (unsigned i = 0; i < n_standard_tags; i++)
        if (memcmp(standard_tags[i].name, letters, 2) == 0) return &standard_tags[i];
    return NULL;
}
