# make [V=1] [STRICT=1] [SAN=address,undefined | SAN=thread] [T=test] [target]; `make help` lists the targets.
# STRICT=1, as in CI: a warning is an error. Whoever only builds, with a compiler that we have not seen, gets programs.
comma    := ,
O        ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
Q        := $(if $(V),,@)
CC       ?= cc
CLANG    ?= clang
PREFIX   ?= /usr/local
CFLAGS   ?= -O2 -g
SECONDS_PER_FUZZER ?= 60
PKGS     := libuv libprotobuf-c libcjson sqlite3 zlib liburing libssl libcrypto
WARN     := -std=c11 -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
            -Wswitch-enum -Wwrite-strings -Wformat=2 -Wimplicit-fallthrough $(if $(STRICT),-Werror)
DEFS     := -D_GNU_SOURCE -DSPLITBENCH_BUILD='"$(shell cat proto/VERSION)"'
INCLUDES := -I. -I$(O) $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
COMPILE   = $(CC) $(DEFS) $(INCLUDES) $(CFLAGS) $(SANFLAGS)
FUZZ      = $(CLANG) $(DEFS) $(INCLUDES) -std=c11 -O1 -g -fno-sanitize-recover=undefined -fsanitize=address,undefined
FLAGS     = $(COMPILE) $(filter-out -Werror,$(WARN)) $(FUZZ)

# What each program is made of, and what it links. The generator stays small: no nng, no protobuf.
objs             = $(patsubst %.c,$(O)/%.o,$(sort $(wildcard $(addsuffix /*.c,$(1)))))
GEN             := $(O)/proto/splitbench.pb-c
LOAD_DIRS       := agent/load
AGENT_DIRS      := agent $(addprefix agent/,process probe task telemetry uplink driver)
CONTROLLER_DIRS := $(addprefix controller/,cli daemon view job run store fleet experiment analysis report)
PROTO_DIRS      := proto proto/msg proto/identity proto/link proto/link/nng_faults
COMMON_OBJ       = $(call objs,common)
PROTO_OBJ        = $(call objs,$(PROTO_DIRS)) $(GEN).o
LOAD_LIBS       := -luv -luring -lssl -lcrypto -lcjson -lz -lm -lpthread
ALL_LIBS        := -lnng -lprotobuf-c -lsqlite3 $(LOAD_LIBS)
PROGRAMS        := $(O)/bin/splitbench $(O)/bin/splitbench-agent $(O)/bin/splitbench-load
UNIT            := $(patsubst tests/unit/%.c,$(O)/tests/%,$(wildcard tests/unit/test_*.c))
SIM             := $(patsubst tests/sim/%.c,$(O)/tests/%,$(wildcard tests/sim/sim_*.c))
HELPERS         := $(patsubst tests/support/%.c,$(O)/tests/%,$(wildcard tests/support/tool_*.c))
FUZZERS         := $(patsubst tests/fuzz/%.c,$(O)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
OBJECTS         := $(call objs,common $(PROTO_DIRS) $(LOAD_DIRS) $(AGENT_DIRS) $(CONTROLLER_DIRS) tests/unit tests/sim tests/support)
PRODUCT         := $(filter-out %/main.o,$(COMMON_OBJ) $(PROTO_OBJ) $(call objs,$(LOAD_DIRS) $(AGENT_DIRS) $(CONTROLLER_DIRS)))

# Tests link an archive, and so only what they use. An object that nothing refers to, since it stands before a function
# of libc, would never be taken out of one: it is linked by name, but where a test must do without it.
TEST_LIB        := $(O)/libsplitbench-test.a
INTERPOSED      := $(O)/proto/link/nng_faults/sendmsg.o

ifneq ($(T),$(basename $(notdir $(wildcard tests/unit/$(T).c tests/sim/$(T).c tests/e2e/$(T).sh))))
$(error no test is called '$(T)': none of tests/unit/$(T).c, tests/sim/$(T).c and tests/e2e/$(T).sh is there)
endif

all: $(PROGRAMS) ## build the three programs into build/bin

$(O)/bin/splitbench-load:  $(call objs,$(LOAD_DIRS)) $(COMMON_OBJ)
$(O)/bin/splitbench-agent: $(call objs,$(AGENT_DIRS)) $(PROTO_OBJ) $(COMMON_OBJ)
$(O)/bin/splitbench:       $(call objs,$(CONTROLLER_DIRS)) $(PROTO_OBJ) $(COMMON_OBJ)
$(O)/bin/splitbench-load: LIBS = $(LOAD_LIBS)
$(filter-out %-load,$(PROGRAMS)): LIBS = $(ALL_LIBS)
$(UNIT): $(O)/tests/%: $(O)/tests/unit/%.o
$(SIM):  $(O)/tests/%: $(O)/tests/sim/%.o
$(HELPERS): $(O)/tests/%: $(O)/tests/support/%.o
$(filter-out %/test_nng_faults,$(UNIT) $(SIM) $(HELPERS)): $(INTERPOSED)

$(PROGRAMS):
	@mkdir -p $(@D); echo "  LD   $@"
	$(Q)$(CC) $(CFLAGS) $(SANFLAGS) -Wl,--as-needed -o $@ $(filter %.o,$^) $(LIBS)

# A test is linked again when an object changed that the linker took for it (-t names them), not for any other.
$(UNIT) $(SIM) $(HELPERS): | $(TEST_LIB)
	@mkdir -p $(@D); echo "  LD   $@"
	$(Q)$(CC) $(CFLAGS) $(SANFLAGS) -Wl,--as-needed,-t -o $@ $(filter %/$(@F).o $(INTERPOSED),$^) $(TEST_LIB) \
	    $(ALL_LIBS) -lcmocka >$@.linked
	@awk -v o=$(O)/ 'index($$0, o) == 1 && /\.o$$/ { print "$@: " $$0 "\n" $$0 ":" }' $@.linked >$@.d; rm $@.linked

$(TEST_LIB): $(filter-out $(INTERPOSED) $(O)/tests/support/tool_%,$(PRODUCT) $(call objs,tests/support))
$(O)/libsplitbench-fuzz.a: $(PRODUCT:$(O)/%=$(O)/fuzz-obj/%)
$(TEST_LIB) $(O)/libsplitbench-fuzz.a:
	@echo "  AR   $@"; rm -f $@
	$(Q)$(AR) rcs --thin $@ $^

$(O)/%.o: %.c $(O)/flags | needs $(GEN).h
	@mkdir -p $(@D); echo "  CC   $<"
	$(Q)$(COMPILE) $(WARN) -MMD -MP -c -o $@ $<

$(GEN).o: $(GEN).c $(O)/flags
	$(Q)$(COMPILE) -std=c11 -c -o $@ $<

$(O)/proto/splitbench.proto: proto/splitbench.proto.in common/figure_list.h | needs
	@mkdir -p $(@D)
	$(Q)$(CC) -E -P -undef -I. -xc $< -o $@

$(GEN).c $(GEN).h &: $(O)/proto/splitbench.proto
	@echo "  PB   $<"
	$(Q)protoc -I$(O)/proto --c_out=$(O)/proto $<

# What is missing is named all at once, with the command that brings it, before a compiler tells of one header.
needs:
	@CC='$(CC)' CPPFLAGS='$(INCLUDES) $(CFLAGS)' deploy/deps.sh --missing build

needs-test: needs
	@CC='$(CC)' CPPFLAGS='$(INCLUDES) $(CFLAGS)' deploy/deps.sh --missing test

$(call objs,tests/unit tests/sim tests/support): | needs-test

# Everything is rebuilt when the flags change. That warnings are errors makes no other object.
$(O)/flags: FORCE
	@mkdir -p $(@D); echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' > $@

# Fuzzers link their own instrumented objects, built by clang.
$(O)/fuzz-obj/%.o: %.c $(O)/flags | needs $(GEN).h
	@mkdir -p $(@D); echo "  FUZZ $<"
	$(Q)$(FUZZ) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(O)/fuzz-obj/%.o: $(O)/%.c $(O)/flags
	@mkdir -p $(@D)
	$(Q)$(FUZZ) -fsanitize=fuzzer-no-link -c -o $@ $<

$(FUZZERS): $(O)/fuzz/%: $(O)/fuzz-obj/tests/fuzz/%.o $(O)/libsplitbench-fuzz.a
	@mkdir -p $(@D); echo "  LD   $@"
	$(Q)$(FUZZ) -fsanitize=fuzzer -o $@ $^ $(ALL_LIBS)

demo: ## install what is missing, build, compare two servers
	$(Q)deploy/deps.sh build demo
	@$(MAKE) --no-print-directory all
	$(Q)docs/examples/demo.sh $(O)/bin

test: deps ## what CI runs; T=NAME: that unit test or script alone
	@$(MAKE) --no-print-directory test-build
	$(Q)tests/run.sh $(O) all $(T)

test-unit: test-build ## unit and simulation tests only
	$(Q)tests/run.sh $(O) unit $(T)

test-build: $(PROGRAMS) $(HELPERS) $(if $(T),$(filter %/$(T),$(UNIT) $(SIM)),$(UNIT) $(SIM))
objects: $(OBJECTS)

deps: ## install the missing Debian packages (root or sudo)
	$(Q)deploy/deps.sh build demo test

check-all: ## all tests, both releases, sanitizers, linters, fuzzers
	$(Q)deploy/deps.sh build demo test check
	@$(MAKE) --no-print-directory STRICT=1 check-layers check-headers check-format check-lint check-compilers
	@$(MAKE) --no-print-directory STRICT=1 test
	@$(MAKE) --no-print-directory STRICT=1 check-mixed
	@$(MAKE) --no-print-directory STRICT=1 test SAN=address,undefined
	@$(MAKE) --no-print-directory STRICT=1 test SAN=thread
	@$(MAKE) --no-print-directory fuzz

check-compilers: ## no warning from any gcc and clang found here
	$(Q)tests/support/check_compilers.sh $(MAKE)

check-mixed: all ## a lab of Debian 12 and 13 (as root)
	$(Q)SPLITBENCH_BIN=$(abspath $(O))/bin tests/e2e/mixed_releases.sh

fuzz: $(FUZZERS) ## each fuzzer for SECONDS_PER_FUZZER (60)
	$(Q)tests/fuzz/run.sh $(O) $(SECONDS_PER_FUZZER)

check-mutants: ## are N=200 wrong tokens noticed? (CONTRIBUTING.md)
	$(Q)tests/support/check_mutants.py --n $(or $(N),200) --seed $(or $(SEED),1) --jobs $(or $(JOBS),2) $(if $(E2E),--e2e) $(FILES)

# By calls: the rooms that have state machines and threads, and the store, have no circle, and none may come back.
check-layers: $(PRODUCT) ## who may include and use whom; guards; names in comments
	$(Q)tests/support/check_layers.py
	$(Q)tests/support/check_circles.sh $(O) proto/link $(LOAD_DIRS) $(filter-out agent agent/driver,$(AGENT_DIRS)) \
	    $(addprefix controller/,analysis cli daemon fleet job run store view)

check-headers: $(GEN).h ## every header compiles alone
	@for h in $$(git ls-files '*.h'); do \
	    echo "#include \"$$h\"" | $(COMPILE) $(WARN) -fsyntax-only -xc - || exit 1; done

check-format: ## clang-format has nothing to say
	$(Q)clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h')

check-lint: $(GEN).h ## clang-tidy and cppcheck have nothing to say
	$(Q)git ls-files 'common/*.c' 'proto/*.c' 'agent/*.c' 'controller/*.c' | \
	    xargs -P 2 -I{} clang-tidy --quiet {} -- $(DEFS) $(INCLUDES) -std=c11
	$(Q)cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 \
	    -I. --suppress=missingIncludeSystem common proto agent controller

docs: $(O)/tests/tool_keys ## write what docs/ says of an experiment's keys
	$(Q)$< schema >$(O)/docs.new && mv $(O)/docs.new docs/experiment.schema.json
	$(Q)$< tables docs/experiment-file.md >$(O)/docs.new && mv $(O)/docs.new docs/experiment-file.md

install: all ## into PREFIX (/usr/local), with units and man pages
	install -D -t $(DESTDIR)$(PREFIX)/bin $(PROGRAMS)
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system deploy/*.service
	install -D -m 644 deploy/splitbench.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/splitbench.conf
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 docs/*.1
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/splitbench docs/experiment.schema.json

clean: ## remove build and build-*
	rm -rf build build-*

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

FORCE:
.PHONY: all demo docs test test-unit test-build needs needs-test objects deps check-all check-compilers check-mixed \
        check-mutants fuzz check-layers check-headers check-format check-lint install clean help FORCE
.DELETE_ON_ERROR:
# Of what there is now: what was noted of a source that is gone would stop the build.
-include $(OBJECTS:.o=.d) $(addsuffix .d,$(UNIT) $(SIM) $(HELPERS) $(patsubst $(O)/%.o,$(O)/fuzz-obj/%,$(PRODUCT)) $(FUZZERS:$(O)/%=$(O)/fuzz-obj/tests/%))
