/* seen_pictures: numbers of a tensor of safetensors, position by position. */
#include "seen_pictures.h"
#include <math.h>

sm_status seen_shape_of(const sm_model *model, sm_arena *arena, seen_shape *out, sm_error *err) {
    const sm_text_lines *l;
    double square = 1, rows = 0, word = -1;
    *out = (seen_shape){.model = model->name, .row = 1};
    sm_status status =
        sm_program_lines(model, model->kinds, 0, &(sm_rules){.decode = true}, arena, &l, err);
    if (!status) out->source = sm_program_source(l);
    if (!out->source || l->input < 0 || l->array[l->input].role == SM_TEXT_IDS) return status;
    out->places = (size_t)l->dim[l->array[l->input].dim[1]].size;
    out->width = (size_t)l->dim[l->array[l->input].dim[2]].size;
    while (out->row * out->row < out->places) out->row++;
    sm_architecture_number(model->architecture, "seen_in_squares", &square);
    sm_architecture_number(model->architecture, "seen_rows", &rows);
    bool in_squares = out->row * out->row == out->places && fmod((double)out->row, square) == 0;
    out->square = in_squares ? (size_t)square : 1;
    if (!sm_architecture_number(model->architecture, "image_token_id", &word))
        sm_architecture_number(model->architecture, "image_token_index", &word);
    out->words = (sm_picture_words){model->V, word >= 0 && word < model->V ? (int32_t)word : -1,
                                    (size_t)rows};
    return SM_OK;
}

sm_status seen_count(const seen_shape *f, const sm_safetensors *file, const char *name,
                     size_t *texts, sm_error *err) {
    const sm_safetensor none = {.rank = 0}, *t = file->n == 1 ? file->tensor : &none;
    const size_t *shape = t->shape, one = f->places * f->width, row = f->row;
    size_t n = 1;
    for (int d = 0; d < t->rank; d++) n *= shape[d];
    bool square = t->rank == 4 && row * row == f->places && shape[2] == shape[3] &&
                  shape[2] % row == 0 && shape[1] * shape[2] * shape[3] == one;
    bool fits = square || (t->rank == 3 && shape[1] == f->width && shape[2] == f->places) ||
                (t->rank == 2 && shape[1] == f->width && shape[0] % f->places == 0);
    *texts = n / one;
    if (fits && *texts) return SM_OK;
    return sm_fail(err, SM_BAD_INPUT,
                   "%.200s is no single tensor of prompts x %zu x %zu, channels and positions that "
                   "%s hears, nor of pictures as large as its %zu patches of %zu numbers",
                   name, f->width, f->places, f->model, f->places, f->width);
}

/* Where number k of a position of a text is in the tensor. */
static size_t place_of(const seen_shape *f, const sm_safetensor *t, size_t text, size_t place,
                       size_t k) {
    if (t->rank == 2) {
        size_t q = f->square, row = place / f->row, column = place % f->row,
               before = row / q * (f->row / q) + column / q;
        place = (before * q + row % q) * q + column % q;
        return (text * f->places + place) * f->width + k;
    }
    if (t->rank == 3) return (text * f->width + k) * f->places + place;
    size_t side = t->shape[3], row = f->row, patch = side / row, colour = k / (patch * patch),
           at = k % (patch * patch);
    return ((text * t->shape[1] + colour) * side + place / row * patch + at / patch) * side +
           place % row * patch + at % patch;
}

sm_status seen_take(const seen_shape *f, const sm_safetensors *file, float *to, sm_error *err) {
    const sm_safetensor *t = file->tensor;
    size_t n = 1, one = f->places * f->width;
    for (int d = 0; d < t->rank; d++) n *= t->shape[d];
    float *told = sm_malloc(n * sizeof *told + 1);
    if (!told) return sm_fail_memory(err);
    sm_status status = sm_io_safetensor_load(t, told, err);
    for (size_t i = 0; !status && i < n; i++)
        to[i] = told[place_of(f, t, i / one, i % one / f->width, i % f->width)];
    sm_free(told);
    return status;
}
