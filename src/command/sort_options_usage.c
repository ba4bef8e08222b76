/* sort_options_usage.c -- the usage text. See sort_options.h. */
#include "command/sort_options.h"

#include "command/sort_options_internal.h"

void sort_options_print_usage(const struct sort_options *options, FILE *to)
{
    bool own = options->dialect == DIALECT_ROCKSORT;
    const char *command = own ? "rocksort" : "sort";
    (void)fprintf(to, "Usage: samtools %s [options] [in.bam]\n", command);
    if (own)
        (void)fprintf(to, "       samtools rocksort [options] -o out.bam in.bam [in.bam ...]\n"
                          "       samtools rocksort [options] in.bam out.prefix\n"
                          "       samtools rocksort [options] --resume STORE\n");
    (void)fprintf(to,
"\n"
"Sorts alignments (SAM, BAM, CRAM; - or nothing: standard input) in bounded memory.\n"
"%s"
"\n"
"Order:\n"
"  (none)               by reference and position\n"
"  -n                   by read name, numbers in it by value\n"
"  -N                   by read name, character by character\n"
"  -t TAG               by the value of a tag, then as above\n"
"  --template-coordinate   by both ends of the template, for grouping by molecule\n"
"  -M                   as by position, but reads without one by minimiser: they compress better\n"
"  -K INT               length of the minimiser's k-mer, 1 to 31 [20]\n"
"  -I FASTA             order minimisers by their place in FASTA; implies -M\n"
"  -w INT               window of the index of FASTA [100]\n"
"  -R                   with -M: do not reverse-complement reads\n"
"  -H                   with -M: a run of equal bases counts as one base\n"
"  --shuffle[=SEED]     in random order, always the same one for a seed\n"
"Input and output:\n"
"  -o FILE              write to FILE, not to standard output\n"
"  -O, --output-fmt FORMAT   bam, sam or cram; else by the extension of FILE, else bam\n"
"  -l INT               compression level, 0 to 9 [6]\n"
"  -u                   uncompressed, the same as -l 0\n"
"  --write-index        write an index, too: CSI or CRAI, or BAI with -o FILE##idx##FILE.bai\n"
"%s"
"  --fsync              wait until output and index are on the disk (safe from power failures)\n"
"  --no-PG              add no @PG line to the header\n"
"  --reference FASTA    reference of CRAM, in and out\n"
"  --input-fmt-option OPT[=VAL]    an option of htslib for the input\n"
"  --output-fmt-option OPT[=VAL]   and for the output\n"
"  --checksum           print the checksum of all records on standard error\n"
"  --checksum-only      print the checksum of the inputs on standard output, sort nothing\n"
"  --verify[=coordinate]   check that each input is in the order that its header claims, or in\n"
"                       that of the options, sort nothing\n"
"  --plan               print what a sort with these options would do and take, sort nothing\n"
"Resources:\n"
"  -@, --threads INT    worker threads; 0 and 1 mean one; auto: as many as may be used [0]\n"
"  -m SIZE              memory a thread, with K, M, G or T [" DEFAULT_MEMORY "]\n"
"  --max-memory SIZE    memory in all, whatever the number of threads; auto: by what is there\n"
"  -T PREFIX            temporary data go into directory PREFIX, or beside it; given several\n"
"                       times, for instance for several disks, they are spread\n"
"  -s SIZE              estimated uncompressed size of the input, by which runs are compacted;\n"
"                       auto: if that saves time; off: only if too many files are open [auto]\n"
"  -k, --keep           keep the temporary data; --resume can merge them again\n"
"  --temp-codec STR     none, snappy, lz4, zstd, or auto: by how fast the disk is [auto]\n"
"After a failure:\n"
"  --resume STORE       finish the sort whose temporary data are in directory STORE\n"
"  --partial            with --resume: write what came of an input that was cut off\n"
"  --no-resume          remove temporary data in any case, and save what it costs to keep them\n"
"  --clean DIR          list the temporary data in DIR that no run uses any more\n"
"  --yes                with --clean: and remove them\n"
"Other:\n"
"  --progress           without a terminal: a line on standard error every 10 seconds\n"
"  --quiet              nothing but errors on standard error\n"
"  --stats FILE         write what was done and how long it took to FILE, as JSON\n"
"  --verbosity INT      1 errors, warnings; 2 also the closing line; 4 also details [3]\n"
"  -h, --help           this text\n"
"  --version            versions of rocksort and of its libraries\n",
                  own ? "With -o every other argument is an input; all must have the same @SQ "
                        "lines. Without -o a\nsecond argument is the output's name without .bam.\n"
                      : "",
                  own ? "  -f                   the second argument is the whole output name, not "
                        "a prefix\n"
                      : "");
}
