/* options: what a command line may hold, as tables. A row says what an option's value is, between
 * which bounds it lies and what holds when it is not given; parsing, help, errors and the nearest
 * valid name all come from the same rows, so they cannot disagree. */
#pragma once
#include "scalemodel/evidence.h"
#include "scalemodel/answer.h"
#include "scalemodel/command.h"
#include "scalemodel/load.h"
#include <pthread.h>
#include <string.h>

enum { CLI_MAX_LIST = 16, CLI_MAX_POSITIONALS = 64, CLI_MAX_OPTIONS = 64 };

typedef struct cli_list {
    int n;
    const char *text[CLI_MAX_LIST];
} cli_list;
typedef struct cli_choices {
    int n;
    int word[CLI_MAX_LIST];
} cli_choices;

/* What an option's value is: the type of its place in the verb's struct, and what other programs
 * are told of it. */
#define CLI_KINDS(X)                                                                               \
    X(FLAG, bool, "flag")             /* the option takes no value */                              \
    X(TEXT, const char *, "text")     /* NULL when absent: a name, or a grammar of its own */      \
    X(SOURCE, sm_source, "text")      /* under the name of the option; no text when absent */      \
    X(NAME, const char *, "name")     /* a name to give: letters, digits, "._-" */                 \
    X(INPUT, const char *, "input")   /* a file or folder to read */                               \
    X(OUTPUT, const char *, "output") /* a file to write */                                        \
    X(LIST, cli_list, "list")         /* since the option may be given several times */            \
    X(WHOLE, int64_t, "whole")                                                                     \
    X(INT, int, "whole")                                                                           \
    X(COUNT, double, "whole")                                                                      \
    X(NUMBER, double, "number")        /* 0.8, 4M */                                               \
    X(SIZE, double, "bytes")           /* 16GiB */                                                 \
    X(TIME, double, "seconds")         /* 30ms; never without its unit */                          \
    X(RATE, double, "rate")            /* a second: 50/s, 3000/min, 50 */                          \
    X(USD, double, "usd")              /* 2.50 */                                                  \
    X(CHOICE, int, "choice")           /* an enum: the place of one word among `words` */          \
    X(CHOICES, cli_choices, "choices") /* places of words joined by commas, each once */           \
    X(DTYPE, sm_dtype, "dtype")                                                                    \
    X(DTYPES, sm_dtype_list, "dtypes") /* joined by commas */                                      \
    X(RANGE, sm_range, "range")        /* 8, 64..16384, 64..512:64 */
typedef enum cli_kind {
#define X(kind, type, told) CLI_##kind,
    CLI_KINDS(X)
#undef X
} cli_kind;

/* What of a report a file of CLI_OUTPUT gets once the verb has answered. */
typedef enum cli_picture { CLI_NOTHING, CLI_CHART, CLI_TRACKS, CLI_PAGE } cli_picture;

/* One option: what it may be, and what help says of it (data/verbs). */
typedef struct cli_option {
    const char *name; /* without the dashes; NULL ends a table */
    char letter[2];   /* the one-letter form, "" if none */
    cli_kind kind;
    const char *value; /* name of the value in help: "FILE"; NULL for a flag */
    const char *help;
    double lowest, highest;   /* of numbers, and of both ends of a range; highest 0: no bound */
    bool above;               /* the lowest itself is excluded */
    bool required;            /* the verb cannot answer without it */
    bool optional;            /* a pointer to the value, NULL when absent */
    bool anywhere;            /* within the command line of another verb (asks) too */
    sm_words words;           /* of CLI_CHOICE and CLI_CHOICES */
    const char *by_default;   /* the value that holds otherwise, as one would type it */
    const char *default_says; /* the same in words, where no one value tells it */
    cli_picture gets;         /* of CLI_OUTPUT; CLI_NOTHING: the verb writes it */
} cli_option;

/* The options that every verb takes. */
typedef struct cli_common {
    bool json, csv, explain, help;
    const char *output, *system_file;
} cli_common;

/* What data/verbs says of a verb; of `common` the options of every verb. */
typedef struct cli_about {
    const char *name; /* "run matmul" */
    const char *summary;
    const char *arguments;     /* as shown in the usage: "OP ARRAY", "[MODEL]", "FILE..." */
    const char *columns;       /* of its --json, that a sweep shows; NULL: --columns must say */
    const char *notes;         /* shown below the options in help */
    const cli_option *options; /* ends with a NULL name */
} cli_about;
extern const cli_about verbs_common, verbs_chip, verbs_model, verbs_plan, verbs_mfu, verbs_roofline,
    verbs_matmul, verbs_collective, verbs_train, verbs_serve, verbs_simulate, verbs_validate,
    verbs_calibrate, verbs_profile, verbs_reshard, verbs_sweep, verbs_design, verbs_support,
    verbs_run, verbs_measure, verbs_page, verbs_run_matmul, verbs_run_collective, verbs_run_train,
    verbs_run_generate, verbs_run_serve, verbs_run_sweep;

/* Where the value of an option goes in the verb's own struct. */
typedef struct cli_place {
    const char *option; /* NULL ends a list */
    size_t offset, bytes;
} cli_place;
/* clang-format off */
#define CLI_AT(type, option, member)                                                               \
    {option, offsetof(type, member), sizeof((type *)NULL)->member}
#define CLI_PLACES(...) (const cli_place[]){__VA_ARGS__, {.option = NULL}}
/* A verb's own struct has the tag `values`: its places, those of the question in it, and those of
 * what else is given. */
#define CLI_VALUES(...)                                                                            \
    .values_bytes = sizeof(struct values), .places = CLI_PLACES(__VA_ARGS__)
#define AT(option, member) CLI_AT(struct values, option, member)
#define ASK(option, member) AT(option, question.member)
#define GIVEN(option, member) AT(option, given.member)
/* clang-format on */

/* Of data/formats/programs.json. */
enum { CLI_MOST_MEANT = 3, CLI_MOST_LINES = 20 };
typedef struct cli_other_name {
    const char *name, *options[CLI_MOST_MEANT];
} cli_other_name;
typedef struct cli_shell {
    const char *name, *line[CLI_MOST_LINES];
} cli_shell;
extern const cli_other_name programs_options[];
extern const cli_shell programs_shells[];
extern const size_t programs_options_count, programs_shells_count;

typedef struct cli_verb cli_verb;

/* What a program that asks many questions keeps from one to the next, for all its threads: models
 * and the frameworks that are shipped, read once. What it holds is never changed. */
enum { CLI_MOST_KEPT = 64 };
typedef struct cli_memo {
    sm_arena *arena;
    pthread_mutex_t lock;
    int models, readings; /* kept; begun */
    struct {
        const char *key; /* the name, and what it was read by */
        sm_model model;
    } model[CLI_MOST_KEPT];
    sm_frameworks *frameworks;
} cli_memo;

/* One parsed command line. */
typedef struct cli_call {
    const cli_verb *verb;
    cli_common common;
    void *values;                       /* the verb's own struct: values given, defaults, or zero */
    const char *given[CLI_MAX_OPTIONS]; /* the text of each of the verb's options, NULL: absent */
    char name[CLI_MAX_OPTIONS][32];     /* "--chip": what errors call them */
    int positionals;
    const char *positional[CLI_MAX_POSITIONALS];
    char **argv;     /* what followed the verb, NULL at its end */
    sm_arena *arena; /* lives as long as the call */
    /* Who waits for the answer, and may stop it; NULL: a person at a terminal. */
    const sm_command_watch *watch;
    const char *machine; /* "hbm=1.5x": how the systems of --on are changed; NULL: not */
    cli_memo *memo;      /* NULL: every file is read */
    bool brief;          /* the best alone is looked at */
} cli_call;

struct cli_verb {
    const cli_about *about;
    int most;                /* of arguments that end in "..."; 0: CLI_MAX_POSITIONALS */
    const cli_place *places; /* of each of its options */
    size_t values_bytes;     /* size of the struct the offsets point into */
    bool without_system;     /* no chip matters: there is no --system */
    bool tells_progress;     /* by itself */
    /* The first argument is a verb of this program, and the rest its command line; NULL: not so. */
    const struct cli_program *asks;
    unsigned plans; /* whose keys --plan takes: a bit per sm_plan_use; help then lists them */
    /* Fill the report. SM_OK and SM_NEGATIVE show it; anything else shows the error. */
    sm_status (*run)(const cli_call *call, sm_report *report, sm_error *err);
    /* Instead of run: the rest of the command line as it is, for another program. */
    sm_status (*pass_on)(const cli_verb *verb, int argc, char **argv, sm_error *err);
};

/* Parse what follows the verb, and read every value. SM_USAGE with one sentence when it is not a
 * valid command line; SM_BAD_INPUT, with the value underlined, when a value is none. */
sm_status cli_parse(const cli_verb *verb, int argc, char **argv, cli_call *call, sm_error *err);
/* The verb's own option of this name, NULL if it has none. Where a common one is called the same,
 * it means what the verb says, while a letter that the verb lacks stays common. */
const cli_option *cli_own_option(const cli_verb *verb, const char *name);
/* Where the value of one of the verb's options lies. */
const cli_place *cli_place_of(const cli_place *places, const cli_option *option);
/* How many arguments the verb takes: those shown in its usage. */
typedef struct cli_takes {
    int least, most;
} cli_takes;
cli_takes cli_verb_takes(const cli_verb *verb);
/* Is a common option offered by the verb, by a name of this many bytes? */
bool cli_is_offered(const cli_verb *verb, const cli_option *common, size_t length);
/* Print the help of a verb, made from its tables (help.c). */
void cli_help_verb(const cli_verb *verb, FILE *out);
/* Print what a plan is: every key with its values, meaning, default, and what it shards. */
void cli_help_plan(FILE *out);

/* ---- values (values.c) ----
 * `value` points into call->values: an option is known by where its value lies. */

/* Read text as the value of an option into place. name: "--seq", which lives as long as a source.
 */
sm_status cli_value_read(const cli_option *option, const char *name, const char *text, void *place,
                         sm_error *err);
/* Is a part of a text a name to give? */
sm_status cli_name_check(const sm_source *source, sm_span span, sm_error *err);
/* A part of a text as a time, which needs its unit. */
sm_status cli_time_read(const sm_source *source, sm_span span, double *seconds, sm_error *err);
/* Was the option given, rather than left to its default? */
bool cli_given(const cli_call *call, const void *value);
/* The text given, or that of the default, under the name of the option: what errors underline. */
sm_source cli_source(const cli_call *call, const void *value);
/* The same without text (NULL) where the option is not given: a text of a question (answer.h). */
sm_source cli_text(const cli_call *call, const void *value);
/* SM_BAD_INPUT: one sentence about the whole value. */
sm_status cli_refuse(const cli_call *call, const void *value, sm_error *err, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
/* SM_USAGE when an option is missing that the others ask for. */
sm_status cli_need(const cli_call *call, const void *value, sm_error *err);

/* The collective that a word names, the positional OP. */
sm_status cli_collective_read(const char *text, sm_collective *op, sm_error *err);

/* ---- what several verbs ask for ---- */

/* The system named by --on, with the chips of --system FILE known too. NULL is a usage error unless
 * the file holds exactly one chip, which is then meant. */
sm_status cli_system(const cli_call *call, const char *on, sm_system *system, sm_error *err);
/* The systems named by --on, joined by commas: at least one, at most SM_MAX_COMPARED, in the call's
 * arena. "all", "all:8": of each chip of the catalogue that has such a shape. on lies in
 * call->values. */
sm_status cli_systems(const cli_call *call, const char *const *on, const sm_system **systems,
                      int *n, sm_error *err);
/* The chips of --system FILE; none when the option is not given. */
sm_status cli_system_file(const cli_call *call, sm_chip **chips, size_t *n, sm_error *err);

/* --families FILE, --layers FILE and --as FAMILY of a verb: what its MODEL is read by
 * (values.c). */
typedef struct cli_model_values {
    cli_list families;
    const char *as;
    int64_t pictures, source; /* of a sequence; 0: as the config says, and of pictures none */
    const char *picture_size; /* WIDTHxHEIGHT in pixels; NULL: as the config says */
    bool sees;                /* with its tower, if it has one, for as many as the config says */
} cli_model_values;
#define CLI_SOURCE_PLACES(member)                                                                  \
    AT("pictures", member.pictures), AT("picture-size", member.picture_size),                      \
        AT("source", member.source)
#define CLI_MODEL_PLACES(member)                                                                   \
    AT("families", member.families), AT("layers", member.families), AT("as", member.as)
#define CLI_CODEBASE_PLACE(member) AT("codebases", member)
/* --set COLUMN=VALUE, several times: what measured rows do not state. NULL when out of memory. */
const sm_source *cli_columns(const cli_call *call, const cli_list *given);
/* Those of --codebases FILE, as an array in the call's arena; none when it is not given. */
sm_status cli_codebases(const cli_call *call, const cli_list *files, const sm_codebase **out,
                        size_t *n, sm_error *err);
/* --from FILE, --framework NAME, --emit NAME and --frameworks FILE (recipe_options.c). */
typedef struct cli_recipe_values {
    const char *from, *framework, *emit;
    cli_list frameworks;
} cli_recipe_values;
#define CLI_RECIPE_PLACES(member)                                                                  \
    AT("from", member.from), AT("framework", member.framework), AT("emit", member.emit),           \
        AT("frameworks", member.frameworks)
/* All that are known, and those that --framework and --emit name; NULL where they do not.
 * SM_BAD_INPUT when there is none of that name and use. */
typedef struct cli_asked_frameworks {
    sm_frameworks *known;
    const sm_framework *framework, *emit;
} cli_asked_frameworks;
sm_status cli_frameworks(const cli_call *call, const cli_recipe_values *given, sm_plan_use use,
                         cli_asked_frameworks *out, sm_error *err);
/* Is --framework any? */
bool cli_any_framework(const cli_recipe_values *given);
/* The framework that a question is about: the recipe's, else that of --framework, else that of
 * --emit; NULL. */
const sm_framework *cli_framework_of(const sm_recipe *recipe, const cli_asked_frameworks *asked);
/* The recipe of --from with its model (or MODEL, where that is given) and its chips (or those of
 * on). SM_USAGE when neither says one, SM_BAD_INPUT with the place of what cannot be read. */
typedef struct cli_recipe_read {
    sm_recipe *recipe;
    sm_model *model;
    sm_system *system;
} cli_recipe_read;
sm_status cli_recipe(const cli_call *call, const cli_recipe_values *given,
                     const cli_model_values *read_by, const char *on, sm_plan_use use,
                     const cli_recipe_read *to, sm_error *err);
/* The plan of a recipe with what --plan (changed; none: NULL text) gives in place of its own. */
sm_status cli_recipe_plan(const cli_call *call, const char *plan, sm_source *changed,
                          sm_error *err);
/* The library that is shipped, and over it the files given. SM_BAD_INPUT with the place: what is
 * wrong in one of them, a family that there is not. */
sm_status cli_library(const cli_call *call, const cli_model_values *given, const sm_library **out,
                      sm_error *err);
/* The model of this name or path, read by them. */
sm_status cli_read_model(const cli_call *call, const cli_model_values *given, const char *name,
                         sm_model *model, sm_error *err);

/* --speculate K:A and --draft MODEL of a verb: read with the families of read_by. */
typedef struct cli_speculation_values {
    const char *speculate, *drafter;
    sm_model draft;
} cli_speculation_values;
#define CLI_SPECULATION_PLACES(member)                                                             \
    AT("speculate", member.speculate), AT("draft", member.drafter)
sm_status cli_speculation(const cli_call *call, cli_speculation_values *given,
                          const cli_model_values *read_by, sm_speculation *out, sm_error *err);
/* --engine of a verb, or of a recipe: an engine's file, and what differs of it or of the software
 * that serves. Fills `own` and points *out at it; left alone where nothing does. Where no software
 * is named, *software becomes what the file's is like. */
typedef struct cli_engine_values {
    const char *differs, *recipe;
    sm_software own;
} cli_engine_values;
#define CLI_ENGINE_PLACES(member) AT("engine", member.differs)
sm_status cli_engine(const cli_call *call, cli_engine_values *given, const char **software,
                     const sm_software **out, sm_error *err);
/* --calibration FILE and --software NAME of a verb: which constants turn bounds into expected
 * times (values.c). */
typedef struct cli_calibration_values {
    const char *calibration, *software;
} cli_calibration_values;
#define CLI_CALIBRATION_PLACES(member)                                                             \
    AT("calibration", member.calibration), AT("software", member.software)
/* Where neither is given, *out stays as it is. */
sm_status cli_calibration(const cli_call *call, const sm_chip *chip,
                          const cli_calibration_values *given, const sm_calibration **out,
                          sm_error *err);
/* The same of serving; of an engine that is known and was measured neither on the chip nor on one
 * like it (NULL): the chip's usual ones. */
sm_status cli_serving_constants(const cli_call *call, const sm_chip *chip,
                                const cli_calibration_values *given, const sm_calibration **out,
                                sm_error *err);
/* SM_BAD_INPUT: the chip has no constants of this software, which the option names. */
sm_status cli_fail_software(const cli_call *call, const sm_chip *chip, const char *option,
                            const char *software, sm_error *err);
