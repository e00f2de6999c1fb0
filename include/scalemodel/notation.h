/* notation: layers as programs one can read. A text says what a layer computes, in the notation of
 * the book (docs/notation.md, "Texts"); a family says which texts a model of its kind is made of,
 * from the fields of a Hugging Face config. */
#pragma once
#include "scalemodel/text.h"
#include "scalemodel/units.h"

SM_DECLARATIONS_BEGIN

/* ---- roles: which mesh axes may cut a dimension ---- */
#define SM_DIMENSION_ROLES(X)                                                                      \
    X(WHOLE, "whole", "no axis")                                                                   \
    X(SEQUENCES, "sequences", "data, fsdp, expert")                                                \
    X(POSITIONS, "positions", "context; tensor where seq says so")                                 \
    X(KEYS, "keys", "context")                                                                     \
    X(SLOTS, "slots", "data, fsdp, context, and expert where no dimension of experts took it")     \
    X(MODEL, "model", "fsdp in weights")                                                           \
    X(VOCABULARY, "vocabulary", "tensor")                                                          \
    X(HEADS, "heads", "tensor")                                                                    \
    X(GROUP, "group", "tensor, after heads")                                                       \
    X(WIDTH, "width", "tensor")                                                                    \
    X(EXPERTS, "experts", "expert")
#define SM_DIMENSION_ID(id, ...) SM_DIMENSION_##id,
typedef enum sm_dimension_role {
    SM_DIMENSION_ROLES(SM_DIMENSION_ID) SM_DIMENSION_ROLE_COUNT
} sm_dimension_role;
/* The name of a role, "positions"; "?" of none. Static text. */
const char *sm_dimension_role_name(sm_dimension_role role);
/* Do dimensions of this role count tokens? None of them stands in a weight. */
bool sm_dimension_role_counts_tokens(sm_dimension_role role);

/* ---- libraries: texts and families that were read ----
 * A library may stand over another: what it has not itself comes from below, so a user's text,
 * family, role or size wins by name. Files may name what stands in later files. A library is
 * immutable after sm_library_check; threads may share it then. */
typedef struct sm_library sm_library;

/* A new, empty library in the arena, over another one, which must outlive it, or over none (NULL).
 * SM_INTERNAL when out of memory. */
sm_status sm_library_new(sm_arena *arena, const sm_library *under, sm_library **out, sm_error *err);
/* Read a file of roles, sizes, texts, kernels and families into the library. The source is copied,
 * its text too. SM_BAD_INPUT with the place: what is no text of this notation, a name that this
 * library has twice, what passes a limit (notation.md, "Limits"). After an error the library is of
 * no use. */
sm_status sm_library_read(sm_library *library, const sm_source *source, sm_error *err);
/* Read lines without a head, as the text of this name: "h[B,F] = x[B_X,D] w[D,F_Y]; ...". The
 * second I of a[I,I], a diagonal, is a dimension of its own, called I2, or by the next digit that
 * makes a name which nobody wrote. As sm_library_read. */
sm_status sm_library_read_lines(sm_library *library, const sm_source *source, const char *name,
                                sm_error *err);
/* The dimensions that the arrays of a text name, each once; at most `most`. Returns how many. Names
 * live as long as the library; spans are those of a mention in the source of the text. */
typedef struct sm_text_mention {
    const char *name;
    sm_span span;
} sm_text_mention;
int sm_library_dims(const sm_library *library, const char *text, sm_text_mention *dim, int most);
/* After the last file: does everything that is named exist? SM_BAD_INPUT with the place of an
 * unknown text, op or family, of an option that no line reads, of an array that is used where no
 * line has made it, of a result that no line makes. */
sm_status sm_library_check(const sm_library *library, sm_error *err);
/* What is shipped, the files of data/families, which were checked when the library was built: of
 * them a model reads what it needs. Static. */
const sm_library *sm_library_shipped(void);
/* Names of the families, aliases too, of the library and below it, in the order of reading, each
 * once. SM_INTERNAL when out of memory. */
sm_status sm_library_families(const sm_library *library, sm_arena *arena, const char *const **name,
                              size_t *n, sm_error *err);
/* Is a family called so, in the library or below it? */
bool sm_library_has_family(const sm_library *library, const char *name);

SM_DECLARATIONS_END
