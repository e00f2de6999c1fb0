/* A model as a program that reads back: each kind of piece as a text with everything decided and
 * every text that it calls put in place, and a family that puts them in their order. */
#include "sink.h"
#include "tree.h"

#include <assert.h>
#include <math.h>

enum { ROOM = 24 }; /* left in a line, for the values of attention and its attributes */
enum { COLUMNS = 80, COMMENT_COLUMN = 44, MOST_SORTS = 52 };
/* Lines are asked for once more with so many more positions and keys. */
enum { LONGER = 3, MORE_KEYS = 7 };

/* What is printed for one array of the lines at hand. */
typedef struct array_name {
    const char *base; /* before the first dot; of weights after the last */
    const char *shown;
} array_name;

typedef struct writer {
    const sm_architecture *a;
    const sm_program_style *style;
    sm_arena *arena;
    sm_error *err;
    sm_sink sink;
    const sm_text_lines **lines; /* of each kind */
    const sm_text_lines **other; /* the same for a longer sequence and more keys */
    const char **text_name;      /* of each kind */
    array_name **names;          /* of each kind's arrays */
    const char **kernel;         /* texts of kernels that stand already */
    int kernels, kernel_room;
    /* the kind at hand */
    int kind;
    const sm_text_lines *of;
    size_t line; /* where the line of print begins */
    array_name *name;
    bool inside; /* a kernel, whose arrays are nowhere sharded */
    bool full;   /* memory ran out */
    bool sorts;  /* more sorts of layers in one statement than there are letters */
} writer;

static const char *keep(writer *w, const char *text) {
    if (!text) w->full = true;
    return text ? text : "";
}

/* ---- names ---- */

static const char *joined(writer *w, const char *name) {
    char *copy = sm_arena_copy(w->arena, name, strlen(name));
    for (char *c = copy; c && *c; c++)
        if (*c == '.') *c = '_';
    return keep(w, copy);
}

/* Is another array of the kind called so too? Made again it has the same base. */
static bool is_taken(const writer *w, int array) {
    for (int i = 0; i < w->of->arrays; i++)
        if (i != array && strcmp(w->name[i].base, w->name[array].base) == 0) return true;
    return false;
}

static bool same_shape(const writer *w, int a, int b) {
    const sm_text_array *x = &w->of->array[a], *y = &w->of->array[b];
    return x->rank == y->rank && memcmp(x->dim, y->dim, (size_t)x->rank) == 0 &&
           x->role != SM_TEXT_WEIGHT && y->role != SM_TEXT_WEIGHT;
}

/* Of the arrays called `base`, is each read only until the next of them is made? Then all may go by
 * that name, as in a text. */
static bool may_be_made_again(const writer *w, const char *base) {
    int latest = -1;
    for (int i = 0; i < w->of->arrays; i++) {
        if (strcmp(w->name[i].base, base) != 0) continue;
        if (latest >= 0 && !same_shape(w, i, latest)) return false;
        latest = i;
    }
    latest = -1;
    for (int l = 0; l < w->of->lines; l++) {
        const sm_text_line *line = &w->of->line[l];
        for (int i = 0; i < line->operands; i++) {
            int array = line->operand[i].array;
            if (strcmp(w->name[array].base, base) != 0) continue;
            if (latest >= 0 ? array != latest : w->of->array[array].line >= 0) return false;
            if (latest < 0) latest = array;
        }
        for (int i = 0; i < line->results; i++)
            if (strcmp(w->name[line->result[i].array].base, base) == 0)
                latest = line->result[i].array;
    }
    int output = w->of->output;
    return output < 0 || strcmp(w->name[output].base, base) != 0 || latest == output || latest < 0;
}

static void name_arrays(writer *w) {
    for (int i = 0; i < w->of->arrays; i++) {
        const sm_text_array *array = &w->of->array[i];
        const char *dot = strrchr(array->name, '.');
        bool weight = array->role == SM_TEXT_WEIGHT;
        w->name[i].base =
            weight || array->piece >= 0
                ? (dot ? dot + 1 : array->name)
                : keep(w, sm_arena_copy(w->arena, array->name, strcspn(array->name, ".")));
    }
    for (int i = 0; i < w->of->arrays; i++) {
        bool weight = w->of->array[i].role == SM_TEXT_WEIGHT;
        bool plain = weight ? !is_taken(w, i) : may_be_made_again(w, w->name[i].base);
        w->name[i].shown = plain ? w->name[i].base : joined(w, w->of->array[i].name);
    }
    for (int l = 0; l < w->of->lines; l++) /* what is carried on goes by the name of its state */
        for (int s = 0; s < l && w->of->line[l].op == SM_OPERATOR_CARRY; s++) {
            array_name *carried = &w->name[w->of->line[l].result[0].array];
            const array_name *state = &w->name[w->of->line[s].result[0].array];
            if (w->of->line[s].op == SM_OPERATOR_STATE && strcmp(state->base, carried->base) == 0)
                carried->shown = state->shown;
        }
}

/* Arrays of other pieces go by the names that those print: embedding.w. */
static void name_foreign(writer *w, int kind) {
    const sm_model_piece *piece;
    sm_architecture_pieces(w->a, &piece);
    for (int i = 0; i < w->lines[kind]->arrays; i++) {
        const sm_text_array *array = &w->lines[kind]->array[i];
        if (array->piece < 0) continue;
        const sm_model_piece *of = &piece[array->piece];
        const sm_text_lines *there = w->lines[of->kind];
        const char *path = strchr(array->name, '.'), *shown = w->names[kind][i].base;
        int made = array->there >= 0 ? array->there : there->output;
        if (array->role != SM_TEXT_WEIGHT && made >= 0) shown = w->names[of->kind][made].shown;
        for (int j = 0; j < there->arrays && array->role == SM_TEXT_WEIGHT; j++)
            if (path && strcmp(there->array[j].name, path + 1) == 0)
                shown = w->names[of->kind][j].shown;
        w->names[kind][i].shown = keep(w, sm_arena_printf(w->arena, "%s.%s", of->name, shown));
    }
}

/* ---- expressions ---- */

/* The mesh axes that cut dimension i of an array; NULL: none. */
static const char *axes_of(writer *w, int array, int i) {
    const sm_program_style *style = w->style;
    if (!style->axes) return w->of->array[array].pinned[i];
    if (w->inside) return NULL;
    const char *axes = keep(w, style->axes(style->with, w->kind, w->of, array, i, w->arena));
    return *axes ? axes : NULL;
}

static void put_dims(writer *w, int array, const uint8_t *dim) {
    const sm_text_array *of = &w->of->array[array];
    for (int i = 0; i < of->rank; i++) {
        const char *axes = axes_of(w, array, i);
        sm_sink_put(&w->sink, "%s%s", i ? "," : "[", w->of->dim[dim[i]].name);
        if (axes) sm_sink_put(&w->sink, "_%s", axes);
    }
    if (of->rank > 0) sm_sink_put(&w->sink, "]");
}

/* An array as it stands in a line: weights, and what is said in other letters than its own, always
 * with their dimensions. */
static void put_mention(writer *w, const sm_mention *m, bool dims) {
    const sm_text_array *array = &w->of->array[m->array];
    sm_sink_put(&w->sink, "%s", w->name[m->array].shown);
    bool other = memcmp(m->dim, array->dim, (size_t)array->rank) != 0;
    if (dims || other || array->role == SM_TEXT_WEIGHT || array->piece >= 0)
        put_dims(w, m->array, m->dim);
}

static void put_number(writer *w, double value) {
    char text[40];
    sm_sink_put(&w->sink, "%s", sm_format_exact(text, sizeof text, value));
}

/* Where the value of the term at `end` begins. */
static int term_begin(const sm_text_line *line, int end) {
    const sm_term *term = &line->term[end];
    int at = end;
    for (int i = 0; term->kind == SM_TERM_OPERATOR && i < term->arguments; i++)
        at = term_begin(line, at - 1);
    return at;
}

static int level_of(const sm_term *term) {
    if (term->kind != SM_TERM_OPERATOR) return 3;
    switch (term->op) {
    case SM_OPERATOR_ADD:
    case SM_OPERATOR_SUBTRACT: return 1;
    case SM_OPERATOR_MULTIPLY:
    case SM_OPERATOR_DIVIDE: return 2;
    default: return 3;
    }
}

static void put_term(writer *w, const sm_text_line *line, int end, int least) {
    const sm_term *term = &line->term[end];
    int level = level_of(term), from[SM_OPERATOR_MOST_ARGUMENTS] = {0}, at = end;
    if (term->kind == SM_TERM_NUMBER) put_number(w, term->number);
    if (term->kind == SM_TERM_ARRAY) put_mention(w, &line->operand[term->operand], false);
    if (term->kind != SM_TERM_OPERATOR) return;
    for (int i = term->arguments - 1; i >= 0; i--) {
        from[i] = at - 1;
        at = term_begin(line, at - 1);
    }
    const char *word = sm_operator_at(term->op)->name;
    if (level < least) sm_sink_put(&w->sink, "(");
    if (level < 3) {
        put_term(w, line, from[0], level);
        sm_sink_put(&w->sink, " %s ", word);
        put_term(w, line, from[1], level + 1);
    } else if (term->op == SM_OPERATOR_NEGATE) {
        sm_sink_put(&w->sink, "-");
        put_term(w, line, from[0], 3);
    } else {
        sm_sink_put(&w->sink, "%s(", word);
        for (int i = 0; i < term->arguments; i++) {
            sm_sink_put(&w->sink, "%s", i ? ", " : "");
            put_term(w, line, from[i], 0);
        }
        sm_sink_put(&w->sink, ")");
    }
    if (level < least) sm_sink_put(&w->sink, ")");
}

/* ---- lines ---- */

/* Would the i-th operand and the one after it pass the end of the line of print? */
static bool is_wide(writer *w, const sm_text_line *line, int i) {
    size_t begin = w->sink.wanted;
    put_mention(w, &line->operand[i], true);
    put_mention(w, &line->operand[i + 1], true);
    size_t width = w->sink.wanted - w->line;
    w->sink.wanted = begin;
    return width + 6 > COLUMNS;
}

static void put_arguments(writer *w, const sm_text_line *line) {
    int scores = line->scores;
    bool first = true;
    for (int i = 0; i < line->operands; i++) {
        if (i == line->over || i == line->sinks || i == line->distance) continue;
        bool score = i < 2 * scores;
        const char *between = !score ? "," : i % 2 ? " " : " +";
        bool wide = !score        ? w->sink.wanted - w->line > COLUMNS - ROOM
                    : i % 2 || !i ? false
                                  : is_wide(w, line, i);
        if (scores > 0 && wide) {
            sm_sink_put(&w->sink, "%s\n      ", between);
            w->line = w->sink.wanted - 6;
        } else if (!first) sm_sink_put(&w->sink, "%s%s", between, score && i % 2 ? "" : " ");
        put_mention(w, &line->operand[i], scores > 0);
        first = false;
    }
}

static void put_value(writer *w, const sm_text_line *line) {
    switch (line->op) {
    case SM_OPERATOR_EXPRESSION: put_term(w, line, line->terms - 1, 0); break;
    case SM_OPERATOR_PRODUCT:
        for (int i = 0; i < line->operands; i++) {
            sm_sink_put(&w->sink, "%s", i ? " " : "");
            put_mention(w, &line->operand[i], true);
        }
        break;
    default:
        sm_sink_put(&w->sink, "%s(", sm_operator_at(line->op)->name);
        put_arguments(w, line);
        sm_sink_put(&w->sink, ")");
    }
}

static void put_attributes(writer *w, const sm_text_line *line) {
    const struct {
        const char *word;
        double size;
        int dim, operand;
        bool is;
    } said[] = {
#define FLAG(is) 0, -1, -1, line->is
#define SIZE(is) line->is, -1, -1, line->is > 0
#define PLACE(is) 0, line->is, -1, line->is >= 0
#define OPERAND(is) 0, -1, line->is, line->is >= 0
#define OF_WEIGHTS 0, -1, -1, false
#define X(id, name, value, is) {name, is},
        TREE_ATTRIBUTES(X)
#undef X
    };
    for (int i = 0; i < TREE_ATTRIBUTE_COUNT; i++) {
        if (!said[i].is) continue;
        sm_sink_put(&w->sink, " %s%s", said[i].word,
                    said[i].size > 0 || said[i].dim >= 0 || said[i].operand >= 0 ? " " : "");
        if (said[i].size > 0) put_number(w, said[i].size);
        if (said[i].dim >= 0) sm_sink_put(&w->sink, "%s", w->of->dim[said[i].dim].name);
        if (said[i].operand >= 0) put_mention(w, &line->operand[said[i].operand], true);
    }
    for (int i = 0; i < line->operands; i++) {
        const sm_text_array *a = &w->of->array[line->operand[i].array];
        if (a->role != SM_TEXT_WEIGHT || a->piece >= 0 || !(a->shared > 0)) continue;
        sm_sink_put(&w->sink, " shared ");
        put_number(w, a->shared);
        break;
    }
}

/* Does the result's shape follow from an operand that has the same, and the others no more? */
static bool has_shape_of_operand(const writer *w, const sm_text_line *line) {
    const sm_mention *m = &line->result[0];
    int rank = w->of->array[m->array].rank;
    bool same = false;
    for (int i = 0; i < line->operands; i++) {
        const sm_mention *o = &line->operand[i];
        int its = w->of->array[o->array].rank;
        same = same || (its == rank && memcmp(m->dim, o->dim, (size_t)rank) == 0);
        for (int d = 0; d < its; d++)
            if (!memchr(m->dim, o->dim[d], (size_t)rank)) return false;
    }
    return same;
}

static void put_target(writer *w, const sm_text_line *line, int result) {
    const sm_mention *m = &line->result[result];
    const sm_text_array *array = &w->of->array[m->array];
    bool written = w->style->axes || (line->op == SM_OPERATOR_EXPRESSION
                                          ? !has_shape_of_operand(w, line)
                                          : sm_operator_at(line->op)->shape == SM_SHAPE_WRITTEN);
    sm_sink_put(&w->sink, "%s%s", result ? ", " : "", w->name[m->array].shown);
    if (written || array->typed) put_dims(w, m->array, m->dim);
    if (array->typed) sm_sink_put(&w->sink, ":%s", sm_dtype_name(array->type));
}

/* Behind the line where it fits, else under it. */
static void put_beside(writer *w, const char *comment, size_t n) {
    size_t column = w->sink.wanted - w->line;
    size_t usual = w->style->column > 0 ? (size_t)w->style->column : COMMENT_COLUMN;
    if (column + 4 + n <= COLUMNS) {
        int blanks = column < usual ? (int)(usual - column) : 2;
        if (usual + 2 + n > COLUMNS && column + 4 + n <= COLUMNS)
            blanks = (int)(COLUMNS - n - 2 - column);
        sm_sink_put(&w->sink, "%*s# %.*s", blanks, "", (int)n, comment);
        return;
    }
    sm_sink_put(&w->sink, "\n%*s# %.*s", (int)(COLUMNS - 2 - (n < 70 ? n : 70)), "", (int)n,
                comment);
}

/* What is said of line `number` (sm_program_style): its first row beside it, others under it. */
static void put_comment(writer *w, int number) {
    enum { UNDER = 4 };
    if (!w->style->comment) return;
    const char *at =
        keep(w, w->style->comment(w->style->with, w->kind, w->of, number, w->inside, w->arena));
    size_t n = strcspn(at, "\n");
    if (n > 0) put_beside(w, at, n);
    for (at += n; *at; at += n) {
        n = strcspn(++at, "\n");
        sm_sink_put(&w->sink, "\n%*s# %.*s", UNDER, "", (int)n, at);
    }
}

static void put_line(writer *w, int l) {
    const sm_text_line *line = &w->of->line[l];
    w->line = w->sink.wanted + 1;
    sm_sink_put(&w->sink, "\n  ");
    for (int i = 0; i < line->results; i++) put_target(w, line, i);
    sm_sink_put(&w->sink, " = ");
    put_value(w, line);
    put_attributes(w, line);
    put_comment(w, l);
}

/* ---- texts ---- */

/* Arguments or results of a kernel: weights, or all, with their dimensions. */
static void put_arrays(writer *w, const int *array, int n, bool dims) {
    for (int i = 0; i < n; i++) {
        const sm_text_array *a = &w->of->array[array[i]];
        sm_sink_put(&w->sink, "%s%s", i ? ", " : "", w->name[array[i]].shown);
        if (dims || a->role == SM_TEXT_WEIGHT) put_dims(w, array[i], a->dim);
    }
}

/* Taken back, for it may not be printed after all. */
static const char *kernel_body(writer *w, const sm_text_kernel *kernel) {
    const size_t begin = w->sink.wanted;
    w->inside = true;
    sm_sink_put(&w->sink, "(");
    put_arrays(w, kernel->operand, kernel->operands, true);
    sm_sink_put(&w->sink, ")%s", kernel->results ? " -> " : "");
    put_arrays(w, kernel->result, kernel->results, false);
    for (int l = kernel->from; l < kernel->from + kernel->lines; l++) put_line(w, l);
    w->inside = false;
    sm_sink_put(&w->sink, "\n");
    const size_t n = w->sink.wanted - begin;
    w->sink.wanted = begin;
    return w->sink.full ? "" : keep(w, sm_arena_copy(w->arena, w->sink.out + begin, n));
}

/* The name of the kernel's text, which is printed unless one that says the same stands already. */
static const char *put_kernel(writer *w, int number) {
    const char *body = kernel_body(w, &w->of->kernel[number]);
    const char *name = w->of->kernel[number].name;
    int same_name = 0;
    for (int i = 0; i < w->kernels; i += 2) {
        if (strncmp(w->kernel[i], name, strlen(name)) != 0) continue;
        if (strcmp(w->kernel[i + 1], body) == 0) return w->kernel[i];
        same_name++;
    }
    if (same_name > 0) name = keep(w, sm_arena_printf(w->arena, "%s_%d", name, same_name + 1));
    for (int i = 0; i < 2; i++) {
        const char **list =
            sm_arena_grow(w->arena, w->kernel, w->kernels, &w->kernel_room, sizeof *list);
        w->full |= !list;
        if (!list) return name;
        w->kernel = list;
        w->kernel[w->kernels++] = i ? body : name;
    }
    sm_sink_put(&w->sink, "\nkernel %s%s", name, body);
    return name;
}

static void put_call(writer *w, int number, const char *name) {
    const sm_text_kernel *kernel = &w->of->kernel[number];
    w->line = w->sink.wanted + 1;
    sm_sink_put(&w->sink, "\n  ");
    put_arrays(w, kernel->result, kernel->results, w->style->axes != NULL);
    sm_sink_put(&w->sink, " = %s(", name);
    put_arrays(w, kernel->operand, kernel->operands, false);
    sm_sink_put(&w->sink, ")");
    put_comment(w, kernel->from);
}

/* What comes in, and what goes on to the next piece. */
static void put_head(writer *w, int kind) {
    const char *between = "";
    w->line = w->sink.wanted + 1;
    sm_sink_put(&w->sink, "\ntext %s(", w->text_name[kind]);
    for (int i = 0; i < w->of->arrays; i++) {
        const sm_text_array *array = &w->of->array[i];
        if (array->role == SM_TEXT_WEIGHT || array->line >= 0 || array->piece >= 0) continue;
        sm_sink_put(&w->sink, "%s%s", between, w->name[i].shown);
        if (array->role != SM_TEXT_IDS) put_dims(w, i, array->dim);
        between = ", ";
    }
    sm_sink_put(&w->sink, ")");
    if (w->of->output >= 0) sm_sink_put(&w->sink, " -> %s", w->name[w->of->output].shown);
    put_comment(w, -1);
}

static void begin_kind(writer *w, int kind) {
    w->kind = kind;
    w->of = w->lines[kind];
    w->name = w->names[kind];
}

static void put_kind(writer *w, int kind) {
    const char **name = sm_arena_array(w->arena, (size_t)w->lines[kind]->kernels + 1, sizeof *name);
    keep(w, (const char *)name);
    if (!name) return;
    begin_kind(w, kind);
    for (int k = 0; k < w->of->kernels; k++) name[k] = put_kernel(w, k);
    put_head(w, kind);
    for (int l = 0; l < w->of->lines; l++) {
        int kernel = w->of->line[l].kernel;
        if (kernel < 0) put_line(w, l);
        else if (l == w->of->kernel[kernel].from) put_call(w, kernel, name[kernel]);
    }
    sm_sink_put(&w->sink, "\n");
}

/* ---- dimensions ---- */

static double size_in(const sm_text_lines *lines, const char *dim) {
    for (int d = 0; d < lines->dims; d++)
        if (strcmp(lines->dim[d].name, dim) == 0) return lines->dim[d].size;
    return 0;
}

/* The size of a dimension in the first kind that has it; 0: none has. */
static double size_of(const writer *w, const char *dim, int kinds) {
    double size = 0;
    for (int k = 0; k < kinds && size == 0; k++) size = size_in(w->lines[k], dim);
    return size;
}

/* B, T and S are the job's. */
static bool is_given(const char *dim) { return strchr("BTS", dim[0]) && !dim[1]; }

/* Each dimension once: is it first met here? */
static bool is_first(const writer *w, int kind, int dim) {
    return size_of(w, w->lines[kind]->dim[dim].name, kind) == 0;
}

static void put_roles(writer *w, int kinds) {
    size_t begin = w->sink.wanted;
    const char *before = "roles ";
    for (int role = SM_DIMENSION_WHOLE + 1; role < SM_DIMENSION_ROLE_COUNT; role++) {
        const char *name = sm_dimension_role_name((sm_dimension_role)role), *words = name;
        for (int k = 0; k < kinds; k++)
            for (int d = 0; d < w->lines[k]->dims; d++)
                if (w->lines[k]->dim[d].role == (sm_dimension_role)role && is_first(w, k, d))
                    words = keep(
                        w, sm_arena_printf(w->arena, "%s %s", words, w->lines[k]->dim[d].name));
        if (words == name) continue;
        if (w->sink.wanted - begin + strlen(words) + 2 > COLUMNS) {
            before = "\n      ";
            begin = w->sink.wanted + 1;
        }
        sm_sink_put(&w->sink, "%s%s", before, words);
        before = "; ";
    }
    if (begin < w->sink.wanted) sm_sink_put(&w->sink, "\n");
}

/* One of a list of assignments, which goes on in the next line where it does not fit. */
static void put_set(writer *w, size_t *begin, const char **before, const char *name,
                    const char *value) {
    if (w->sink.wanted - *begin + strlen(name) + strlen(value) + 5 > COLUMNS && **before == ';') {
        *before = "\n       ";
        *begin = w->sink.wanted + 1;
    }
    sm_sink_put(&w->sink, "%s%s = %s", *before, name, value);
    *before = "; ";
}

/* Asked for once more, S shows that it follows T: every position may see every other. */
static bool keys_are_positions(const writer *w, int kind) {
    double S = size_in(w->lines[kind], "S"), then = size_in(w->other[kind], "S");
    return S > 0 && then != S && then == size_in(w->other[kind], "T");
}

/* A size that follows the positions or keys of the sequence, as it does: 8 * T / 256, ceil(T / 64);
 * else a number. */
static const char *size_words(writer *w, int kind, int d) {
    enum { MOST_DENOMINATOR = 4096 };
    const sm_text_lines *now = w->lines[kind], *later = w->other[kind];
    const char *name = now->dim[d].name;
    double size = now->dim[d].size, then = size_in(later, name);
    char number[40];
    for (const char *of = "TS"; *of && then != size; of++) {
        const char base[] = {*of, 0};
        double had = *of == 'T' ? w->style->T : w->style->S;
        double has = had + (*of == 'T' ? LONGER : MORE_KEYS);
        for (int n = 1; n <= MOST_DENOMINATOR; n++) {
            double part = size * n / had;
            if (part == floor(part) && part * has / n == then)
                return keep(w, part == 1
                                   ? sm_arena_printf(w->arena, "%s / %d", base, n)
                                   : sm_arena_printf(w->arena, "%.0f * %s / %d", part, base, n));
            if (ceil(had / n) == size && ceil(has / n) == then)
                return keep(w, sm_arena_printf(w->arena, "ceil(%s / %d)", base, n));
        }
    }
    return keep(w, sm_arena_printf(w->arena, "%s", sm_format_exact(number, sizeof number, size)));
}

/* The size of a dimension in a kind where that is not what dims, or the job, says; NULL where
 * nothing need be said. */
static const char *own_size(writer *w, int kind, const char *dim) {
    double size = size_in(w->lines[kind], dim), then = size_in(w->other[kind], dim);
    double usual = is_given(dim) ? 0 : size_of(w, dim, kind + 1);
    char number[40];
    if (size <= 0 || (size == 1 && strcmp(dim, "B") == 0)) return NULL;
    if (dim[0] == 'S' && is_given(dim) && keys_are_positions(w, kind)) return NULL;
    if (is_given(dim) && then == (dim[0] == 'T' ? w->style->T + LONGER : w->style->S + MORE_KEYS))
        return NULL;
    if (size == usual) return NULL;
    return keep(w, sm_arena_printf(w->arena, "%s", sm_format_exact(number, sizeof number, size)));
}

/* ---- the family ---- */

/* The pieces that one statement makes: a piece, or layers, of one or several sorts. */
typedef struct group {
    int from, to, sorts;
    int sort[MOST_SORTS]; /* the first piece of each kind and name */
    const char *value[MOST_SORTS];
} group;

static int sort_of(const group *g, const sm_model_piece *piece, int i) {
    for (int s = 0; s < g->sorts; s++)
        if (piece[g->sort[s]].kind == piece[i].kind &&
            strcmp(piece[g->sort[s]].name, piece[i].name) == 0)
            return s;
    return -1;
}

/* False: it has more sorts than there are letters. */
static bool begin_group(group *g, const sm_model_piece *piece, int n, int from) {
    *g = (group){.from = from, .to = from};
    do {
        if (sort_of(g, piece, g->to) >= 0) continue;
        if (g->sorts == MOST_SORTS) return false;
        g->sort[g->sorts++] = g->to;
    } while (++g->to < n && piece[from].layer == 0 && piece[g->to].layer == g->to - from);
    return true;
}

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
_Static_assert(sizeof letters == MOST_SORTS + 1, "a letter for each sort");

/* The values of the sorts as one: that of the first unless the letter is another's. */
static const char *by_sort(writer *w, const group *g) {
    const char *out = g->value[0];
    for (int s = g->sorts - 1; s > 0; s--)
        if (strcmp(g->value[s], g->value[0]) != 0)
            out = keep(w, sm_arena_printf(w->arena, "%s if kinds_%d[i] == \"%c\" else %s",
                                          g->value[s], g->from, letters[s], out));
    return out;
}

static void put_letters(writer *w, const sm_model_piece *piece, const group *g) {
    sm_sink_put(&w->sink, "fields kinds_%d = \"", g->from);
    for (int i = g->from; i < g->to; i++) {
        int sort = sort_of(g, piece, i);
        assert(sort >= 0);
        sm_sink_put(&w->sink, "%c", letters[sort]);
    }
    sm_sink_put(&w->sink, "\"\n");
}

/* One size of each sort; false: none has one of its own. */
static bool sizes_of_sorts(writer *w, const sm_model_piece *piece, group *g, const char *dim) {
    char number[40];
    bool own = false;
    sm_format_exact(number, sizeof number, size_of(w, dim, sm_architecture_kinds(w->a)));
    for (int s = 0; s < g->sorts; s++) {
        g->value[s] = own_size(w, piece[g->sort[s]].kind, dim);
        own = own || g->value[s];
        if (!g->value[s]) g->value[s] = keep(w, sm_arena_printf(w->arena, "%s", number));
    }
    return own;
}

/* Names and sizes that are not those of the family. apart: said of the whole stack. */
static void put_bindings(writer *w, const sm_model_piece *piece, group *g, bool apart) {
    const char *before = ":\n       ";
    size_t begin = w->sink.wanted;
    bool named = false, some_apart = false;
    for (int s = 0; s < g->sorts; s++) {
        const char *name = piece[g->sort[s]].name;
        some_apart = some_apart || piece[g->sort[s]].apart;
        g->value[s] = keep(w, sm_arena_printf(w->arena, "\"%s\"", name));
        named = named || strcmp(name, piece[g->from].name) != 0;
    }
    if (named) put_set(w, &begin, &before, "name", by_sort(w, g));
    for (int s = 0; s < g->sorts; s++) g->value[s] = piece[g->sort[s]].apart ? "true" : "false";
    if (some_apart && !apart) put_set(w, &begin, &before, "apart", by_sort(w, g));
    for (int s = 0; s < g->sorts; s++) {
        const sm_text_lines *lines = w->lines[piece[g->sort[s]].kind];
        for (int d = 0; d < lines->dims; d++) {
            const char *dim = lines->dim[d].name;
            bool earlier = false;
            for (int e = 0; e < s && !earlier; e++)
                earlier = size_in(w->lines[piece[g->sort[e]].kind], dim) > 0;
            if (!earlier && sizes_of_sorts(w, piece, g, dim))
                put_set(w, &begin, &before, dim, by_sort(w, g));
        }
    }
}

static void put_pieces(writer *w, const sm_model_piece *piece, int n) {
    const char *stack = "";
    bool apart = false; /* the whole stack */
    group g = {.to = 0};
    while (g.to < n && begin_group(&g, piece, n, g.to)) {
        const char *its = piece[g.from].stack;
        if (strcmp(its, stack) != 0) {
            apart = true;
            for (int i = g.from; i < n && strcmp(piece[i].stack, its) == 0; i++)
                apart = apart && piece[i].apart;
            sm_sink_put(&w->sink, "stack  %s%s\n", its, apart ? ": apart = true" : "");
        }
        stack = its;
        for (int s = 0; s < g.sorts; s++) g.value[s] = w->text_name[piece[g.sort[s]].kind];
        const sm_model_piece *first = &piece[g.from];
        const char *text = by_sort(w, &g);
        if (first->layer == 0)
            sm_sink_put(&w->sink, "layers %s %d = %s", first->name, g.to - g.from, text);
        else sm_sink_put(&w->sink, "piece  %s", first->name);
        if (first->layer != 0 && strcmp(first->name, text) != 0)
            sm_sink_put(&w->sink, " = %s", text);
        put_bindings(w, piece, &g, apart);
        sm_sink_put(&w->sink, "\n");
    }
}

static void put_family(writer *w, int kinds) {
    const sm_model_piece *piece;
    int n = sm_architecture_pieces(w->a, &piece);
    sm_sink_put(&w->sink, "\nfamily \"%s\"\n", w->style->name);
    group g = {.to = 0};
    while (g.to < n && !w->sorts) {
        w->sorts = !begin_group(&g, piece, n, g.to);
        if (!w->sorts && g.sorts > 1) put_letters(w, piece, &g);
    }
    if (w->sorts) return;
    size_t begin = w->sink.wanted;
    const char *before = "dims   ";
    for (int k = 0; k < kinds; k++)
        for (int d = 0; d < w->lines[k]->dims; d++) {
            const sm_text_dim *dim = &w->lines[k]->dim[d];
            if (strcmp(dim->name, "S") == 0 && is_first(w, k, d) && keys_are_positions(w, k))
                put_set(w, &begin, &before, "S", "T");
            if (!is_given(dim->name) && is_first(w, k, d))
                put_set(w, &begin, &before, dim->name, size_words(w, k, d));
        }
    if (begin < w->sink.wanted) sm_sink_put(&w->sink, "\n");
    sm_sink_put(&w->sink, "model\n");
    put_pieces(w, piece, n);
}

/* ---- the model ---- */

static sm_status read_kind(writer *w, int kind) {
    sm_text_lines_of of = {kind,        w->style->phase, w->style->absorbed,
                           w->style->T, w->style->S,     false};
    sm_status status = sm_architecture_lines(w->a, &of, w->arena, &w->lines[kind], w->err);
    of.T += LONGER;
    of.S += MORE_KEYS;
    if (!status) status = sm_architecture_lines(w->a, &of, w->arena, &w->other[kind], w->err);
    if (status) return status;
    size_t arrays = (size_t)w->lines[kind]->arrays;
    w->names[kind] = sm_arena_array(w->arena, arrays + 1, sizeof *w->names[kind]);
    if (!w->names[kind]) return sm_fail_memory(w->err);
    begin_kind(w, kind);
    name_arrays(w);
    return SM_OK;
}

sm_status sm_architecture_format(const sm_architecture *a, const sm_program_style *style,
                                 sm_arena *arena, const char **out, sm_error *err) {
    int kinds = sm_architecture_kinds(a);
    writer w = {.a = a, .style = style, .arena = arena, .err = err, .sink = {.arena = arena}};
    w.lines = sm_arena_array(arena, (size_t)kinds + 1, sizeof *w.lines);
    w.other = sm_arena_array(arena, (size_t)kinds + 1, sizeof *w.other);
    w.names = sm_arena_array(arena, (size_t)kinds + 1, sizeof *w.names);
    w.text_name = sm_arena_array(arena, (size_t)kinds + 1, sizeof *w.text_name);
    if (!w.lines || !w.other || !w.names || !w.text_name) return sm_fail_memory(err);
    for (int k = 0; k < kinds; k++) {
        sm_status status = read_kind(&w, k);
        if (status) return status;
    }
    for (int k = 0; k < kinds; k++) name_foreign(&w, k);
    /* Of several kinds whose pieces have one name: layer, layer_2. */
    for (int k = 0; k < kinds; k++) {
        const char *name = sm_architecture_kind(w.a, k, NULL)->name;
        int same = 1;
        for (int j = 0; j < k; j++)
            same += strcmp(sm_architecture_kind(w.a, j, NULL)->name, name) == 0;
        w.text_name[k] = same > 1 ? keep(&w, sm_arena_printf(w.arena, "%s_%d", name, same)) : name;
    }
    put_roles(&w, kinds);
    for (int k = 0; k < kinds; k++) put_kind(&w, k);
    put_family(&w, kinds);
    *out = w.sink.out;
    if (w.full || w.sink.full) return sm_fail_memory(err);
    if (!w.sorts) return SM_OK;
    return sm_fail_limit(err, "kinds of layers of one stack", MOST_SORTS + 1, MOST_SORTS);
}
