/* sort_options_columns.c -- see sort_options_columns.h. */
#include "command/sort_options_columns.h"

#include "util/diag.h"

/* In Arrow, LZ4 costs next to nothing; who asks for more than level 1 gets zstd. Parquet is for
   keeping: zstd at level 1 makes it 0.8 times as large as BAM, and higher levels gain little. */
static void choose_codec(const struct output_format *format, int level,
                         struct column_request *columns)
{
    bool is_parquet = format->kind == OUTPUT_PARQUET;
    columns->codec = level == 0 ? COLUMN_CODEC_NONE
                                : is_parquet || level > 1 ? COLUMN_CODEC_ZSTD : COLUMN_CODEC_LZ4;
    columns->level = level < 1 ? 1 : level;
}

static enum column_format column_format_of(enum output_kind kind)
{
    switch (kind) {
    case OUTPUT_PARQUET: return COLUMN_FORMAT_PARQUET;
    case OUTPUT_ARROW_STREAM: return COLUMN_FORMAT_ARROW_STREAM;
    default: return COLUMN_FORMAT_ARROW;
    }
}

int sort_options_choose_columns(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    struct column_request *columns = &s->columns;
    if (!output_format_has_columns(&s->output_format)) {
        if (!columns->list) return 0;
        diag_error("--columns chooses what Arrow or Parquet holds: write it with -O arrow or -O "
                   "parquet, or leave --columns out");
        return -1;
    }
    columns->format = column_format_of(s->output_format.kind);
    choose_codec(&s->output_format, s->level, columns);
    struct column_schema *schema = column_request_schema(columns, NULL);
    column_schema_destroy(schema);
    return schema ? 0 : -1;
}
