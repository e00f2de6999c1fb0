# scalemodel: `make` builds, `make test` tests, `make demo` shows. See README.md.
CC ?= gcc
BUILD ?= build
WARN := -Wall -Wextra -Wshadow -Wconversion -Werror
CFLAGS ?= -O2 -g
ALL_CFLAGS := -std=c11 -D_POSIX_C_SOURCE=200809L $(WARN) -fPIC -pthread -Iinclude $(CFLAGS)
LIB_DIRS := base text units report search hw model shard program cost train serve io render
LIB_SRC := $(sort $(foreach d,$(LIB_DIRS),$(wildcard src/$(d)/*.c)))
LIB_OBJ := $(LIB_SRC:src/%.c=$(BUILD)/obj/%.o)
CLI_SRC := $(sort $(wildcard src/cli/*.c))
CLI_OBJ := $(CLI_SRC:src/%.c=$(BUILD)/obj/%.o)
LIBS := -ljansson -lm -pthread

all: $(BUILD)/scalemodel $(BUILD)/libscalemodel.a $(BUILD)/libscalemodel.so
$(BUILD)/scalemodel: $(CLI_OBJ) $(BUILD)/libscalemodel.a
	$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/libscalemodel.a: $(LIB_OBJ)
	rm -f $@ && ar rcs $@ $^
$(BUILD)/libscalemodel.so: $(LIB_OBJ)
	$(CC) $(ALL_CFLAGS) -shared -o $@ $^ $(LIBS)
$(BUILD)/obj/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d)
clean:
	rm -rf $(BUILD)
.PHONY: all clean
