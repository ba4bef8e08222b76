/* sort_options_columns.c -- see sort_options_columns.h. */
#include "command/sort_options_columns.h"

#include "util/diag.h"

int sort_options_choose_columns(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    struct column_request *columns = &s->columns;
    if (!output_format_has_columns(&s->output_format)) {
        if (!columns->list) return 0;
        diag_error("--columns chooses what Arrow holds: write it with -O arrow, or leave --columns "
                   "out");
        return -1;
    }
    /* LZ4 costs next to nothing; who asks for more than level 1 gets zstd. */
    columns->codec = s->level == 0 ? COLUMN_CODEC_NONE
                                   : s->level > 1 ? COLUMN_CODEC_ZSTD : COLUMN_CODEC_LZ4;
    columns->level = s->level;
    struct column_schema *schema = column_request_schema(columns, NULL);
    column_schema_destroy(schema);
    return schema ? 0 : -1;
}
