/*
 * sort_options_usage.c -- the usage text.
 *
 * The common options fit two screens of 24 lines. Tests compare the text of --help=all with the
 * manual page and the completions (completions/options.tsv).
 */
#include "cli/sort_options.h"

enum usage_kind {
    TITLE,                      /* title of the following options; printed if one of them is */
    COMMON,                     /* printed by --help, too */
    RARE,                       /* printed by --help=all only */
    RARE_OWN,                   /* the same, and not in the dialect of `samtools sort` */
};

static const struct {
    enum usage_kind kind;
    const char *text;           /* one line or several */
} lines[] = {
    {TITLE, "Order:\n"},
    {COMMON,
"  (none)               by reference and position\n"
"  -n                   by read name, numbers in it by value\n"
"  -N                   by read name, character by character\n"
"  -t TAG               by the value of a tag, then as above\n"
"  --template-coordinate   by both ends of the template, for grouping by molecule\n"},
    {RARE,
"  -M                   by position; reads without a position by minimiser (compresses better)\n"
"  -K INT               length of the minimiser's k-mer, 1 to 31 [20]\n"
"  -I FASTA             order minimisers by their place in FASTA; implies -M\n"
"  -w INT               window of the index of FASTA [100]\n"
"  -R                   with -M: do not reverse-complement reads\n"
"  -H                   with -M: a run of equal bases counts as one base\n"
"  --shuffle[=SEED]     in random order, always the same one for a seed\n"},
    {COMMON,
"  --merge              merge inputs that are already sorted\n"},
    {TITLE, "Changes to records:\n"},
    {COMMON,
"  --fixmate[=OPTIONS]  fill in mate fields (like `samtools fixmate -m OPTIONS`); input must be\n"
"                       grouped by name\n"},
    {COMMON,
"  --markdup[=OPTIONS]  mark duplicates, as `samtools markdup OPTIONS` does; needs the tags\n"
"                       that --fixmate makes\n"},
    {TITLE, "Input and output:\n"},
    {COMMON,
"  -o FILE              write to FILE, not to standard output\n"
"  -O, --output-fmt FORMAT   bam, sam, cram, arrow, arrows, parquet; else by FILE's extension\n"
"  -l INT               compression level, 0 to 9 (CRAM, sam.gz: 6) [3]\n"
"  -u                   uncompressed, the same as -l 0\n"},
    {RARE,
"  --deflate STR        rocksort, igzip, libdeflate, zlib, or auto [auto]\n"},
    {COMMON,
"  --write-index        also write an index: CSI or CRAI, or BAI with -o FILE##idx##FILE.bai\n"},
    {RARE,
"  --also FILE          write the records to FILE, too, in the format of its extension\n"
"  --columns LIST       columns of Arrow and Parquet, such as qname,flag,pos,NM,XS:i; `all`\n"
"                       stands for all\n"
"  --split-by HOW       write a file for each group and its index, with -o DIR/%.bam; HOW is\n"
"                       contig, ranges:N, rg, tag:XX or a BED file\n"},
    {RARE_OWN,
"  -f                   the second argument is the whole output name, not a prefix\n"},
    {RARE,
"  --fsync              wait until output and index are on the disk (safe from power failures)\n"},
    {COMMON,
"  --no-PG              add no @PG line to the header\n"
"  --reference FASTA    the reference of CRAM input and output\n"},
    {RARE,
"  --input-fmt-option OPT[=VAL]    a format option of htslib for the input\n"
"  --output-fmt-option OPT[=VAL]   a format option of htslib for the output\n"},
    {TITLE, "Counts of the output, made in the same pass; - for standard output:\n"},
    {RARE,
"  --flagstat FILE      write what `samtools flagstat` says of the output to FILE\n"
"  --idxstats FILE      the same for `samtools idxstats`\n"
"  --coverage FILE      the same for `samtools coverage`, in coordinate order\n"
"  --stats FILE         the same for `samtools stats`; --stats='OPTIONS FILE' takes its options\n"
"  --samtools-checksum FILE   the same for `samtools checksum`; options as with --stats\n"
"  --picard PREFIX      the files of Picard's CollectMultipleMetrics: PREFIX.insert_size_metrics,\n"
"                       PREFIX.alignment_summary_metrics ...; levels and reference:\n"
"                       --picard='LEVELS=SAMPLE,READ_GROUP R=FASTA PREFIX'\n"
"  --mosdepth PREFIX    the files of mosdepth 0.3.3, in coordinate order; with options of\n"
"                       mosdepth before PREFIX: --mosdepth='-n -x --by 500 PREFIX'\n"
"  --bedgraph FILE      write the depth as bedGraph to FILE; 'OPTIONS FILE' takes options such\n"
"                       as -split, -strand +, --scale CPM, --bin 50, -F 1796\n"
"  --bigwig FILE        the same as bigWig\n"
"  --qc PREFIX          all that pipelines want: --flagstat, --idxstats, --stats, --mosdepth,\n"
"                       --picard and metrics of --markdup, in files PREFIX.flagstat ... for MultiQC\n"},
    {TITLE, "Checks, instead of a sort or with it:\n"},
    {COMMON,
"  --plan               dry run: print estimated time, memory and disk\n"
"  --verify[=coordinate]   check that each input is in the order that its header claims,\n"
"                       or in the order that options name; do not sort\n"
"  --checksum           print the checksum of all records on standard error\n"},
    {RARE,
"  --checksum-only      print the checksum of the inputs on standard output; do not sort\n"},
    {TITLE, "Resources:\n"},
    {COMMON,
"  -@, --threads INT    worker threads; 0 and 1 mean one; auto: as many as the job may use [0]\n"
"  -m SIZE              memory for each thread, such as 768M, 1.5G or 4GB [" DEFAULT_MEMORY "]\n"
"  --max-memory SIZE    memory for all threads together; auto: from free memory and job limits\n"
"  -T PREFIX            put temporary data into directory PREFIX, or beside it; several -T,\n"
"                       for instance for several disks, share the data\n"},
    {RARE,
"  -s SIZE              estimated uncompressed size of the input, which switches compaction on;\n"
"                       auto: if that saves time; off: only if too many files are open [auto]\n"
"  -k, --keep           keep the temporary data; --resume can merge them again\n"
"  --temp-codec STR     none, snappy, lz4, zstd, or auto: by how fast the disk is [auto]\n"},
    {TITLE, "After a failure:\n"},
    {COMMON,
"  --resume DIR         resume an interrupted sort; -T adds a temporary directory\n"},
    {RARE,
"  --partial            with --resume: write what was read of an input that was cut off\n"
"  --no-resume          always remove temporary data, and save the cost of keeping them\n"
"  --clean PLACE        list what sorts have left in a directory, or beside an output file\n"
"  --yes                with --clean: and remove it, unless a process uses it\n"},
    {TITLE, "Messages:\n"},
    {RARE,
"  --progress           without a terminal: a line on standard error every 10 seconds\n"},
    {COMMON,
"  --quiet              only errors, and the warning that barcodes are missing\n"},
    {RARE,
"  --report FILE        write what was done and how long it took to FILE, as JSON\n"
"  --verbosity INT      1 errors, warnings; 2 also the closing line; 4 also details [3]\n"},
    {COMMON,
"  -h                   the common options\n"
"  --help[=all]         the same; with =all every option\n"
"  --version            versions of rocksort and of its libraries\n"},
};

static void print_synopsis(bool own, FILE *to)
{
    (void)fprintf(to, "Usage: samtools %s [options] [in.bam]\n", own ? "rocksort" : "sort");
    if (own)
        (void)fputs("       samtools rocksort [options] -o out.bam in.bam [in.bam ...]\n"
                    "       samtools rocksort [options] in.bam out.prefix\n"
                    "       samtools rocksort [options] --resume DIR\n", to);
    (void)fputs("\nSorts SAM, BAM, CRAM and FASTQ (- or nothing: standard input) in "
                "bounded memory.\n", to);
    if (own)
        (void)fputs("With -o all other arguments are inputs; they must have the same @SQ lines. "
                    "Without -o a\nsecond argument is the output's name without .bam.\n", to);
    (void)fputs("\n", to);
}

void sort_options_print_usage(const struct sort_options *options, FILE *to)
{
    bool own = options->dialect == DIALECT_ROCKSORT;
    const char *title = NULL;
    print_synopsis(own, to);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        enum usage_kind kind = lines[i].kind;
        if (kind == TITLE) title = lines[i].text;
        if (kind == TITLE || (kind != COMMON && !options->help_all) || (kind == RARE_OWN && !own))
            continue;
        if (title) (void)fputs(title, to);
        title = NULL;
        (void)fputs(lines[i].text, to);
    }
}
