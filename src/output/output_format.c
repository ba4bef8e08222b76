/* output_format.c -- see output_format.h. */
#include "output/output_format.h"

#include "output/foreign_name.h"
#include "util/diag.h"
#include "util/path.h"

#include <htslib/sam.h>
#include <string.h>
#include <sys/stat.h>

/* Sets the kind of what htslib calls the format. Returns false if it is no format for alignments. */
static bool set_kind(struct output_format *format)
{
    switch (format->hts.format) {
    case bam: format->kind = OUTPUT_BAM; return true;
    case sam:
        format->kind = format->hts.compression == bgzf ? OUTPUT_SAM_GZ : OUTPUT_SAM;
        return true;
    case cram: format->kind = OUTPUT_CRAM; return true;
    default: return false;
    }
}

/* Sets the format by the extension of the path, else BAM. */
static void take_extension(const char *path, htsFormat *hts)
{
    char mode[8] = "";
    hts->category = sequence_data;
    hts->format = bam;
    hts->compression = bgzf;
    if (!path || sam_open_mode(mode, path, NULL) != 0) return;
    if (strcmp(mode, "") == 0 || strcmp(mode, "z") == 0) {
        hts->format = sam;
        hts->compression = mode[0] ? bgzf : no_compression;
    } else if (mode[0] == 'c') {
        hts->format = cram;
        hts->compression = custom;
    }
}

/* True if it is read as it is written: standard output, a named pipe or that of >(program). */
static bool is_pipe(const char *path)
{
    struct stat st;
    return !path || (stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)));
}

/* Sets the format if the option names one of columns. */
static bool take_column_option(const char *option, const char *path, struct output_format *format)
{
    if (strcmp(option, "parquet") == 0) {
        format->kind = OUTPUT_PARQUET;
        return true;
    }
    bool is_arrow = strcmp(option, "arrow") == 0, is_stream = strcmp(option, "arrows") == 0;
    if (!is_arrow && !is_stream) return false;
    format->kind = is_stream || is_pipe(path) ? OUTPUT_ARROW_STREAM : OUTPUT_ARROW;
    return true;
}

static bool take_column_extension(const char *path, struct output_format *format)
{
    const char *extension = path ? strrchr(path_name(path), '.') : NULL;
    if (!extension) return false;
    return take_column_option(extension + 1, path, format);
}

int output_format_choose(const char *option, const char *path, struct output_format *format)
{
    *format = (struct output_format){.kind = OUTPUT_BAM};
    if (option) {
        if (take_column_option(option, path, format)) return 0;
        if (hts_parse_format(&format->hts, option) == 0 && set_kind(format)) return 0;
        diag_error("option -O takes bam, sam, cram, arrow or parquet as output format, not '%s'",
                   option);
        return -1;
    }
    if (take_column_extension(path, format)) return 0;
    take_extension(path, &format->hts);
    (void)set_kind(format);
    const char *promised = path && format->kind == OUTPUT_BAM ? foreign_name_format(path) : NULL;
    if (!promised) return 0;
    if (strncmp(promised, "FAST", 4) == 0)
        diag_error("'%s' is a name for %s, not for BAM: name it .bam, and make FASTQ of that with "
                   "'samtools fastq'", path, promised);
    else
        diag_error("'%s' is a name for %s, not for BAM: name it .bam, or give the format with -O",
                   path, promised);
    return -1;
}

void output_format_compress(struct output_format *format)
{
    if (format->kind != OUTPUT_SAM) return;
    format->hts.compression = bgzf;
    format->kind = OUTPUT_SAM_GZ;
}

const char *output_format_option(const struct output_format *format)
{
    static const char *const options[] = {"bam", "sam", "sam.gz", "cram", "arrow", "arrows",
                                          "parquet"};
    return options[format->kind];
}

const char *output_format_name(const struct output_format *format)
{
    static const char *const names[] = {"BAM", "SAM", "compressed SAM", "CRAM", "Arrow", "Arrow",
                                        "Parquet"};
    return names[format->kind];
}
