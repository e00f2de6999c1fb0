# scalemodel: `make` builds, `make test` tests, `make demo` shows. See README.md.
#
#   make            build/scalemodel, build/libscalemodel.a, build/libscalemodel.so
#   make release    the same in build/release, optimised as a whole and stripped: what is installed
#   make test       install what is missing, then the whole suite; ends with "N passed, M failed"
#   make test-all   the suite with all that it only samples: plans of every family on threads and on
#                   each MPI, every failing allocation; MATRIX plans of a family (40), some hours
#   make check      the part of it that takes under a minute, for who edits
#   make arm64      build for arm64 and run the unit tests under qemu-user
#   make demo       install what is missing, build, and answer the first question of the README
#   make asan       the suite built by clang under AddressSanitizer and UndefinedBehaviorSanitizer alone
#   make clang      the suite built by clang without them, which `make test` leaves out
#   make tsan       ranks as threads under ThreadSanitizer
#   make lint       layers, formatting, clang-tidy
#   make bench      the benchmarks: "bench: NAME VALUE UNIT" lines
#   make bench-run  those of ranks alone
#   make book       the acceptance set of the book; make book-pages: docs/book anew
#   make validate   docs/accuracy.md: predictions against the measurements in data/truth
#   make held-out   data/calibration/held-out.csv: the same, of constants fitted to other rows
#   make fuzz       every fuzz target for FUZZ_SECONDS seconds (600)
#   make test-python  the Python package installed in an environment of its own
#   make wheels     Python wheels for x86-64 and arm64 with what they need inside, in BUILD/wheels
#   make page       the page for browsers, in BUILD/page; make test-page: in node and Chromium
#   make install    into PREFIX (/usr/local), below DESTDIR; libraries into LIBDIR (PREFIX/lib)
#   make dist       BUILD/scalemodel-VERSION.tar.gz, which builds, tests and installs without git
#   make deb        the packages for Debian in BUILD/deb, checked: scripts/deb.sh
# BUILD=folder builds elsewhere; CC, CFLAGS and LDFLAGS are honoured.
.DEFAULT_GOAL := all
VERSION := $(shell sed -n 's/^.define SM_VERSION "\(.*\)"/\1/p' include/scalemodel/base.h)
SONAME_VERSION := $(firstword $(subst ., ,$(VERSION)))
ifeq ($(origin CC),default)
CC := gcc
endif
BUILD ?= build
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
FUZZ_SECONDS ?= 600
WARN := -Wall -Wextra -Wshadow -Wconversion -Werror
CFLAGS ?= -O2 -g1 -fno-math-errno -fno-trapping-math
# Names stay inside a library but for those of the public headers, which say so themselves.
# PIC, THREADS: of machines that run machine code; a browser's have neither.
PIC ?= -fPIC
THREADS ?= -pthread
ALL_CFLAGS := -std=c11 -D_POSIX_C_SOURCE=200809L $(WARN) $(PIC) -fvisibility=hidden $(THREADS) -Iinclude $(CFLAGS)
# Tests run once, and what compiling them takes counts as much; their oracles are what takes long.
TEST_CFLAGS ?= $(if $(filter -O2 -O3,$(CFLAGS)),-O1)
COLD_CFLAGS ?= $(if $(filter -O2,$(CFLAGS)),-O1)
# A hundred test programs are linked, each in a third of the time by gold, where that is there.
GOLD := $(if $(findstring -gnu-,$(CC)),,$(shell echo 'int main(void) { return 0; }' | $(CC) -x c -fuse-ld=gold -o /dev/null - 2>/dev/null && \
    echo -fuse-ld=gold))
TEST_LDFLAGS = $(LDFLAGS) $(GOLD)
FLAGS := $(CC) $(ALL_CFLAGS) $(TEST_CFLAGS) $(COLD_CFLAGS)
# Pricing is a tight loop over many small files: `make release` optimises the core as one where the
# compiler can, and leaves out what debuggers need. LTO: what `make release` adds for that.
RELEASE_CFLAGS ?= -O3 -fno-math-errno -fno-trapping-math
RELEASE_LTO = $(shell echo 'int sm_x;' | $(CC) -x c -flto=auto -r -nostdlib -flinker-output=nolto-rel \
    -o /dev/null - 2>/dev/null && echo -flto=auto)
LTO ?=
# The binutils of the compiler, which may be one for another machine.
tool_of = $(shell $(CC) -print-prog-name=$(1) 2>/dev/null)
ifeq ($(origin AR),default)
AR := $(call tool_of,ar)
endif
OBJCOPY ?= $(call tool_of,objcopy)
LIBS := -lyaml -lz -lzstd -llzma -lsqlite3 -lm -pthread

LIB_DIRS := base text units report search notation hw model shard module spmd program cost trace profile plan recipe train serve truth io answer render
# A layer is a folder of src; a large one has folders of its own, whose headers see each other.
sources_of = $(sort $(foreach d,$(1),$(wildcard src/$(d)/*.c src/$(d)/*/*.c)))
LIB_SRC := $(call sources_of,$(LIB_DIRS))
# The data that is shipped becomes C tables, so that nothing is read when the program starts: a program
# of the library's own readers writes them. It runs on the machine that builds, whatever CC builds for,
# and another build may lend it: HOST_BUILD.
CALIBRATIONS := $(sort $(wildcard data/calibration/*.txt))
HOSTCC ?= $(if $(findstring -gnu-,$(CC)),gcc,$(CC))
HOST_CFLAGS ?= -O1
HOST_BUILD ?= $(BUILD)
EMBED := $(HOST_BUILD)/host/embed
EMBED_OBJ := $(patsubst src/%.c,$(HOST_BUILD)/host/%.o,$(call sources_of,base text units report notation hw shard) \
    $(wildcard src/cost/calibration*.c src/io/*.c src/io/chip/*.c src/train/codebase_file.c src/serve/software_read.c))
CHIPS := $(patsubst %,data/chips/%.json,$(sort $(patsubst data/chips/%.json,%,$(wildcard data/chips/*.json))))
CODEBASES := $(sort $(wildcard data/codebases/*.json))
ENGINES := $(sort $(wildcard data/engines/*.json))
EVIDENCE := data/evidence/serving.tsv data/evidence/training.tsv
FAMILIES := $(sort $(wildcard data/families/*.family))
FORMATS := $(sort $(wildcard data/formats/*.json))
FRAMEWORKS := $(sort $(wildcard data/frameworks/*.json))
VERBS := $(filter-out %/options.json,$(sort $(wildcard data/verbs/*.json)))
MODELS := data/models/catalogue.json $(sort $(wildcard data/models/*/config.json))
LIB_OBJ := $(LIB_SRC:src/%.c=$(BUILD)/obj/%.o) \
    $(patsubst %,$(BUILD)/obj/made/%.o,calibration_table chip_table codebase_table evidence_table family_table framework_table model_table software_table $(patsubst data/formats/%.json,%_format,$(filter-out %/programs.json,$(FORMATS))))
# What runs a plan on real processes stays apart from the core: it alone knows BLAS and MPI.
RUN_SRC := $(filter-out %/mpi.c %/measure_cuda.c,$(call sources_of,run))
RUN_OBJ := $(RUN_SRC:src/%.c=$(BUILD)/obj/%.o)
BLAS_LIBS ?= -lopenblas
# The programs that run on ranks: with threads where BLAS is there, and with each MPI that is there
# (not under a sanitizer, to which the libraries of MPI leak: there they are compiled and no more).
HAVE_BLAS := $(shell printf '\043include <cblas.h>\n' | $(CC) -E -x c - >/dev/null 2>&1 && echo yes)
ALL_MPIS := $(foreach m,openmpi mpich,$(if $(shell command -v mpicc.$m),$m))
MPIS := $(if $(findstring sanitize,$(CFLAGS)),,$(ALL_MPIS))
# The program that measures GPUs, where the CUDA toolkit is: in CUDA_HOME or on the compiler's paths.
CUDA_HOME ?= /usr/local/cuda
CUDA_FLAGS ?= $(if $(wildcard $(CUDA_HOME)/include),-isystem $(CUDA_HOME)/include)
has_header = $(shell printf '\043include <$(1)>\n' | $(CC) $(CUDA_FLAGS) -E -x c - >/dev/null 2>&1 && echo yes)
HAVE_CUDA := $(if $(HAVE_BLAS),$(if $(findstring sanitize,$(CFLAGS)),,$(call has_header,cublas_v2.h)))
HAVE_NCCL := $(if $(HAVE_CUDA),$(call has_header,nccl.h))
CUDA_LIBS ?= $(if $(wildcard $(CUDA_HOME)/lib64),-L$(CUDA_HOME)/lib64) -lcublas -lcudart $(if $(HAVE_NCCL),-lnccl)
# The program that serves the page, and what serves a model, where libmicrohttpd is.
HAVE_HTTP := $(call has_header,microhttpd.h)
HTTP_LIBS := $(if $(HAVE_HTTP),-lmicrohttpd)
RUN_PROGRAMS := $(if $(HAVE_HTTP),$(BUILD)/scalemodel-page) $(if $(HAVE_BLAS),$(BUILD)/scalemodel-run $(MPIS:%=$(BUILD)/scalemodel-run-%)) \
    $(if $(HAVE_CUDA),$(BUILD)/scalemodel-run-cuda)
# The verbs that run on ranks are programs of their own.
RUNCLI_SRC := $(filter-out %/$(if $(HAVE_HTTP),serve_no_http,serve_http).c,$(sort $(wildcard src/cli/run/*.c)))
RUNCLI_OBJ := $(filter-out %/start_threads.o %/start_mpi.o %/start_cuda.o,$(RUNCLI_SRC:src/%.c=$(BUILD)/obj/%.o)) $(BUILD)/obj/made/run_verb_table.o
CLI_SRC := $(filter-out src/cli/run/% src/cli/page/%,$(call sources_of,cli))
CLI_OBJ := $(CLI_SRC:src/%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/made/programs_format.o $(BUILD)/obj/made/verb_table.o
# For the programs and tests of this repository: the core, and what runs on ranks, with all names.
CORE := $(if $(LTO),$(BUILD)/obj/core.o,$(BUILD)/obj/core.a)
RUN := $(BUILD)/obj/run.a
# The libraries: the core with the command line without its program; what runs on ranks, as threads; what each MPI and CUDA add to it.
LIBRARIES := scalemodel $(if $(HAVE_BLAS),scalemodel-run $(MPIS:%=scalemodel-run-%)) \
    $(if $(HAVE_CUDA),scalemodel-run-cuda)

# tests/test_X.c is a program; any other tests/*.c is an oracle linked into all of them.
TEST_SRC := $(sort $(wildcard tests/test_*.c))
TESTS := $(TEST_SRC:tests/%.c=$(BUILD)/tests/%)
ORACLE_SRC := $(filter-out $(TEST_SRC),$(sort $(wildcard tests/*.c)))
ORACLE_OBJ := $(ORACLE_SRC:tests/%.c=$(BUILD)/obj/tests/%.o)
FUZZ_SRC := $(sort $(wildcard fuzz/fuzz_*.c))
FUZZ_NAMES := $(FUZZ_SRC:fuzz/%.c=%)
REPLAYS := $(FUZZ_NAMES:%=$(BUILD)/replay/%)
BENCH_SRC := $(sort $(wildcard bench/*.c))
BENCHES := $(BENCH_SRC:bench/%.c=$(BUILD)/bench/%)
BOOK_SRC := $(sort $(wildcard tests/book/*.c))
BOOK_OBJ := $(BOOK_SRC:tests/%.c=$(BUILD)/obj/tests/%.o)
# What of running on ranks the book needs: no BLAS.
BOOK_RUN := $(patsubst %,$(BUILD)/obj/run/%.o,comm/communicator comm/memory_account comm/rank_mesh comm/threads einsum/box einsum/local_block)

all: $(BUILD)/scalemodel $(RUN_PROGRAMS) $(LIBRARIES:%=$(BUILD)/lib%.a) $(LIBRARIES:%=$(BUILD)/lib%.so)

$(BUILD)/scalemodel: $(CLI_OBJ) $(CORE)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
# Thin archives: an index, and where the objects lie.
archive = rm -f $@ && $(AR) rcsT $@ $^
$(BUILD)/obj/core.a: $(LIB_OBJ)
	$(archive)
$(BUILD)/obj/run.a: $(RUN_OBJ)
	$(archive)
$(LIB_OBJ): ALL_CFLAGS += $(LTO)
# Warnings of the link-time optimiser are about inlined code, and no errors.
$(BUILD)/obj/core.o: $(LIB_OBJ)
	$(CC) $(CFLAGS) $(if $(LTO),$(LTO) -flinker-output=nolto-rel -Wno-error) -r -nostdlib -o $@ $^
$(BUILD)/obj/run.o: $(RUN_OBJ)
	$(CC) $(CFLAGS) -r -nostdlib -o $@ $^
$(BUILD)/obj/library.o: $(BUILD)/obj/core.o $(filter-out %/main.o,$(CLI_OBJ))
	$(CC) $(CFLAGS) -r -nostdlib -o $@ $^
# A library is one object, within which the private names stay.
$(BUILD)/libscalemodel.a $(BUILD)/libscalemodel.so: $(BUILD)/obj/library.o
$(BUILD)/libscalemodel-run.a $(BUILD)/libscalemodel-run.so: $(BUILD)/obj/run.o
$(BUILD)/libscalemodel-run-cuda.a $(BUILD)/libscalemodel-run-cuda.so: $(BUILD)/obj/run/measure/measure_cuda.o
$(MPIS:%=$(BUILD)/libscalemodel-run-%.a): $(BUILD)/libscalemodel-run-%.a: $(BUILD)/obj/%/mpi.o
$(LIBRARIES:%=$(BUILD)/lib%.a):
	$(OBJCOPY) --localize-hidden $< $(@:.a=.o) && rm -f $@ && $(AR) rcs $@ $(@:.a=.o) && rm $(@:.a=.o)
shared = $(ALL_CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F).$(SONAME_VERSION) -o $@ $^
$(BUILD)/libscalemodel.so:
	$(CC) $(shared) $(LIBS)
$(BUILD)/libscalemodel-run.so: $(BUILD)/libscalemodel.so
	$(CC) $(shared) $(BLAS_LIBS) -lm
$(BUILD)/libscalemodel-run-cuda.so: $(BUILD)/libscalemodel.so
	$(CC) $(shared) $(CUDA_LIBS) -lm
$(MPIS:%=$(BUILD)/libscalemodel-run-%.so): $(BUILD)/libscalemodel-run-%.so: $(BUILD)/obj/%/mpi.o \
    $(BUILD)/libscalemodel.so
	$(MPICC) $(shared)
# The library for a browser (scripts/build-page.sh sets CC to emcc, and PAGE_LIBS).
PAGE_FLAGS := -sMODULARIZE=1 -sEXPORT_NAME=createScalemodel -sENVIRONMENT=worker,node -sALLOW_MEMORY_GROWTH=1 \
    -sTOTAL_STACK=8MB -sMAXIMUM_MEMORY=2GB -sFORCE_FILESYSTEM=1 -sALLOW_TABLE_GROWTH=1 -sINVOKE_RUN=0 -sNODEJS_CATCH_EXIT=0 \
    -sEXPORTED_FUNCTIONS=_sm_command_ask,_sm_command_describe,_sm_command_free,_sm_command_status,_sm_command_text,_malloc,_free \
    -sEXPORTED_RUNTIME_METHODS=FS,UTF8ToString,stringToUTF8,lengthBytesUTF8,addFunction,removeFunction,setValue,getValue
$(BUILD)/scalemodel.js: $(filter-out %/nsys_sqlite.o,$(LIB_OBJ)) $(filter-out %/main.o %/run_verb.o,$(CLI_OBJ)) $(BUILD)/obj/page/absent.o
	$(CC) $(CFLAGS) $(PAGE_FLAGS) -o $@ $^ $(PAGE_LIBS)
$(BUILD)/obj/page/%.o: web/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(call folders_of,cli) $(call folders_of,io) $(call folders_of,trace) -MMD -MP -c -o $@ $<
# The command line without its verbs, the verbs that run on ranks, and how ranks are started.
CLI_LIB := $(BUILD)/obj/cli.a
RUN_PARTS := $(RUNCLI_OBJ) $(CLI_LIB) $(RUN) $(CORE)
$(CLI_LIB): $(filter-out %/main.o,$(CLI_OBJ))
	$(archive)
$(BUILD)/scalemodel-page: $(BUILD)/obj/cli/page/page_server.o $(CLI_LIB) $(CORE)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ -lmicrohttpd $(LIBS)
$(BUILD)/scalemodel-run: $(BUILD)/obj/cli/run/start_threads.o $(RUN_PARTS)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(BLAS_LIBS) $(HTTP_LIBS) $(LIBS)
$(BUILD)/scalemodel-run-cuda: $(BUILD)/obj/cli/run/start_cuda.o $(BUILD)/obj/run/measure/measure_cuda.o $(RUN_PARTS)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(CUDA_LIBS) $(BLAS_LIBS) $(HTTP_LIBS) $(LIBS)
$(BUILD)/obj/run/measure/measure_cuda.o: ALL_CFLAGS += $(CUDA_FLAGS) $(if $(HAVE_NCCL),-DSCALEMODEL_NCCL)
# The compilers of MPI are wrappers around ours.
MPICC = OMPI_CC="$(CC)" MPICH_CC="$(CC)" mpicc.$*
$(BUILD)/scalemodel-run-%: $(BUILD)/obj/%/start_mpi.o $(BUILD)/obj/%/mpi.o $(RUN_PARTS)
	$(MPICC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(BLAS_LIBS) $(HTTP_LIBS) $(LIBS)
$(BUILD)/obj/openmpi/start_mpi.o $(BUILD)/obj/mpich/start_mpi.o: $(BUILD)/obj/%/start_mpi.o: src/cli/run/start_mpi.c
	@mkdir -p $(@D)
	$(MPICC) $(ALL_CFLAGS) $(call folders_of,cli) -DSCALEMODEL_MPI='"$*"' -MMD -MP -c -o $@ $<
$(BUILD)/obj/openmpi/mpi.o $(BUILD)/obj/mpich/mpi.o: $(BUILD)/obj/%/mpi.o: src/run/comm/mpi.c
	@mkdir -p $(@D)
	$(MPICC) $(ALL_CFLAGS) $(call folders_of,run) -MMD -MP -c -o $@ $<
LARGE_LAYERS := model io answer run cli
folders_of = -Isrc/$(1) $(patsubst %/,-I%,$(wildcard src/$(1)/*/))
$(foreach d,$(LARGE_LAYERS),$(eval $(BUILD)/obj/$(d)/%.o: ALL_CFLAGS += $(call folders_of,$(d))))
# Of docs/layers.txt: private headers that are lent.
$(BUILD)/obj/train/%.o $(BUILD)/obj/serve/%.o: ALL_CFLAGS += -Isrc/program
$(BUILD)/obj/trace/%.o: ALL_CFLAGS += -Isrc/module
$(BUILD)/obj/io/%.o: ALL_CFLAGS += -Isrc/trace
$(BUILD)/obj/recipe/%.o: ALL_CFLAGS += -Isrc/notation
$(foreach d,notation model module shard recipe train serve truth io trace answer cli,$(BUILD)/obj/$(d)/%.o): ALL_CFLAGS += -Isrc/text
$(BUILD)/obj/cli/%.o: ALL_CFLAGS += -Isrc/recipe -Isrc/io
$(BUILD)/obj/run/%.o: ALL_CFLAGS += -Isrc/shard
# What reads a question and words an answer: nothing of it takes long, and a variant may spare the compiler.
COLD := answer cli module recipe render report profile spmd
$(foreach d,$(COLD),$(eval $(BUILD)/obj/$(d)/%.o: ALL_CFLAGS += $(COLD_CFLAGS)))
# Kernels of runs: loops over rows, of which -O2 makes no vectors; and what a search asks of millions of plans.
SEARCHED := train/% cost/% plan/% recipe/expression recipe/framework_space
$(BUILD)/obj/run/train/%.o $(SEARCHED:%=$(BUILD)/obj/%.o) $(BUILD)/obj/run/einsum/local_einsum.o $(BUILD)/obj/shard/elements.o $(BUILD)/obj/shard/packed.o: ALL_CFLAGS += $(if $(filter -O2,$(CFLAGS)),-O3)
# Products and sums of these in one instruction, where there is one: all plans run the same.
$(BUILD)/obj/run/train/row_math.o: ALL_CFLAGS += -ffp-contract=fast
# What is compiled otherwise is compiled again.
$(BUILD)/obj/flags: always
	@mkdir -p $(@D)
	@echo '$(FLAGS)' >$@.new; if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(BUILD)/obj/%.o: src/%.c $(BUILD)/obj/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/obj/made/%.o: $(HOST_BUILD)/made/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(foreach d,cli cost hw io model module notation recipe serve text trace train truth,$(call folders_of,$(d))) -MMD -MP -c -o $@ $<
# The readers as this build has them, or compiled for the machine that builds.
ifeq ($(HOST_BUILD) $(HOSTCC),$(BUILD) $(CC)$(LTO)$(findstring sanitize,$(CFLAGS)))
$(HOST_BUILD)/host/%.o: $(BUILD)/obj/%.o
	@mkdir -p $(@D)
	@ln -f $< $@
else
$(HOST_BUILD)/host/%.o: src/%.c
	@mkdir -p $(@D)
	$(HOSTCC) $(HOST_ALL_CFLAGS) -MMD -MP -c -o $@ $<
endif
HOST_ALL_CFLAGS = -std=c11 -D_POSIX_C_SOURCE=200809L $(WARN) -pthread -Iinclude -Isrc/notation -Isrc/serve -Isrc/text -Isrc/trace -Isrc/train $(call folders_of,io) $(HOST_CFLAGS)
$(HOST_BUILD)/host/readers.a: $(EMBED_OBJ) Makefile
	rm -f $@ && ar rcs $@ $(EMBED_OBJ)
# Reads the files of data/ with the library's own readers; what they need is linked from the archive.
$(HOST_BUILD)/host/embed.o: scripts/embed.c Makefile
	@mkdir -p $(@D)
	$(HOSTCC) $(HOST_ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(EMBED): $(HOST_BUILD)/host/embed.o $(HOST_BUILD)/host/readers.a
	$(HOSTCC) $(HOST_ALL_CFLAGS) -o $@ $^ $(LIBS)
# A table that is made anew and is the same keeps its date, so that nothing is compiled again.
$(HOST_BUILD)/made/%.c: $(HOST_BUILD)/made/%.stamp ;
# The folders are named too: a file that is taken away leaves the table.
$(HOST_BUILD)/made/calibration_table.stamp: $(EMBED) data/calibration $(CALIBRATIONS)
	$(call embed,calibrations $(CALIBRATIONS))
$(HOST_BUILD)/made/chip_table.stamp: $(EMBED) data/chips $(CHIPS)
	$(call embed,chips $(CHIPS))
$(HOST_BUILD)/made/codebase_table.stamp: $(EMBED) data/codebases $(CODEBASES)
	$(call embed,codebases $(CODEBASES))
$(HOST_BUILD)/made/software_table.stamp: $(EMBED) data/engines $(ENGINES)
	$(call embed,engines $(ENGINES))
$(HOST_BUILD)/made/evidence_table.stamp: $(EMBED) data/evidence $(EVIDENCE)
	$(call embed,evidence $(EVIDENCE))
$(HOST_BUILD)/made/family_table.stamp: $(EMBED) data/families $(FAMILIES)
	$(call embed,families $(FAMILIES))
$(HOST_BUILD)/made/%_format.stamp: data/formats/%.json $(EMBED)
	$(call embed,formats $<)
$(HOST_BUILD)/made/framework_table.stamp: $(EMBED) data/frameworks $(FRAMEWORKS)
	$(call embed,frameworks $(FRAMEWORKS))
$(HOST_BUILD)/made/model_table.stamp: $(EMBED) data/models $(MODELS)
	$(call embed,models $(MODELS))
$(HOST_BUILD)/made/verb_table.stamp: $(EMBED) data/verbs data/verbs/options.json $(VERBS)
	$(call embed,verbs data/verbs/options.json $(filter-out data/verbs/run-%,$(VERBS)))
$(HOST_BUILD)/made/run_verb_table.stamp: $(EMBED) data/verbs data/verbs/options.json $(VERBS)
	$(call embed,verbs data/verbs/options.json $(filter data/verbs/run-%,$(VERBS)))
define embed
	@mkdir -p $(@D)
	$(EMBED) $(1) >$(@:.stamp=.c.new)
	@cmp -s $(@:.stamp=.c.new) $(@:.stamp=.c) && rm $(@:.stamp=.c.new) || mv $(@:.stamp=.c.new) $(@:.stamp=.c)
	@touch $@
endef
TEST_FOLDERS = $(foreach d,$(LARGE_LAYERS) text notation program recipe,$(call folders_of,$(d)))
$(BUILD)/obj/tests/%.o: tests/%.c $(BUILD)/obj/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(if $(findstring /test_,$<),$(TEST_CFLAGS)) -Itests $(TEST_FOLDERS) -MMD -MP -c -o $@ $<
$(BUILD)/obj/fuzz/%.o: fuzz/%.c $(BUILD)/obj/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(TEST_CFLAGS) -Itests -Isrc/notation -Isrc/text -MMD -MP -c -o $@ $<
$(BUILD)/obj/bench/%.o: bench/%.c $(BUILD)/obj/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(ORACLE_OBJ) $(RUN) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(TEST_LDFLAGS) -o $@ $^ -lcmocka -ljansson -Wl,--as-needed $(BLAS_LIBS) $(LIBS)
# Checkpoints of trainings, as the command line makes them.
CHECKPOINT_OBJ := $(filter %/train_checkpoint.o %/checkpoint_form.o %/checkpoint_take.o,$(RUNCLI_OBJ))
$(filter $(BUILD)/tests/test_checkpoint%,$(TESTS)): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o \
    $(CHECKPOINT_OBJ) $(ORACLE_OBJ) $(RUN) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(TEST_LDFLAGS) -o $@ $^ -lcmocka -ljansson $(BLAS_LIBS) $(LIBS)
# An engine, without its face towards clients.
SERVE_OBJ := $(filter %/serve_desk.o %/serve_engine.o %/serve_load.o,$(RUNCLI_OBJ))
$(BUILD)/tests/test_serve_engine: $(BUILD)/obj/tests/test_serve_engine.o $(SERVE_OBJ) $(ORACLE_OBJ) $(RUN) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(TEST_LDFLAGS) -o $@ $^ -lcmocka -ljansson $(BLAS_LIBS) $(LIBS)
# Constants from trainings, as the command line makes them.
MEASURED_OBJ := $(filter %/measured_training.o %/train_setup_of_plan.o,$(RUNCLI_OBJ))
$(BUILD)/tests/test_measured_training $(BUILD)/tests/test_run_pairs: $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o \
    $(MEASURED_OBJ) $(ORACLE_OBJ) $(RUN) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(TEST_LDFLAGS) -o $@ $^ -lcmocka -ljansson $(BLAS_LIBS) $(LIBS)
# The command line without its program.
$(BUILD)/tests/test_command: $(BUILD)/obj/tests/test_command.o $(CLI_LIB) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(TEST_LDFLAGS) -o $@ $^ -lcmocka -ljansson $(LIBS)
# Every verb, as the command line has it.
$(BUILD)/tests/test_out_of_memory $(BUILD)/tests/test_run_matrix: $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(ORACLE_OBJ) \
    $(BUILD)/obj/cli/run/start_threads.o $(filter-out %/run_main.o,$(RUNCLI_OBJ)) $(CLI_LIB) $(RUN) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(TEST_LDFLAGS) -o $@ $^ -lcmocka -ljansson $(BLAS_LIBS) $(HTTP_LIBS) $(LIBS)
# The acceptance set as a test: all of it but its main program.
$(BUILD)/tests/test_book: $(BUILD)/obj/tests/test_book.o \
    $(filter-out $(BUILD)/obj/tests/book/main.o,$(BOOK_OBJ)) $(BOOK_RUN) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(TEST_LDFLAGS) -o $@ $^ -lcmocka -ljansson $(LIBS)
# Measuring GPUs, on ones of the test's own.
FAKE_CUDA := $(addprefix $(BUILD)/obj/tests/,test_measure_cuda.o cuda/fake_cuda.o cuda/measure_cuda.o)
$(FAKE_CUDA): ALL_CFLAGS += -Itests/cuda $(call folders_of,run) -DSCALEMODEL_NCCL
$(BUILD)/obj/tests/cuda/measure_cuda.o: src/run/measure/measure_cuda.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/tests/test_measure_cuda: $(FAKE_CUDA) $(RUN) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(TEST_LDFLAGS) -o $@ $^ -lcmocka -ljansson -Wl,--as-needed $(BLAS_LIBS) $(LIBS)
$(BUILD)/replay/%: $(BUILD)/obj/fuzz/%.o $(BUILD)/obj/fuzz/replay.o $(CLI_LIB) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(TEST_LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/bench/%: $(BUILD)/obj/bench/%.o $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/book: $(BOOK_OBJ) $(BOOK_RUN) $(CORE)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ -ljansson $(LIBS)

# Ranks of MPI under the oracle of tests/random_einsums.h.
MPI_TESTS := $(if $(HAVE_BLAS),$(MPIS:%=$(BUILD)/tests/ranks-%))
$(BUILD)/tests/ranks-%: $(BUILD)/obj/tests/mpi/ranks.o $(BUILD)/obj/tests/random_einsums.o \
    $(BUILD)/obj/%/mpi.o $(RUN) $(CORE)
	@mkdir -p $(@D)
	$(MPICC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(BLAS_LIBS) $(LIBS)

# Ranks of MPI under the plans of tests/train_plans.h: in the variant that users build.
ifneq (,$(findstring gcc,$(CC)))
MPI_TESTS += $(if $(HAVE_BLAS),$(MPIS:%=$(BUILD)/tests/train-%))
endif
$(BUILD)/tests/train-%: $(BUILD)/obj/tests/mpi/train.o $(BUILD)/obj/tests/train_plans.o $(BUILD)/obj/tests/drawn_plans.o \
    $(BUILD)/obj/cli/run/train_setup_of_plan.o \
    $(BUILD)/obj/%/mpi.o $(RUN) $(CORE)
	@mkdir -p $(@D)
	$(MPICC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(BLAS_LIBS) -ljansson $(LIBS)

# Another make in the same words, with what is optimised and stripped.
RELEASE = $(MAKE) --no-print-directory -s BUILD="$(BUILD)/release" CFLAGS="$(RELEASE_CFLAGS)" \
    LTO="$(RELEASE_LTO)" LDFLAGS="$(LDFLAGS) -s"
release:
	@+$(RELEASE) all
# What a Python package carries, and the program that its tests hold it against.
python-library:
	@+$(RELEASE) $(BUILD)/release/libscalemodel.so $(BUILD)/release/scalemodel
# The page for browsers, in BUILD/page, by emscripten; and its tests, in node and Chromium.
page:
	@scripts/setup.sh page
	@BUILD="$(BUILD)" MAKE="$(MAKE)" scripts/build-page.sh
test-page: page $(BUILD)/scalemodel $(filter %-page,$(RUN_PROGRAMS))
	@BUILD="$(BUILD)" scripts/test-page.sh
# Wheels of two machines, the second's asked under qemu-user: needs the network.
wheels: python-library
	@BUILD="$(BUILD)" MAKE="$(MAKE)" scripts/wheels.sh
# The package as users install it, in an environment of its own: needs the network.
test-python:
	@BUILD="$(BUILD)" scripts/test-python.sh

# Everything the suite runs; `make -k` so that one broken file fails alone. Under a sanitizer clang
# links no shared library.
ifneq (,$(findstring sanitize,$(CFLAGS)))
PROGRAMS := $(BUILD)/scalemodel $(RUN_PROGRAMS) $(patsubst %,$(BUILD)/obj/%/mpi.o,$(ALL_MPIS)) \
    $(patsubst %,$(BUILD)/obj/%/start_mpi.o,$(ALL_MPIS)) $(BUILD)/obj/tests/mpi/ranks.o $(BUILD)/obj/tests/mpi/train.o
endif
test-programs: $(or $(PROGRAMS),all) $(TESTS) $(MPI_TESTS) $(REPLAYS)

test:
	@CC="$(CC)" scripts/setup.sh test
	@BUILD="$(BUILD)" MAKE="$(MAKE)" scripts/suite.sh gcc asan
MATRIX ?= 40
test-all:
	@CC="$(CC)" scripts/setup.sh test
	@MATRIX="$(MATRIX)" PLANS=all FAILING_ALLOC=all TIME_LIMIT=7200 BUILD="$(BUILD)" MAKE="$(MAKE)" scripts/suite.sh gcc asan
check:
	@CC="$(CC)" scripts/setup.sh test
	@BUILD="$(BUILD)" MAKE="$(MAKE)" scripts/suite.sh check
arm64:
	@BUILD="$(BUILD)" MAKE="$(MAKE)" scripts/arm64.sh
asan:
	@CC="$(CC)" scripts/setup.sh test
	@BUILD="$(BUILD)" MAKE="$(MAKE)" scripts/suite.sh asan
clang:
	@CC="$(CC)" scripts/setup.sh test
	@BUILD="$(BUILD)" MAKE="$(MAKE)" scripts/suite.sh clang
# ThreadSanitizer cannot look into BLAS: it watches what the ranks share around it.
TSAN_TESTS := test_communicator test_ring_attention test_row_math test_measure test_checkpoint test_checkpoint_reference test_measured_training \
    $(patsubst tests/%.c,%,$(wildcard tests/test_run_*.c))
tsan:
	@CC="$(CC)" scripts/setup.sh test
	@$(MAKE) --no-print-directory -s -j2 BUILD="$(BUILD)/tsan" CFLAGS="-O1 -g -fsanitize=thread -Wno-error" \
	    $(TSAN_TESTS:%=$(BUILD)/tsan/tests/%)
	@for test in $(TSAN_TESTS); do OPENBLAS_NUM_THREADS=1 TSAN_OPTIONS=halt_on_error=1 $(BUILD)/tsan/tests/$$test || exit 1; done

demo:
	@CC="$(CC)" scripts/setup.sh build
	@$(MAKE) --no-print-directory -s BUILD="$(BUILD)" $(BUILD)/scalemodel
	$(BUILD)/scalemodel train data/models/llama-3.1-70b/config.json --on tpu-v5p:16x20x28 \
	    --batch 4M --seq 4096 --tokens 15T

# Two ranks, with threads and each MPI that is there; and ScaLAPACK's pdgemm where it is installed.
SCALAPACK := $(wildcard /usr/lib/*/libscalapack-openmpi.so)
RUN_BENCHES := $(if $(HAVE_BLAS),$(patsubst %,$(BUILD)/bench/run/two_ranks-%,threads $(MPIS)) \
    $(if $(filter openmpi,$(MPIS)),$(if $(SCALAPACK),$(BUILD)/bench/run/pdgemm-openmpi)))
$(BUILD)/bench/run/two_ranks-threads: bench/run/two_ranks.c $(RUN) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(BLAS_LIBS) $(LIBS)
$(BUILD)/bench/run/two_ranks-%: bench/run/two_ranks.c $(BUILD)/obj/%/mpi.o $(RUN) $(CORE)
	@mkdir -p $(@D)
	$(MPICC) $(ALL_CFLAGS) -DBENCH_MPI $(LDFLAGS) -o $@ $^ $(BLAS_LIBS) $(LIBS)
$(BUILD)/bench/run/pdgemm-%: bench/run/pdgemm.c $(BUILD)/obj/%/mpi.o $(RUN) $(CORE)
	@mkdir -p $(@D)
	$(MPICC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ -lscalapack-openmpi $(BLAS_LIBS) $(LIBS)

# The suite builds them and runs none: what does not compile is found there.
test-programs: $(BENCHES) $(RUN_BENCHES)

# Of the release, which is what is installed.
bench bench-run:
	@+$(RELEASE) $@-here
bench-here: $(BENCHES) bench-run-here
	@for program in $(BENCHES); do figures=$$($$program) || exit 1; echo "$$figures" | awk \
	    'NR == FNR { if (!/^#/) wanted[$$1] = $$2 " " $$3; next } \
	    { print $$0 ($$2 in wanted ? ", wanted " wanted[$$2] : "") }' bench/wanted -; done
bench-run-here: $(RUN_BENCHES)
	@scripts/bench-ranks.sh $(RUN_BENCHES)
book: $(BUILD)/book
	@$(BUILD)/book
book-pages: $(BUILD)/book $(BUILD)/scalemodel
	@BUILD="$(BUILD)" scripts/book-pages.py
	@UPDATE=1 SCALEMODEL=$(BUILD)/scalemodel sh tests/cli/pages.t docs/book/*.md
validate: $(BUILD)/scalemodel $(BUILD)/as-asked
	@SCALEMODEL=$(BUILD)/scalemodel AS_ASKED=$(BUILD)/as-asked scripts/accuracy.sh
held-out: $(BUILD)/scalemodel $(BUILD)/fit-steps $(BUILD)/fit-serving
	@SCALEMODEL=$(BUILD)/scalemodel FITS=$(BUILD) scripts/held-out.sh
$(BUILD)/fit-steps $(BUILD)/fit-serving: $(BUILD)/%: scripts/%.c scripts/hierarchy.c scripts/evidence.c $(BUILD)/libscalemodel.a scripts/hierarchy.h scripts/evidence.h
	$(CC) $(ALL_CFLAGS) -o $@ $(filter-out %.h,$^) $(LIBS) $(BLAS_LIBS)
$(BUILD)/as-asked: scripts/as-asked.c $(BUILD)/libscalemodel.a
	$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)

fuzz:
	@scripts/setup.sh fuzz
	@BUILD="$(BUILD)" FUZZ_SECONDS="$(FUZZ_SECONDS)" MAKE="$(MAKE)" scripts/fuzz.sh $(FUZZ_NAMES)

lint: lint-layers lint-shape lint-format lint-tidy
lint-layers:
	@scripts/check-layers.sh && echo "layers: every include points down"
lint-shape:
	@scripts/check-shape.sh
# All C of the repository. What clang-tidy has passed is not looked at again until it changes.
LINTED := $(sort $(wildcard $(foreach d,src bench tests fuzz,$(d)/*.[ch] $(d)/*/*.[ch] $(d)/*/*/*.[ch])))
LINTED_HERE := $(filter-out $(if $(HAVE_BLAS),,src/run/% src/cli/run/% bench/run/%) \
    $(if $(filter openmpi,$(MPIS)),,%/mpi.c %/start_mpi.c tests/mpi/% bench/run/%),$(filter %.c,$(LINTED)))
# _GNU_SOURCE: clang_tidy.h comes before the files that define it for themselves.
TIDY_FLAGS = -std=c11 -D_POSIX_C_SOURCE=200809L -D_GNU_SOURCE= -Iinclude $(addprefix -I,$(sort $(dir $(filter src/%,$(LINTED))))) \
    -Itests -Itests/cuda $(if $(filter openmpi,$(MPIS)),$(addprefix -isystem ,$(shell mpicc.openmpi --showme:incdirs))) \
    -DSCALEMODEL_MPI='"openmpi"' -DSCALEMODEL_NCCL
lint-format:
	@scripts/setup.sh lint
	@clang-format --dry-run --Werror $(LINTED) && echo "format: as .clang-format says"
lint-tidy:
	@scripts/setup.sh lint
	@$(MAKE) --no-print-directory -k -j2 $(LINTED_HERE:%.c=$(BUILD)/tidy/%.ok) && echo "tidy: nothing found"
$(BUILD)/tidy/%.ok: %.c .clang-tidy
	@mkdir -p $(@D)
	@clang-tidy --quiet $< -- $(TIDY_FLAGS) $(if $(filter src/base/% src/text/%,$<),,-include scripts/clang_tidy.h) 2>/dev/null
	@$(CC) $(TIDY_FLAGS) -MM -MP -MT $@ -MF $(@:.ok=.d) $< && touch $@
format:
	@clang-format -i $(LINTED)

# The release is installed; `make install-here` installs what lies in BUILD.
INSTALL_TO = $(DESTDIR)$(PREFIX)
install: release
	@+$(RELEASE) install-here
pc = printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'Name: $(1)' 'Version: $(VERSION)' 'Description: $(2)' \
    'Requires: $(3)' 'Requires.private: $(4)' 'Libs: -L$${libdir} -l$(1)' 'Libs.private: $(5)' \
    'Cflags: -I$${prefix}/include' > $(DESTDIR)$(LIBDIR)/pkgconfig/$(1).pc
# What `make page` built, of which a release is a folder; or that of another build.
PAGE ?= $(firstword $(wildcard $(BUILD)/page $(BUILD)/../page))
PAGE_FILES = $(if $(PAGE),$(wildcard $(PAGE)/*.*))
COMPLETIONS = bash:bash-completion/completions/scalemodel zsh:zsh/site-functions/_scalemodel \
    fish:fish/vendor_completions.d/scalemodel.fish
install-here: all
	install -d $(INSTALL_TO)/bin $(INSTALL_TO)/include/scalemodel $(DESTDIR)$(LIBDIR)/pkgconfig \
	    $(INSTALL_TO)/share/man/man1 $(INSTALL_TO)/share/scalemodel/truth
	install -m 755 $(BUILD)/scalemodel $(RUN_PROGRAMS) $(INSTALL_TO)/bin/
	install -m 644 include/scalemodel/*.h $(INSTALL_TO)/include/scalemodel/
	install -m 644 $(LIBRARIES:%=$(BUILD)/lib%.a) $(DESTDIR)$(LIBDIR)/
	for library in $(LIBRARIES:%=lib%.so); do \
	    install -m 755 $(BUILD)/$$library $(DESTDIR)$(LIBDIR)/$$library.$(SONAME_VERSION) && \
	    ln -sf $$library.$(SONAME_VERSION) $(DESTDIR)$(LIBDIR)/$$library || exit 1; done
	$(call pc,scalemodel,How to scale a Transformer: rooflines; sharding; training plans,,zlib yaml-0.1 libzstd liblzma sqlite3,-lm -pthread)
ifneq ($(filter scalemodel-run,$(LIBRARIES)),)
	$(call pc,scalemodel-run,Plans of scalemodel on real processes: ranks as threads,scalemodel,,$(BLAS_LIBS) -lm -pthread)
endif
	$(foreach m,$(filter $(LIBRARIES:scalemodel-run-%=%),openmpi mpich),$(call pc,scalemodel-run-$(m),Ranks of \
	    scalemodel as processes of MPI,scalemodel-run $(m:openmpi=ompi),,) &&) true
	install -m 644 $(wildcard data/truth/*) $(INSTALL_TO)/share/scalemodel/truth/
	for page in $(wildcard man/*.1); do install -m 644 $$page $(INSTALL_TO)/share/man/man1/; done
	$(if $(PAGE_FILES),install -d $(INSTALL_TO)/share/scalemodel/page && install -m 644 $(PAGE_FILES) $(INSTALL_TO)/share/scalemodel/page/)
	for script in $(COMPLETIONS); do to=$(INSTALL_TO)/share/$${script#*:} && install -d $${to%/*} && \
	    $(BUILD)/scalemodel completion $${script%%:*} > $$to || exit 1; done
uninstall:
	rm -rf $(INSTALL_TO)/include/scalemodel $(INSTALL_TO)/share/scalemodel
	rm -f $(INSTALL_TO)/bin/scalemodel $(INSTALL_TO)/bin/scalemodel-run* $(INSTALL_TO)/bin/scalemodel-page $(DESTDIR)$(LIBDIR)/libscalemodel* \
	    $(DESTDIR)$(LIBDIR)/pkgconfig/scalemodel*.pc $(INSTALL_TO)/share/man/man1/scalemodel*.1
	rm -f $(foreach script,$(COMPLETIONS),$(INSTALL_TO)/share/$(lastword $(subst :, ,$(script))))

# The files that git has; where there is no git, all that lies here but what was built. Same files, same bytes.
DIST := scalemodel-$(VERSION)
dist:
	@mkdir -p $(BUILD)
	@(git ls-files -z 2>/dev/null || find . -type f ! -path './build/*' ! -path './$(BUILD)/*' ! -path './debian/.debhelper/*' -printf '%P\0') | \
	    LC_ALL=C sort -z | tar -c --no-recursion --format=gnu --null --transform='s,^,$(DIST)/,' --owner=0 --group=0 \
	    --numeric-owner --mode=u+rw,go-w,a+rX --mtime="$(shell sed -n 's/^ -- .*>  //p' debian/changelog)" -T - | \
	    gzip -9n >$(BUILD)/$(DIST).tar.gz
	@echo "$(BUILD)/$(DIST).tar.gz"
deb: dist page
	@scripts/setup.sh deb
	@BUILD="$(BUILD)" scripts/deb.sh --twice

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD)/obj $(HOST_BUILD)/host $(BUILD)/tidy -name '*.d' 2>/dev/null)
.SECONDARY:
.PHONY: always all release python-library test-python wheels page test-page test-programs test check arm64 asan clang tsan demo bench bench-run bench-here bench-run-here book book-pages validate held-out fuzz lint lint-layers lint-shape \
        lint-format lint-tidy format install install-here uninstall dist deb clean
