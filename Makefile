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
#   make check-fuzz      the fuzz targets on random inputs, seeds and inputs that once failed
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
#   make bench-qc        reports such as --stats, compared with their programs (20 minutes)
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
# own directory of build. VALGRIND=1 runs tests under memcheck. BAM='a.bam b.bam' gives benchmarks
# reads of yours, BAM=simulated simulated ones; else they are those of a Debian package.

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

comma := ,
PREFIX ?= /usr/local
CFLAGS ?= -O2 -g
PKG_CONFIG ?= pkg-config
N ?= 2000
SEEDED = $(if $(SEED),--seed $(SEED))

WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
           -Wformat=2 -Wformat-security
HARDENING = -fstack-protector-strong -fPIE $(if $(SAN),,-D_FORTIFY_SOURCE=2)
ALL_CFLAGS = -std=gnu11 -pthread $(WARNINGS) $(HARDENING) $(if $(WERROR),-Werror) \
             $(if $(SAN),-fsanitize=$(SAN) $(SAN_FLAGS) -DROCKSORT_CHECK_LOCKS) $(CFLAGS)
# What a sanitizer finds ends the program; UndefinedBehaviorSanitizer would go on.
SAN_FLAGS = -fno-omit-frame-pointer -fno-sanitize-recover=all
# htslib's plug-ins, which no linker sees, must find the functions of src/os/transfers.c.
EXPORTS = $(addprefix -Wl$(comma)--export-dynamic-symbol=,curl_easy_perform curl_multi_add_handle \
          curl_multi_info_read)
ALL_LDFLAGS = -pthread -pie -Wl,-z,relro,-z,now,-z,noexecstack $(EXPORTS) \
              $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)

PACKAGES = snappy liblz4 libzstd zlib libxxhash
# $(call library,PACKAGE,NAME,DIR): libNAME is in DIR, or where pkg-config says if DIR is empty.
define library
ifneq ($(3),)
DIR_CFLAGS += -I$(3) -I$(3)/include
DIR_LIBS += -L$(3) -L$(3)/lib -Wl,-rpath,$(3):$(3)/lib -l$(2)
else
PACKAGES += $(1)
endif
endef
$(eval $(call library,htslib,hts,$(HTSDIR)))
$(eval $(call library,rocksdb,rocksdb,$(ROCKSDB_DIR)))
# The program can do without these.
exists = $(shell $(PKG_CONFIG) --exists $(1) 2>/dev/null && echo yes)
has = $(if $(filter no,$(2)),,$(or $(2),$(call exists,$(1))))
HAS_LIBDEFLATE := $(call has,libdeflate,$(LIBDEFLATE_DIR))
HAS_ISAL := $(call has,libisal,$(ISAL_DIR))
ifneq ($(HAS_LIBDEFLATE),)
DEFLATE_CFLAGS += -DHAVE_LIBDEFLATE
$(eval $(call library,libdeflate,deflate,$(LIBDEFLATE_DIR)))
endif
ifneq ($(HAS_ISAL),)
DEFLATE_CFLAGS += -DHAVE_ISAL
$(eval $(call library,libisal,isal,$(ISAL_DIR)))
endif
# pkg-config is asked once, by the first recipe that needs it.
once = $(eval $(1) := $(shell $(PKG_CONFIG) $(2) $(PACKAGES)))$($(1))
PACKAGE_CFLAGS = $(call once,PACKAGE_CFLAGS,--cflags)
PACKAGE_LIBS = $(call once,PACKAGE_LIBS,--libs)
LIB_CFLAGS = $(DEFLATE_CFLAGS) $(DIR_CFLAGS) $(PACKAGE_CFLAGS)
LIBS = $(ALL_LDFLAGS) $(DIR_LIBS) $(PACKAGE_LIBS) -lm -ldl
COMPILE = $(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(INCLUDES) $(LIB_CFLAGS)

# The recipes of an object file, and of a program of sources and objects, with MORE options.
define object
@mkdir -p $(@D)
$(call say,$(or $(COMPILER),CC),$<$(NOTE))
$(Q)$(COMPILE) -MMD -MP -c $< -o $@
endef
define program
@mkdir -p $(@D)
$(call say,$(or $(COMPILER),CC),$<)
$(Q)$(COMPILE) $(MORE) $(filter-out %.h,$^) $(LIBS) -o $@
endef

# The rooms below src/, and what stands at the top; doc/design.md is the map.
SOURCES = $(wildcard *.c src/*/*.c)
MODULES = $(filter-out src/cli/samtools src/cli/samtools_rocksort,$(basename $(SOURCES)))
INCLUDES = -I. -Isrc

BUILD = build/$(if $(SAN),$(subst $(comma),-,$(SAN)),plain)$(if $(WERROR),-werror)
OBJECTS = $(MODULES:%=$(BUILD)/%.o)
ZLIB_ONLY = $(BUILD)/zlib-only
# Programs of a special build stay in its directory.
BIN = $(if $(SAN)$(WERROR),$(BUILD),.)

# VALGRIND=1 runs the unit tests, the fuzz targets' inputs and some of the CLI tests under memcheck,
# which takes 20 to 50 times as long. Each error that it finds fails the test.
ifdef VALGRIND
export ROCKSORT_TEST_WRAPPER = valgrind --quiet --error-exitcode=99 --leak-check=full \
    --fair-sched=yes --suppressions=$(CURDIR)/test/valgrind.supp
export ROCKSORT_TEST_SLOW_FACTOR = 50
endif
# ThreadSanitizer's first report ends the program, with status 66. It may not allocate more than
# 2 GB at once: it would touch the shadow of what a damaged file claims to hold, and use up memory.
ifneq ($(findstring thread,$(SAN)),)
TSAN_MEMORY = :allocator_may_return_null=1:max_allocation_size_mb=2000
export TSAN_OPTIONS ?= halt_on_error=1:suppressions=$(CURDIR)/test/tsan.supp$(TSAN_MEMORY)
export ROCKSORT_TEST_SLOW_FACTOR ?= 10
endif

NO_TARGETS = fuzz_messages fuzz_file fuzz_record
FUZZ_TARGETS = $(filter-out $(NO_TARGETS),$(basename $(notdir $(wildcard test/fuzz/fuzz_*.c))))

.PHONY: all demo help check check-unit check-fuzz check-cli check-rooms test-programs \
        differential hostile kill-sweep fault-sweep fuzz fuzz-quick fuzz-targets install uninstall \
        clean format completions dist deb test-deb test-workflows \
        need-build need-unit need-spindle
.SECONDARY:
.DELETE_ON_ERROR:

all: $(BIN)/samtools $(BIN)/samtools-rocksort

help:
	@sed '1,2d; /^$$/q; s/^# \{0,1\}//' $(firstword $(MAKEFILE_LIST))

# What is missing is said before the first file is compiled, in one message.
need-build need-unit need-spindle: need-%:
	@CC='$(CC)' PKG_CONFIG='$(PKG_CONFIG)' HTSDIR='$(HTSDIR)' ROCKSDB_DIR='$(ROCKSDB_DIR)' \
	    LIBDEFLATE_DIR='$(LIBDEFLATE_DIR)' ISAL_DIR='$(ISAL_DIR)' sh scripts/install-deps.sh --check $*

$(BUILD)/%.o: %.c | need-build
	$(object)

# The one file that knows which libraries deflate.
engine = $(1) $(if $(2),in $(2),$(shell $(PKG_CONFIG) --modversion $(3)))
ENGINES = $(if $(HAS_LIBDEFLATE),$(call engine,libdeflate,$(LIBDEFLATE_DIR),libdeflate),no \
          libdeflate), $(if $(HAS_ISAL),$(call engine,ISA-L,$(ISAL_DIR),libisal),no ISA-L)
$(BUILD)/src/bam/bgzf_engine.o: NOTE = $(comma) with $(ENGINES)

$(BIN)/samtools $(BIN)/samtools-rocksort: $(OBJECTS)
	$(call say,LD,$(@F))
	$(Q)$(CC) $^ $(LIBS) -o $@
$(BIN)/samtools: $(BUILD)/src/cli/samtools.o
$(BIN)/samtools-rocksort: $(BUILD)/src/cli/samtools_rocksort.o

bench/simulate-reads: bench/simulate-reads.c | need-build
	$(program)

# What times encoders, and the disk model, are never of a special build. The model is no part of
# `all`: it needs libfuse 3.
ifeq ($(SAN)$(WERROR),)
bench/deflate-blocks: bench/deflate-blocks.c $(filter $(BUILD)/src/deflate/% %/bgzf_engine.o \
        %/diag.o %/size.o %/terminal_text.o %/xalloc.o,$(OBJECTS)) | need-build
	$(program)
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
$(BUILD)/src/cli/library_versions.o: CPPFLAGS += -DSNAPPY_VERSION='"$(shell $(PKG_CONFIG) \
    --modversion snappy 2>/dev/null)"' -DROCKSDB_VERSION='"$(shell $(if $(ROCKSDB_DIR),awk \
    '/^.define ROCKSDB_(MAJOR|MINOR|PATCH) / { v = v dot $$3; dot = "." } END { print v }' \
    $(ROCKSDB_DIR)/include/rocksdb/version.h,$(PKG_CONFIG) --modversion rocksdb) 2>/dev/null)"'

# The phases of demo and check are separate makes, since the first may install what the second finds
# with pkg-config.
demo:
	$(LIVE)sh scripts/install-deps.sh demo
	@$(MAKE) all bench/simulate-reads
	$(LIVE)bash scripts/demo.sh

# Tests run one after the other: some measure time and memory.
check:
	$(LIVE)sh scripts/install-deps.sh test
	@$(MAKE) test-programs
	@$(MAKE) check-rooms
	@$(MAKE) check-unit
	@$(MAKE) check-fuzz
	@$(MAKE) check-cli

# All that the tests run. Without libfuse 3 those of the disk model are skipped.
HAS_FUSE = $(call exists,fuse3)
UNIT_PROGRAMS = $(patsubst %.c,$(BUILD)/%,$(wildcard test/unit/*/test_*.c))
REPLAY_PROGRAMS = $(FUZZ_TARGETS:fuzz_%=$(BUILD)/replay_%)
CLI_PROGRAMS = all $(BUILD)/fork-server $(ZLIB_ONLY)/samtools-rocksort build/fault_inject.so \
               completions bench/deflate-blocks bench/simulate-reads $(if $(HAS_FUSE),bench/spindle)
test-programs: $(UNIT_PROGRAMS) $(REPLAY_PROGRAMS) $(CLI_PROGRAMS)

check-rooms: $(OBJECTS) $(BUILD)/src/cli/samtools.o $(BUILD)/src/cli/samtools_rocksort.o
	$(call say,TEST,rooms)
	$(Q)python3 scripts/check-rooms.py --objects $(BUILD)

$(BUILD)/test/unit/%: MORE = -Itest/unit -MMD -MP
$(BUILD)/test/unit/%: LIBS += $$($(PKG_CONFIG) --libs cmocka)
$(BUILD)/test/unit/%: test/unit/%.c $(OBJECTS) | need-unit
	$(program)

check-unit: $(UNIT_PROGRAMS)
	$(LIVE)V='$(filter-out 0,$(V))' sh scripts/run-unit.sh $(BUILD)/test/unit $^

# Fuzz targets are linked in two ways: for `check`, to read files, with the compiler and sanitizers
# of everything else; and with libFuzzer.
FUZZ_SHARED = $(wildcard test/fuzz/fuzz_*.h) test/unit/owned.h $(NO_TARGETS:%=test/fuzz/%.c)

$(BUILD)/replay_%: MORE = -D_GNU_SOURCE -Itest/fuzz
$(BUILD)/replay_%: test/fuzz/fuzz_%.c test/fuzz/replay.c $(FUZZ_SHARED) $(OBJECTS)
	$(program)

check-fuzz: $(REPLAY_PROGRAMS)
	$(Q)python3 test/fuzz/make_seeds.py build/fuzz-seeds
	$(LIVE)python3 test/fuzz/run.py replay --programs $(BUILD) --seeds build/fuzz-seeds

FUZZ_BUILD = build/fuzz
FUZZ_CC ?= clang
$(FUZZ_BUILD)/%: COMPILER = FUZZ-CC
$(FUZZ_BUILD)/%: COMPILE = $(FUZZ_CC) -std=gnu11 -pthread -O1 -g -fno-omit-frame-pointer -Wall \
    -Wextra -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all $(CPPFLAGS) \
    $(INCLUDES) $(LIB_CFLAGS)
$(FUZZ_BUILD)/fuzz_%: MORE = -fsanitize=fuzzer -D_GNU_SOURCE -Itest/fuzz
$(FUZZ_BUILD)/fuzz_%: ALL_LDFLAGS = $(LDFLAGS)

$(FUZZ_BUILD)/%.o: %.c | need-build
	$(object)
$(FUZZ_BUILD)/fuzz_%: test/fuzz/fuzz_%.c $(FUZZ_SHARED) \
        $(MODULES:%=$(FUZZ_BUILD)/%.o)
	$(program)

fuzz-targets: $(FUZZ_TARGETS:%=$(FUZZ_BUILD)/%)

# Without a clang that has libFuzzer both say so and succeed.
FUZZ = if python3 test/fuzz/run.py probe --cc '$(FUZZ_CC)'; then \
    $(MAKE) fuzz-targets && python3 test/fuzz/make_seeds.py build/fuzz-seeds && \
    python3 test/fuzz/run.py fuzz --programs $(FUZZ_BUILD) --seeds build/fuzz-seeds $(1); fi

fuzz-quick:
	$(LIVE)$(call FUZZ,--short)
fuzz:
	$(LIVE)sh scripts/install-deps.sh fuzz
	$(LIVE)$(call FUZZ,--seconds $$(($(or $(MINUTES),60) * 60)) $(SEEDED))

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
fault-sweep: all build/fault_inject.so $(VENV)
	$(LIVE)$(PYTHON) test/fault_sweep.py --program $(BIN)/samtools-rocksort $(SWEEP)

# As it is built where only zlib is there; for tests.
$(ZLIB_ONLY)/bgzf_engine.o: DEFLATE_CFLAGS =
$(ZLIB_ONLY)/bgzf_engine.o: NOTE = $(comma) with zlib only
$(ZLIB_ONLY)/bgzf_engine.o: src/bam/bgzf_engine.c | need-build
	$(object)
$(ZLIB_ONLY)/samtools-rocksort: $(BUILD)/src/cli/samtools_rocksort.o \
        $(filter-out %/bgzf_engine.o,$(OBJECTS)) $(ZLIB_ONLY)/bgzf_engine.o
	$(call say,LD,$@)
	$(Q)$(CC) $^ $(LIBS) -o $@

# Runs rocksort thousands of times for the tests of damaged files.
$(BUILD)/fork-server: MORE = -MMD -MP
$(BUILD)/fork-server: test/tools/fork-server.c $(OBJECTS)
	$(program)

CLI_TESTS = $(if $(VALGRIND),test/cli/faults/test_errors.py::Input test/cli/sort/test_headers.py,test/cli)
DIFFERENTIAL = $(PYTHON) test/differential.py --program $(BIN)/samtools-rocksort
check-cli: $(CLI_PROGRAMS) $(VENV) $(if $(VALGRIND),,$(WORKFLOW_ENGINES))
	$(LIVE)bash scripts/fetch-real-bams.sh build/real-bams
	$(LIVE)$(if $(VALGRIND),:,$(DIFFERENTIAL) --cases 200 --seed 71)
	$(LIVE)$(PYTHON) -B -m pytest -n auto --build-dir $(BIN) $(CLI_TESTS)

differential: all $(VENV)
	$(LIVE)$(DIFFERENTIAL) --cases $(N) $(if $(MARKDUP),--markdup) $(SEEDED)

kill-sweep: N = 200
kill-sweep: all bench/simulate-reads
	$(LIVE)python3 test/kill_sweep.py --program $(BIN)/samtools-rocksort -n $(N) $(SEEDED)

hostile: all $(BUILD)/fork-server $(VENV)
	$(LIVE)$(PYTHON) test/hostile.py --build-dir $(BIN) --cases $(N) $(SEEDED)

# bench/run.sh says what their settings mean.
BENCHES = bench bench-peers bench-options bench-merge bench-qc bench-columns bench-scaling bench-2014
.PHONY: $(BENCHES)
$(BENCHES): all bench/deflate-blocks bench/simulate-reads build/fault_inject.so \
        $(if $(HAS_FUSE),bench/spindle)
	$(LIVE)BAM='$(BAM)' RECORDS='$(RECORDS)' SCALE='$(SCALE)' PEERS='$(PEERS)' SCALING='$(SCALING)' \
	    BENCH_2014='$(BENCH_2014)' PYTHON='$(wildcard $(PYTHON))' sh bench/run.sh $@

# Packages. The version is written in src/util/version.h; test_packages.py compares all others.
VERSION := $(shell sed -n 's/^.define ROCKSORT_VERSION "\(.*\)"$$/\1/p' src/util/version.h)
COMPLETIONS = build/completions
SAMTOOLS_DIR ?= $(PREFIX)/bin
ZSH_DIR ?= $(PREFIX)/share/zsh/site-functions
DIST_DIR ?= build/dist
DIST_NAME = samtools-rocksort-$(VERSION)

completions: $(addprefix $(COMPLETIONS)/,bash zsh fish)

$(COMPLETIONS)/%: completions/generate.awk completions/options.tsv
	@mkdir -p $(COMPLETIONS)
	$(call say,AWK,$@)
	$(Q)awk -v shell=$* -f $^ >$@.new && mv $@.new $@

PLACES = BIN="$(BIN)" COMPLETIONS="$(COMPLETIONS)" DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" \
         SAMTOOLS_DIR="$(SAMTOOLS_DIR)" ZSH_DIR="$(ZSH_DIR)"
install: all completions
	$(call say,INSTALL,$(DESTDIR)$(PREFIX))
	$(Q)$(PLACES) sh scripts/install.sh install
uninstall:
	$(call say,UNINSTALL,$(DESTDIR)$(PREFIX))
	$(Q)$(PLACES) sh scripts/install.sh uninstall

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
