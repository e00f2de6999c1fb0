/* Runs a fuzz target over saved inputs without libFuzzer: replay FILE-OR-FOLDER...
 * So the corpora are ordinary tests. Prints one TAP line; a crash is the failure. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long replayed;

/* The whole file in memory of exactly its size, so that AddressSanitizer sees a read past it. */
static bool replay_stream(FILE *in) {
    if (fseek(in, 0, SEEK_END) != 0) return false;
    long size = ftell(in);
    if (size < 0 || fseek(in, 0, SEEK_SET) != 0) return false;
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    bool read = data != NULL && fread(data, 1, (size_t)size, in) == (size_t)size;
    if (read) LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    replayed += read;
    return read;
}

static bool replay_file(const char *path) {
    FILE *in = fopen(path, "rb");
    if (in == NULL) return false;
    bool done = replay_stream(in);
    fclose(in);
    if (!done) fprintf(stderr, "replay: cannot read %s\n", path);
    return done;
}

static bool replay_folder(DIR *folder, const char *path) {
    bool done = true;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char file[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        done = replay_file(file) && done;
    }
    return done;
}

int main(int argc, char **argv) {
    bool done = true;
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        done = (folder != NULL ? replay_folder(folder, argv[i]) : replay_file(argv[i])) && done;
        if (folder != NULL) closedir(folder);
    }
    printf("%s 1 - %ld inputs replayed\n", done && replayed > 0 ? "ok" : "not ok", replayed);
    return done && replayed > 0 ? 0 : 1;
}
