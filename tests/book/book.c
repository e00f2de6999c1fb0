/* Comparing answers, and running chapters. */
#include "book.h"
#include "instruments.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

const book_chapter *const book_chapters[BOOK_CHAPTERS] = {&book_roofline,  &book_tpus,
                                                          &book_sharding,  &book_transformers,
                                                          &book_training,  &book_applied_training,
                                                          &book_inference, &book_applied_inference,
                                                          &book_profiling, &book_jax,
                                                          &book_gpus};

/* What is compared over and over is given once. */
static void give(book_item *item, const char *text) {
    size_t length = strlen(item->given);
    if (strstr(item->given, text) == NULL)
        snprintf(item->given + length, sizeof item->given - length, "%s%s", length > 0 ? "; " : "",
                 text);
}

static void give_number(book_item *item, const char *what, double got) {
    char text[160];
    snprintf(text, sizeof text, "%s = ", what);
    if (strstr(item->given, text) != NULL) return;
    snprintf(text, sizeof text, "%s = %.5g", what, got);
    give(item, text);
}

void book_near(book_item *item, const char *what, double got, double expected, double tolerance) {
    item->values++;
    give_number(item, what, got);
    if (fabs(got - expected) <= tolerance * fabs(expected)) return; /* false for NaN */
    if (item->wrong++ > 0) return;
    if (isfinite(got))
        snprintf(item->why, sizeof item->why, "%s is %.6g, not %.6g", what, got, expected);
    else snprintf(item->why, sizeof item->why, "%s: %s", what, book_last_error());
}

void book_is(book_item *item, const char *what, double got, double expected) {
    book_near(item, what, got, expected, 0.005);
}

void book_exactly(book_item *item, const char *what, double got, double expected) {
    book_near(item, what, got, expected, 0);
}

void book_holds(book_item *item, const char *what, bool true_of_it) {
    item->values++;
    if (true_of_it) give(item, what);
    if (true_of_it || item->wrong++ > 0) return;
    snprintf(item->why, sizeof item->why, "it does not hold that %s", what);
}

bool book_run(const book_answer *answer, book_item *item) {
    *item = (book_item){.id = answer->id};
    if (answer->answer != NULL) answer->answer(item);
    if (item->values > 0) return item->wrong == 0;
    snprintf(item->why, sizeof item->why, "%s",
             answer->lacking != NULL ? answer->lacking : "nothing was compared");
    return false;
}
