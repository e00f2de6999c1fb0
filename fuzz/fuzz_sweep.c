/* What --over of sweep takes, and the file of design where it begins as JSON does, from any bytes:
 * read or refused, and then stopped before anything is asked. */
#include "scalemodel/command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 8192 };

static char path[] = "/tmp/fuzz_sweep.XXXXXX";
static int file = -1;

static void leave(void) { unlink(path); }

/* The bytes as a file. */
static const char *written(const uint8_t *data, size_t size) {
    if (file < 0) {
        file = mkstemp(path);
        if (file < 0) abort();
        atexit(leave);
    }
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size) abort();
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int stop = 1;
    const sm_command_watch watch = {.size = sizeof watch, .stop = &stop};
    char text[MOST + 1];
    if (size == 0 || size > MOST || memchr(data, 0, size)) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    const bool study = data[0] == '{';
    const char *sweep[] = {"sweep", "--over", text, "--columns", "chips", "plan", "tensor=2"};
    const char *design[] = {"design", study ? written(data, size) : NULL};
    sm_command *command =
        study ? sm_command_ask(2, design, &watch) : sm_command_ask(7, sweep, &watch);
    const sm_status status = sm_command_status(command);
    if (status <= SM_NEGATIVE || status == SM_INTERNAL) abort(); /* nothing was asked */
    if (!sm_command_text(command, SM_FORM_ERROR, 0)) abort();
    sm_command_free(command);
    return 0;
}
