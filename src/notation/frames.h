/* frames: a family read with a config: which default, dimension or key a name means. And the plan
 * of a model: stacks and pieces in order, with what each binds, before any is worked out. Private
 * to src/notation. */
#pragma once
#include "evaluate.h"

enum { FRAMES_MOST_LIKE = 16, FRAMES_MOST_DEPTH = 6 };

/* A key of the config that a wrapper says otherwise. */
typedef struct frame_overlay {
    const char *name;
    value value;
} frame_overlay;

typedef struct frame {
    const sm_library *library;
    const sm_source *source; /* of the config */
    const tree_family *family;
    const json_value *config;  /* an object */
    const struct frame *outer; /* of the wrapper; NULL */
    int depth;
    int fields, dims, overlays;
    const tree_set **field, **dim; /* those in force: the last of a name */
    frame_overlay *overlay;
    const tree_piece *by; /* `all`, by which a wrapper made it; NULL */
    int lineage;
    const tree_family **line; /* the families that it is made of, the base first */
    const struct frame *next; /* all frames of a model, the last first */
} frame;

/* name = value, worked out in a frame. */
typedef struct frame_set {
    const tree_set *set;
    const frame *frame;
    struct frame_set *next;
} frame_set;

typedef struct stack_plan {
    const char *name;
    const frame_set *set; /* dims, when, apart; the last of a name is in force */
} stack_plan;

/* The value of a piece, and where it is worked out. */
typedef struct piece_value {
    tree_set set;
    const frame *frame;
} piece_value;

typedef struct piece_plan {
    const char *name;
    bool many; /* `layers` */
    const frame *frame;
    const tree_piece *where;
    piece_value count, text;
    frame_set *set;
    const stack_plan *stack;
    struct piece_plan *next;
} piece_plan;

typedef struct model_plan {
    sm_arena *arena;
    sm_error *err;
    piece_plan *piece, **end;
    const stack_plan *stack;
    const frame *frames;
    const frame *main;
    int steps;
} model_plan;

/* What a piece binds to a name: worked out when another binding asks for it, or in its turn. While
 * it is, the name means what it means outside of the piece: `W = W if local else none`. */
typedef struct binding {
    const char *name;
    const frame_set *set;
    double i;
    enum { BINDING_OPEN, BINDING_UNDER_WAY, BINDING_KNOWN } state;
    value value;
    bool read; /* by the texts that the piece reaches */
    struct binding *next;
} binding;

/* Names of a piece: its bindings, its layer's number, the dimensions of its stack. */
typedef struct family_scope {
    scope scope;
    const frame *frame;
    binding *binding;
    const stack_plan *stack;
    const tree_set
        *usual;  /* worked out as the default of its key: by that name the config's is meant */
    double i;    /* negative: none */
    bool sizes;  /* a size is asked for: of what is bound sizes alone are seen */
    bool lax;    /* a key that is missing is none */
    double T, S; /* 0: not known yet */
    const sm_padding *given; /* NULL: all is as the config says */
} family_scope;

/* The set of a name that is in force: the last; NULL: none. */
const frame_set *frames_last(const frame_set *list, const char *name);
/* Is it the name of a dimension? */
bool frames_is_size(const char *name);
family_scope frames_scope(const frame *f, sm_error *err, int *steps);
/* The size of a dimension by the bindings, the stack, the family and the library. *found false, and
 * *out none, when none of them has it. */
sm_status frames_size(family_scope *s, const char *dim, sm_span span, value *out, bool *found);
/* Work out a binding that is open. */
sm_status frames_bind(const family_scope *s, binding *b);
/* The value of a set's expression. */
sm_status frames_value(family_scope *s, const tree_set *set, const tree *expression, value *out);

/* The library that a model of this config is read by, in the arena: of the shipped one, which has
 * read nothing, `family` (NULL: those that the config names), the families that these are like or
 * take pieces of, and the texts that they may call. Another one is returned as it is. */
sm_status library_for(const sm_library *library, const json_value *config, const char *family,
                      sm_arena *arena, const sm_library **out, sm_error *err);
/* Read the root of a config by a family (NULL: by what it says of itself) into the plan. */
sm_status frames_plan(const sm_library *library, const sm_source *source, const json_value *root,
                      const char *family, model_plan *plan);
/* Every key of every config in use is named, inert, off, or speaks of nothing that matters. */
sm_status frames_check_keys(const model_plan *plan);
