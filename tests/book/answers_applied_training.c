/* "Training LLaMA 3 on TPUs": part 6 and its questions. */
#include "book.h"
#include "instruments.h"
#include "thresholds.h"

enum { POD = 8960 };
#define CUBE_MESH "X=16,Y=16,Z=16"

static sm_chip chip_96(void) {
    sm_chip chip = book_chip("tpu-v5p");
    book_give(&chip.memory_bytes, 96e9);
    return chip;
}

static double days(double params, double chips, double mfu) {
    sm_model model = book_of_params(params);
    sm_chip chip = chip_96();
    return book_run_s(&model, &chip, chips, 15e12, mfu) / 86400;
}

static void params_70b(book_item *item) {
    sm_model model = book_model("llama-3.1-70b");
    sm_params p = sm_model_params(&model);
    book_exactly(item, "MLP", p.mlp, 56371445760.0);
    book_exactly(item, "vocabulary", p.embedding + p.unembedding, 2101346304.0);
    book_exactly(item, "attention", p.attention, 12079595520.0);
    book_exactly(item, "all but norms", p.total - p.norm, 70552387584.0);
}

static void token(book_item *item) {
    sm_model model = book_of_params(70e9);
    sm_chip chip = chip_96();
    book_is(item, "FLOPs", sm_model_train_flops(&model, 1, true), 4.2e11);
    book_is(item, "seconds", book_run_s(&model, &chip, 1, 1, 1), 0.000915033);
}

static void whole_run(book_item *item) {
    sm_model model = book_of_params(70e9);
    book_is(item, "FLOPs", 15e12 * sm_model_train_flops(&model, 1, true), 6.3e24);
    book_is(item, "years", days(70e9, 1, 1) / 365, 435.232);
}

static void pod_days(book_item *item) {
    book_is(item, "seconds", days(70e9, POD, 0.4) * 86400, 3829660);
    book_is(item, "days", days(70e9, POD, 0.4), 44.3247);
}

/* Arrays of width D kept for the backward pass, of a batch of 4e6 tokens. */
static double kept(const char *ops) {
    sm_model model = book_model("llama-3.1-70b");
    return 4e6 * model.L * book_kept_bytes_per_token(&model, ops);
}
static double kept_4(void) { return kept("h+x.2+h.2"); }
static double kept_2(void) { return kept("x.2"); }

static double state(void) {
    sm_model model = book_of_params(70e9);
    return book_state_bytes(&model, "zero=0,optimizer=adam-no-master");
}

static double least_chips(double bytes) { return bytes / chip_96().memory_bytes.value; }

static void memory(book_item *item) {
    book_is(item, "kept", kept_4(), 2.09715e13);
    book_is(item, "total", kept_4() + state(), 2.16715e13);
    book_is(item, "chips", least_chips(kept_4() + state()), 225.745);
}

static void memory_days(book_item *item) {
    double got = days(70e9, least_chips(kept_4() + state()), 0.4);
    book_is(item, "days", got, 1752.18);
    book_is(item, "years", got / 365, 4.80049);
}

/* The book rounds 44.3 days to 44 and 116.5 chips to 117. */
static void memory_2026(book_item *item) {
    double chips = least_chips(kept_2() + state());
    book_is(item, "kept", kept_2(), 1.04858e13);
    book_is(item, "total", kept_2() + state(), 1.11858e13);
    book_is(item, "chips", chips, 116.518);
    book_near(item, "days", days(70e9, 117, 0.4), 3369.57, 44.3247 / 44 - 1 + 1e-3);
    book_near(item, "years", days(70e9, 117, 0.4) / 365, 9.23171, 44.3247 / 44 - 1 + 1e-3);
    book_is(item, "per chip of a pod", (kept_2() + state()) / POD, 1.24841e9);
}

static void per_chip(book_item *item) {
    book_is(item, "4 arrays a layer", (kept_4() + state()) / POD, 2.4187e9);
    book_is(item, "12 arrays a layer", (3 * kept_4() + state()) / POD, 7.09984e9);
}

static void sequences(book_item *item) {
    sm_model model = book_model("llama-3.1-70b");
    book_exactly(item, "sequences", book_sequences(&model, 4194304, 4096), 1024);
}

/* FSDP over two axes of a v5p pod and tensor over one, or FSDP over all three. */
static threshold block(int D, int F, const char *fsdp) {
    sm_model model = book_block(D, F);
    sm_system cube = book_system("tpu-v5p:16x16x16");
    threshold t = book_threshold(book_layer(&model, 1), &cube.chip);
    t.fsdp_s_per_byte = book_s_per_byte(&cube, SM_ALL_GATHER, CUBE_MESH, fsdp);
    t.tensor_s_per_byte = book_s_per_byte(&cube, SM_ALL_GATHER, CUBE_MESH, "Z");
    return t;
}
static threshold mixed_70b(void) { return block(8192, 28672, "XY"); }
static threshold mixed_405b(void) { return block(16384, 53248, "XY"); }

static double share(const char *mesh, const char *tokens) {
    return book_local_bytes("int8[B_X]", mesh, tokens);
}

static void fsdp_alone(book_item *item) {
    threshold t = block(8192, 28672, "XYZ");
    double tokens = share("X=8960", "B=4194304");
    book_is(item, "tokens per chip", tokens, 468.114);
    book_is(item, "least tokens per chip", book_fsdp_critical(&t), 850);
    book_holds(item, "fsdp alone is bound by the network", tokens < book_fsdp_critical(&t));
}

static void mixed(book_item *item) {
    threshold t = mixed_70b();
    book_is(item, "least tokens per chip", book_mixed_critical(&t, POD), 113.395);
    book_is(item, "fsdp degree", book_best_fsdp(&t, POD, 4194304), 1618.26);
}

static double slice_tokens(void) {
    sm_system slices = book_system("tpu-v5p:4x4x4x1024slices");
    threshold t = mixed_70b();
    double s = book_s_per_byte(&slices, SM_ALL_REDUCE, "S=1024,X=4,Y=4,Z=4", "S");
    return book_data_critical(&t, s);
}

static void q1(book_item *item) {
    threshold t = mixed_70b();
    book_is(item, "tokens per chip", share("X=35840", "B=4194304"), 117.029);
    book_is(item, "least tokens per chip", book_mixed_critical(&t, POD), 113.395);
    book_exactly(item, "tokens per pod", share("X=4", "B=4194304"), 1048576);
    book_is(item, "least tokens per pod", slice_tokens(), 73440);
    book_is(item, "fsdp degree in a pod", book_best_fsdp(&t, POD, 1048576), 809.543);
    book_is(item, "largest tensor degree", book_tensor_critical(&t), 11.2439);
    book_is(item, "days", days(70e9, 35840, 0.4), 11.0812);
}

static void q2_params(book_item *item) {
    sm_model model = book_model("llama-3.1-405b");
    sm_params p = sm_model_params(&model);
    double all = p.total - p.norm;
    sm_model same = book_of_params(all); /* 6 FLOPs per parameter, the embedding too */
    double flops = sm_model_train_flops(&same, 1, true);
    book_exactly(item, "MLP", p.mlp, 329772957696.0);
    book_exactly(item, "attention", p.attention, 71873593344.0);
    book_exactly(item, "vocabulary", p.embedding + p.unembedding, 4202692608.0);
    book_exactly(item, "all but norms", all, 405849243648.0);
    book_is(item, "FLOPs per token", flops, 2435095461888.0);
    book_is(item, "FLOPs of 4M tokens", flops * (4 << 20), 1.0213530636178686e19);
    book_is(item, "FLOPs of 16M tokens", flops * (16 << 20), 4.0854122544714744e19);
    book_is(item, "FLOPs of 15T tokens", flops * 15e12, 3.65264e25);
}

static void q2_pods(book_item *item) {
    sm_model model = book_model("llama-3.1-405b");
    threshold t = mixed_405b();
    book_is(item, "days", days(sm_model_params(&model).total, 8 * POD, 0.4), 32.1235);
    book_is(item, "least tokens per chip", book_mixed_critical(&t, POD), 61.0586);
    book_is(item, "tokens per chip of 4M", share("X=71680", "B=4194304"), 58.5143);
    book_is(item, "tokens per chip of 16M", share("X=71680", "B=16777216"), 234.057);
    book_is(item, "largest tensor degree", book_tensor_critical(&t), 20.8816);
    book_is(item, "fsdp degree in a pod", book_best_fsdp(&t, POD, 2097152), 840.103);
    book_exactly(item, "tokens per pod of 16M", share("X=8", "B=16777216"), 2097152);
}

static const book_answer answers[] = {
    {"at.params", params_70b, 0},    {"at.flops_tok", token, 0},  {"at.total", whole_run, 0},
    {"at.days", pod_days, 0},        {"at.mem", memory, 0},       {"at.mem.days", memory_days, 0},
    {"at.mem.2026", memory_2026, 0}, {"at.perchip", per_chip, 0}, {"at.seq", sequences, 0},
    {"at.fsdp", fsdp_alone, 0},      {"at.mixed", mixed, 0},      {"at.q1", q1, 0},
    {"at.q2a", q2_params, 0},        {"at.q2b", q2_pods, 0}};

const book_chapter book_applied_training = {"06-applied-training", answers,
                                            (int)(sizeof answers / sizeof *answers)};
