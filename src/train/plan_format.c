/* A plan as the shortest text that says what matters about it and reads back to the same. */
#include "plan_text.h"

#include <stdio.h>
#include <string.h>

/* Counts what it would have written, like snprintf. */
typedef struct printer {
    char *out;
    size_t size, wanted;
} printer;

static void put(printer *p, const char *text) {
    for (; *text != '\0'; text++, p->wanted++)
        if (p->wanted + 1 < p->size) p->out[p->wanted] = *text;
    if (p->size > 0) p->out[p->wanted < p->size ? p->wanted : p->size - 1] = '\0';
}

static void put_int(printer *p, int n) {
    char digits[16];
    snprintf(digits, sizeof digits, "%d", n);
    put(p, digits);
}

static void put_joined(printer *p, const uint8_t *list, int n, const char *const *names) {
    for (int i = 0; i < n; i++) {
        if (i > 0) put(p, ".");
        if (names != NULL) put(p, names[list[i] % SM_PLAN_DEGREES]);
        else put_int(p, list[i]);
    }
}

static const void *member(const sm_plan *plan, const plan_field *field) {
    return (const char *)plan + field->offset;
}

static void put_value(printer *p, const sm_plan *plan, sm_plan_key key, int torus_dims) {
    const plan_field *field = sm_plan_field(key);
    const void *at = member(plan, field);
    switch (field->value) {
    case PLAN_INTEGER: put_int(p, *(const int *)at); break;
    case PLAN_SWITCH: put(p, *(const bool *)at ? "on" : "off"); break;
    case PLAN_WORD: put(p, field->words.word[*(const int *)at]); break;
    case PLAN_DTYPE: put(p, sm_dtype_name(*(const sm_dtype *)at)); break;
    case PLAN_RECOMPUTE:
        put(p, plan->recompute_ops[0] != '\0' ? plan->recompute_ops
                                              : field->words.word[plan->recompute]);
        break;
    case PLAN_ORDER: put_joined(p, plan->order, SM_PLAN_DEGREES, sm_plan_keys); break;
    case PLAN_DIMS: put_joined(p, plan->dims, torus_dims, NULL); break;
    }
}

/* Does this key differ from what an omitted one means? */
static bool differs(const sm_plan *plan, sm_plan_key key, int torus_dims) {
    sm_plan plain;
    const plan_field *field = sm_plan_field(key);
    sm_plan_defaults(&plain);
    size_t bytes = key == SM_PLAN_ORDER  ? sizeof plan->order
                   : key == SM_PLAN_DIMS ? (size_t)torus_dims
                                         : sizeof(int);
    return memcmp(member(plan, field), member(&plain, field), bytes) != 0;
}

/* Keys that mean nothing for this plan are left out: seq without tensor, a schedule without
 * pipeline. */
static bool shown(const sm_plan *plan, sm_plan_key key, int torus_dims) {
    switch (key) {
    case SM_PLAN_VIRTUAL:
    case SM_PLAN_SCHEDULE: return plan->pipeline > 1;
    case SM_PLAN_SEQ: return plan->tensor > 1;
    case SM_PLAN_EXPERT_TENSOR: return plan->expert > 1 && plan->tensor > 1;
    case SM_PLAN_CONTEXT_BY: return plan->context > 1;
    case SM_PLAN_MICROBATCH:
    case SM_PLAN_ZERO:
    case SM_PLAN_RECOMPUTE: return true;
    default: return differs(plan, key, torus_dims);
    }
}

size_t sm_plan_format(const sm_plan *plan, int torus_dims, char *out, size_t size) {
    printer p = {out, size, 0};
    sm_plan plain = *plan;
    if (plain.fsdp > 1) plain.zero = 3;
    if (torus_dims < 0) torus_dims = 0;
    if (torus_dims > 3) torus_dims = 3;
    put(&p, "");
    for (int key = 0; key < SM_PLAN_KEY_COUNT; key++) {
        if (!shown(&plain, (sm_plan_key)key, torus_dims)) continue;
        if (p.wanted > 0) put(&p, ",");
        put(&p, sm_plan_keys[key]);
        put(&p, "=");
        put_value(&p, &plain, (sm_plan_key)key, torus_dims);
    }
    return p.wanted;
}
