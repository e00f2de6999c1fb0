/* expression: the small formulas of data/frameworks: "chips / (tp * pp * cp)", "schedule == '1f1b'
 * && virtual == 1", "map(gpu, 'h100', 'h100-sxm', 'b200', 'b200')".
 *
 *     value   = either [ '?' value ':' value ]       either = both { '||' both }
 *     both    = same { '&&' same }                   same   = sum [ compare sum ]
 *     sum     = product { ('+'|'-') product }        product = unary { ('*'|'/'|'%') unary }
 *     unary   = ['!'|'-'] unary | first { '??' first }
 *     first   = number | 'text' | name [ '(' value { ',' value } ')' ] | '(' value ')'
 *
 * A name that has no value is absent, and so is what is computed of it; `a ?? b` is b where a is
 * absent. Conditions are 0 and 1; an absent one does not hold. */
#pragma once
#include "scalemodel/text.h"

#include <string.h>

typedef enum value_kind { VALUE_ABSENT, VALUE_NUMBER, VALUE_TEXT } value_kind;
typedef struct expression_value {
    value_kind kind;
    double number;
    const char *text;
} expression_value;
/* What a name stands for. */
typedef expression_value expression_names(const void *context, const char *name);

/* A tree of src/notation, whose parser reads formulas too. */
typedef struct tree expression;
/* Read the formula that the span holds; it lives in the arena. SM_BAD_INPUT with the place. */
sm_status expression_parse(const sm_source *source, sm_span span, sm_arena *arena,
                           const expression **out, sm_error *err);
/* Work it out. Texts it makes live in the arena; memory that runs out makes it absent and sets
 * *out_of_memory. */
expression_value expression_work(const expression *e, expression_names *names, const void *context,
                                 sm_arena *arena, bool *out_of_memory);
/* In whole numbers, as a shell does: 7 / 2 is 3. */
expression_value expression_work_whole(const expression *e, expression_names *names,
                                       const void *context, sm_arena *arena, bool *out_of_memory);
/* Visit the names it is made of. */
void expression_each_name(const expression *e, void (*visit)(void *context, const char *name),
                          void *context);

static inline expression_value value_number(double number) {
    return (expression_value){.kind = VALUE_NUMBER, .number = number};
}
static inline expression_value value_text(const char *text) {
    return (expression_value){.kind = text ? VALUE_TEXT : VALUE_ABSENT, .text = text};
}
/* Does a condition hold? A text does unless it is empty. */
static inline bool value_holds(expression_value v) {
    return v.kind == VALUE_NUMBER ? v.number != 0 : v.kind == VALUE_TEXT && v.text[0];
}

/* ---- layers of the chunks of a pipeline as Megatron writes them ---- */
/* "Ett|(ttt|)*29ttL" as "2.3.3..."; "0" past what a model can have. NULL when out of memory. */
const char *layout_of_pattern(const char *pattern, sm_arena *arena);
/* "2.3*29.2" as "Et*2|(t*3|)*29t*2L"; NULL when out of memory. */
const char *pattern_of_layout(const char *layout, sm_arena *arena);
