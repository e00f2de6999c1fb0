/* A plan as the shortest text that says what matters about it and reads back to the same. */

#include "plan_row.h"

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

static void put_value(printer *p, const sm_plan *plan, sm_plan_key key, int torus_dims) {
    const plan_row *row = plan_row_of(key);
    int value = plan_value(plan, row);
    switch (row->key.value) {
    case SM_PLAN_VALUE_INTEGER: put_int(p, value); break;
    case SM_PLAN_VALUE_WORD: put(p, row->key.words.word[value]); break;
    case SM_PLAN_VALUE_DTYPE: put(p, sm_dtype_name((sm_dtype)value)); break;
    case SM_PLAN_VALUE_RECOMPUTE:
        put(p, plan->recompute_ops[0] ? plan->recompute_ops : row->key.words.word[value]);
        break;
    case SM_PLAN_VALUE_ORDER:
        for (int i = 0; i < SM_PLAN_DEGREES; i++) {
            if (i > 0) put(p, ".");
            put(p, row->key.words.word[plan->order[i] % SM_PLAN_DEGREES]);
        }
        break;
    case SM_PLAN_VALUE_LAYOUT: put(p, plan->layout[0] ? plan->layout : "even"); break;
    case SM_PLAN_VALUE_DIMS:
        for (int i = 0; i < torus_dims; i++) {
            if (i > 0) put(p, ".");
            put_int(p, plan->dims[i]);
        }
        break;
    }
}

/* Does this key differ from what an omitted one means? */
static bool differs(const sm_plan *plan, sm_plan_key key, int torus_dims) {
    static const uint8_t dims[3] = {0, 1, 2};
    const plan_row *row = plan_row_of(key);
    if (key == SM_PLAN_DIMS) return memcmp(plan->dims, dims, (size_t)torus_dims) != 0;
    if (key == SM_PLAN_ORDER)
        return memcmp(plan->order, plan_usual_order(plan->use), sizeof plan->order) != 0;
    if (key == SM_PLAN_LAYOUT) return plan->layout[0] != '\0';
    if (key == SM_PLAN_RECOMPUTE && plan->recompute_ops[0]) return true;
    return plan_value(plan, row) != row->key.usual[plan->use];
}

/* Keys that mean nothing for this plan are left out: seq without tensor, a schedule without
 * pipeline. A plan of serving on one chip is tensor=1. */
static bool is_shown(const sm_plan *plan, sm_plan_key key, int torus_dims) {
    const plan_row *row = plan_row_of(key);
    bool serving = plan->use == SM_PLAN_SERVING;
    if (!(row->key.uses >> plan->use & 1) || !plan_spreads(plan, row->matters)) return false;
    if (serving && key == SM_PLAN_TENSOR && sm_plan_chips(plan) == 1) return true;
    bool always = row->always == ALWAYS || (row->always && plan_spreads(plan, row->always));
    return (!serving && always) || differs(plan, key, torus_dims);
}

static int printed_dims(int torus_dims) {
    return torus_dims < 0 ? 0 : torus_dims > 3 ? 3 : torus_dims;
}

size_t sm_plan_key_print(const sm_plan *plan, sm_plan_key key, int torus_dims, char *out,
                         size_t size) {
    printer p = {out, size, 0};
    put(&p, "");
    put_value(&p, plan, key, printed_dims(torus_dims));
    return p.wanted;
}

size_t sm_plan_format(const sm_plan *plan, int torus_dims, char *out, size_t size) {
    printer p = {out, size, 0};
    sm_plan whole = *plan;
    int dims = printed_dims(torus_dims);
    plan_settle_values(&whole);
    put(&p, "");
    for (int key = 0; key < SM_PLAN_KEY_COUNT; key++) {
        if (!is_shown(&whole, (sm_plan_key)key, dims)) continue;
        if (p.wanted > 0) put(&p, ",");
        put(&p, plan_row_of((sm_plan_key)key)->key.name);
        put(&p, "=");
        put_value(&p, &whole, (sm_plan_key)key, dims);
    }
    return p.wanted;
}

char *sm_plan_key_values(sm_plan_key key, char *out, size_t size) {
    const sm_plan_key_row *row = sm_plan_key_row_of(key);
    printer p = {out, size, 0};
    put(&p, "");
    if (row->value == SM_PLAN_VALUE_INTEGER) {
        put_int(&p, row->lowest);
        put(&p, "..");
        put_int(&p, row->highest);
    }
    for (int i = 0; i < row->words.n; i++) {
        if (i > 0) put(&p, row->value == SM_PLAN_VALUE_ORDER ? "." : "|");
        put(&p, row->words.word[i]);
    }
    if (row->value == SM_PLAN_VALUE_RECOMPUTE) put(&p, "|OP+OP...");
    if (row->value == SM_PLAN_VALUE_DIMS) put(&p, "0.1.2");
    if (row->value == SM_PLAN_VALUE_LAYOUT) put(&p, "even|N.N*TIMES.N...");
    return out;
}
