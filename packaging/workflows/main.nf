// From reads to a sorted file with marked duplicates and its index, spread over many tasks: see
// packaging/README.md and doc/cluster.md.
nextflow.enable.dsl = 2

// The budget of rocksort in a task that has nothing else to do.
def budget(task) {
    "${task.memory.toMega() - 128}M"
}

// A word for the shell.
def quote(word) {
    "'" + "${word}".replace("'", "'\\''") + "'"
}

// The command line, which is the same for each chunk of a lane, however many cores a task has: it
// becomes a line of the header. These functions get all settings as arguments: -resume notices a
// changed setting only if the script of the task names it.
def aligner(command, meta, reference, threads) {
    def values = [reads: 'r1.fastq.gz r2.fastq.gz', threads: threads, sample: meta.sample, lane: meta.lane,
                  reference: quote("reference/${reference}")]
    values.inject(command) { text, name, value -> text.replace("{${name}}", "${value}") }
}

// What both ways to sort have in common. No @PG lines: with other memory a retried task would have
// another one, and the headers of pieces would differ.
def split(fixmate, bed, threads, memory) {
    "samtools-rocksort --fixmate=${quote(fixmate)} --split-by ${bed} --no-PG -l 1 --no-resume" +
        " -@ ${threads} --max-memory ${memory} -T . -o pieces/%.bam"
}

// Groups of contigs, as BED.
process GROUP_CONTIGS {
    input:
    path fai

    output:
    path 'groups.bed'

    script:
    "group-contigs ${fai} ${params.group_bases} > groups.bed"
}

process CHUNK {
    tag "${meta.sample} ${meta.lane}"

    input:
    tuple val(meta), path(reads1, stageAs: 'in/1/*'), path(reads2, stageAs: 'in/2/*')

    output:
    tuple val(meta), path('chunks/*', arity: '1..*')

    script:
    "chunk-fastq ${params.chunks} ${params.chunk_multiple} ${reads1} ${reads2} chunks"
}

process ALIGN {
    tag "${meta.sample} ${meta.lane} ${chunk.name}"

    input:
    tuple val(meta), path(chunk)
    path bed
    path references, stageAs: 'reference/*'
    val reference

    output:
    tuple val(meta), path('pieces/*.bam')

    script:
    """
    mkdir pieces
    ln -s ${chunk}/*.fastq.gz .
    ${aligner(params.aligner, meta, reference, params.align_threads)} |
        ${split(params.fixmate, bed, task.cpus, "${params.sort_mb}M")} -
    """
}

process SPLIT_BAM {
    tag "${meta.sample} ${meta.lane}"

    input:
    tuple val(meta), path(bam, stageAs: 'in/*')
    path bed

    output:
    tuple val(meta), path('pieces/*.bam')

    script:
    """
    mkdir pieces
    ${split(params.fixmate, bed, task.cpus, budget(task))} ${bam}
    """
}

process GATHER {
    tag "${sample} ${piece}"

    input:
    tuple val(sample), val(piece), path(bams, stageAs: 'in/?/*')

    output:
    tuple val(sample), path("${piece}.bam"), path("${piece}.bam.csi")

    script:
    """
    samtools-rocksort --merge --markdup=${quote(params.markdup)} --write-index --no-PG -@ ${task.cpus} \\
        --max-memory ${budget(task)} -T . -o ${piece}.bam ${bams}
    """
}

process CONCATENATE {
    tag "${sample}"
    publishDir params.outdir, mode: 'copy', overwrite: true

    input:
    tuple val(sample), path(bams, stageAs: 'in/*'), path(indexes, stageAs: 'in/*')

    output:
    tuple path("${sample}.bam"), path("${sample}.bam.csi")

    script:
    """
    samtools-rocksort --merge --write-index --max-memory ${budget(task)} -o ${sample}.bam ${bams}
    """
}

workflow {
    def checked = ["${projectDir}/bin/check-markdup", params.markdup].execute()
    if (checked.waitFor() != 0) error checked.err.text.trim()

    // Names of files have no wildcards.
    def input = { file(it, checkIfExists: true, glob: false) }
    // A row is a lane: a pair of FASTQ files, or a BAM. It has its number among those of its sample.
    def rows = input(params.samples).splitCsv(header: true).groupBy { it.sample }.collectMany { sample, lanes ->
        lanes.collectMany { ["lane ${it.lane}".toString(), it.reads1, it.reads2] }.findAll()
            .countBy { it }.findAll { it.value > 1 }
            .each { error "${params.samples}: sample ${sample} has ${it.key} twice" }
        lanes.withIndex().collect { row, number -> row + [number: number] }
    }
    rows.collectMany { [it.sample, it.lane] }.findAll { !(it ==~ /[A-Za-z0-9_][A-Za-z0-9._-]*/) }.each {
        error "${params.samples}: '${it}' is no name for files: take letters, digits and . _ -"
    }
    def n_chunks = rows.groupBy { it.sample }
        .collectEntries { sample, lanes -> [sample, lanes.sum { it.reads2 ? params.chunks : 1 }] }
    pairs = Channel.fromList(rows.findAll { it.reads2 }).map { [it, input(it.reads1), input(it.reads2)] }
    bams = Channel.fromList(rows.findAll { !it.reads2 }).map { [it, input(it.reads1)] }

    bed = GROUP_CONTIGS(input("${params.reference}.fai"))
    // Those that --split-by adds are outside and unplaced.
    n_pieces = bed.map { it.readLines()*.tokenize('\t')*.getAt(3).unique().size() + 2 }

    // Whatever belongs to the reference: with another one all reads are aligned again.
    def reference = file(params.reference, glob: false)
    def references = reference.parent.listFiles().findAll { it.name.startsWith(reference.name) }.sort()
    chunks = CHUNK(pairs).transpose().map { meta, chunk -> [meta + [chunk: chunk.name], chunk] }
    ALIGN(chunks, bed, references, reference.name)
    SPLIT_BAM(bams, bed)

    // What all chunks have of a group of contigs, in the order of the input: it decides between equals.
    pieces = ALIGN.out.mix(SPLIT_BAM.out).combine(n_pieces)
        .flatMap { meta, files, n ->
            // groupTuple would silently leave out what is incomplete.
            if (files.size() != n) error "${meta.sample} ${meta.lane} has ${files.size()} pieces, not ${n}"
            files.collect { bam ->
                [groupKey("${meta.sample}/${bam.baseName}".toString(), n_chunks[meta.sample]), meta, bam] }
        }
        .groupTuple()
        .map { key, metas, files ->
            def ordered = [metas, files].transpose().sort { String.format('%06d %s', it[0].number, it[0].chunk) }
            [metas[0].sample, files[0].baseName, ordered*.getAt(1)] }
    GATHER(pieces)

    samples = GATHER.out.combine(n_pieces)
        .map { sample, bam, index, n -> [groupKey(sample, n), bam, index] }
        .groupTuple()
        .map { key, files, indexes -> [key.toString(), files.sort { it.name }, indexes.sort { it.name }] }
    CONCATENATE(samples)
}
