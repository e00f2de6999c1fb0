/* Calibrations: the shipped table, which of them a chip takes, intervals, and the text form. */
#include "unit.h"
#include "failing_alloc.h"
#include "scalemodel/cost.h"
#include "scalemodel/load.h"
#include "scalemodel/text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CONSTANTS                                                                                  \
    "matmul_efficiency = 0.8\nmatmul_efficiency_fp8 = 0.7\nmatmul_half_k = 192\n"                  \
    "attention_efficiency = 0.6\nattention_efficiency_backward = 0.5\nmemory_efficiency = 0.9\n"   \
    "network_efficiency_inner = 0.81\nnetwork_efficiency_outer = 0.85\nlaunch_s = 3us\n"           \
    "collective_s = 4e-6\noverlap = 0.85\nstep_overhead_s = 5ms\n"

static sm_calibration *list;
static size_t listed;
static sm_error error;

static sm_status parse(sm_arena *arena, const char *text) {
    sm_source source = sm_source_of("mine.txt", text);
    listed = 0;
    memset(&error, 0, sizeof error);
    return sm_calibration_parse(&source, arena, &list, &listed, &error);
}

static void expect_same(const sm_calibration *a, const sm_calibration *b) {
    assert_string_equal(a->chip, b->chip);
    assert_string_equal(a->software, b->software);
    assert_string_equal(a->source, b->source);
    assert_string_equal(a->range, b->range);
    assert_int_equal(a->fitted, b->fitted);
    for (int i = 0; i < SM_CONSTANT_COUNT; i++)
        assert_true(sm_calibration_get(a, (sm_constant)i) == sm_calibration_get(b, (sm_constant)i));
    for (int i = 0; i < SM_REGIME_COUNT; i++) {
        assert_int_equal(a->interval[i].n, b->interval[i].n);
        assert_true(a->interval[i].lowest == b->interval[i].lowest);
        assert_true(a->interval[i].highest == b->interval[i].highest);
    }
}

/* ---- the shipped table ---- */

static void test_shipped_constants_lie_in_their_ranges(void **state) {
    assert_true(sm_calibration_count() > 10);
    assert_null(sm_calibration_at(sm_calibration_count()));
    for (size_t i = 0; i < sm_calibration_count(); i++) {
        const sm_calibration *c = sm_calibration_at(i);
        assert_true(c->source[0] && c->chip[0] && c->software[0]);
        assert_true(c->fitted < 1u << SM_CONSTANT_COUNT);
        for (int k = 0; k < SM_CONSTANT_COUNT; k++) {
            const sm_constant_info *info = sm_constant_of((sm_constant)k);
            double value = sm_calibration_get(c, (sm_constant)k);
            assert_true(value >= info->low && value <= info->high);
        }
        for (int k = 0; k < SM_REGIME_COUNT; k++)
            if (c->interval[k].n)
                assert_true(c->interval[k].lowest > 0 &&
                            c->interval[k].highest >= c->interval[k].lowest);
    }
}

/* No fit may make up for physics with a link at a tenth of its rate. */
static void test_constants_of_steps_are_physical(void **state) {
    static const struct {
        sm_constant which;
        double low, high;
    } bounds[] = {{SM_CONSTANT_matmul_efficiency, 0.35, 0.95},
                  {SM_CONSTANT_matmul_efficiency_fp8, 0.30, 0.95},
                  {SM_CONSTANT_matmul_half_k, 10, 600},
                  {SM_CONSTANT_attention_efficiency, 0.25, 0.85},
                  {SM_CONSTANT_attention_efficiency_backward, 0.20, 0.80},
                  {SM_CONSTANT_memory_efficiency, 0.45, 1.0},
                  {SM_CONSTANT_network_efficiency_inner, 0.35, 1.0},
                  {SM_CONSTANT_network_efficiency_outer, 0.25, 1.0},
                  {SM_CONSTANT_launch_s, 5e-7, 4e-4},
                  {SM_CONSTANT_collective_s, 1e-6, 2e-4},
                  {SM_CONSTANT_overlap, 0.30, 0.97},
                  {SM_CONSTANT_step_overhead_s, 1e-4, 0.5},
                  {SM_CONSTANT_routing_s, 0, 3e-6},
                  {SM_CONSTANT_elementwise_bytes, 0.7, 8}};
    size_t identified = 0;
    for (size_t i = 0; i < sm_calibration_count(); i++) {
        const sm_calibration *c = sm_calibration_at(i);
        if (c->interval[SM_REGIME_step].n == 0) continue; /* not of steps */
        for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; k++) {
            double value = sm_calibration_get(c, bounds[k].which);
            if (value < bounds[k].low || value > bounds[k].high)
                fail_msg("[%s %s] %s = %g", c->chip, c->software,
                         sm_constant_of(bounds[k].which)->name, value);
            identified += c->fitted >> bounds[k].which & 1u;
        }
    }
    assert_true(identified <= 200);
}

static void expect_beyond(const char *range, sm_step_sizes step, const char *beyond) {
    char said[80];
    sm_calibration c = *sm_calibration_at(0);
    c.range = range;
    sm_calibration_outside(&c, &step, said, sizeof said);
    assert_string_equal(said, beyond);
}

static void test_what_of_a_step_lies_beyond_the_range(void **state) {
    const char *range =
        "steps on chips 8 to 64; sequence 4096; d_model 4096 to 8192; layers 2 to 9";
    const sm_step_sizes inside = {.chips = 8, .sequence = 4096, .d_model = 8192, .layers = 9};
    sm_step_sizes far = inside;
    expect_beyond(range, inside, "");
    far.chips = 7, far.sequence = 8192, far.experts = true;
    expect_beyond(range, far, "chips, sequence, experts");
    expect_beyond("chips 1 to 9; experts", far, "");
    expect_beyond("matmul: 1 to 9 rows", far, "");
    expect_beyond("", far, "");
}

static void test_experts_have_an_interval_of_their_own_where_one_was_learned(void **state) {
    sm_calibration c = {.chip = "h100", .software = "x", .range = ""};
    assert_int_equal(sm_calibration_step_regime(&c, true), SM_REGIME_step);
    c.interval[SM_REGIME_experts].n = 1;
    assert_int_equal(sm_calibration_step_regime(&c, true), SM_REGIME_experts);
    assert_int_equal(sm_calibration_step_regime(&c, false), SM_REGIME_step);
}

static void test_shipped_calibrations_are_told_apart(void **state) {
    for (size_t i = 0; i < sm_calibration_count(); i++)
        for (size_t k = 0; k < i; k++) {
            const sm_calibration *a = sm_calibration_at(i), *b = sm_calibration_at(k);
            assert_false(strcmp(a->chip, b->chip) == 0 && strcmp(a->software, b->software) == 0);
        }
}

static void test_shipped_calibrations_read_back(void **state) {
    sm_arena *arena = sm_arena_new();
    for (size_t i = 0; i < sm_calibration_count(); i++) {
        char *text = sm_calibration_format(sm_calibration_at(i), arena);
        assert_non_null(text);
        assert_int_equal(parse(arena, text), SM_OK);
        assert_int_equal(listed, 1);
        expect_same(&list[0], sm_calibration_at(i));
        assert_string_equal(sm_calibration_format(&list[0], arena), text);
    }
    sm_arena_free(arena);
}

static void test_a_constant_is_set_by_number(void **state) {
    sm_calibration c = *sm_calibration_at(0);
    for (int i = 0; i < SM_CONSTANT_COUNT; i++) sm_calibration_set(&c, (sm_constant)i, 0.25 + i);
    assert_true(c.matmul_efficiency == 0.25);
    assert_true(c.step_overhead_s == 0.25 + SM_CONSTANT_step_overhead_s);
    assert_string_equal(sm_constant_of(SM_CONSTANT_overlap)->name, "overlap");
    assert_string_equal(sm_regime_name(SM_REGIME_step), "training step");
}

/* ---- which calibration a chip takes ---- */

static const char *chip_taken(sm_chip chip) { return sm_calibration_of(&chip)->chip; }

static const char *catalogue_taken(const char *name) {
    return chip_taken(*sm_chip_find(name, strlen(name)));
}

static void test_a_chip_without_its_own_takes_its_relative(void **state) {
    assert_string_equal(catalogue_taken("h100-sxm"), "h100");
    assert_string_equal(catalogue_taken("gh200"), "gh200");
    assert_string_equal(catalogue_taken("gh200-144"), "gh200");
    assert_string_equal(catalogue_taken("b100"), "b200");
    assert_string_equal(catalogue_taken("mi210"), "mi250x");
    assert_string_equal(catalogue_taken("mi308x"), "mi300x");
    assert_string_equal(catalogue_taken("l4"), "l40s");
    assert_string_equal(catalogue_taken("trn3"), "trn2");
    assert_memory_equal(chip_taken((sm_chip){.name = "mine", .fabric = SM_FABRIC_TORUS}), "tpu", 3);
    assert_string_equal(chip_taken((sm_chip){.name = "mine", .fabric = SM_FABRIC_SWITCH}), "h100");
    assert_string_equal(chip_taken((sm_chip){.name = "mine", .fabric = SM_FABRIC_NONE}), "cpu");
}

static void test_a_chip_may_name_its_calibration(void **state) {
    assert_string_equal(chip_taken((sm_chip){.name = "mine", .calibration = "b200"}), "b200");
    assert_string_equal(chip_taken((sm_chip){.name = "h100-mine", .calibration = "a100"}), "a100");
    assert_string_equal(
        chip_taken((sm_chip){.name = "mine", .calibration = "h1", .constants_like = "x v100 b200"}),
        "v100");
    assert_string_equal(chip_taken((sm_chip){.name = "h200", .calibration = "nonsense"}), "h200");
}

static void test_every_software_of_a_chip_is_found_again(void **state) {
    for (size_t i = 0; i < sm_calibration_count(); i++) {
        const sm_calibration *c = sm_calibration_at(i);
        sm_chip chip = {.name = c->chip};
        assert_ptr_equal(sm_calibration_for(&chip, c->software), c);
        assert_true(sm_calibration_is_own(c, &chip));
    }
    sm_chip h100 = {.name = "h100-sxm"};
    assert_null(sm_calibration_for(&h100, "no-such-software"));
}

static void test_of_a_list_the_longest_name_is_taken(void **state) {
    const sm_calibration own[] = {{.chip = "h1", .software = "a"},
                                  {.chip = "h100", .software = "a"},
                                  {.chip = "h100", .software = "b"},
                                  {.chip = "h100-sxm", .software = "b"}};
    sm_chip sxm = {.name = "h100-sxm"}, named = {.name = "mine", .calibration = "h100"};
    assert_ptr_equal(sm_calibration_among(own, 4, &sxm, NULL), &own[3]);
    assert_ptr_equal(sm_calibration_among(own, 4, &sxm, "a"), &own[1]);
    assert_ptr_equal(sm_calibration_among(own, 4, &named, NULL), &own[1]);
    assert_ptr_equal(sm_calibration_among(own, 4, &named, "b"), &own[2]);
    assert_null(sm_calibration_among(own, 4, &sxm, "c"));
    assert_null(sm_calibration_among(own, 4, &(sm_chip){.name = "a100"}, NULL));
    assert_null(sm_calibration_among(own, 0, &sxm, NULL));
}

/* ---- intervals ---- */

static void test_few_rows_say_little_about_an_interval(void **state) {
    sm_calibration c = {.chip = "h100", .software = "x"};
    sm_chip own = {.name = "h100-sxm"}, other = {.name = "h200"};
    double usual[2], few[2], many[2], borrowed[2];
    sm_calibration_interval(&c, &own, SM_REGIME_step, 2.0, &usual[0], &usual[1]);
    assert_true(usual[0] == 2.0 * exp(log(0.8)) && fabs(usual[1] - 2.6) < 1e-12);
    c.interval[SM_REGIME_step].lowest = 0.97;
    c.interval[SM_REGIME_step].highest = 1.05;
    c.interval[SM_REGIME_step].n = 5;
    sm_calibration_interval(&c, &own, SM_REGIME_step, 2.0, &few[0], &few[1]);
    assert_true(fabs(few[0] - 2.0 * sqrt(0.97 * 0.8)) < 1e-12); /* half way on the log */
    c.interval[SM_REGIME_step].n = 100000;
    sm_calibration_interval(&c, &own, SM_REGIME_step, 2.0, &many[0], &many[1]);
    assert_true(fabs(many[0] - 1.94) < 1e-3 && fabs(many[1] - 2.1) < 1e-3);
    sm_calibration_interval(&c, &other, SM_REGIME_step, 2.0, &borrowed[0], &borrowed[1]);
    assert_true(fabs(borrowed[1] - 2.0 * exp(hypot(log(1.05), log(1.2)))) < 1e-3);
    assert_true(borrowed[0] < many[0] && few[0] < many[0] && usual[0] < few[0]);
}

static void test_an_interval_to_one_side_stays_there_until_borrowed(void **state) {
    sm_calibration c = {.chip = "h100", .software = "x"};
    c.interval[SM_REGIME_step].lowest = 1.1;
    c.interval[SM_REGIME_step].highest = 1.3;
    c.interval[SM_REGIME_step].n = 100000;
    sm_chip own = {.name = "h100"}, other = {.name = "a100"};
    double low, high;
    sm_calibration_interval(&c, &own, SM_REGIME_step, 1.0, &low, &high);
    assert_true(low > 1.09 && high < 1.31);
    sm_calibration_interval(&c, &other, SM_REGIME_step, 1.0, &low, &high);
    assert_true(low < 0.84 && high > 1.35);
    sm_calibration_interval(&c, &other, SM_REGIME_peak, 1.0, &low, &high);
    assert_true(fabs(low - 0.9) < 1e-9 && fabs(high - 1.1) < 1e-9); /* memory takes no constants */
}

/* ---- the text ---- */

static void test_a_file_is_read(void **state) {
    sm_arena *arena = sm_arena_new();
    assert_int_equal(parse(arena,
                           "# two of them\n"
                           "[h100 mine]\n"
                           "source = three runs,\tof  ours\r\n"
                           "    on 64 chips # not a comment\n"
                           "range = 1 to 8 chips\n" CONSTANTS "fitted = overlap # from the rows\n"
                           "  launch_s # and these\n"
                           "interval.step = 0.91 1.12 138\n"
                           "\n  # a comment\n"
                           "[ h100   other ]\nbase = h100-sxm default\noverlap = .5\n"),
                     SM_OK);
    assert_int_equal(listed, 2);
    assert_string_equal(list[0].chip, "h100");
    assert_string_equal(list[0].software, "mine");
    assert_string_equal(list[0].source, "three runs, of ours on 64 chips # not a comment");
    assert_string_equal(list[0].range, "1 to 8 chips");
    assert_true(list[0].launch_s == 3e-6 && list[0].step_overhead_s == 5e-3);
    assert_int_equal(list[0].fitted, 1u << SM_CONSTANT_overlap | 1u << SM_CONSTANT_launch_s);
    assert_true(list[0].interval[SM_REGIME_step].lowest == 0.91);
    assert_int_equal(list[0].interval[SM_REGIME_step].n, 138);
    assert_string_equal(list[1].software, "other");
    assert_string_equal(list[1].source, "");
    assert_true(list[1].overlap == 0.5);
    sm_chip h100 = {.name = "h100"};
    assert_true(list[1].launch_s == sm_calibration_for(&h100, "default")->launch_s);
    sm_arena_free(arena);
}

static void test_long_texts_are_wrapped_and_read_back(void **state) {
    sm_arena *arena = sm_arena_new();
    static const char *const texts[] = {
        "x",
        "a word that is followed by #marks and #more of them so that a line could begin with #one "
        "of them #two #three #four #five #six #seven #eight #nine #ten",
        "averylongwordwithoutanyblankthatrunsbeyondtheendofeverylineandthereforemustbeleftaloneas"
        "itisbecauseitcannotbebroken and then some",
        "= equals [brackets] \"quotes\" \\ and so on, until the end of the line is reached and "
        "more",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        sm_calibration c = *sm_calibration_at(0);
        c.source = texts[i];
        c.range = texts[i];
        char *text = sm_calibration_format(&c, arena);
        assert_int_equal(parse(arena, text), SM_OK);
        expect_same(&list[0], &c);
    }
    sm_arena_free(arena);
}

static void test_random_calibrations_read_back(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_rng rng = {7};
    for (int n = 0; n < 200; n++) {
        sm_calibration c = {.chip = "a-b.c_9", .software = "s", .source = "", .range = ""};
        c.fitted = (unsigned)sm_rng_below(&rng, 1u << SM_CONSTANT_COUNT);
        for (int i = 0; i < SM_CONSTANT_COUNT; i++) {
            const sm_constant_info *info = sm_constant_of((sm_constant)i);
            double value = info->low + sm_rng_unit(&rng) * (info->high - info->low);
            sm_calibration_set(&c, (sm_constant)i, value);
        }
        for (int i = 0; i < SM_REGIME_COUNT; i++) {
            if (sm_rng_below(&rng, 2)) continue;
            c.interval[i].lowest = 0.01 + sm_rng_unit(&rng);
            c.interval[i].highest = c.interval[i].lowest * (1.0 + sm_rng_unit(&rng));
            c.interval[i].n = 1 + (int)sm_rng_below(&rng, 1000000);
        }
        assert_int_equal(parse(arena, sm_calibration_format(&c, arena)), SM_OK);
        expect_same(&list[0], &c);
    }
    sm_arena_free(arena);
}

/* ---- errors: place and sentence ---- */

static const struct {
    const char *text;
    int line, column, span;
    const char *sentence;
} wrong[] = {
    {"", 1, 1, 1, "expected a heading such as [h100 my-cluster], found no calibration"},
    {"overlap = 1\n", 1, 1, 7, "expected a heading such as [h100 my-cluster] before the first key"},
    {"[h100]\n", 1, 1, 6, "a heading names a chip and a software, as in [h100 my-cluster]"},
    {"[h100 a b]\n", 1, 1, 10, "a heading names a chip and a software, as in [h100 my-cluster]"},
    {"[h100 a\n", 1, 1, 7, "a heading names a chip and a software, as in [h100 my-cluster]"},
    {"[h100 a/b]\n", 1, 1, 10, "a heading names a chip and a software, as in [h100 my-cluster]"},
    {"[]", 1, 1, 2, "a heading names a chip and a software, as in [h100 my-cluster]"},
    {"[", 1, 1, 1, "a heading names a chip and a software, as in [h100 my-cluster]"},
    {"[h100 a]\nlauch_s = 1us\n", 2, 1, 7,
     "'lauch_s' is no key of a calibration; did you mean launch_s?"},
    {"[h100 a]\nzzz = 1\n", 2, 1, 3,
     "'zzz' is no key of a calibration: they are source, range, base, fitted, interval.REGIME and "
     "the constants of 'chip NAME --calibration'"},
    {"[h100 a]\nsome words\n", 2, 1, 10,
     "expected key = value, or a heading such as [h100 my-cluster]"},
    {"[h100 a]\noverlap = 1.5\n", 2, 11, 3, "overlap lies from 0 to 1"},
    {"[h100 a]\nlaunch_s = 2s\n", 2, 12, 2, "launch_s lies from 1e-08 to 0.001 s"},
    {"[h100 a]\noverlap = much\n", 2, 11, 4,
     "expected a number such as 4096, 8k or 4M, found 'much'"},
    {"[h100 a]\noverlap =\n", 2, 10, 1, "expected a number such as 4096, 8k or 4M"},
    {"[h100 a]\noverlap = 1\noverlap = 1\n", 3, 1, 7, "overlap is given twice"},
    {"[h100 a]\nfitted = overlap lunch_s\n", 2, 18, 7,
     "'lunch_s' is no constant; did you mean launch_s?"},
    {"[h100 a]\ninterval.step = 0.9 1.1\n", 2, 17, 7,
     "expected the lowest and highest measured / expected and the number of rows, as in 0.91 1.12 "
     "138"},
    {"[h100 a]\ninterval.step = 1.1 0.9 8\n", 2, 17, 9,
     "an interval runs from a lowest above 0 to a highest not below it"},
    {"[h100 a]\ninterval.stop = 0.9 1.1 8\n", 2, 1, 13,
     "'interval.stop' is no key of a calibration; did you mean interval.step?"},
    {"[h100 a]\nbase = h100 nonsense\n", 2, 8, 13,
     "expected a chip and a software that 'chip NAME --calibration' lists, as in h100 default"},
    {"[h100 a]\noverlap = 1\n  goes on\n", 3, 3, 7,
     "a line that begins with a blank goes on with source, range or fitted; this one follows none "
     "of them"},
    {"[h100 a]\nsource = a\x01z\n", 2, 11, 1,
     "expected text, found a control character or malformed UTF-8"},
    {"# nothing but\n[h100 a]\n", 2, 1, 8,
     "this calibration has no matmul_efficiency; write it, or base = CHIP SOFTWARE to take what "
     "is not written from a shipped calibration"},
    {"[h100 a]\nbase = h100\n[h100 a]\nbase = h100\n", 3, 1, 8, "[h100 a] is given twice"},
};

static void test_errors_have_a_place_and_a_sentence(void **state) {
    sm_arena *arena = sm_arena_new();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(parse(arena, wrong[i].text), SM_BAD_INPUT);
        assert_string_equal(error.sentence, wrong[i].sentence);
        assert_int_equal(error.line, wrong[i].line);
        assert_int_equal(error.column, wrong[i].column);
        assert_int_equal(error.span, wrong[i].span);
    }
    sm_arena_free(arena);
}

static void test_sizes_are_limited(void **state) {
    enum { BYTES = 40000, HEADINGS = 1001 };
    sm_arena *arena = sm_arena_new();
    char *text = sm_arena_alloc(arena, BYTES);
    strcpy(text, "[a b]\nsource = ");
    memset(text + strlen(text), 'x', 4001);
    assert_int_equal(parse(arena, text), SM_BAD_INPUT);
    assert_string_equal(error.sentence, "a text has at most 4000 bytes");
    char *many = text;
    for (int i = 0; i < HEADINGS; i++) many += sprintf(many, "[a b%d]\nbase = h100 default\n", i);
    assert_int_equal(parse(arena, text), SM_BAD_INPUT);
    assert_string_equal(error.sentence, "a file holds at most 1000 calibrations");
    sm_arena_free(arena);
}

static void test_any_allocation_may_fail(void **state) {
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_arena *arena = sm_arena_new();
        if (!arena) continue;
        sm_status status = parse(arena, "[h100 a]\nsource = x y\n" CONSTANTS);
        assert_true(status == SM_OK || status == SM_INTERNAL);
        char *text = status ? NULL : sm_calibration_format(&list[0], arena);
        if (!failing_alloc_refused(&loop)) assert_non_null(text);
        sm_arena_free(arena);
    }
}

/* Of serving software that is not named a chip is taken to be as of that which was measured on it:
 * neither better than the best nor worse than the worst, in any constant. */
static void test_the_usual_serving_software_is_among_those_measured(void **state) {
    enum { FEW = 3 };
    const double SLACK = 1.1;
    const sm_calibration *usual, *one;
    int chips = 0;
    for (size_t i = 0; (usual = sm_calibration_at(i)) != NULL; i++) {
        if (strcmp(usual->software, "serving") != 0) continue;
        for (int j = 0; j < SM_CONSTANT_COUNT; j++) {
            double least = INFINITY, most = 0, value = sm_calibration_get(usual, (sm_constant)j);
            int n = 0;
            for (size_t k = 0; (one = sm_calibration_at(k)) != NULL; k++) {
                const char *name = sm_software_of(one->software)->name;
                if (strcmp(one->chip, usual->chip) != 0 || strcmp(name, one->software) != 0 ||
                    strcmp(name, "serving") == 0)
                    continue;
                least = fmin(least, sm_calibration_get(one, (sm_constant)j));
                most = fmax(most, sm_calibration_get(one, (sm_constant)j));
                n++;
            }
            if (n < FEW) break;
            chips += j == 0;
            if (value < least / SLACK || value > most * SLACK)
                fail_msg("%s: %s is %g, of %d software %g to %g", usual->chip,
                         sm_constant_of((sm_constant)j)->name, value, n, least, most);
        }
    }
    assert_true(chips >= 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_usual_serving_software_is_among_those_measured),
        cmocka_unit_test(test_shipped_constants_lie_in_their_ranges),
        cmocka_unit_test(test_constants_of_steps_are_physical),
        cmocka_unit_test(test_what_of_a_step_lies_beyond_the_range),
        cmocka_unit_test(test_experts_have_an_interval_of_their_own_where_one_was_learned),
        cmocka_unit_test(test_shipped_calibrations_are_told_apart),
        cmocka_unit_test(test_shipped_calibrations_read_back),
        cmocka_unit_test(test_a_constant_is_set_by_number),
        cmocka_unit_test(test_a_chip_without_its_own_takes_its_relative),
        cmocka_unit_test(test_a_chip_may_name_its_calibration),
        cmocka_unit_test(test_every_software_of_a_chip_is_found_again),
        cmocka_unit_test(test_of_a_list_the_longest_name_is_taken),
        cmocka_unit_test(test_few_rows_say_little_about_an_interval),
        cmocka_unit_test(test_an_interval_to_one_side_stays_there_until_borrowed),
        cmocka_unit_test(test_a_file_is_read),
        cmocka_unit_test(test_long_texts_are_wrapped_and_read_back),
        cmocka_unit_test(test_random_calibrations_read_back),
        cmocka_unit_test(test_errors_have_a_place_and_a_sentence),
        cmocka_unit_test(test_sizes_are_limited),
        cmocka_unit_test(test_any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
