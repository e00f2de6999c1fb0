/* Measuring GPUs, on ones whose speed is known (tests/cuda): rates, starts and bytes are found as
 * they were set, and whatever call fails, it is told and nothing stays behind. */
#include <math.h>
#include "unit.h"
#include <string.h>

#include "fake_cuda.h"
#include "scalemodel/measure.h"

static int begin(void **state) {
    fake = (fake_gpus){.gpus = 4,
                       .memory_bytes = 8.0 * (1 << 20),
                       .start_s = 2e-6,
                       .flops_per_s = 1e14,
                       .memory_bytes_per_s = 2e12,
                       .host_bytes_per_s = 5e10,
                       .link_bytes_per_s = 1e11};
    return 0;
}

static sm_status measure(sm_measurements *out, sm_gpu_facts *facts, bool quick, sm_error *err) {
    const sm_measure_job job = {.quick = quick, .budget_s = 1e-3, .most_repeats = 5, .out = out};
    memset(out, 0, sizeof *out);
    return sm_measure_gpus(&job, facts, err);
}

static sm_measurements found;
static sm_gpu_facts facts;

static void measure_all(void) {
    sm_error err = {.status = SM_OK};
    sm_status status = measure(&found, &facts, false, &err);
    if (status) print_message("%s\n", err.sentence);
    assert_int_equal(status, SM_OK);
}

static void near(double a, double b) {
    if (fabs(a - b) > 1e-3 * b) print_message("%g and %g\n", a, b);
    assert_true(fabs(a - b) <= 1e-3 * b);
}

static void facts_are_the_drivers(void **state) {
    measure_all();
    assert_string_equal(facts.name, "Fake GPU 0");
    assert_string_equal(facts.software, "CUDA 12.9, NCCL 2.32.3");
    assert_int_equal(facts.gpus, 4);
    assert_int_equal(facts.cores, 100);
    assert_int_equal(found.ranks, 4);
    near(facts.clock_hz, 1.5e9);
    near(facts.shared_bytes, 100.0 * (1 << 17));
    near(facts.memory_bytes, fake.memory_bytes);
}

static void rates_are_found(void **state) {
    measure_all();
    double copy_s = found.stream[SM_SWEEP_COPY].seconds.median - fake.start_s;
    double triad_s = found.stream[SM_SWEEP_TRIAD].seconds.median - fake.start_s;
    double near_s = found.stream[SM_SWEEP_CACHED].seconds.median - fake.start_s;
    double host_s = facts.host_link.seconds.median - fake.start_s;
    near(found.stream[SM_SWEEP_COPY].bytes / copy_s, fake.memory_bytes_per_s);
    near(found.stream[SM_SWEEP_TRIAD].bytes / triad_s, fake.memory_bytes_per_s);
    near(found.stream[SM_SWEEP_CACHED].bytes / near_s, fake.memory_bytes_per_s);
    near(found.stream[SM_SWEEP_TRIAD].flops / found.stream[SM_SWEEP_TRIAD].bytes, 2.0 / 24.0);
    near(facts.host_link.bytes / host_s, fake.host_bytes_per_s);
}

static double share_of_peak(sm_dtype dtype) {
    return dtype == SM_BF16 || dtype == SM_FP16 ? 1.0 : dtype == SM_TF32 ? 0.5 : 1.0 / 16.0;
}

static int products_of(sm_dtype dtype) {
    int n = 0;
    for (int i = 0; i < found.matmuls; i++) n += found.matmul[i].dtype == dtype;
    return n;
}

static void products_are_timed(void **state) {
    fake.gpus = 1;
    fake.memory_bytes = 64.0 * (1 << 20);
    measure_all();
    for (int i = 0; i < found.matmuls; i++) {
        const sm_measured_matmul *m = &found.matmul[i];
        double flops = 2.0 * (double)m->m * (double)m->n * (double)m->k;
        near(m->seconds.median,
             fake.start_s + flops / (fake.flops_per_s * share_of_peak(m->dtype)));
    }
    assert_int_equal(products_of(SM_BF16), 4);
    assert_int_equal(products_of(SM_FP64), 3); /* larger ones do not fit into an eighth */
}

static void a_type_that_is_not_there_is_left_out(void **state) {
    fake.no_bf16 = true;
    measure_all();
    assert_int_equal(products_of(SM_BF16), 0);
    assert_int_equal(products_of(SM_FP16), 2);
}

/* Bytes of the busier direction of a rank's link, for V bytes in a group of n. */
static double wire_bytes(const sm_measured_collective *m) {
    double n = m->ranks, V = m->bytes;
    switch (m->op) {
    case SM_ALL_REDUCE: return 2.0 * V * (n - 1.0) / n;
    case SM_ALL_TO_ALL: return V / n * (n - 1.0) / n;
    case SM_PERMUTE:
    case SM_BROADCAST:
    case SM_REDUCE: return V;
    default: return V * (n - 1.0) / n;
    }
}

static bool is_exchange(sm_collective op) { return op == SM_ALL_TO_ALL || op == SM_PERMUTE; }

static void collectives_are_those_of_V(void **state) {
    int of_two = 0, of_four = 0;
    measure_all();
    for (int i = 0; i < found.collectives; i++) {
        const sm_measured_collective *m = &found.collective[i];
        of_two += m->ranks == 2;
        of_four += m->ranks == 4;
        double starts = m->op == SM_ALL_TO_ALL ? 2.0 * m->ranks : is_exchange(m->op) ? 2.0 : 1.0;
        double wire_s = wire_bytes(m) / fake.link_bytes_per_s;
        /* calls of one group share one start on a real device; here each has its own */
        assert_true(m->seconds.median >= 0.999 * (wire_s + fake.start_s));
        assert_true(m->seconds.median <= 1.001 * (wire_s + starts * fake.start_s));
    }
    assert_int_equal(of_two, SM_COLLECTIVE_COUNT * 3);
    assert_int_equal(of_two, of_four);
}

static void messages_go_one_way(void **state) {
    measure_all();
    assert_int_equal(found.sends, 6);
    for (int i = 0; i < found.sends; i++)
        near(found.send[i].seconds.median,
             (double)found.send[i].bytes / fake.link_bytes_per_s + fake.start_s);
}

static void one_gpu_has_nobody_to_talk_to(void **state) {
    fake.gpus = 1;
    measure_all();
    assert_int_equal(found.ranks, 1);
    assert_int_equal(found.collectives + found.sends, 0);
    assert_int_equal(fake.alive, 0);
}

static void no_gpu_is_told(void **state) {
    sm_error err = {.status = SM_OK};
    fake.gpus = 0;
    assert_int_equal(measure(&found, &facts, true, &err), SM_IO);
    assert_string_equal(err.sentence, "CUDA finds no GPU on this host");
}

/* Calls that fail: each of the first hundreds, then now and then to the end. A type whose first
 * product fails counts as one that is not there. */
static void any_call_may_fail(void **state) {
    fake.gpus = 2;
    fake.memory_bytes = 1 << 20;
    sm_error none = {.status = SM_OK};
    assert_int_equal(measure(&found, &facts, true, &none), SM_OK);
    int calls = fake.calls, told = 0, survived = 0;
    for (int k = 1; k <= calls; k += k < 40 ? 1 : calls / 20) {
        sm_error err = {.status = SM_OK};
        fake.calls = 0;
        fake.failing = k;
        sm_status status = measure(&found, &facts, true, &err);
        assert_int_equal(fake.alive, 0);
        if (status == SM_OK) survived++;
        else assert_int_equal(status, SM_IO);
        told += status == SM_IO && (strncmp(err.sentence, "CUDA: ", 6) == 0 ||
                                    strncmp(err.sentence, "cuBLAS: ", 8) == 0 ||
                                    strncmp(err.sentence, "NCCL: ", 6) == 0);
    }
    assert_true(told > 30);
    assert_true(survived < 40);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(facts_are_the_drivers, begin),
        cmocka_unit_test_setup(rates_are_found, begin),
        cmocka_unit_test_setup(products_are_timed, begin),
        cmocka_unit_test_setup(a_type_that_is_not_there_is_left_out, begin),
        cmocka_unit_test_setup(collectives_are_those_of_V, begin),
        cmocka_unit_test_setup(messages_go_one_way, begin),
        cmocka_unit_test_setup(one_gpu_has_nobody_to_talk_to, begin),
        cmocka_unit_test_setup(no_gpu_is_told, begin),
        cmocka_unit_test_setup(any_call_may_fail, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
