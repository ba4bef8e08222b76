/* output_format.c -- see output_format.h. */
#include "output/output_format.h"

#include "util/diag.h"
#include "util/path.h"

#include <htslib/sam.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Sets the kind from htslib's description. Returns false if it is not an alignment format. */
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

/* True if the path is standard output, a named pipe or >(program). */
static bool is_pipe(const char *path)
{
    struct stat st;
    return !path || (stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)));
}

struct extension {              /* `n` characters at `at`, 0 if there is none */
    const char *at;
    size_t n;
};

/* The extension after the last dot before `end`. A name like ".fastq" has none. */
static struct extension extension_before(const char *path, const char *end)
{
    const char *at = end;
    while (at > path && at[-1] != '.' && at[-1] != '/') at--;
    bool has_name = at > path + 1 && at[-1] == '.' && at[-2] != '/';
    return (struct extension){at, has_name ? (size_t)(end - at) : 0};
}

/* The query of a URL (?versionId=1.2) is not part of the name. */
static struct extension extension_of(const char *path)
{
    return extension_before(path,
                            path + (path_is_url(path) ? strcspn(path, "?#") : strlen(path)));
}

static bool is_word(struct extension text, const char *word)
{
    return strlen(word) == text.n && strncasecmp(text.at, word, text.n) == 0;
}

/* Sets the format if the text names a columnar format. */
static bool take_columns(struct extension text, const char *path, struct output_format *format)
{
    static const struct {
        const char *word;
        enum output_kind kind;
    } words[] = {{"arrow", OUTPUT_ARROW}, {"arrows", OUTPUT_ARROW_STREAM},
                 {"parquet", OUTPUT_PARQUET}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!is_word(text, words[i].word)) continue;
        format->kind = words[i].kind;
        if (format->kind == OUTPUT_ARROW && is_pipe(path)) format->kind = OUTPUT_ARROW_STREAM;
        return true;
    }
    return false;
}

/* Chooses by the argument of -O. */
static int take_option(const char *option, const char *path, struct output_format *format)
{
    size_t n = strcspn(option, ",");
    if (take_columns((struct extension){option, n}, path, format)) {
        if (option[n] == '\0') return 0;
        diag_error("-O %.*s takes no format options, as in '%s': choose columns with --columns and "
                   "the compression with -l", (int)n, option, option);
        return -1;
    }
    if (hts_parse_format(&format->hts, option) == 0 && set_kind(format)) return 0;
    diag_error("option -O takes bam, sam, cram, arrow, arrows or parquet as output format, not "
               "'%s'", option);
    return -1;
}

/* ---- names of other formats ---- */

static const struct {
    const char *extension, *format;
} foreign[] = {
    {"sam", "SAM"},           {"cram", "CRAM"},
    {"fastq", "FASTQ"},       {"fq", "FASTQ"},
    {"fasta", "FASTA"},       {"fa", "FASTA"},     {"fna", "FASTA"},     {"faa", "FASTA"},
    {"vcf", "VCF"},           {"bcf", "BCF"},      {"gvcf", "VCF"},
    {"bed", "BED"},           {"bedgraph", "bedGraph"},
    {"gff", "GFF"},           {"gff3", "GFF"},     {"gtf", "GTF"},
    {"wig", "WIG"},           {"bw", "bigWig"},    {"bigwig", "bigWig"}, {"bigbed", "bigBed"},
    {"paf", "PAF"},           {"maf", "MAF"},      {"gfa", "GFA"},       {"pileup", "pileup"},
    {"fast5", "FAST5"},       {"pod5", "POD5"},    {"2bit", "2bit"},
    {"bai", "an index"},      {"csi", "an index"}, {"crai", "an index"}, {"tbi", "an index"},
    {"fai", "an index"},      {"gzi", "an index"},
    {"parquet", "Parquet"},   {"pq", "Parquet"},   {"parq", "Parquet"},
    {"arrow", "Arrow"},       {"arrows", "Arrow"}, {"feather", "Arrow"}, {"ipc", "Arrow"},
    {"csv", "CSV"},           {"tsv", "TSV"},      {"json", "JSON"},
};

static bool is_compression(struct extension extension)
{
    static const char *const words[] = {"gz", "bgz", "bgzf", "bz2", "xz", "zst", "zip", "lz4"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(extension, words[i])) return true;
    return false;
}

const char *output_format_promised(const char *path)
{
    struct extension extension = extension_of(path);
    if (is_compression(extension)) extension = extension_before(path, extension.at - 1);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (is_word(extension, foreign[i].extension)) return foreign[i].format;
    return NULL;
}

/* ---- choosing ---- */

static void take_name(const char *path, struct output_format *format)
{
    if (path && take_columns(extension_of(path), path, format)) return;
    take_extension(path, &format->hts);
    (void)set_kind(format);
}

int output_format_choose(const char *option, const char *path, struct output_format *format)
{
    *format = (struct output_format){.kind = OUTPUT_BAM};
    if (option) return take_option(option, path, format);
    take_name(path, format);
    const char *promised = path && format->kind == OUTPUT_BAM ? output_format_promised(path) : NULL;
    if (!promised) return 0;
    if (strcmp(promised, "Parquet") == 0 || strcmp(promised, "Arrow") == 0)
        diag_error("'%s' is a name for %s: name it %s, or give the format with -O", path, promised,
                   promised[0] == 'P' ? ".parquet" : ".arrow");
    else if (strncmp(promised, "FAST", 4) == 0)
        diag_error("'%s' is a name for %s, not for BAM: name it .bam, and make FASTQ of that with "
                   "'samtools fastq'", path, promised);
    else
        diag_error("'%s' is a name for %s, not for BAM: name it .bam, or give the format with -O",
                   path, promised);
    return -1;
}

bool output_format_is_named(const char *path)
{
    struct output_format format = {.kind = OUTPUT_BAM};
    take_name(path, &format);
    return format.kind != OUTPUT_BAM || is_word(extension_of(path), "bam");
}

int output_format_choose_also(const char *path, struct output_format *format)
{
    *format = (struct output_format){.kind = OUTPUT_BAM};
    take_name(path, format);
    if (extension_of(path).n == 0 || output_format_is_named(path)) return 0;
    diag_error("--also needs a name that tells the format, not '%s': one with .bam, .sam, .sam.gz, "
               ".cram, .arrow, .arrows or .parquet", path);
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
