/* Generating: tokens through the program of serving, forward, for several sequences at once. */
#include "train_parts.h"

/* Programs and tasks of one size: of the layers and the embedding for so many rows, or of the head
 * for so many whose scores are wanted. */
typedef struct piece_set {
    size_t rows; /* of a group */
    uint64_t used;
    int lists;
    sm_task_list list[TRAIN_LISTS];
} piece_set;

enum { SETS = 64 };
typedef struct piece_sets { /* those of the passes made lately */
    piece_set set[SETS];
    bool head;
} piece_sets;
struct sm_generator {
    sm_trainer t; /* of which only the forward half is used */
    sm_train_setup setup;
    train_feed feed;
    bool paged;
    sm_model model;       /* of the setup, which sees one picture at a time */
    size_t groups, group; /* of ranks, with sequences of their own */
    sm_arena *arena;      /* of the arrays below */
    size_t *cached, *slot;
    size_t *read;  /* of each place of this rank: words that the first of two stacks has read */
    size_t *begun; /* of each sequence: where each of its pictures begins */
    int32_t *page; /* where the cache has a page for each sequence */
    piece_sets *layers, *heads;
    uint64_t passes;
    size_t scored;   /* rows of a group that the last pass has scores of */
    bool has_scores; /* the last stage */
    int32_t *part;   /* of every rank: its group, -1 without scores */
};

/* ---- what can be generated from ---- */

sm_status sm_generator_check(const sm_train_setup *s, sm_error *err) {
    sm_status status = train_check_model(s, true, err);
    if (status) return status;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if (s->degree[a] < 1)
            return sm_fail(err, SM_BAD_INPUT, "a degree of %d is none", s->degree[a]);
    if (s->stages > 1 && s->chunks != s->stages)
        return sm_fail(err, SM_BAD_INPUT, "%d stages generate with one chunk of layers each",
                       s->stages);
    if (s->stages > 1 && sm_model_reads(s->model))
        return sm_fail(err, SM_BAD_INPUT,
                       "%s has a stack that reads all at once, which runs on one stage",
                       s->model->name);
    int ways = train_batch_ways(s);
    if (s->sequences < 1 || s->sequences % ways)
        return sm_fail(err, SM_BAD_INPUT, "%d sequences do not divide over %d ranks", s->sequences,
                       ways);
    if (s->tokens < 1 || s->tokens % s->degree[SM_AXIS_CONTEXT])
        return sm_fail(err, SM_BAD_INPUT, "a cache of %d positions does not divide over %d ranks",
                       s->tokens, s->degree[SM_AXIS_CONTEXT]);
    return SM_OK;
}

/* A page is dealt out over the ranks of context, place by place. */
static sm_status check_pages(const sm_train_setup *s, const sm_generator_pages *p, sm_error *err) {
    if (p->pages < 1 || p->page_tokens < 1 || p->pages > INT32_MAX ||
        p->page_tokens % (size_t)s->degree[SM_AXIS_CONTEXT])
        return sm_fail(err, SM_BAD_INPUT,
                       "%zu pages of %zu tokens are none, or do not divide over %d ranks of "
                       "context",
                       p->pages, p->page_tokens, s->degree[SM_AXIS_CONTEXT]);
    return SM_OK;
}

/* ---- programs ---- */

static int first_list(const sm_generator *g, bool head) {
    return head ? g->setup.model->kinds + g->setup.model->outside - 1 : 0;
}

static void take_set(sm_generator *g, const piece_sets *of, const piece_set *set) {
    sm_trainer *t = &g->t;
    double rows = (double)(set->rows * g->groups);
    memcpy(t->list + first_list(g, of->head), set->list, (size_t)set->lists * sizeof *set->list);
    *(of->head ? &t->scored : &t->extent.sequences) = rows;
}

static void drop_set(piece_set *set) {
    for (int i = 0; i < set->lists; i++) sm_task_list_free(&set->list[i]);
    *set = (piece_set){.lists = 0};
}

/* The programs of passes of such a size: those of old, or new ones in place of the longest unused.
 */
static sm_status use_set(sm_generator *g, piece_sets *of, size_t rows, sm_error *err) {
    piece_set *oldest = &of->set[0];
    uint64_t now = ++g->passes;
    for (int i = 0; i < SETS; i++) {
        piece_set *one = &of->set[i];
        if (one->used < oldest->used) oldest = one;
        if (!one->lists || one->rows != rows) continue;
        one->used = now;
        take_set(g, of, one);
        return SM_OK;
    }
    drop_set(oldest);
    *oldest = (piece_set){.rows = rows, .used = now};
    sm_trainer *t = &g->t;
    int first = first_list(g, of->head);
    take_set(g, of, oldest); /* its sizes */
    sm_status status = (of->head ? train_head_program : train_layer_programs)(t, err);
    oldest->lists = t->lists - first;
    memcpy(oldest->list, t->list + first, (size_t)oldest->lists * sizeof *oldest->list);
    t->lists = first_list(g, true) + 1;
    if (status) drop_set(oldest);
    return status;
}

/* ---- begin and end ---- */

/* The array that is told of a piece: what it samples from, or what it makes; how it is stored. */
static int told_of(const sm_program *b) {
    const sm_op *last = &b->op[b->ops - 1];
    return last->function == SM_FUNCTION_SAMPLE ? last->in[0] : b->output;
}

static sm_layout told_layout(const sm_task_list *l) {
    const sm_einsum *einsum;
    int told = told_of(l->program), maker = l->program->tensor[told].producer;
    const sm_array *array = sm_task_list_array(l, told, &einsum);
    for (int i = 0; !array; i++) {
        assert(i < l->tasks);
        if (l->task[i].kind == SM_TASK_FORWARD && l->task[i].op == maker)
            array = &l->task[i].einsum.out;
    }
    return sm_layout_of(array);
}

/* The piece whose states, or scores, are told: the head, on whichever stage it is, or the last
 * layer before a piece that pools. */
static const sm_task_list *told_list(const sm_trainer *t) {
    const sm_stage *s = &t->stage;
    return s->pools ? s->layer[s->layers - 2].list : &t->list[t->lists - 1];
}

/* Numbers of each position, or scored row. */
static size_t told_width(const sm_trainer *t) {
    const sm_program *b = told_list(t)->program;
    const sm_tensor *told = &b->tensor[told_of(b)];
    return (size_t)b->dim[told->dim[told->rank - 1]].size;
}

static bool writes(const sm_trainer *t) {
    const sm_program *b = told_list(t)->program;
    return b->op[b->ops - 1].function == SM_FUNCTION_SAMPLE;
}

/* The group of this rank, and those of all others. */
static sm_status deal_groups(sm_generator *g, sm_error *err) {
    sm_trainer *t = &g->t;
    sm_layout layout = told_layout(told_list(t));
    sm_local_block block = {.rank = 1};
    size_t offset[SM_MAX_RANK];
    block.size[0] = train_local_size(t, (double)g->groups, &layout, 0);
    assert(block.size[0] == 1);
    train_offsets(t, &layout, &block, offset);
    g->group = offset[0];
    g->has_scores = t->stage.number == t->setup->stages - 1;
    g->part = sm_arena_array(g->arena, (size_t)t->world->size, sizeof *g->part);
    if (!g->part) return sm_fail_memory(err);
    int32_t own = g->has_scores ? (int32_t)g->group : -1;
    return sm_run_all_gather(t->world, &own, sizeof own, g->part, err);
}

/* Caches without a table: a page for each sequence, with room for all of it. */
static sm_status one_page_each(sm_generator *g, sm_error *err) {
    size_t n = (size_t)g->setup.sequences;
    g->slot = sm_arena_array(g->arena, n, sizeof *g->slot);
    g->page = sm_arena_array(g->arena, n, sizeof *g->page);
    g->cached = sm_arena_array(g->arena, n, sizeof *g->cached);
    g->begun = sm_arena_array(g->arena, n * (size_t)g->setup.pictures + 1, sizeof *g->begun);
    if (!g->slot || !g->page || !g->cached || !g->begun) return sm_fail_memory(err);
    for (size_t i = 0; i < n; i++) g->page[i] = (int32_t)(g->slot[i] = i % g->feed.slots);
    g->feed.pages = g->feed.slots;
    g->feed.page_tokens = (size_t)g->setup.tokens;
    return SM_OK;
}

static sm_status begin(sm_generator *g, sm_error *err) {
    sm_trainer *t = &g->t;
    const sm_padding one = {.source = 1};
    double rows = 0, pictures = 1; /* of its config */
    sm_architecture_number(g->setup.model->architecture, "seen_rows", &rows);
    sm_architecture_number(g->setup.model->architecture, "pictures", &pictures);
    if (!g->setup.pictures && rows > 0) g->setup.pictures = (int)pictures;
    g->groups = (size_t)train_batch_ways(&g->setup);
    g->feed.slots = g->scored = (size_t)g->setup.sequences / g->groups;
    g->feed.places = g->feed.slots * (size_t)(g->setup.pictures ? g->setup.pictures : 1);
    g->layers = sm_arena_alloc(g->arena, sizeof *g->layers);
    g->heads = sm_arena_alloc(g->arena, sizeof *g->heads);
    if (!g->layers || !g->heads) return sm_fail_memory(err);
    g->heads->head = true;
    sm_status status = g->paged ? SM_OK : one_page_each(g, err);
    if (!status && g->setup.pictures)
        status = sm_model_pad(g->setup.model, &one, g->arena, &g->model, err);
    if (g->setup.pictures) g->setup.model = &g->model;
    if (!status) status = train_mesh_new(t, err);
    if (status) return status;
    g->read = sm_arena_array(g->arena, g->feed.places, sizeof *g->read);
    if (!g->read) return sm_fail_memory(err);
    t->extent.keys = (double)g->feed.page_tokens;
    train_actions_new(t);
    t->extent.queries = 1;
    status = sm_generator_prepare(g, 1, 1, err);
    if (!status) status = train_layers_new(t, err);
    if (!status && g->paged && t->source && !t->seen)
        status = sm_fail(err, SM_BAD_INPUT,
                         "%s reads one text and writes another, which `run generate` does",
                         g->setup.model->name);
    if (!status && g->paged && !writes(t))
        status = sm_fail(err, SM_BAD_INPUT,
                         "%s writes no text: what it makes of one `run generate` tells",
                         g->setup.model->name);
    return status ? status : deal_groups(g, err);
}

sm_status sm_generator_new(sm_communicator *world, const sm_train_setup *setup,
                           const sm_generator_pages *pages, sm_generator **out, sm_error *err) {
    sm_status status = sm_generator_check(setup, err);
    if (!status && pages) status = check_pages(setup, pages, err);
    if (status) return status;
    sm_generator *g = sm_calloc(1, sizeof *g);
    if (!g) return sm_fail_memory(err);
    g->arena = sm_arena_new();
    g->setup = *setup;
    g->paged = pages != NULL;
    if (pages) g->feed = (train_feed){.pages = pages->pages, .page_tokens = pages->page_tokens};
    /* one road for prompts and single bytes: the cache lies over context, queries are on all */
    g->setup.rules = sm_rules_of_pass(setup->model, setup->tokens);
    g->setup.rules.expert_tensor = setup->rules.expert_tensor;
    /* latents are attended to as they are: keys made of them would be of whole caches */
    g->setup.rules.absorbed = true;
    g->t = (sm_trainer){
        .setup = &g->setup,
        .world = world,
        .serving = true,
        .feed = &g->feed,
    };
    status = begin(g, err);
    if (status) sm_generator_free(g);
    else *out = g;
    return status;
}

void sm_generator_free(sm_generator *g) {
    if (!g) return;
    train_layers_free(&g->t);
    for (int i = 0; g->layers && i < SETS; i++) drop_set(&g->layers->set[i]);
    for (int i = 0; g->heads && i < SETS; i++) drop_set(&g->heads->set[i]);
    train_turns_free(&g->t);
    sm_arena_free(g->t.texts);
    sm_arena_free(g->arena);
    sm_rank_mesh_free(g->t.mesh);
    sm_free(g);
}

sm_status sm_generator_load(sm_generator *g, sm_train_visit find, void *context, sm_error *err) {
    return train_load_part(&g->t, SM_TRAIN_VALUE, find, context, err);
}

/* ---- what a stage asks for about its head ---- */

/* The rows whose scores are wanted. */
sm_status generate_select(const sm_trainer *t, sm_local_block *stream, sm_error *err) {
    const train_feed *feed = t->feed;
    size_t width = stream->size[2];
    size_t n = (size_t)(t->scored / t->extent.sequences * (double)stream->size[0] + 0.5);
    sm_local_block rows;
    sm_status status = sm_local_block_new(SM_ELEMENT_F32, 3, (size_t[]){n, 1, width}, &rows, err);
    if (status) return status;
    for (size_t i = 0; i < n; i++)
        memcpy((float *)rows.data + i * width,
               (const float *)stream->data + feed->score[feed->first_score + i] * width,
               width * sizeof(float));
    sm_local_block_free(stream);
    *stream = rows;
    return SM_OK;
}

/* What the op that samples moves: the scores of this rank's words among zeros, summed over the
 * ranks of the vocabulary, which is exact. What is read lies over any axes, and whoever asked for
 * it adds it up. */
sm_status generate_scores(const sm_trainer *t, const sm_call *head, sm_error *err) {
    const sm_program *b = head->list->program;
    const sm_op *last = &b->op[b->ops - 1];
    const bool samples = last->function == SM_FUNCTION_SAMPLE;
    const sm_local_block *made = samples ? &head->saved->value[last->in[0]] : head->in[0].block;
    sm_layout layout = told_layout(head->list);
    size_t offset[SM_MAX_RANK], all = told_width(t), words = made->size[2];
    size_t rows = made->size[0] * made->size[1], places = t->reads ? t->source : 1;
    train_offsets(t, &layout, made, offset);
    float *to = t->feed->scores + t->feed->first_score * all;
    if (!t->reads) memset(to, 0, rows * all * sizeof *to);
    for (size_t i = 0; i < rows && (!t->reads || train_is_first(&layout, t->mesh->at)); i++) {
        size_t row = i / made->size[1] * places + i % made->size[1];
        if (t->reads) row += offset[0] * places + offset[1];
        memcpy(to + row * all + offset[2], (const float *)made->data + i * words,
               words * sizeof *to);
    }
    if (!samples || train_degree(t, SM_AXES_TENSOR) <= 1) return SM_OK;
    sm_communicator *over = sm_rank_mesh_over(t->mesh, SM_AXES_TENSOR, err);
    if (!over) return err && err->status ? err->status : SM_INTERNAL;
    return sm_run_all_reduce(over, to, rows * all, SM_ELEMENT_F32, err);
}

/* ---- passes ---- */

/* One pass of what g->feed holds. */
static sm_status run_pass(sm_generator *g, sm_train_act act, sm_generator_result *result,
                          sm_error *err) {
    train_traffic before;
    double begun_s = sm_clock_s();
    train_traffic_now(&g->t, &before);
    g->t.reads = act == SM_TRAIN_READ;
    sm_status status =
        train_run_stage(&g->t, &(sm_train_action){act, g->t.stage.number, 0}, 1, err);
    if (!status && result) {
        result->seconds = sm_clock_s() - begun_s;
        train_bytes_predicted(&g->t, result->bytes_predicted);
        train_traffic_since(&g->t, &before, result->bytes_counted, result->collective_s);
    }
    return status;
}

sm_status sm_generator_prepare(sm_generator *g, size_t rows, size_t scored, sm_error *err) {
    sm_status status = use_set(g, g->layers, rows, err);
    return status ? status : use_set(g, g->heads, scored, err);
}

static sm_status check_word(const sm_generator *g, int32_t word, sm_error *err) {
    return word >= 0 && word < g->setup.model->V + (int)g->t.seen
               ? SM_OK
               : sm_fail(err, SM_BAD_INPUT, "there is no token %d in a vocabulary of %d words",
                         word, g->setup.model->V);
}

static sm_status check_row(const sm_generator *g, const sm_generator_rows *p, size_t r,
                           sm_error *err) {
    const train_feed *f = &g->feed;
    sm_status status = check_word(g, p->count[r] > 1 ? -1 : p->token[r], err);
    if (status || p->count[r] == 0) return status;
    size_t pages = p->position[r] / f->page_tokens + 1;
    bool odd =
        p->position[r] >= (size_t)g->setup.tokens || p->slot[r] >= f->slots || pages > p->table;
    for (size_t i = 0; !odd && i < pages; i++)
        odd = p->page[r * p->table + i] < 0 || (size_t)p->page[r * p->table + i] >= f->pages;
    return odd ? sm_fail(err, SM_BAD_INPUT, "row %zu of a pass lies in no page or slot", r) : SM_OK;
}

static sm_status check_rows(const sm_generator *g, const sm_generator_rows *p, sm_error *err) {
    if (p->rows < 1 || p->scored < 1) return sm_fail(err, SM_BAD_INPUT, "a pass without rows");
    sm_status status = SM_OK;
    for (size_t r = 0; !status && r < p->rows * g->groups; r++) status = check_row(g, p, r, err);
    for (size_t i = 0; !status && i < p->scored * g->groups; i++)
        if (p->score[i] >= p->rows)
            status = sm_fail(err, SM_BAD_INPUT, "scores of row %zu of %zu", p->score[i], p->rows);
    return status;
}

static sm_status run_rows(sm_generator *g, const sm_generator_rows *p, float *scores,
                          sm_generator_result *result, sm_error *err) {
    sm_status status = check_rows(g, p, err);
    if (!status) status = sm_generator_prepare(g, p->rows, p->scored, err);
    if (status) return status;
    if (g->t.source && !g->t.seen && !g->read[0])
        return sm_fail(err, SM_BAD_INPUT, "%s writes nothing before it has read a text",
                       g->setup.model->name);
    g->scored = p->scored;
    g->feed = (train_feed){.width = 1,
                           .read = g->read,
                           .token = p->token,
                           .count = p->count,
                           .position = p->position,
                           .slot = p->slot,
                           .begun = p->begun,
                           .page = p->page,
                           .table = p->table,
                           .page_tokens = g->feed.page_tokens,
                           .pages = g->feed.pages,
                           .slots = g->feed.slots,
                           .places = g->feed.places,
                           .first = g->group * p->rows,
                           .score = p->score,
                           .first_score = g->group * p->scored,
                           .scores = scores};
    return run_pass(g, SM_TRAIN_FORWARD, result, err);
}

static sm_status check_source(const sm_generator *g, const sm_generator_source *s, size_t row,
                              sm_error *err) {
    const size_t most = g->t.source, n = s->count[row];
    sm_status status = SM_OK;
    if (n > most || (n < most && n && sm_generator_size_of(g).listens))
        return sm_fail(err, SM_BAD_INPUT, "%s reads from 1 to %zu words of a text, not %zu",
                       g->setup.model->name, most, n);
    for (size_t k = 0; !status && s->token && !sm_generator_size_of(g).listens && k < n; k++)
        status = check_word(g, s->token[row * most + k], err);
    if (!status && s->place[row] >= g->feed.places)
        status = sm_fail(err, SM_BAD_INPUT, "row %zu of what is read has no place", row);
    return status;
}

/* states: room for what is told of a model that ends there. */
static sm_status read_rows(sm_generator *g, const sm_generator_source *s, float *states,
                           sm_generator_result *result, sm_error *err) {
    const size_t rows = g->groups * s->rows;
    if (!g->t.source)
        return sm_fail(err, SM_BAD_INPUT, "%s has one stack, which is fed", g->setup.model->name);
    size_t *begin = sm_calloc(rows, sizeof *begin);
    sm_status status = begin ? SM_OK : sm_fail_memory(err);
    for (size_t r = 0; !status && r < rows; r++) status = check_source(g, s, r, err);
    if (!status) status = sm_generator_prepare(g, s->rows, s->rows, err);
    g->feed = (train_feed){.width = g->t.source,
                           .token = s->token,
                           .given = s->given,
                           .count = s->count,
                           .position = begin,
                           .slot = s->place,
                           .page_tokens = g->feed.page_tokens,
                           .pages = g->feed.pages,
                           .slots = g->feed.slots,
                           .places = g->feed.places,
                           .first = g->group * s->rows,
                           .scores = states};
    if (!status) status = run_pass(g, SM_TRAIN_READ, result, err);
    for (size_t r = 0; !status && r < rows; r++) {
        const size_t group = r / s->rows, place = s->place[r];
        if (s->count[r] && group == g->group) g->read[place] = s->count[r];
        if (s->count[r] && !g->paged)
            g->cached[group * g->feed.slots + place / (g->feed.places / g->feed.slots)] = 0;
    }
    sm_free(begin);
    return status;
}

sm_status sm_generator_read(sm_generator *g, const sm_generator_source *source,
                            sm_generator_result *result, sm_error *err) {
    return read_rows(g, source, NULL, result, err);
}

sm_status sm_generator_states(sm_generator *g, const sm_generator_pass *pass, const float *given,
                              float *states, sm_generator_result *result, sm_error *err) {
    size_t n = (size_t)g->setup.sequences, row = pass->queries * told_width(&g->t);
    if (!sm_model_reads(g->setup.model)) {
        sm_status status = sm_generator_feed(g, pass, states, result, err);
        return status ? status : sm_generator_share(g, states, row * sizeof *states, err);
    }
    if (pass->queries != g->t.source)
        return sm_fail(err, SM_INTERNAL, "%zu positions of %zu", pass->queries, g->t.source);
    memset(states, 0, n * row * sizeof *states);
    const sm_generator_source all = {g->feed.slots, pass->token, given, pass->count, g->slot};
    sm_status status = read_rows(g, &all, states, result, err);
    return status ? status : sm_run_all_reduce(g->t.world, states, n * row, SM_ELEMENT_F32, err);
}

sm_status sm_generator_step(sm_generator *g, const sm_generator_rows *p, float *scores,
                            sm_generator_result *result, sm_error *err) {
    if (!g->paged) return sm_fail(err, SM_BAD_INPUT, "there is no paged cache");
    return run_rows(g, p, scores, result, err);
}

/* Where the pictures of a sequence begin that is fed more. */
static void note_pictures(const sm_generator *g, const sm_generator_pass *pass, size_t sequence) {
    size_t *begun = g->begun + sequence * g->t.pictures;
    for (size_t k = 0; k < g->t.pictures && !g->cached[sequence]; k++) begun[k] = SIZE_MAX;
    for (size_t i = 0; i < pass->count[sequence]; i++) {
        int row = pass->token[sequence * pass->queries + i] - g->setup.model->V;
        if (row >= 0 && (size_t)row < g->t.seen && (size_t)row % g->t.each == 0)
            begun[(size_t)row / g->t.each] = g->cached[sequence] + i;
    }
}

typedef struct pass_rows {
    size_t *count, *position, *slot, *score, *begun;
    int32_t *page;
} pass_rows;

/* The rows of a pass of whole sequences: of each, its queries, the last of which may pad. */
static sm_status fill_rows(const sm_generator *g, const sm_generator_pass *pass,
                           const pass_rows *to, sm_error *err) {
    size_t room = (size_t)g->setup.tokens, q = pass->queries, scored = pass->each ? q : 1, most = 0;
    for (size_t i = 0; i < (size_t)g->setup.sequences; i++) {
        size_t n = pass->count[i], first = g->slot[i] * q; /* row of its group */
        if (n > q || g->cached[i] + n > room)
            return sm_fail(err, SM_BAD_INPUT,
                           "the cache has room for %zu tokens, and %zu come after %zu", room, n,
                           g->cached[i]);
        if (n > most) most = n;
        if (g->t.seen) note_pictures(g, pass, i);
        for (size_t k = 0; k < q; k++) {
            for (size_t p = 0; g->t.seen && p < g->t.pictures; p++)
                to->begun[(i * q + k) * g->t.pictures + p] = g->begun[i * g->t.pictures + p];
            to->count[i * q + k] = k < n;
            to->position[i * q + k] = g->cached[i] + k;
            to->slot[i * q + k] = g->slot[i];
            to->page[i * q + k] = g->page[i];
        }
        for (size_t k = 0; k < scored; k++)
            to->score[i * scored + k] = first + (pass->each ? k : n ? n - 1 : 0);
    }
    return most ? SM_OK : sm_fail(err, SM_BAD_INPUT, "a pass brings at least one token");
}

sm_status sm_generator_feed(sm_generator *g, const sm_generator_pass *pass, float *scores,
                            sm_generator_result *result, sm_error *err) {
    size_t n = (size_t)g->setup.sequences, all = n * pass->queries, each = n / g->groups;
    size_t *number = sm_calloc((4 + g->t.pictures) * all + 1, sizeof *number);
    int32_t *page = sm_calloc(all + 1, sizeof *page);
    const pass_rows to = {number,           number + all,     number + 2 * all,
                          number + 3 * all, number + 4 * all, page};
    sm_status status = number && page ? SM_OK : sm_fail_memory(err);
    if (!status) status = fill_rows(g, pass, &to, err);
    const sm_generator_rows rows = {.rows = each * pass->queries,
                                    .table = 1,
                                    .scored = each * (pass->each ? pass->queries : 1),
                                    .token = pass->token,
                                    .count = to.count,
                                    .position = to.position,
                                    .slot = to.slot,
                                    .begun = to.begun,
                                    .page = to.page,
                                    .score = to.score};
    if (!status) status = run_rows(g, &rows, scores, result, err);
    for (size_t i = 0; !status && i < n; i++) g->cached[i] += pass->count[i];
    sm_free(number);
    sm_free(page);
    if (!status) g->scored = each;
    return status;
}

static bool scans(const sm_trainer *t) {
    for (int i = 0; i < t->lists; i++)
        if (t->lines[i]->kernels) return true;
    return false;
}

sm_generator_size sm_generator_size_of(const sm_generator *g) {
    const sm_program *first = g->t.list[g->setup.model->kinds].program;
    const sm_tensor *in = first->input >= 0 ? &first->tensor[first->input] : NULL;
    return (sm_generator_size){
        .sequences = (size_t)g->setup.sequences,
        .room = (size_t)g->setup.tokens,
        .vocabulary = told_width(&g->t),
        .writes = writes(&g->t),
        .scans = scans(&g->t),
        .source = g->t.source,
        .listens = in != NULL,
        .numbers = in ? (size_t)(first->dim[in->dim[1]].size * first->dim[in->dim[2]].size) : 0,
        .pictures = g->feed.places / g->feed.slots,
        .rows = g->t.seen ? g->t.each : 0,
        .whole = g->t.seen && g->t.numbers[0].seen_whole > 0};
}

sm_status sm_generator_weight_bytes(const sm_generator *g, double *bytes, sm_error *err) {
    double own = 0, *all = sm_calloc((size_t)g->t.world->size, sizeof *all);
    if (!all) return sm_fail_memory(err);
    for (int i = 0; i < g->t.stage.layers; i++) {
        const sm_step_layer *layer = &g->t.stage.layer[i];
        for (int w = 0; w < layer->list->program->tensors; w++)
            if (layer->weight[w].data && !sm_stage_is_copy(&g->t.stage, layer, w))
                own += sm_local_block_bytes(&layer->weight[w]);
    }
    sm_status status = sm_run_all_gather(g->t.world, &own, sizeof own, all, err);
    *bytes = 0;
    for (int i = 0; i < g->t.world->size; i++) *bytes = fmax(*bytes, all[i]);
    sm_free(all);
    return status;
}

size_t sm_generator_cached(const sm_generator *g, size_t sequence) { return g->cached[sequence]; }

void sm_generator_rewind(sm_generator *g, size_t sequence, size_t cached) {
    if (cached < g->cached[sequence]) g->cached[sequence] = cached;
}

/* ---- sharing ---- */

static sm_generator_part part_of(const sm_generator *g, int32_t group) {
    if (group < 0) return (sm_generator_part){0, 0};
    return (sm_generator_part){(size_t)group * g->scored, g->scored};
}

sm_generator_part sm_generator_own(const sm_generator *g) {
    return part_of(g, g->has_scores ? (int32_t)g->group : -1);
}

size_t sm_generator_groups(const sm_generator *g) { return g->groups; }

sm_status sm_generator_share(sm_generator *g, void *records, size_t bytes, sm_error *err) {
    sm_communicator *world = g->t.world;
    size_t ranks = (size_t)world->size, block = g->scored * bytes;
    if (ranks == 1) return SM_OK;
    sm_generator_part own = sm_generator_own(g);
    char *room = sm_calloc(ranks + 1, block);
    if (!room) return sm_fail_memory(err);
    memcpy(room, (char *)records + own.first * bytes, own.n * bytes);
    sm_status status = sm_run_all_gather(world, room, block, room + block, err);
    for (size_t i = ranks; !status && i-- > 0;) { /* of ranks with the same rows the first */
        sm_generator_part part = part_of(g, g->part[i]);
        memcpy((char *)records + part.first * bytes, room + (i + 1) * block, part.n * bytes);
    }
    sm_free(room);
    return status;
}
