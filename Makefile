# samtools rocksort -- see README.md.
#
#   make                builds ./samtools and ./samtools-rocksort
#   make demo           installs what is missing, builds, sorts simulated reads in a pipeline
#   make check          installs what the tests need, builds and runs all tests
#   make differential N=2000   compares with samtools 1.24 on random inputs and options
#   make kill-sweep N=200      kills sorts at random moments, finishes them, compares (SEED= again)
#   make fault-sweep    fails every system call of small sorts, one at a time (an hour or two)
#   make hostile N=5000        damages so many files and compares with samtools 1.24 (SEED= repeats)
#   make fuzz MINUTES=60       runs each fuzz target for so long (clang); fuzz-quick for SECONDS=10
#                       (SEED= again)
#   make bench          compares with the samtools on PATH (an hour on two cores)
#   make bench-peers    compares with all the sorters that are installed (half an hour; a few minutes
#                       with SCALE=small; RECORDS=6M simulates so many)
#   make bench-options  what options cost or save, durability and reports among them (40 minutes)
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

WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
           -Wformat=2 -Wformat-security
HARDENING = -fstack-protector-strong -fPIE $(if $(SAN),,-D_FORTIFY_SOURCE=2)
ALL_CFLAGS = -std=gnu11 -pthread $(WARNINGS) $(HARDENING) $(if $(WERROR),-Werror) \
             $(if $(SAN),-fsanitize=$(SAN) $(SAN_FLAGS) -DROCKSORT_CHECK_LOCKS) $(CFLAGS)
# What a sanitizer finds ends the program; UndefinedBehaviorSanitizer would go on.
SAN_FLAGS = -fno-omit-frame-pointer -fno-sanitize-recover=all
ALL_LDFLAGS = -pthread -pie -Wl,-z,relro,-z,now,-z,noexecstack $(if $(SAN),-fsanitize=$(SAN)) \
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
ifeq ($(shell $(PKG_CONFIG) --exists libdeflate && echo yes),yes)
PACKAGES += libdeflate
DEFLATE_CFLAGS = -DHAVE_LIBDEFLATE
endif
# Asked for when something is compiled, not when make starts: install-deps.sh may run in between.
LIB_CFLAGS = $(HTS_CFLAGS) $(ROCKSDB_CFLAGS) $(DEFLATE_CFLAGS) \
             $(shell $(PKG_CONFIG) --cflags $(PACKAGES))
LIB_LIBS = $(HTS_LIBS) $(ROCKSDB_LIBS) $(shell $(PKG_CONFIG) --libs $(PACKAGES)) -lm -ldl

# The rooms below src/, and what stands at the top; doc/design.md is the map.
SOURCES = $(wildcard *.c src/*/*.c)
MODULES = $(filter-out src/command/samtools src/command/samtools_rocksort,$(basename $(SOURCES)))
INCLUDES = -I. -Isrc

comma := ,
BUILD = build/$(if $(SAN),$(subst $(comma),-,$(SAN)),plain)$(if $(WERROR),-werror)
OBJECTS = $(MODULES:%=$(BUILD)/%.o)
# Programs of a special build stay in its directory.
BIN = $(if $(SAN)$(WERROR),$(BUILD),.)
PROGRAMS = $(BIN)/samtools $(BIN)/samtools-rocksort

# VALGRIND=1 runs the unit tests, the fuzz targets' inputs and some of the CLI tests under memcheck,
# which takes 20 to 50 times as long; whatever it finds is a failure.
ifdef VALGRIND
MEMCHECK = valgrind --quiet --error-exitcode=99 --leak-check=full --fair-sched=yes \
           --suppressions=$(CURDIR)/test/valgrind.supp
CLI_OPTIONS = --only $(VALGRIND_CLI)
export ROCKSORT_TEST_WRAPPER = $(MEMCHECK)
export ROCKSORT_TEST_SLOW_FACTOR = 50
endif
# ThreadSanitizer's first report ends the program, with status 66. What a damaged file claims to
# hold is not to be allocated: its shadow is touched, and the machine's memory ends.
ifneq ($(findstring thread,$(SAN)),)
TSAN_MEMORY = :allocator_may_return_null=1:max_allocation_size_mb=2000
export TSAN_OPTIONS ?= halt_on_error=1:suppressions=$(CURDIR)/test/tsan.supp$(TSAN_MEMORY)
export ROCKSORT_TEST_SLOW_FACTOR ?= 10
endif
VALGRIND_CLI = test_errors.Input,test_headers

UNIT_TESTS = $(basename $(wildcard test/unit/*/test_*.c))
FUZZ_TARGETS = $(filter-out fuzz_diag fuzz_file fuzz_record, \
               $(basename $(notdir $(wildcard test/fuzz/fuzz_*.c))))

.PHONY: all demo check check-unit check-fuzz check-cli differential hostile kill-sweep fault-sweep \
        fuzz fuzz-quick fuzz-targets bench bench-peers bench-options bench-2014 \
        install clean format completions dist deb test-deb \
        test-workflows
.SECONDARY:

all: $(PROGRAMS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(INCLUDES) $(LIB_CFLAGS) -MMD -MP -c $< -o $@

$(BIN)/samtools: $(BUILD)/src/command/samtools.o $(OBJECTS)
	$(CC) $(ALL_LDFLAGS) $^ $(LIB_LIBS) -o $@

$(BIN)/samtools-rocksort: $(BUILD)/src/command/samtools_rocksort.o $(OBJECTS)
	$(CC) $(ALL_LDFLAGS) $^ $(LIB_LIBS) -o $@

bench/simulate-reads: bench/simulate-reads.c
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(LIB_CFLAGS) $< $(ALL_LDFLAGS) $(LIB_LIBS) -o $@

# The disk model; no part of `all`, for it needs libfuse 3 (scripts/install-deps.sh bench).
SPINDLE_SOURCES = $(wildcard bench/spindle*.c) src/util/size.c
bench/spindle: $(SPINDLE_SOURCES) $(wildcard bench/spindle*.h) src/util/size.h
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(INCLUDES) $$($(PKG_CONFIG) --cflags fuse3) $(SPINDLE_SOURCES) \
	    $(ALL_LDFLAGS) $$($(PKG_CONFIG) --libs fuse3) -lm -o $@

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
	@sh scripts/install-deps.sh demo
	@$(MAKE) --no-print-directory all bench/simulate-reads
	@bash scripts/demo.sh

check:
	@sh scripts/install-deps.sh test
	@$(MAKE) --no-print-directory all bench/simulate-reads
	@$(MAKE) --no-print-directory check-unit check-fuzz check-cli

$(BUILD)/test/unit/%: test/unit/%.c $(OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(INCLUDES) -Itest/unit $(LIB_CFLAGS) -MMD -MP $< $(OBJECTS) $(ALL_LDFLAGS) \
	    $(LIB_LIBS) $$($(PKG_CONFIG) --libs cmocka) -o $@

check-unit: $(UNIT_TESTS:%=$(BUILD)/%)
	@for t in $^; do echo "== $$t"; $(MEMCHECK) ./$$t || exit 1; done

# Fuzz targets, with messages of their own instead of diag.c. Two ways to link them: on files, as
# part of check, with the compiler and sanitizers of everything else; and with libFuzzer.
FUZZ_SHARED = test/fuzz/fuzz_diag.c test/fuzz/fuzz_file.c test/fuzz/fuzz_record.c
FUZZ_HEADERS = $(wildcard test/fuzz/*.h)

$(BUILD)/replay_%: test/fuzz/fuzz_%.c test/fuzz/replay.c $(FUZZ_SHARED) $(FUZZ_HEADERS) $(OBJECTS)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -D_GNU_SOURCE $(INCLUDES) -Itest/fuzz $(LIB_CFLAGS) \
	    $(filter-out %.h %/util/diag.o,$^) $(ALL_LDFLAGS) $(LIB_LIBS) -o $@

check-fuzz: $(FUZZ_TARGETS:fuzz_%=$(BUILD)/replay_%)
	@python3 test/fuzz/make_seeds.py build/fuzz-seeds
	@python3 test/fuzz/run.py replay --programs $(BUILD) --seeds build/fuzz-seeds

FUZZ_BUILD = build/fuzz
FUZZ_CC ?= clang
FUZZ_CFLAGS = -std=gnu11 -pthread -O1 -g -fno-omit-frame-pointer -Wall -Wextra \
              -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZ_OBJECTS = $(patsubst %,$(FUZZ_BUILD)/%.o,$(filter-out src/util/diag,$(MODULES)))
MINUTES ?= 60
SECONDS ?= 10

$(FUZZ_BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_CFLAGS) $(CPPFLAGS) $(INCLUDES) $(LIB_CFLAGS) -MMD -MP -c $< -o $@

$(FUZZ_BUILD)/fuzz_%: test/fuzz/fuzz_%.c $(FUZZ_SHARED) $(FUZZ_HEADERS) $(FUZZ_OBJECTS)
	$(FUZZ_CC) $(FUZZ_CFLAGS) -fsanitize=fuzzer $(CPPFLAGS) -D_GNU_SOURCE $(INCLUDES) -Itest/fuzz \
	    $(LIB_CFLAGS) $(filter-out %.h,$^) $(LDFLAGS) $(LIB_LIBS) -o $@

fuzz-targets: $(FUZZ_TARGETS:%=$(FUZZ_BUILD)/%)

# Where there is no clang with libFuzzer, this says so and is no failure.
fuzz-quick:
	@python3 test/fuzz/run.py fuzz --make "$(MAKE)" --cc "$(FUZZ_CC)" --programs $(FUZZ_BUILD) \
	    --seeds build/fuzz-seeds --seconds $(SECONDS) \
	    $(if $(SEED),--seed $(SEED))

fuzz:
	@sh scripts/install-deps.sh fuzz
	@python3 test/fuzz/run.py fuzz --make "$(MAKE)" --cc "$(FUZZ_CC)" --programs $(FUZZ_BUILD) \
	    --seeds build/fuzz-seeds --seconds $$(($(MINUTES) * 60))

build/venv/bin/python:
	@sh scripts/make-venv.sh build/venv

# Preloaded into rocksort by tests; never with sanitizers, for it stands in front of theirs.
build/fault_inject.so: test/fault/fault_inject.c
	@mkdir -p build
	$(CC) -std=gnu11 $(WARNINGS) $(if $(WERROR),-Werror) -O2 -g -fPIC -shared -pthread $< -ldl -o $@

# Fails every call of small sorts, one at a time (an hour or two; SWEEP='--most 100' is shorter,
# SWEEP='--part 1/8' takes an eighth of it: the eight parts make the whole).
SWEEP ?=
fault-sweep: all build/fault_inject.so build/venv/bin/python
	build/venv/bin/python test/fault_sweep.py --program $(BIN)/samtools-rocksort $(SWEEP)

# Runs rocksort thousands of times for the tests of damaged files.
$(BUILD)/fork-server: test/tools/fork-server.c $(OBJECTS)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(INCLUDES) $(LIB_CFLAGS) -MMD -MP $< $(OBJECTS) $(ALL_LDFLAGS) \
	    $(LIB_LIBS) -o $@

check-cli: all $(BUILD)/fork-server build/venv/bin/python build/fault_inject.so
	@bash scripts/fetch-real-bams.sh build/real-bams
	build/venv/bin/python test/cli/run.py --build-dir $(BIN) $(CLI_OPTIONS)
	$(if $(VALGRIND),@:,build/venv/bin/python test/differential.py \
	    --program $(BIN)/samtools-rocksort --cases 200 --seed 71)

# Compares N random cases with samtools 1.24, with a new seed each time.
differential: all build/venv/bin/python
	build/venv/bin/python test/differential.py --program $(BIN)/samtools-rocksort --cases $(N)

# Kills N sorts at random moments and finishes them.
kill-sweep: N = 200
kill-sweep: all bench/simulate-reads
	python3 test/kill_sweep.py --program $(BIN)/samtools-rocksort -n $(N) \
	    $(if $(SEED),--seed $(SEED))

# Damages files at random, N of them, and compares with samtools 1.24.
hostile: all $(BUILD)/fork-server build/venv/bin/python
	build/venv/bin/python test/hostile.py --build-dir $(BIN) --cases $(N) \
	    $(if $(SEED),--seed $(SEED))

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

bench-options: all bench/simulate-reads build/fault_inject.so
	python3 bench/options.py

# Without libfuse 3 there is no disk model, and it says so. BENCH_2014='--experiment storage' and
# others of bench-2014.py's options may be added.
bench-2014: all bench/simulate-reads
	@if $(PKG_CONFIG) --exists fuse3; then $(MAKE) --no-print-directory bench/spindle; fi
	python3 bench/bench-2014.py --scale $(SCALE) $(BENCH_2014)

# Packages. The version is written in src/util/version.h alone; test_packages.py holds the rest to it.
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
	clang-format -i *.[ch] src/*/*.[ch] test/unit/*/*.c bench/*.c

clean:
	rm -rf build demo samtools samtools-rocksort bench/simulate-reads bench/spindle

-include $(shell find $(BUILD) $(FUZZ_BUILD) -name '*.d' 2>/dev/null)
