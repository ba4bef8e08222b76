/* test_output_format.c -- which names promise a format that rocksort does not write. */
#include "unit_test.h"

#include "output/output_format.h"

TEST(test_names_promise_formats)
{
    static const struct {
        const char *path, *format;      /* NULL: it promises nothing */
    } cases[] = {
        {"x.fastq", "FASTQ"},
        {"x.fastq.gz", "FASTQ"},
        {"/a.b/x.sorted.FQ.GZ", "FASTQ"},
        {"x.fq.zst", "FASTQ"},
        {"x.fa", "FASTA"},
        {"x.vcf.bgz", "VCF"},
        {"x.bcf", "BCF"},
        {"x.bed", "BED"},
        {"x.bam.bai", "an index"},
        {"x.cram.crai", "an index"},
        {"x.pq", "Parquet"},
        {"x.Parquet.gz", "Parquet"},
        {"x.feather", "Arrow"},
        {"x.arrow.zst", "Arrow"},
        {"x.arrow.lz4", "Arrow"},
        {"x.json", "JSON"},
        {"x.csv", "CSV"},
        {"x.tsv.gz", "TSV"},
        {"x.bam", NULL},
        {"x.BAM", NULL},
        {"x.bam.gz", NULL},
        {"x.SAM", "SAM"},
        {"x.sam.bz2", "SAM"},
        {"x.Cram", "CRAM"},
        {"x.txt", NULL},
        {"x.txt.gz", NULL},
        {"x.gz", NULL},
        {"x", NULL},
        {"", NULL},
        {"fastq", NULL},
        {".fastq", NULL},
        {"x.", NULL},
        {"x.fastq.", NULL},
        {"x.fastq.tmp", NULL},
        {"x.fastq/y", NULL},
        {"x.fastqs", NULL},
        {"x.fast", NULL},
        {"reads.fq.bam", NULL},
        {"/dev/stdout", NULL},
        {"/dev/null", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *format = output_format_promised(cases[i].path);
        if (!format != !cases[i].format || (format && strcmp(format, cases[i].format) != 0))
            fail_msg("'%s' gave %s", cases[i].path, format ? format : "nothing");
    }
}
