# samtools rocksort -- see README.md. `make help` prints what follows, up to the empty line.
#
#   make                 builds ./samtools and ./samtools-rocksort
#   make demo            installs what is missing, builds, sorts simulated reads from a pipe
#   make install         to PREFIX (/usr/local) below DESTDIR; SAMTOOLS_DIR= is the place of the
#                        `samtools` front end, ZSH_DIR= that of the completion of zsh
#   make uninstall       removes what `make install` installed, with the same settings
#   make clean           removes all that was built
#
#   make check           installs what the tests need, builds and runs all tests
#   make check-unit      unit tests
#   make check-fuzz      the fuzz targets on their seeds and on all inputs that once failed
#   make check-cli       200 random cases against samtools 1.24, then tests of the programs
#   make check-rooms     which files may include and call each other
#   make differential    N=2000 random inputs and options, compared with samtools 1.24
#   make hostile         N=2000 damaged files, compared with samtools 1.24 (SEED= repeats)
#   make kill-sweep      N=200 sorts, killed at random moments and resumed (SEED= repeats)
#   make fault-sweep     each system call of small sorts fails once (an hour or two; SWEEP= options)
#   make fuzz            each fuzz target for MINUTES=60, with new random numbers (clang)
#   make fuzz-quick      each fuzz target for half a minute, the same inputs each time (clang)
#
#   make bench           compares with the samtools on PATH (two hours; BAM= below)
#   make bench-peers     compares with all installed sorters (an hour; SCALE=small: minutes)
#   make bench-options   what options cost or save (an hour)
#   make bench-merge     --merge, compared with all installed programs that merge (20 minutes)
#   make bench-columns   sorts to columns, and questions to them (20 minutes)
#   make bench-scaling   1, 2, 4 ... threads, and which thread ends the scaling (20 minutes)
#   make bench-2014      the experiments of 2014 on modelled disks (an hour; SCALE=small: minutes)
#   make bench/spindle   builds the disk model of the benchmarks
#
#   make dist            the source tarball of HEAD, build/dist/samtools-rocksort-VERSION.tar.gz
#   make deb             a Debian package in build/deb (packaging/README.md)
#   make test-deb        installs, runs and removes it in a fresh Debian (root, debootstrap)
#   make test-workflows  runs the Snakemake wrapper and the Nextflow module after an aligner
#   make completions     the completions of bash, zsh and fish, in build/completions
#   make format          clang-format
#   make help            this page
#
# Settings: V=1 prints commands, -jN runs N of them at a time (default: as many as there are cores),
# HTSDIR=, ROCKSDB_DIR=, LIBDEFLATE_DIR= and ISAL_DIR= name directories of libraries for a build
# without pkg-config; LIBDEFLATE_DIR=no and ISAL_DIR=no build without these.
# SAN=address,undefined and SAN=thread build with sanitizers, WERROR=1 with -Werror, each below its
# own directory of build. VALGRIND=1 runs tests under memcheck. BAM='a.bam b.bam' gives the first four
# benchmarks reads of yours, BAM=simulated simulated ones; else they are those of a Debian package.

# Compile on all cores. Not when several things are to be done in turn, such as `make clean all`:
# then make does one after the other. A make within make gets its jobs from the outer one.
BUILT = all completions fuzz-targets %.so bench/deflate-blocks bench/simulate-reads bench/spindle \
        samtools samtools-rocksort build/%
IN_TURN = $(if $(word 2,$(MAKECMDGOALS)),$(filter-out $(BUILT),$(MAKECMDGOALS)))
ifeq ($(MAKELEVEL)$(IN_TURN)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif
# Messages of compilers that run at the same time do not mix.
MAKEFLAGS += --output-sync=target --no-print-directory

# A recipe has one short line for each file, $(call say,CC,FILE), then the command after $(Q).
ifeq ($(filter-out 0,$(V)),)
Q = @
say = @echo '$(1) $(2)'
endif
# Before a command that runs for long: what it prints appears at once, in spite of --output-sync.
# (`+` does that, but would also run the command in `make -n`.)
LIVE = $(if $(findstring n,$(filter-out -%,$(firstword $(MAKEFLAGS)))),,+)$(Q)

PREFIX ?= /usr/local
DESTDIR ?=
CC ?= cc
CFLAGS ?= -O2 -g
PKG_CONFIG ?= pkg-config
N ?= 2000

WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
           -Wformat=2 -Wformat-security
HARDENING = -fstack-protector-strong -fPIE $(if $(SAN),,-D_FORTIFY_SOURCE=2)
ALL_CFLAGS = -std=gnu11 -pthread $(WARNINGS) $(HARDENING) $(if $(WERROR),-Werror) \
             $(if $(SAN),-fsanitize=$(SAN) $(SAN_FLAGS) -DROCKSORT_CHECK_LOCKS) $(CFLAGS)
# What a sanitizer finds ends the program; UndefinedBehaviorSanitizer would go on.
SAN_FLAGS = -fno-omit-frame-pointer -fno-sanitize-recover=all
# htslib's plug-ins, which no linker sees, must find the functions of src/machine/transfers.c.
EXPORTS = -Wl,--export-dynamic-symbol=curl_easy_perform \
          -Wl,--export-dynamic-symbol=curl_multi_add_handle \
          -Wl,--export-dynamic-symbol=curl_multi_info_read
ALL_LDFLAGS = -pthread -pie -Wl,-z,relro,-z,now,-z,noexecstack $(EXPORTS) \
              $(if $(SAN),-fsanitize=$(SAN)) \
              $(LDFLAGS)

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
# Libraries that the program can do without.
has_package = $(shell $(PKG_CONFIG) --exists $(1) 2>/dev/null && echo yes)
ifneq ($(LIBDEFLATE_DIR),no)
HAS_LIBDEFLATE := $(or $(LIBDEFLATE_DIR),$(call has_package,libdeflate))
endif
ifneq ($(ISAL_DIR),no)
HAS_ISAL := $(or $(ISAL_DIR),$(call has_package,libisal))
endif
ifdef HAS_LIBDEFLATE
DEFLATE_CFLAGS += -DHAVE_LIBDEFLATE
ifdef LIBDEFLATE_DIR
DEFLATE_CFLAGS += -I$(LIBDEFLATE_DIR) -I$(LIBDEFLATE_DIR)/include
DEFLATE_LIBS += -L$(LIBDEFLATE_DIR) -L$(LIBDEFLATE_DIR)/lib \
                -Wl,-rpath,$(LIBDEFLATE_DIR):$(LIBDEFLATE_DIR)/lib -ldeflate
else
PACKAGES += libdeflate
endif
endif
ifdef HAS_ISAL
DEFLATE_CFLAGS += -DHAVE_ISAL
ifdef ISAL_DIR
DEFLATE_CFLAGS += -I$(ISAL_DIR)/include
DEFLATE_LIBS += -L$(ISAL_DIR)/lib -Wl,-rpath,$(ISAL_DIR)/lib -lisal
else
PACKAGES += libisal
endif
endif
# pkg-config is asked once, by the first recipe that needs it.
once = $(eval $(1) := $(shell $(PKG_CONFIG) $(2) $(PACKAGES)))$($(1))
PACKAGE_CFLAGS = $(call once,PACKAGE_CFLAGS,--cflags)
PACKAGE_LIBS = $(call once,PACKAGE_LIBS,--libs)
LIB_CFLAGS = $(HTS_CFLAGS) $(ROCKSDB_CFLAGS) $(DEFLATE_CFLAGS) $(PACKAGE_CFLAGS)
LIB_LIBS = $(HTS_LIBS) $(ROCKSDB_LIBS) $(DEFLATE_LIBS) $(PACKAGE_LIBS) -lm -ldl

# The rooms below src/, and what stands at the top; doc/design.md is the map.
SOURCES = $(wildcard *.c src/*/*.c)
MODULES = $(filter-out src/command/samtools src/command/samtools_rocksort,$(basename $(SOURCES)))
INCLUDES = -I. -Isrc

comma := ,
BUILD = build/$(if $(SAN),$(subst $(comma),-,$(SAN)),plain)$(if $(WERROR),-werror)
OBJECTS = $(MODULES:%=$(BUILD)/%.o)
ZLIB_ONLY = $(BUILD)/zlib-only
# Programs of a special build stay in its directory.
BIN = $(if $(SAN)$(WERROR),$(BUILD),.)
PROGRAMS = $(BIN)/samtools $(BIN)/samtools-rocksort

# VALGRIND=1 runs the unit tests, the fuzz targets' inputs and some of the CLI tests under memcheck,
# which takes 20 to 50 times as long. Each error that it finds fails the test.
ifdef VALGRIND
MEMCHECK = valgrind --quiet --error-exitcode=99 --leak-check=full --fair-sched=yes \
           --suppressions=$(CURDIR)/test/valgrind.supp
export ROCKSORT_TEST_WRAPPER = $(MEMCHECK)
export ROCKSORT_TEST_SLOW_FACTOR = 50
endif
# ThreadSanitizer's first report ends the program, with status 66. It may not allocate more than
# 2 GB at once: it would touch the shadow of what a damaged file claims to hold, and use up memory.
ifneq ($(findstring thread,$(SAN)),)
TSAN_MEMORY = :allocator_may_return_null=1:max_allocation_size_mb=2000
export TSAN_OPTIONS ?= halt_on_error=1:suppressions=$(CURDIR)/test/tsan.supp$(TSAN_MEMORY)
export ROCKSORT_TEST_SLOW_FACTOR ?= 10
endif

UNIT_TESTS = $(basename $(wildcard test/unit/*/test_*.c))
FUZZ_TARGETS = $(filter-out fuzz_diag fuzz_file fuzz_record, \
               $(basename $(notdir $(wildcard test/fuzz/fuzz_*.c))))

.PHONY: all demo demo-programs help check check-unit check-fuzz check-cli check-rooms \
        test-programs differential hostile kill-sweep fault-sweep fuzz fuzz-quick fuzz-targets \
        bench bench-peers bench-options bench-merge bench-columns bench-scaling bench-2014 \
        install uninstall clean format completions dist deb test-deb test-workflows need-build need-unit need-spindle
.SECONDARY:
.DELETE_ON_ERROR:

all: $(PROGRAMS)

help:
	@sed '1,2d; /^$$/q; s/^# \{0,1\}//' $(firstword $(MAKEFILE_LIST))

# What is missing is said before the first file is compiled, in one message.
NEED = CC='$(CC)' PKG_CONFIG='$(PKG_CONFIG)' HTSDIR='$(HTSDIR)' ROCKSDB_DIR='$(ROCKSDB_DIR)' \
       LIBDEFLATE_DIR='$(LIBDEFLATE_DIR)' ISAL_DIR='$(ISAL_DIR)' \
       sh scripts/install-deps.sh --check
need-build need-unit need-spindle: need-%:
	@$(NEED) $*

$(BUILD)/%.o: %.c | need-build
	@mkdir -p $(@D)
	$(call say,CC,$<$(NOTE))
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(INCLUDES) $(LIB_CFLAGS) -MMD -MP -c $< -o $@

# The one file that knows which libraries deflate.
engine = $(1) $(if $(2),in $(2),$(shell $(PKG_CONFIG) --modversion $(3)))
ENGINES = $(if $(HAS_LIBDEFLATE),$(call engine,libdeflate,$(LIBDEFLATE_DIR),libdeflate),no \
          libdeflate), $(if $(HAS_ISAL),$(call engine,ISA-L,$(ISAL_DIR),libisal),no ISA-L)
$(BUILD)/src/bam/bgzf_engine.o: NOTE = $(comma) with $(ENGINES)

$(BIN)/samtools: $(BUILD)/src/command/samtools.o $(OBJECTS)
	$(call say,LD,$(@F))
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(LIB_LIBS) -o $@

$(BIN)/samtools-rocksort: $(BUILD)/src/command/samtools_rocksort.o $(OBJECTS)
	$(call say,LD,$(@F))
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(LIB_LIBS) -o $@

bench/simulate-reads: bench/simulate-reads.c | need-build
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(LIB_CFLAGS) $< $(ALL_LDFLAGS) $(LIB_LIBS) -o $@

# The disk model is no part of `all`: it needs libfuse 3. It and what times encoders are never of a
# special build.
ifeq ($(SAN)$(WERROR),)
BLOCKS_OBJECTS = $(filter $(BUILD)/src/deflate/% %/bgzf_engine.o %/diag.o %/size.o \
                   %/terminal_text.o %/xalloc.o,$(OBJECTS))
bench/deflate-blocks: bench/deflate-blocks.c $(BLOCKS_OBJECTS) | need-build
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(INCLUDES) $(LIB_CFLAGS) $^ $(ALL_LDFLAGS) $(LIB_LIBS) \
	    -o $@
bench/spindle: bench/spindle.c | need-spindle
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $< $(ALL_LDFLAGS) $$($(PKG_CONFIG) --cflags --libs fuse3) \
	    -o $@
else
bench/spindle: need-spindle
bench/spindle bench/deflate-blocks: need-build
	@$(MAKE) SAN= WERROR= $@
endif

# C interfaces do not tell these versions.
$(BUILD)/src/command/library_versions.o: CPPFLAGS += -DSNAPPY_VERSION='"$(shell $(PKG_CONFIG) \
    --modversion snappy 2>/dev/null)"' -DROCKSDB_VERSION='"$(ROCKSDB_VERSION)"'
ifdef ROCKSDB_DIR
ROCKSDB_VERSION = $(shell awk \
    '/^.define ROCKSDB_(MAJOR|MINOR|PATCH) / { v = v dot $$3; dot = "." } END { print v }' \
    $(ROCKSDB_DIR)/include/rocksdb/version.h 2>/dev/null)
else
ROCKSDB_VERSION = $(shell $(PKG_CONFIG) --modversion rocksdb 2>/dev/null)
endif

# The phases of demo and check are separate makes, since the first may install what the second finds
# with pkg-config.
demo:
	$(LIVE)sh scripts/install-deps.sh demo
	@$(MAKE) demo-programs
	$(LIVE)bash scripts/demo.sh

demo-programs: all bench/simulate-reads

# Tests run one after the other: some measure time and memory.
check:
	$(LIVE)sh scripts/install-deps.sh test
	@$(MAKE) test-programs
	@$(MAKE) check-rooms
	@$(MAKE) check-unit
	@$(MAKE) check-fuzz
	@$(MAKE) check-cli

# All that the tests run. Without libfuse 3 those of the disk model are skipped.
HAS_FUSE = $(shell $(PKG_CONFIG) --exists fuse3 2>/dev/null && echo yes)
UNIT_PROGRAMS = $(UNIT_TESTS:%=$(BUILD)/%)
REPLAY_PROGRAMS = $(FUZZ_TARGETS:fuzz_%=$(BUILD)/replay_%)
CLI_PROGRAMS = all $(BUILD)/fork-server $(ZLIB_ONLY)/samtools-rocksort build/fault_inject.so \
               bench/deflate-blocks bench/simulate-reads $(if $(HAS_FUSE),bench/spindle)
test-programs: $(UNIT_PROGRAMS) $(REPLAY_PROGRAMS) $(CLI_PROGRAMS)

check-rooms: $(OBJECTS) $(BUILD)/src/command/samtools.o $(BUILD)/src/command/samtools_rocksort.o
	$(call say,TEST,rooms)
	$(Q)python3 scripts/check-rooms.py --objects $(BUILD)

$(BUILD)/test/unit/%: test/unit/%.c $(OBJECTS) | need-unit
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(INCLUDES) -Itest/unit $(LIB_CFLAGS) -MMD -MP $< \
	    $(OBJECTS) $(ALL_LDFLAGS) $(LIB_LIBS) $$($(PKG_CONFIG) --libs cmocka) -o $@

check-unit: $(UNIT_PROGRAMS)
	$(LIVE)V='$(filter-out 0,$(V))' sh scripts/run-unit.sh $(BUILD)/test/unit $^

# Fuzz targets have their own messages in place of diag.c. They are linked in two ways: for `check`,
# to read files, with the compiler and sanitizers of everything else; and with libFuzzer.
FUZZ_SHARED = test/fuzz/fuzz_diag.c test/fuzz/fuzz_file.c test/fuzz/fuzz_record.c
FUZZ_HEADERS = $(wildcard test/fuzz/*.h)

$(BUILD)/replay_%: test/fuzz/fuzz_%.c test/fuzz/replay.c $(FUZZ_SHARED) $(FUZZ_HEADERS) $(OBJECTS)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -D_GNU_SOURCE $(INCLUDES) -Itest/fuzz $(LIB_CFLAGS) \
	    $(filter-out %.h %/util/diag.o,$^) $(ALL_LDFLAGS) $(LIB_LIBS) -o $@

check-fuzz: $(REPLAY_PROGRAMS)
	$(Q)python3 test/fuzz/make_seeds.py build/fuzz-seeds
	$(LIVE)python3 test/fuzz/run.py replay --programs $(BUILD) --seeds build/fuzz-seeds

FUZZ_BUILD = build/fuzz
FUZZ_CC ?= clang
FUZZ_CFLAGS = -std=gnu11 -pthread -O1 -g -fno-omit-frame-pointer -Wall -Wextra \
              -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZ_OBJECTS = $(patsubst %,$(FUZZ_BUILD)/%.o,$(filter-out src/util/diag,$(MODULES)))
MINUTES ?= 60

$(FUZZ_BUILD)/%.o: %.c | need-build
	@mkdir -p $(@D)
	$(call say,FUZZ-CC,$<)
	$(Q)$(FUZZ_CC) $(FUZZ_CFLAGS) $(CPPFLAGS) $(INCLUDES) $(LIB_CFLAGS) -MMD -MP -c $< -o $@

$(FUZZ_BUILD)/fuzz_%: test/fuzz/fuzz_%.c $(FUZZ_SHARED) $(FUZZ_HEADERS) $(FUZZ_OBJECTS)
	$(call say,FUZZ-CC,$<)
	$(Q)$(FUZZ_CC) $(FUZZ_CFLAGS) -fsanitize=fuzzer $(CPPFLAGS) -D_GNU_SOURCE $(INCLUDES) \
	    -Itest/fuzz $(LIB_CFLAGS) $(filter-out %.h,$^) $(LDFLAGS) $(LIB_LIBS) -o $@

fuzz-targets: $(FUZZ_TARGETS:%=$(FUZZ_BUILD)/%)

# Without a clang that has libFuzzer both say so and succeed.
FUZZ_RUN = python3 test/fuzz/run.py fuzz --programs $(FUZZ_BUILD) --seeds build/fuzz-seeds
FUZZ = if python3 test/fuzz/run.py probe --cc '$(FUZZ_CC)'; then \
           $(MAKE) fuzz-targets && python3 test/fuzz/make_seeds.py build/fuzz-seeds && \
           $(FUZZ_RUN) $(1); \
       fi

fuzz-quick:
	$(LIVE)$(call FUZZ,--short)

fuzz:
	$(LIVE)sh scripts/install-deps.sh fuzz
	$(LIVE)$(call FUZZ,--seconds $$(($(MINUTES) * 60)) $(if $(SEED),--seed $(SEED)))

VENV = build/venv/complete
PYTHON = build/venv/bin/python
$(VENV): scripts/make-venv.sh
	$(call say,VENV,build/venv)
	$(Q)sh scripts/make-venv.sh build/venv

WORKFLOW_ENGINES = build/engines/complete
$(WORKFLOW_ENGINES): scripts/make-engines.sh test/engines/requirements.txt test/engines/pom.xml
	$(call say,ENGINES,build/engines)
	$(Q)bash scripts/make-engines.sh build/engines

# Tests preload it into rocksort. It is built without sanitizers, whose functions it would hide.
build/fault_inject.so: test/fault/fault_inject.c | need-build
	@mkdir -p build
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu11 $(WARNINGS) $(if $(WERROR),-Werror) -O2 -g -fPIC -shared -pthread $< \
	    -ldl -o $@

# SWEEP='--most 100' makes it shorter, SWEEP='--part 1/8' does an eighth of it.
SWEEP ?=
fault-sweep: all build/fault_inject.so $(VENV)
	$(LIVE)$(PYTHON) test/fault_sweep.py --program $(BIN)/samtools-rocksort $(SWEEP)

# As it is built where only zlib is there; for tests.
$(ZLIB_ONLY)/bgzf_engine.o: DEFLATE_CFLAGS =
$(ZLIB_ONLY)/bgzf_engine.o: src/bam/bgzf_engine.c | need-build
	@mkdir -p $(@D)
	$(call say,CC,$<$(comma) with zlib only)
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(INCLUDES) $(LIB_CFLAGS) -MMD -MP -c $< -o $@

$(ZLIB_ONLY)/samtools-rocksort: $(BUILD)/src/command/samtools_rocksort.o \
        $(filter-out %/bgzf_engine.o,$(OBJECTS)) $(ZLIB_ONLY)/bgzf_engine.o
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(LIB_LIBS) -o $@

# Runs rocksort thousands of times for the tests of damaged files.
$(BUILD)/fork-server: test/tools/fork-server.c $(OBJECTS)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(INCLUDES) $(LIB_CFLAGS) -MMD -MP $< $(OBJECTS) \
	    $(ALL_LDFLAGS) $(LIB_LIBS) -o $@

CLI_TESTS = $(if $(VALGRIND),test/cli/test_errors.py::Input test/cli/test_headers.py,test/cli)
DIFFERENTIAL = $(PYTHON) test/differential.py --program $(BIN)/samtools-rocksort
check-cli: $(CLI_PROGRAMS) $(VENV) $(if $(VALGRIND),,$(WORKFLOW_ENGINES))
	$(LIVE)bash scripts/fetch-real-bams.sh build/real-bams
	$(LIVE)$(if $(VALGRIND),:,$(DIFFERENTIAL) --cases 200 --seed 71)
	$(LIVE)$(PYTHON) -B -m pytest -n auto --build-dir $(BIN) $(CLI_TESTS)

differential: all $(VENV)
	$(LIVE)$(DIFFERENTIAL) --cases $(N) $(if $(MARKDUP),--markdup) $(if $(SEED),--seed $(SEED))

kill-sweep: N = 200
kill-sweep: all bench/simulate-reads
	$(LIVE)python3 test/kill_sweep.py --program $(BIN)/samtools-rocksort -n $(N) \
	    $(if $(SEED),--seed $(SEED))

hostile: all $(BUILD)/fork-server $(VENV)
	$(LIVE)$(PYTHON) test/hostile.py --build-dir $(BIN) --cases $(N) \
	    $(if $(SEED),--seed $(SEED))

# The input of all benchmarks but bench-2014: bench/bench_input.py. Without the package, or a way to
# fetch it, reads are simulated. Each benchmark says which they were. RECORDS=500K takes another
# number of them.
READS = --reads $(or $(BAM),debian) $(if $(RECORDS),--records $(RECORDS))
# Rocksort's files as those of the others, and as they are without --deflate.
DEFLATE = --deflate libdeflate,auto

bench: all bench/deflate-blocks bench/simulate-reads
	$(LIVE)python3 bench/bench.py $(READS)
	$(LIVE)python3 bench/one_pass.py $(DEFLATE) $(READS)
	$(LIVE)python3 bench/deflate.py --reads $(or $(BAM),debian debian-long simulated)
	$(LIVE)python3 bench/tail.py $(READS)
ifndef BAM
	$(LIVE)python3 bench/bench.py --points l1-512M,l1-64M,default-512M --reads debian-long
endif

# Tables, single runs and the plot go to build/peers. PEERS=samtools,fgumi runs only these.
SCALE ?= full
PEERS_full = --records 2M --repeats 3 --settings 64M:1,512M:1,512M:default,all:1
PEERS_small = --records 500K --repeats 2 --settings 64M:1,64M:default,all:1
# Also the chains from the aligner to marked duplicates.
ONE_PASS_full = --records 6M --repeats 3 --levels 1
ONE_PASS_small = --records 500K --repeats 2 --levels 1

bench-peers: all bench/simulate-reads
	$(if $(PEERS_$(SCALE)),,$(error SCALE is full or small))
	@mkdir -p build/peers
	$(LIVE)python3 bench/compare.py $(PEERS_$(SCALE)) $(READS) \
	    $(if $(PEERS),--programs $(PEERS)) --json build/peers/peers.json \
	    --markdown build/peers/peers.md --plot build/peers/peers.png
	$(LIVE)python3 bench/one_pass.py --peers $(ONE_PASS_$(SCALE)) $(DEFLATE) $(READS) \
	    --json build/peers/one-pass.json

bench-options: all bench/simulate-reads build/fault_inject.so
	$(LIVE)python3 bench/options.py $(READS)

bench-merge: all bench/simulate-reads
	$(LIVE)python3 bench/merge.py $(READS)

bench-columns: all bench/simulate-reads
	$(LIVE)$(or $(wildcard $(PYTHON)),python3) bench/columns.py $(READS)

# Table and single runs go to build/scaling. SCALING= adds options of scaling.py, such as
# '--threads 1,8,16 --settings 4G:1 --records 24M'; PEERS=samtools,fgumi runs only these.
bench-scaling: all bench/simulate-reads
	@mkdir -p build/scaling
	$(LIVE)python3 bench/scaling.py $(READS) $(if $(PEERS),--programs $(PEERS)) \
	    --json build/scaling/scaling.json --markdown build/scaling/scaling.md $(SCALING)

# Without libfuse 3 it runs on the plain disk, and says so. BENCH_2014= adds options of
# bench-2014.py, such as '--experiment storage'. Results go to build/bench-2014.
bench-2014: all bench/simulate-reads $(if $(HAS_FUSE),bench/spindle)
	$(LIVE)python3 bench/bench-2014.py --scale $(SCALE) $(BENCH_2014)

# Packages. The version is written in src/util/version.h; test_packages.py compares all others.
VERSION := $(shell sed -n 's/^.define ROCKSORT_VERSION "\(.*\)"$$/\1/p' src/util/version.h)
COMPLETIONS = build/completions
SHELLS = bash zsh fish
SAMTOOLS_DIR ?= $(PREFIX)/bin
ZSH_DIR ?= $(PREFIX)/share/zsh/site-functions
DIST_DIR ?= build/dist
DIST_NAME = samtools-rocksort-$(VERSION)

completions: $(SHELLS:%=$(COMPLETIONS)/%)

$(COMPLETIONS)/%: completions/generate.awk completions/options.tsv
	@mkdir -p $(COMPLETIONS)
	$(call say,AWK,$@)
	$(Q)awk -v shell=$* -f $^ >$@.new && mv $@.new $@

# The names _samtools (bash looks for it last) and vendor_conf.d/samtools.fish leave those free that
# the package of another samtools would install.
install: all completions
	$(call say,INSTALL,$(DESTDIR)$(PREFIX))
	$(Q)install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(SAMTOOLS_DIR)" \
	    "$(DESTDIR)$(PREFIX)/share/man/man1" "$(DESTDIR)$(ZSH_DIR)" \
	    "$(DESTDIR)$(PREFIX)/share/bash-completion/completions" \
	    "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d" \
	    "$(DESTDIR)$(PREFIX)/share/fish/vendor_conf.d"
	$(Q)install $(BIN)/samtools-rocksort "$(DESTDIR)$(PREFIX)/bin"
	$(Q)install scripts/columns2sam.py "$(DESTDIR)$(PREFIX)/bin/rocksort-columns2sam"
	$(Q)install $(BIN)/samtools "$(DESTDIR)$(SAMTOOLS_DIR)"
	$(Q)install -m 644 doc/samtools-rocksort.1 "$(DESTDIR)$(PREFIX)/share/man/man1"
	$(Q)ln -sf samtools-rocksort.1 \
	    "$(DESTDIR)$(PREFIX)/share/man/man1/rocksort-columns2sam.1"
	$(Q)ln -sf samtools-rocksort \
	    "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/_samtools"
	$(Q)install -m 644 $(COMPLETIONS)/bash \
	    "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/samtools-rocksort"
	$(Q)install -m 644 $(COMPLETIONS)/zsh "$(DESTDIR)$(ZSH_DIR)/_samtools-rocksort"
	$(Q)install -m 644 $(COMPLETIONS)/fish \
	    "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/samtools-rocksort.fish"
	$(Q)install -m 644 completions/samtools.fish \
	    "$(DESTDIR)$(PREFIX)/share/fish/vendor_conf.d/samtools-rocksort.fish"

# Another samtools may have taken the place of the front end, or of its completion.
uninstall:
	$(call say,UNINSTALL,$(DESTDIR)$(PREFIX))
	$(Q)rm -f "$(DESTDIR)$(PREFIX)/bin/samtools-rocksort" \
	    "$(DESTDIR)$(PREFIX)/bin/rocksort-columns2sam" \
	    "$(DESTDIR)$(PREFIX)/share/man/man1/samtools-rocksort.1" \
	    "$(DESTDIR)$(PREFIX)/share/man/man1/rocksort-columns2sam.1" \
	    "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/samtools-rocksort" \
	    "$(DESTDIR)$(ZSH_DIR)/_samtools-rocksort" \
	    "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/samtools-rocksort.fish" \
	    "$(DESTDIR)$(PREFIX)/share/fish/vendor_conf.d/samtools-rocksort.fish"
	$(Q)file="$(DESTDIR)$(SAMTOOLS_DIR)/samtools"; \
	    if grep -qs ROCKSORT_FRONT_END_TRIED "$$file"; then rm -f "$$file"; fi
	$(Q)link="$(DESTDIR)$(PREFIX)/share/bash-completion/completions/_samtools"; \
	    if [ "$$(readlink "$$link")" = samtools-rocksort ]; then rm -f "$$link"; fi

dist:
	$(Q)sh scripts/make-dist.sh $(DIST_NAME) $(DIST_DIR)

deb: dist
	$(LIVE)sh scripts/install-deps.sh deb
	$(LIVE)sh scripts/make-deb.sh $(DIST_DIR)/$(DIST_NAME).tar.gz build/deb

test-deb: deb
	$(LIVE)sh scripts/install-deps.sh test-deb
	$(LIVE)bash scripts/test-deb.sh build/deb

test-workflows: all $(WORKFLOW_ENGINES)
	$(LIVE)bash scripts/test-workflows.sh $(WORKFLOWS)

format:
	clang-format -i *.[ch] src/*/*.[ch] test/unit/*/*.c bench/*.[ch]

clean:
	rm -rf build demo samtools samtools-rocksort bench/deflate-blocks bench/simulate-reads \
	    bench/spindle

-include $(shell find $(BUILD) $(FUZZ_BUILD) -name '*.d' 2>/dev/null)
