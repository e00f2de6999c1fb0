/* framework: a file of data/frameworks, read. */
#pragma once
#include "expression.h"
#include "json_tree.h"
#include "scalemodel/recipe.h"

typedef enum setting_type { TYPE_NUMBER, TYPE_TEXT, TYPE_SWITCH } setting_type;

/* A key of the framework. */
typedef struct framework_key {
    const char *key;  /* as it is written: "--seq-length", "training.seq_len" */
    const char *also; /* other spellings, separated by blanks; "" */
    const char *name; /* what formulas call it; NULL: it is only known */
    setting_type type;
    expression_value by_default; /* absent: none */
    const expression *write;     /* what a plan makes it; NULL: it is not written */
    const char *about;           /* what it says, in the words of plans */
} framework_key;

/* A quantity that a recipe sets, as a formula of its keys and of quantities before it. */
typedef struct framework_read {
    const char *sets;
    const expression *from, *when; /* when NULL: always */
    const char *assumed;           /* said where it was set; NULL: nothing */
} framework_read;

/* What a framework passes over without loss, by patterns of keys ("--lr*"). */
typedef struct framework_ignored {
    const char *pattern, *why;
} framework_ignored;

typedef struct framework_model {
    const char *theirs, *ours;
} framework_model;

/* Values that a key may have in plans that the framework can run: words and numbers of plans, or
 * least..most. when NULL: always. */
typedef struct framework_rule {
    const expression *when;
    unsigned degrees;    /* bit per key, by which it may hold; of none: all */
    sm_plan_key key;     /* SM_PLAN_KEY_COUNT: no plan where `when` holds */
    uint64_t words;      /* bit per value */
    int least, most;     /* of an integer; most 0: any */
    sm_plan_share share; /* of the microbatch */
    const char *because;
} framework_rule;

typedef struct framework_limit { /* what a framework cannot express, when it is the case */
    const expression *when;
    const char *say;
} framework_limit;

typedef struct framework_op { /* what an op of texts is in a program */
    const char *op, *write;
    int64_t arguments; /* 0: any number */
} framework_op;

struct sm_framework {
    const char *like_name;
    const sm_framework *like; /* whose keys, reads and models come after its own; NULL */
    const char *name, *title, *version, *source, *facts;
    sm_plan_use use;
    unsigned networks; /* bit per kind that it runs on: switches, a torus; 0: any */
    const char *form, *software;
    int keys, reads, lets, ignored, models, rules, limits, ops, begins, ends;
    framework_key *key;
    framework_read *read;
    framework_read *let; /* quantities for what is written, as reads are for what is read */
    framework_ignored *ignore;
    framework_model *model;
    framework_rule *rule;
    framework_limit *limit;
    framework_op *op;
    const char **begin, **end; /* lines before and after the settings */
    const char **prefix;       /* words before keys, in nested files */
    const char **vendor;       /* whose chips it runs on alone; none: anybody's */
    int prefixes, vendors;
};

/* Add one, whose `like` is not looked up yet. */
sm_status framework_read_file(sm_frameworks *all, const sm_source *source, sm_error *err);
/* The key of this spelling, of the framework or of one it is like; NULL. Dashes and underscores are
 * the same, and leading dashes nothing. */
const framework_key *framework_key_of(const sm_framework *f, const char *spelling);
/* Is a plan, in the keys given (bit per key), against a rule? */
bool framework_breaks(const framework_rule *rule, const sm_plan *plan, uint64_t keys,
                      const sm_plan_job *job);
/* A size of a model by its name in formulas, "kv_heads"; absent: it is none of these. */
expression_value framework_model_size(const sm_model *model, const char *name);
/* Why it passes over a key; NULL where it does not say. */
const char *framework_ignores(const sm_framework *f, const char *spelling);
/* Its name for a model of the catalogue, and the catalogue's for one of its own; NULL. */
const char *framework_model_theirs(const sm_framework *f, const char *ours);
const char *framework_model_ours(const sm_framework *f, const char *theirs);

/* ---- readers of what recipes are written in ---- */
/* Append the settings of settings->source. SM_BAD_INPUT with the place of what cannot be read. */
sm_status settings_read_shell(sm_settings *settings, sm_error *err);
sm_status settings_read_toml(sm_settings *settings, sm_error *err);
