process SAMTOOLS_ROCKSORT {
    tag "${meta.id}"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    container 'samtools-rocksort:0.1.0' // packaging/docker

    input:
    // Indexes, if --merge is to copy inputs that do not overlap, in the order of the inputs; or [].
    tuple val(meta), path(inputs, stageAs: 'inputs/?/*'), path(indexes, stageAs: 'inputs/?/*')
    tuple val(meta2), path(fasta)

    output:
    tuple val(meta), path(sorted)                                    , emit: sorted
    tuple val(meta), path("${sorted}.{bai,csi,crai}"), optional: true, emit: index
    tuple val(meta), path("${prefix}.{flagstat,idxstats,coverage,dups,metrics}"), optional: true, emit: reports
    path 'versions.yml'                                              , emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: "${meta.id}"
    def format = args =~ /(?:-O|--output-fmt)[ =]?(cram|sam|bam)/
    def extension = !format ? 'bam' : format[0][1] == 'sam' ? 'sam.gz' : format[0][1]
    // true, or options of samtools fixmate and markdup.
    def fixmate = task.ext.fixmate == true ? '--fixmate' : task.ext.fixmate ? "--fixmate='${task.ext.fixmate}'" : ''
    def markdup = task.ext.markdup == true ? '--markdup' : task.ext.markdup ? "--markdup='${task.ext.markdup}'" : ''
    // Sorted inputs are merged; the output is divided into the files of a directory.
    def merge = task.ext.merge ? '--merge' : ''
    def split = task.ext.split_by ? "--split-by ${task.ext.split_by}" : ''
    sorted = split ? "${prefix}/*.${extension}" : "${prefix}.${extension}"
    def reference = fasta ? "--reference ${fasta}" : ''
    // rocksort stays within its budget and 64 MiB; the rest is for the shell and the page cache.
    def mib = task.memory ? task.memory.toMega() : 0
    def memory = mib ? "--max-memory ${Math.max(mib - 128, mib.intdiv(2))}M" : ''
    """
    ${split ? "mkdir ${prefix}" : ''}
    samtools-rocksort \\
        ${merge} \\
        ${split} \\
        -@ ${task.cpus} \\
        ${memory} \\
        -T . \\
        ${reference} \\
        ${fixmate} \\
        ${markdup} \\
        ${args} \\
        -o '${sorted.replace('*', '%')}' \\
        ${inputs}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        samtools-rocksort: \$(samtools-rocksort --version | sed -n 's/^samtools rocksort //p')
    END_VERSIONS
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}"
    sorted = "${prefix}.bam"
    """
    touch ${prefix}.bam ${prefix}.bam.csi

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        samtools-rocksort: \$(samtools-rocksort --version | sed -n 's/^samtools rocksort //p')
    END_VERSIONS
    """
}
