/* sort_options_columns.c -- see sort_options_columns.h. */
#include "command/sort_options_columns.h"

#include "columns/standard_tags.h"
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

/* A tag may have another type than the specification gives it, but mostly that is a mistake, and
   then its column is all null. */
static void warn_of_types(const struct column_schema *schema)
{
    for (unsigned i = 0; i < schema->n_columns; i++) {
        const struct column *column = &schema->columns[i];
        const struct standard_tag *standard =
            column->field == FIELD_TAG ? standard_tag_find(column->name) : NULL;
        if (standard && standard->type != column->type)
            diag_warning("--columns gives '%s' another type than the SAM specification, so it "
                         "may be empty: write '%s'", column->name, column->name);
    }
}

int sort_options_choose_columns(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    bool has_columns = output_format_has_columns(&s->output_format);
    bool also_has = s->also && output_format_has_columns(&s->also_format);
    if (!has_columns && !also_has) {
        if (!s->columns.list) return 0;
        diag_error("--columns needs an output in Arrow or Parquet: add -O parquet, or leave "
                   "--columns out");
        return -1;
    }
    s->columns.format = column_format_of(s->output_format.kind);
    choose_codec(&s->output_format, s->level, &s->columns);
    s->also_columns.list = s->columns.list;
    s->also_columns.format = column_format_of(s->also_format.kind);
    choose_codec(&s->also_format, -1, &s->also_columns);
    struct column_schema *schema = column_request_schema(&s->columns, NULL);
    if (schema) warn_of_types(schema);
    column_schema_destroy(schema);
    return schema ? 0 : -1;
}
