/* book: every item of every chapter with the library's figures, the misses with their reasons, and
 * the count. */
#include "book.h"
#include <stdio.h>

static int show(const book_chapter *chapter) {
    int reproduced = 0;
    book_item item;
    printf("%s\n", chapter->page);
    for (int i = 0; i < chapter->n; i++) {
        bool right = book_run(&chapter->answers[i], &item);
        reproduced += right;
        printf("  %s %s: %s\n", right ? "ok  " : "miss", item.id, right ? item.given : item.why);
    }
    return reproduced;
}

int main(void) {
    int reproduced = 0, items = 0;
    for (int i = 0; i < BOOK_CHAPTERS; i++) {
        reproduced += show(book_chapters[i]);
        items += book_chapters[i]->n;
    }
    printf("book: %d of %d reproduced\n", reproduced, items);
    return 0;
}
