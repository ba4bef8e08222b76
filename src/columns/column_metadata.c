/* column_metadata.c -- see column_metadata.h. */
#include "columns/column_metadata.h"

#include "bam/header_text.h"
#include "columns/column_schema.h"
#include "util/terminal_text.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* The characters of Latin-1 in UTF-8; the caller frees them. */
static char *make_latin(const char *text)
{
    char *latin = xmalloc(2 * strlen(text) + 1), *to = latin;
    for (const uint8_t *at = (const uint8_t *)text; *at; at++) {
        if (*at >= 0x80) *to++ = (char)(0xc0 | *at >> 6);
        *to++ = (char)(*at < 0x80 ? *at : 0x80 | (*at & 0x3f));
    }
    *to = '\0';
    return latin;
}

void column_metadata_make(struct column_metadata *metadata, sam_hdr_t *header)
{
    const char *text = header_whole_text(header);
    *metadata = (struct column_metadata){
        .n = 2, .pairs = {{COLUMN_VERSION_KEY, COLUMN_SCHEMA_VERSION}, {COLUMN_HEADER_KEY, text}}};
    if (utf8_is_valid(text, strlen(text))) return;
    metadata->latin = make_latin(text);
    metadata->pairs[1].value = metadata->latin;
    metadata->pairs[2].key = COLUMN_ENCODING_KEY;
    metadata->pairs[2].value = COLUMN_LATIN;
    metadata->n = 3;
}

void column_metadata_release(struct column_metadata *metadata)
{
    free(metadata->latin);
}
