# samtools rocksort -- see README.md.
#
#   make                builds ./samtools and ./samtools-rocksort
#   make demo           installs what is missing, builds, sorts simulated reads in a pipeline
#   make check          installs what the tests need, builds and runs all tests
#   make differential N=2000   compares with samtools 1.24 on random inputs and options
#   make bench          compares with the samtools on PATH (an hour on two cores)
#   make bench-peers    compares with all the sorters that are installed (half an hour; a few minutes
#                       with SCALE=small; RECORDS=6M simulates so many)
#   make bench-2014     the experiments of 2014 on modelled disks (an hour; a few minutes with
#                       SCALE=small); results go to build/bench-2014
#   make install        to PREFIX (/usr/local), below DESTDIR; SAMTOOLS_DIR= is where the `samtools`
#                       front end goes if not to PREFIX/bin, ZSH_DIR= where zsh finds completions
#   make dist           the source tarball of HEAD, build/dist/samtools-rocksort-VERSION.tar.gz
#   make deb            a Debian package, build/deb/*.deb (packaging/README.md)
#   make test-deb       installs, runs and removes it in a fresh Debian (root, debootstrap)
#   make test-workflows runs the Snakemake wrapper and the Nextflow module behind an aligner
#   make bench/spindle  builds the disk model of the benchmarks, which needs libfuse 3
#   make clean
#
# HTSDIR= and ROCKSDB_DIR= take htslib and RocksDB from their source or install directories instead of
# pkg-config. SAN=address,undefined or SAN=thread builds with sanitizers, WERROR=1 with -Werror;
# each combination has its own directory of objects.

PREFIX ?= /usr/local
DESTDIR ?=
CC ?= cc
CFLAGS ?= -O2 -g
PKG_CONFIG ?= pkg-config
N ?= 2000

WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
HARDENING = -fstack-protector-strong -fPIE $(if $(SAN),,-D_FORTIFY_SOURCE=2)
ALL_CFLAGS = -std=gnu11 -pthread $(WARNINGS) $(HARDENING) $(if $(WERROR),-Werror) \
             $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer) $(CFLAGS)
ALL_LDFLAGS = -pthread -pie $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)

PACKAGES = snappy liblz4 libzstd zlib libxxhash
ifdef HTSDIR
HTS_CFLAGS = -I$(HTSDIR) -I$(HTSDIR)/include
HTS_LIBS = -L$(HTSDIR) -L$(HTSDIR)/lib -Wl,-rpath,$(HTSDIR):$(HTSDIR)/lib -lhts
else
PACKAGES += htslib
endif
ifdef ROCKSDB_DIR
ROCKSDB_CFLAGS = -I$(ROCKSDB_DIR)/include
ROCKSDB_LIBS = -L$(ROCKSDB_DIR) -L$(ROCKSDB_DIR)/lib -Wl,-rpath,$(ROCKSDB_DIR):$(ROCKSDB_DIR)/lib \
               -lrocksdb
else
PACKAGES += rocksdb
endif
ifeq ($(shell $(PKG_CONFIG) --exists libdeflate && echo yes),yes)
PACKAGES += libdeflate
DEFLATE_CFLAGS = -DHAVE_LIBDEFLATE
endif
# Asked for when something is compiled, not when make starts: install-deps.sh may run in between.
LIB_CFLAGS = $(HTS_CFLAGS) $(ROCKSDB_CFLAGS) $(DEFLATE_CFLAGS) \
             $(shell $(PKG_CONFIG) --cflags $(PACKAGES))
LIB_LIBS = $(HTS_LIBS) $(ROCKSDB_LIBS) $(shell $(PKG_CONFIG) --libs $(PACKAGES)) -lm

MODULES = bam_aux bam_batch bam_block bam_index bam_index_part bam_inputs bam_key_tag \
          bam_key_template bam_merge bam_reader bam_record bam_rocksort bam_sort bam_sort_key \
          bam_writer bgzf_block codec_choice compaction_plan diag disk_probe header_text \
          header_union library_versions machine_memory mem_budget minhash minhash_index \
          output_path output_pump \
          page_cache pipeline pipeline_feed pipeline_load pipeline_merge pipeline_segment \
          pipeline_spill pipeline_store rocksdb_opts run_db run_store sam_text scratch_dir \
          size_option sort_options temp_codec

comma := ,
BUILD = build/$(if $(SAN),$(subst $(comma),-,$(SAN)),plain)$(if $(WERROR),-werror)
OBJECTS = $(MODULES:%=$(BUILD)/%.o)
# Programs of a special build stay in its directory.
BIN = $(if $(SAN)$(WERROR),$(BUILD),.)
PROGRAMS = $(BIN)/samtools $(BIN)/samtools-rocksort

UNIT_TESTS = $(basename $(notdir $(wildcard test/unit/test_*.c)))

.PHONY: all demo check check-unit check-cli differential bench bench-peers bench-2014 install \
        clean format completions dist deb test-deb test-workflows
.SECONDARY:

all: $(PROGRAMS)

$(BUILD)/%.o: %.c
	@mkdir -p $(BUILD)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(LIB_CFLAGS) -MMD -MP -c $< -o $@

$(BIN)/samtools: $(BUILD)/samtools.o $(OBJECTS)
	$(CC) $(ALL_LDFLAGS) $^ $(LIB_LIBS) -o $@

$(BIN)/samtools-rocksort: $(BUILD)/samtools_rocksort.o $(OBJECTS)
	$(CC) $(ALL_LDFLAGS) $^ $(LIB_LIBS) -o $@

bench/simulate-reads: bench/simulate-reads.c
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(LIB_CFLAGS) $< $(ALL_LDFLAGS) $(LIB_LIBS) -o $@

# The disk model; no part of `all`, for it needs libfuse 3 (scripts/install-deps.sh bench).
SPINDLE_SOURCES = $(wildcard bench/spindle*.c) size_option.c
bench/spindle: $(SPINDLE_SOURCES) $(wildcard bench/spindle*.h) size_option.h
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -I. $$($(PKG_CONFIG) --cflags fuse3) $(SPINDLE_SOURCES) \
	    $(ALL_LDFLAGS) $$($(PKG_CONFIG) --libs fuse3) -lm -o $@

# The phases of demo and check are separate makes, since the first may install what the second finds
# with pkg-config.
demo:
	@sh scripts/install-deps.sh demo
	@$(MAKE) --no-print-directory all bench/simulate-reads
	@bash scripts/demo.sh

check:
	@sh scripts/install-deps.sh test
	@$(MAKE) --no-print-directory all bench/simulate-reads
	@$(MAKE) --no-print-directory check-unit check-cli

$(BUILD)/test_%: test/unit/test_%.c $(OBJECTS)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -I. $(LIB_CFLAGS) -MMD -MP $< $(OBJECTS) $(ALL_LDFLAGS) \
	    $(LIB_LIBS) $$($(PKG_CONFIG) --libs cmocka) -o $@

check-unit: $(UNIT_TESTS:%=$(BUILD)/%)
	@for t in $^; do echo "== $$t"; ./$$t || exit 1; done

build/venv/bin/python:
	@sh scripts/make-venv.sh build/venv

check-cli: all build/venv/bin/python
	@bash scripts/fetch-real-bams.sh build/real-bams
	build/venv/bin/python test/cli/run.py --build-dir $(BIN)
	build/venv/bin/python test/differential.py --program $(BIN)/samtools-rocksort --cases 200 \
	    --seed 71

# Compares N random cases with samtools 1.24, with a new seed each time.
differential: all build/venv/bin/python
	build/venv/bin/python test/differential.py --program $(BIN)/samtools-rocksort --cases $(N)

bench: all bench/simulate-reads
	python3 bench/bench.py

# Table, every single run and plot go to build/peers. PEERS=samtools,fgumi takes some programs.
SCALE ?= full
PEERS_full = --records 2M --repeats 3 --settings 64M:1,512M:1,512M:default,all:1
PEERS_small = --records 500K --repeats 2 --settings 64M:1,64M:default,all:1

bench-peers: all bench/simulate-reads
	$(if $(PEERS_$(SCALE)),,$(error SCALE is full or small))
	@mkdir -p build/peers
	python3 bench/compare.py $(PEERS_$(SCALE)) $(if $(RECORDS),--records $(RECORDS)) \
	    $(if $(PEERS),--programs $(PEERS)) --json build/peers/peers.json \
	    --markdown build/peers/peers.md --plot build/peers/peers.png

# Without libfuse 3 there is no disk model, and it says so. BENCH_2014='--experiment storage' and
# others of bench-2014.py's options may be added.
bench-2014: all bench/simulate-reads
	@if $(PKG_CONFIG) --exists fuse3; then $(MAKE) --no-print-directory bench/spindle; fi
	python3 bench/bench-2014.py --scale $(SCALE) $(BENCH_2014)

# Packages. The version is written in version.h alone; test_packages.py holds the rest to it.
VERSION := $(shell sed -n 's/^.define ROCKSORT_VERSION "\(.*\)"$$/\1/p' version.h)
COMPLETIONS = build/completions
SHELLS = bash zsh fish
SAMTOOLS_DIR ?= $(PREFIX)/bin
ZSH_DIR ?= $(PREFIX)/share/zsh/site-functions
DIST_DIR ?= build/dist
DIST_NAME = samtools-rocksort-$(VERSION)

# C interfaces do not tell these versions.
$(BUILD)/library_versions.o: CPPFLAGS += -DSNAPPY_VERSION='"$(shell $(PKG_CONFIG) \
    --modversion snappy 2>/dev/null)"' -DROCKSDB_VERSION='"$(ROCKSDB_VERSION)"'
ifdef ROCKSDB_DIR
ROCKSDB_VERSION = $(shell awk \
    '/^.define ROCKSDB_(MAJOR|MINOR|PATCH) / { v = v dot $$3; dot = "." } END { print v }' \
    $(ROCKSDB_DIR)/include/rocksdb/version.h 2>/dev/null)
else
ROCKSDB_VERSION = $(shell $(PKG_CONFIG) --modversion rocksdb 2>/dev/null)
endif

completions: $(SHELLS:%=$(COMPLETIONS)/%)

$(COMPLETIONS)/%: completions/generate.awk completions/options.tsv
	@mkdir -p $(COMPLETIONS)
	awk -v shell=$* -f $^ >$@.new && mv $@.new $@

# bash-completion looks for _samtools last, fish reads vendor_conf.d beside its completions: so the
# names that a samtools of others would take stay free.
install: all completions
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(SAMTOOLS_DIR)" \
	    "$(DESTDIR)$(PREFIX)/share/man/man1" "$(DESTDIR)$(ZSH_DIR)" \
	    "$(DESTDIR)$(PREFIX)/share/bash-completion/completions" \
	    "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d" \
	    "$(DESTDIR)$(PREFIX)/share/fish/vendor_conf.d"
	install $(BIN)/samtools-rocksort "$(DESTDIR)$(PREFIX)/bin"
	install $(BIN)/samtools "$(DESTDIR)$(SAMTOOLS_DIR)"
	install -m 644 doc/samtools-rocksort.1 "$(DESTDIR)$(PREFIX)/share/man/man1"
	cd "$(DESTDIR)$(PREFIX)/share/bash-completion/completions" && ln -sf samtools-rocksort _samtools
	install -m 644 $(COMPLETIONS)/bash \
	    "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/samtools-rocksort"
	install -m 644 $(COMPLETIONS)/zsh "$(DESTDIR)$(ZSH_DIR)/_samtools-rocksort"
	install -m 644 $(COMPLETIONS)/fish \
	    "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/samtools-rocksort.fish"
	install -m 644 completions/samtools.fish \
	    "$(DESTDIR)$(PREFIX)/share/fish/vendor_conf.d/samtools-rocksort.fish"

dist:
	sh scripts/make-dist.sh $(DIST_NAME) $(DIST_DIR)

deb: dist
	@sh scripts/install-deps.sh deb
	sh scripts/make-deb.sh $(DIST_DIR)/$(DIST_NAME).tar.gz build/deb

test-deb: deb
	@sh scripts/install-deps.sh test-deb
	bash scripts/test-deb.sh build/deb

test-workflows: all
	bash scripts/test-workflows.sh $(WORKFLOWS)

format:
	clang-format -i *.c *.h test/unit/*.c bench/*.c

clean:
	rm -rf build demo samtools samtools-rocksort bench/simulate-reads bench/spindle

-include $(wildcard $(BUILD)/*.d)
