/* foreign_name.c -- see foreign_name.h. */
#include "output/foreign_name.h"

#include "util/path.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct text_end {               /* the end of a name: `n` characters at `at` */
    const char *at;
    size_t n;
};

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

static bool is_word(struct text_end text, const char *word)
{
    return strlen(word) == text.n && strncasecmp(text.at, word, text.n) == 0;
}

/* Cuts the last extension off a name of n characters, and returns it; {NULL, 0} if there is none. A
   name like ".fastq" has none. */
static struct text_end cut_extension(const char *name, size_t *n)
{
    size_t dot = *n;
    while (dot > 0 && name[dot - 1] != '.') dot--;
    if (dot <= 1) return (struct text_end){NULL, 0};
    struct text_end extension = {name + dot, *n - dot};
    *n = dot - 1;
    return extension;
}

static bool is_compression(struct text_end extension)
{
    static const char *const words[] = {"gz", "bgz", "bgzf", "bz2", "xz", "zst", "zip", "lz4"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(extension, words[i])) return true;
    return false;
}

const char *foreign_name_format(const char *path)
{
    const char *name = path_name(path);
    size_t n = strlen(name);
    struct text_end extension = cut_extension(name, &n);
    if (extension.at && is_compression(extension)) extension = cut_extension(name, &n);
    for (size_t i = 0; extension.at && i < sizeof foreign / sizeof *foreign; i++)
        if (is_word(extension, foreign[i].extension)) return foreign[i].format;
    return NULL;
}
