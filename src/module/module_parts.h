/* module_parts: what readers of modules share. The tables that say where in the user's program an
 * instruction was made: a stack frame names a location, that a file. Rows count from 1. Private to
 * src/module. */
#pragma once
#include "scalemodel/module.h"

#include <string.h>

typedef enum module_table {
    MODULE_FILES,
    MODULE_FUNCTIONS,
    MODULE_LOCATIONS,
    MODULE_FRAMES,
    MODULE_TABLES
} module_table;
typedef struct module_row {
    int64_t of, line; /* of: the file of a location, the location of a frame */
    const char *text; /* of a file */
} module_row;
typedef struct module_frames {
    const module_row *row[MODULE_TABLES];
    size_t n[MODULE_TABLES];
} module_frames;

/* The file and line of a frame; both stay as they are where it has none. */
void module_place(const module_frames *frames, int64_t frame, const char **file, int *line);

/* ---- names to numbers, by hashing ---- */
typedef struct module_name {
    const char *text; /* NULL: free */
    uint32_t length;
    int number;
} module_name;
typedef struct module_names {
    module_name *entry;
    size_t room, used;
} module_names;

/* Empty it. */
void module_names_free(module_names *names);
/* The number of a name; -1 if absent. */
int module_names_find(const module_names *names, const char *text, size_t length);
/* Give a name its number, or another one. text must stay. False when out of memory. */
bool module_names_set(module_names *names, const char *text, size_t length, int number);

/* ---- groups of devices from an order of them ---- */
enum { MODULE_MOST_MEMBERS = 1 << 26 }; /* of all groups of a module */

typedef enum module_groups_made {
    MODULE_GROUPS_MADE,
    MODULE_GROUPS_WRONG,
    MODULE_GROUPS_PART,  /* of an axis does not divide it */
    MODULE_GROUPS_TWICE, /* an axis is named */
    MODULE_GROUPS_NO_MEMORY
} module_groups_made;
/* Devices 0, 1, ... as an array of these sizes, transposed to `order` (n 0: as it is), and cut into
 * groups of so many. */
module_groups_made module_groups_of_order(sm_arena *arena, sm_module_list sizes,
                                          sm_module_list order, int64_t group,
                                          sm_module_groups *out);
/* Of an axis of a mesh the part of this size that stands behind `before` others. */
enum { MODULE_MOST_AXES = 32 };
typedef struct module_part {
    int64_t axis, before, size;
} module_part;
/* The groups of devices of a mesh of these axes that differ in these parts alone, at most
 * MODULE_MOST_AXES of both. Its element i is devices.at[i]; n 0: i. */
module_groups_made module_groups_of_mesh(sm_arena *arena, sm_module_list axes,
                                         const module_part *part, int parts, sm_module_list devices,
                                         sm_module_groups *out);

/* ---- the configuration of a custom call ---- */
/* What follows the first occurrence of a word; NULL: there is none. */
const char *module_word_after(const char *at, const char *end, const char *word);
/* Take what a configuration says into the instruction. False when out of memory. */
bool module_config(sm_arena *arena, const char *text, size_t length, sm_instruction *it);

/* ---- FLOPs and bytes of one instruction ---- */
/* Add the FLOPs of an instruction; inner: of each computation once, known of those it calls. */
void module_flops_of(const sm_computation *in, const sm_instruction *it,
                     const sm_module_work *inner, sm_module_work *w);
/* batch products of [m,k] by [k,n], their operands of these types. */
typedef struct sm_module_product {
    double batch, m, n, k;
} sm_module_product;
void module_add_product(sm_module_work *w, sm_module_product p, const sm_module_shape *lhs,
                        const sm_module_shape *rhs);
static inline const sm_module_shape *operand_shape(const sm_computation *in,
                                                   const sm_instruction *it, int i) {
    return i < it->operands ? in->instruction[it->operand[i]].shape : NULL;
}
/* The product of the first two operands over the dimensions that the instruction names. */
void module_dot(const sm_computation *in, const sm_instruction *it, sm_module_work *w);
/* Custom calls whose work is known (module_custom.c). */
void module_custom_flops(const sm_computation *in, const sm_instruction *it, sm_module_work *w);
/* What a compiler fuses into what reads it, and reads without writing it first. */
bool module_is_fusable(sm_module_opcode opcode);

/* ---- opcodes and other words of a module, in texts and protobufs alike. Private to src/module
 * ---- */
/* SM_OPCODE_OTHER when there is none of this name. */
sm_module_opcode module_opcode_of(const char *name, size_t length);
/* The sign of a comparison, as sm_instruction.direction has it, of "LT"; 0 of another word. */
char module_direction_of(const char *word, size_t length);
/* The number after a word in a text, past what is neither a digit nor '}': "n":"4". -1: none. */
int64_t module_number_after(const char *text, size_t length, const char *word);
