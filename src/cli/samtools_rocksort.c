/* samtools_rocksort.c -- the program `samtools-rocksort`: the sorter alone, without the front end,
 * for those who do not want a second `samtools` on their PATH.
 *
 * argv[1..] are rocksort's own options. main_rocksort() expects its own name in argv[0], which is
 * what `samtools rocksort` gives it. Exit status: that of main_rocksort().
 */
#include <stddef.h>

#include "cli/bam_rocksort.h"

int main(int argc, char **argv)
{
    static char name[] = "rocksort";
    static char *no_argv[] = {name, NULL};

    /* execve() allows an empty argument list; there is no argv[0] to replace then. */
    if (argc < 1) return main_rocksort(1, no_argv);
    argv[0] = name;
    return main_rocksort(argc, argv);
}
