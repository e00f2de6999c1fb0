/* book: every item of every chapter, the misses with their reasons, and the count. */
#include "book.h"
#include <stdio.h>

static int show(const book_chapter *chapter) {
    int reproduced = 0;
    book_item item;
    printf("%s %d / %d\n", chapter->name, book_reproduced(chapter), chapter->n);
    for (int i = 0; i < chapter->n; i++) {
        if (book_run(&chapter->answers[i], &item)) reproduced++;
        else printf("  miss %s: %s\n", item.id, item.why);
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
