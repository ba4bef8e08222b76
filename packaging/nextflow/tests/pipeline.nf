// A small pipeline around the module, run by scripts/test-workflows.sh: the lanes of each sample are
// aligned by bwa mem, each with rocksort in its pipe, and united by the module, which marks duplicates
// and counts. Then the module divides the result by contig, and merges the groups again.
nextflow.enable.dsl = 2

include { SAMTOOLS_ROCKSORT; SAMTOOLS_ROCKSORT as DIVIDE; SAMTOOLS_ROCKSORT as MERGE } from '../main.nf'

params.genome = 'genome.fasta'
params.reads = 'reads/*_{1,2}.fastq'
params.outdir = 'results'

process BWA_MEM_ROCKSORT {
    tag "${meta.lane}"

    input:
    tuple val(meta), path(reads)
    path genome

    output:
    tuple val(meta), path("${meta.lane}.bam"), emit: bam

    script:
    def mib = task.memory.toMega()
    """
    set -o pipefail
    bwa index ${genome}
    bwa mem -t ${task.cpus} -R '@RG\\tID:${meta.lane}\\tSM:${meta.id}' ${genome} ${reads} |
        samtools-rocksort -@ ${task.cpus} --max-memory ${mib.intdiv(2)}M -T . --fixmate -o ${meta.lane}.bam -
    """
}

workflow {
    lanes = Channel.fromFilePairs(params.reads, checkIfExists: true)
        .map { lane, files -> [[id: lane.tokenize('-')[0], lane: lane], files] }
    BWA_MEM_ROCKSORT(lanes, file(params.genome, checkIfExists: true))
    samples = BWA_MEM_ROCKSORT.out.bam
        .map { meta, bam -> [meta.subMap('id'), bam] }
        .groupTuple()
        .map { meta, bams -> [meta, bams, []] }
    SAMTOOLS_ROCKSORT(samples, [[:], []])
    SAMTOOLS_ROCKSORT.out.sorted
        .join(SAMTOOLS_ROCKSORT.out.index)
        .join(SAMTOOLS_ROCKSORT.out.reports)
        .subscribe { meta, bam, index, reports ->
            [bam, index, *reports].each { file(params.outdir).mkdirs(); it.copyTo("${params.outdir}/") }
        }
    DIVIDE(SAMTOOLS_ROCKSORT.out.sorted.map { meta, bam -> [meta, bam, []] }, [[:], []])
    MERGE(DIVIDE.out.sorted.join(DIVIDE.out.index), [[:], []])
    MERGE.out.sorted.subscribe { meta, bam -> bam.copyTo("${params.outdir}/") }
}
