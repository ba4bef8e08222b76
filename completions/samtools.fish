# Completes `samtools rocksort` as samtools-rocksort. It is installed in fish's vendor_conf.d, since
# the package of another samtools may have the file samtools.fish among the completions.
function __samtools_runs_rocksort
    set -l words (commandline -opc)
    test (count $words) -ge 2; or return 1
    test "$words[2]" = rocksort; and return 0
    test "$words[2]" = sort -a "$SAMTOOLS_SORT" = rocksort
end

function __samtools_rocksort_candidates
    set -l words (commandline -opc)
    complete -C (string join ' ' -- samtools-rocksort (string escape -- $words[3..-1]) \
        (commandline -ct))
end

complete -c samtools -n 'test (count (commandline -opc)) -eq 1' -a rocksort -d 'sort alignments'
complete -c samtools -n __samtools_runs_rocksort -f -a '(__samtools_rocksort_candidates)'
