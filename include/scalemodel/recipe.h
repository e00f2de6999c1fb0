/* recipe: the configurations of other frameworks, read into a job and a plan, and written from
 * them. What a framework's keys are called and mean is data (data/frameworks, docs/frameworks.md):
 * one table reads, writes, and says which plans the framework can run.
 *
 *     text --sm_settings_read--> settings --sm_recipe_read--> model, system, batch, plan
 *                                 plan --sm_recipe_write--> text */
#pragma once
#include "scalemodel/plan.h"

SM_DECLARATIONS_BEGIN

/* ---- settings: what a recipe says, whatever it is written in ---- */
typedef struct sm_setting {
    const char *key;     /* "--seq-length", "training.seq_len"; of a bare word the word before it */
    const char *value;   /* "" of a flag without one */
    const char *unknown; /* what of the value is not known here ("$NNODES"), or NULL */
    sm_span at;          /* of the key, in the source */
    bool loose;          /* an assignment or a bare word, which need not concern the framework */
    bool nothing;        /* null: as if it were not there */
} sm_setting;
enum { SM_MOST_SETTINGS = 5000, SM_RECIPE_BYTES = 1 << 20 };
struct sm_settings;
/* Append what a text of YAML sets, which begins at byte `at` of the source of the settings.
 * stands: where all of it stands, if it has a length. */
typedef sm_status sm_yaml_reader(struct sm_settings *settings, const sm_source *text, size_t at,
                                 sm_span stands, sm_error *err);
typedef struct sm_settings {
    sm_source source;
    sm_arena *arena;
    sm_yaml_reader *yaml;
    int n, room;
    sm_setting *list;
} sm_settings;

/* Shell scripts and argument lists (words with their variables), TOML, JSON and YAML; which of them
 * is told by how the text begins. YAML, of files that scripts write too, is read by `yaml`:
 * sm_io_settings (io.h) has one. Settings live in the arena, as long as the source. SM_BAD_INPUT
 * with the place of what is no such text, or past SM_MOST_SETTINGS or SM_RECIPE_BYTES. */
sm_status sm_settings_read(const sm_source *source, sm_yaml_reader *yaml, sm_arena *arena,
                           sm_settings *out, sm_error *err);
/* What a recipe is written in, by its first lines. */
typedef enum sm_recipe_form {
    SM_RECIPE_SHELL,
    SM_RECIPE_YAML,
    SM_RECIPE_TOML,
    SM_RECIPE_JSON
} sm_recipe_form;
sm_recipe_form sm_recipe_form_of(const sm_source *source);
/* Append a setting; key and value are not copied. SM_BAD_INPUT past SM_MOST_SETTINGS. */
sm_status sm_settings_add(sm_settings *settings, const sm_setting *setting, sm_error *err);
/* Append what a text within the recipe says as a command line: "--tp 8 --dtype bfloat16". Its
 * settings all stand at `at`. */
sm_status sm_settings_add_words(sm_settings *settings, const char *words, sm_span at,
                                sm_error *err);
/* Is a text a command line: has it a word that begins with "--", with no JSON before it? */
bool sm_settings_are_words(const char *text);

/* ---- frameworks ---- */
typedef struct sm_framework sm_framework;
enum { SM_MOST_FRAMEWORKS = 64 };
typedef struct sm_frameworks {
    sm_arena *arena;
    int n;
    const sm_framework *of[SM_MOST_FRAMEWORKS];
    sm_framework *own[SM_MOST_FRAMEWORKS]; /* the same, for who reads them */
} sm_frameworks;
/* Those of data/frameworks, in the arena. SM_INTERNAL when out of memory. */
sm_status sm_frameworks_shipped(sm_arena *arena, sm_frameworks **out, sm_error *err);
/* Add one from the text of its file (docs/frameworks.md), which outlives it: it wins over those of
 * its name. SM_BAD_INPUT with the place. */
sm_status sm_frameworks_read(sm_frameworks *all, const sm_source *source, sm_error *err);
/* The framework of this name, in any case of letters; NULL. */
const sm_framework *sm_framework_find(const sm_frameworks *all, const char *name, size_t length);
/* Its name ("megatron-lm"), title ("Megatron-LM") and version; whether it trains or serves. */
const char *sm_framework_name(const sm_framework *framework);
const char *sm_framework_title(const sm_framework *framework);
const char *sm_framework_version(const sm_framework *framework);
sm_plan_use sm_framework_use(const sm_framework *framework);
/* Of a program: the facts of a model's config that its functions ask for, separated by blanks; "".
 */
const char *sm_framework_facts(const sm_framework *framework);
/* Names of calibrations that tell of it, the best first, separated by blanks; "". */
const char *sm_framework_software(const sm_framework *framework);

/* Does it run on such chips at all? */
bool sm_framework_runs_on(const sm_framework *framework, const sm_system *system);
/* Is what it emits a program, and no settings? */
bool sm_framework_is_program(const sm_framework *framework);
/* What it writes for an op of so many arguments, by its name in texts (docs/frameworks.md); NULL:
 * it has no translation. */
const char *sm_framework_op(const sm_framework *framework, const char *op, int arguments);

/* Narrow a space to the plans that a framework can run for space->job; it refers to the framework.
 */
void sm_framework_space(const sm_framework *framework, sm_plan_space *space);
/* Why it cannot run a plan for a job, by the keys given (bit per key): a sentence, or the key;
 * NULL: it can. */
const char *sm_framework_refuses(const sm_framework *framework, const sm_plan *plan, uint64_t keys,
                                 const sm_plan_job *job);

/* ---- a recipe read ---- */
typedef enum sm_recipe_told { SM_TOLD_UNDERSTOOD, SM_TOLD_ASSUMED, SM_TOLD_IGNORED } sm_recipe_told;
typedef struct sm_recipe_note {
    sm_recipe_told told;
    int line;         /* of the recipe; 0: none */
    const char *what; /* "--seq-length 4096", "" */
    const char *why;  /* what it says, what was assumed, why it is passed over */
} sm_recipe_note;
/* What is known of the chips when a recipe is read: 0 where it is not. */
typedef struct sm_recipe_chips {
    const char *chip;           /* its name; NULL */
    double chips, node, slices; /* in all; of a node; slices of a torus */
    double devices;             /* of a chip */
} sm_recipe_chips;
typedef struct sm_recipe {
    const sm_framework *framework;
    const char *model;        /* in the catalogue; NULL: not known */
    const char *named;        /* what the recipe calls it, or NULL */
    const char *config;       /* a config.json of the sizes that it gives itself, or NULL */
    const char *system;       /* "h100-sxm:32x8", or NULL */
    double chips;             /* 0: it does not say */
    double batch, seq;        /* sequences of a step; tokens of a sequence; 0: it does not say */
    const char *plan;         /* "tensor=8,pipeline=4,..." */
    const char *software;     /* whose constants are of runs like this one, or NULL */
    const char *weights, *kv; /* of serving: data types, or NULL */
    const char *engine;       /* of serving: what differs of its software, or NULL */
    int notes;
    sm_recipe_note *note;
} sm_recipe;
/* Read settings as those of a framework; NULL: that of `use` which knows most of them. The recipe
 * lives in the settings' arena. SM_BAD_INPUT with the place of a value that cannot be, when no
 * framework knows any of the settings, or when what they say cannot be a plan. */
sm_status sm_recipe_read(const sm_frameworks *all, const sm_framework *framework, sm_plan_use use,
                         const sm_settings *settings, sm_recipe_chips chips, sm_recipe *out,
                         sm_error *err);

/* ---- a plan written ---- */
typedef struct sm_recipe_job {
    const sm_model *model;
    const sm_system *system;
    const sm_plan *plan;      /* whole: every key has its value */
    double batch, seq;        /* sequences of a step; tokens of a sequence */
    double memory_share;      /* of serving, as the engine counts it; 0: not known */
    double step_tokens;       /* of prompts in a step of each group of chips; 0: as it is */
    const char *program;      /* the lines between `begin` and `end`, of a program; else NULL */
    const char *predicted;    /* "3.2 s a step": a comment; NULL: none */
    const char *weights, *kv; /* of serving: data types, or NULL */
    const char *role, *draft; /* "prefill" or "decode" in a pool; the model that drafts; or NULL */
    const char *method;       /* of training: "dpo", "grpo" or "ppo"; or NULL */
    double drafted, eager;    /* tokens that it drafts a step; 1: kernels launched one by one */
    const char *checkpoint;   /* its id, which says the type of the weights; or NULL */
    const char *software; /* whose constants priced it: what those were measured with is switched
                           * on; NULL: of none */
} sm_recipe_job;
/* The recipe that runs a plan in a framework: its settings, each with a comment, a command, and a
 * list of what it cannot be told (*cannot: how many such). In the arena. SM_USAGE when the
 * framework is of the other use. */
sm_status sm_recipe_write(const sm_framework *framework, const sm_recipe_job *job, sm_arena *arena,
                          char **text, int *cannot, sm_error *err);
SM_DECLARATIONS_END
