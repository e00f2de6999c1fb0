/* machine: processor, memory, caches and libraries, as the system tells of them. */
#include "measuring.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Where the libraries are linked, they say what they are. */
extern char *openblas_get_config(void) __attribute__((weak));
extern char *openblas_get_corename(void) __attribute__((weak));
extern int MPI_Get_library_version(char *version, int *length) __attribute__((weak));

enum { LINE = 256, VERSION_ROOM = 8192 };

/* Into files whose texts have no '#' and no control characters; at most `most` bytes. */
static char *plain(sm_arena *arena, const char *text, size_t most) {
    char *copy = sm_arena_copy(arena, text, strlen(text) < most ? strlen(text) : most);
    for (char *c = copy; c && *c; c++)
        if (*c == '#' || *c < ' ' || *c > '~') *c = ' ';
    for (size_t n = copy ? strlen(copy) : 0; n > 0 && copy[n - 1] == ' ';) copy[--n] = 0;
    return copy;
}

/* What follows "key :" in a file of such lines. */
static bool find_field(const char *path, const char *key, char value[LINE]) {
    char line[LINE];
    FILE *file = fopen(path, "r");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0) continue;
        colon++;
        while (*colon == ' ' || *colon == '\t') colon++;
        snprintf(value, LINE, "%s", colon);
        found = true;
    }
    if (file) fclose(file);
    return found;
}

static double number_field(const char *path, const char *key) {
    char value[LINE];
    return find_field(path, key, value) ? strtod(value, NULL) : 0.0;
}

/* "512K" of /sys/devices/system/cpu/cpu0/cache/index2/size. */
static size_t cache_bytes(int index) {
    char path[128], text[32] = "", *end;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(text, sizeof text, file)) text[0] = 0;
    fclose(file);
    unsigned long size = strtoul(text, &end, 10);
    if (*end == 'K') size <<= 10;
    if (*end == 'M') size <<= 20;
    return size < (1ul << 40) ? size : 0;
}

static const char *mpi_version(sm_arena *arena) {
    char text[VERSION_ROOM] = "";
    int length = 0;
    if (!MPI_Get_library_version) return "";
    if (MPI_Get_library_version(text, &length) != 0) return "";
    text[strcspn(text, ",\n")] = 0; /* the rest tells how it was built */
    return plain(arena, text, 80);
}

/* "OpenBLAS 0.3.21" of a line that tells all its options, and the kernels it chose. */
static const char *blas_version(sm_arena *arena) {
    if (!openblas_get_config || !openblas_get_corename) return "cblas";
    char *name = plain(arena, openblas_get_config(), 80);
    char *core = plain(arena, openblas_get_corename(), 40);
    if (!name || !core) return NULL;
    size_t n = strcspn(name, " ");
    if (name[n]) n += 1 + strcspn(name + n + 1, " ");
    return sm_arena_printf(arena, "%.*s (%s)", (int)n, name, core);
}

sm_status machine_read(sm_arena *arena, machine *m, sm_error *err) {
    char text[LINE] = "unknown processor", date[16] = "";
    time_t now = time(NULL);
    struct tm day;
    if (gmtime_r(&now, &day)) strftime(date, sizeof date, "%Y-%m-%d", &day);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    find_field("/proc/cpuinfo", "model name", text);
    *m = (machine){.cpu = plain(arena, text, 80),
                   .blas = blas_version(arena),
                   .mpi = mpi_version(arena),
                   .date = sm_arena_copy(arena, date, strlen(date)),
                   .cpus = cpus > 0 && cpus < 65536 ? (int)cpus : 1,
                   .memory_bytes = 1024.0 * number_field("/proc/meminfo", "MemTotal"),
                   .clock_hz = 1e6 * number_field("/proc/cpuinfo", "cpu MHz")};
    /* Index 2 is the second level and index 3 the third, where there are such. */
    m->private_cache_bytes = cache_bytes(2);
    m->last_cache_bytes = cache_bytes(3);
    if (m->last_cache_bytes < m->private_cache_bytes) m->last_cache_bytes = m->private_cache_bytes;
    return m->cpu && m->blas && m->mpi && m->date ? SM_OK : sm_fail_memory(err);
}
