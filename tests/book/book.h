/* The acceptance set: the numeric answers of the book How To Scale Your Model, each obtained from
 * the library. An item is reproduced when every value it asks for comes out right; what the library
 * cannot answer is a miss with its reason. */
#pragma once
#include <stdbool.h>

typedef struct book_item {
    const char *id;
    int values, wrong; /* compared so far */
    char why[320];     /* of the first that was wrong */
    char given[400];   /* the library's figures: "seconds = 0.00101; bytes = 4096" */
} book_item;

/* The answer of the library beside the right one, which is the book's unless the book slips. */
void book_is(book_item *item, const char *what, double got, double expected); /* within 0.5 % */
void book_exactly(book_item *item, const char *what, double got, double expected);
/* within a tolerance of its own: the caller says which rounding of the book it is */
void book_near(book_item *item, const char *what, double got, double expected, double tolerance);
void book_holds(book_item *item, const char *what, bool true_of_it);

/* One row per item: how it is answered, or what is lacking. */
typedef struct book_answer {
    const char *id;
    void (*answer)(book_item *item); /* NULL: not possible */
    const char *lacking;
} book_answer;

typedef struct book_chapter {
    const char *page; /* of docs/book */
    const book_answer *answers;
    int n;
} book_chapter;

enum { BOOK_CHAPTERS = 11 };
extern const book_chapter *const book_chapters[BOOK_CHAPTERS];
extern const book_chapter book_roofline, book_tpus, book_sharding, book_transformers, book_training,
    book_applied_training, book_gpus, book_inference, book_applied_inference, book_profiling,
    book_jax;

/* Runs one item; true when it is reproduced. item->why holds the reason otherwise. */
bool book_run(const book_answer *answer, book_item *item);
