/* Whole files: what is read is what is there, a failed write leaves what was there before. */
#include "unit.h"
#include "failing_alloc.h"
#include "scalemodel/io.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static const char *in_folder(const char *name) {
    static char path[4][400];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static int make_folder(void **state) {
    strcpy(folder, "/tmp/test_files_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int entries(bool delete) {
    int n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        if (e->d_name[0] == '.') continue;
        if (delete) unlink(in_folder(e->d_name));
        n++;
    }
    if (dir) closedir(dir);
    return n;
}

static int remove_folder(void **state) {
    entries(true);
    return rmdir(folder);
}

static void assert_content(const char *path, const char *text, size_t length) {
    sm_arena *arena = sm_arena_new();
    sm_source source;
    sm_error err = {0};
    if (sm_io_read(path, arena, &source, &err) != SM_OK) fail_msg("%s", err.sentence);
    assert_int_equal(source.length, length);
    assert_memory_equal(source.text, text, length);
    assert_string_equal(source.name, path);
    assert_int_equal(source.text[length], 0);
    sm_arena_free(arena);
}

static void put(const char *path, const char *text) {
    sm_error err = {0};
    if (sm_io_write(path, text, strlen(text), &err) != SM_OK) fail_msg("%s", err.sentence);
}

static void reads_what_was_written(void **state) {
    const char *path = in_folder("bytes");
    size_t length = 100001;
    char *text = malloc(length);
    for (size_t i = 0; i < length; i++) text[i] = (char)(i * 7);
    assert_int_equal(sm_io_write(path, text, length, NULL), SM_OK);
    assert_content(path, text, length);
    assert_int_equal(sm_io_write(path, text, 0, NULL), SM_OK);
    assert_content(path, "", 0);
    free(text);
}

/* A check writes nothing: not over what is there, not into a folder, not into a pipe. */
static void what_can_be_written_is_told_before(void **state) {
    sm_error err = {0};
    entries(true);
    put(in_folder("kept"), "kept");
    assert_int_equal(sm_io_write_check(in_folder("kept"), &err), SM_OK);
    assert_int_equal(sm_io_write_check(in_folder("new"), &err), SM_OK);
    assert_content(in_folder("kept"), "kept", 4);
    assert_int_equal(sm_io_write_check("/dev/full", &err), SM_OK);
    assert_int_equal(sm_io_write_check("/no/such/file", &err), SM_IO);
    assert_string_equal(err.sentence,
                        "cannot create a file beside /no/such/file: No such file or directory");
    assert_int_equal(sm_io_write_check(folder, &err), SM_IO);
    assert_non_null(strstr(err.sentence, "Is a directory"));
    assert_int_equal(entries(false), 1);
}

static void replacing_leaves_one_file(void **state) {
    entries(true);
    put(in_folder("one"), "first");
    put(in_folder("one"), "second");
    assert_content(in_folder("one"), "second", 6);
    assert_int_equal(entries(false), 1);
}

static void permissions_are_kept(void **state) {
    struct stat is;
    put(in_folder("mode"), "a");
    assert_int_equal(chmod(in_folder("mode"), 0640), 0);
    put(in_folder("mode"), "b");
    assert_int_equal(stat(in_folder("mode"), &is), 0);
    assert_int_equal(is.st_mode & 07777, 0640);
    mode_t mask = umask(022);
    put(in_folder("fresh"), "c");
    umask(mask);
    assert_int_equal(stat(in_folder("fresh"), &is), 0);
    assert_int_equal(is.st_mode & 07777, 0644);
}

static void links_are_followed(void **state) {
    struct stat is;
    put(in_folder("target"), "old");
    assert_int_equal(symlink("target", in_folder("link")), 0);
    put(in_folder("link"), "new");
    assert_content(in_folder("target"), "new", 3);
    assert_int_equal(lstat(in_folder("link"), &is), 0);
    assert_true(S_ISLNK(is.st_mode));
}

static void devices_are_written_in_place(void **state) {
    struct stat is;
    sm_error err = {0};
    put("/dev/null", "gone");
    assert_int_equal(stat("/dev/null", &is), 0);
    assert_true(S_ISCHR(is.st_mode));
    assert_int_equal(sm_io_write("/dev/full", "x", 1, &err), SM_IO);
    assert_string_equal(err.sentence, "cannot write /dev/full: No space left on device");
}

static void pipes_are_read_to_the_end(void **state) {
    char path[40];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "through a pipe", 14), 14);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_content(path, "through a pipe", 14);
    close(ends[0]);
}

static void failures_name_the_file_and_the_reason(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_source source;
    sm_error err = {0};
    assert_int_equal(sm_io_read("/no/such/file", arena, &source, &err), SM_IO);
    assert_string_equal(err.sentence, "cannot open /no/such/file: No such file or directory");
    assert_int_equal(err.status, SM_IO);
    assert_int_equal(sm_io_read("/", arena, &source, &err), SM_IO);
    assert_string_equal(err.sentence, "cannot read /: Is a directory");
    assert_int_equal(sm_io_read("", arena, &source, &err), SM_IO);
    assert_int_equal(sm_io_read("/no/such", arena, &source, NULL), SM_IO);
    assert_int_equal(sm_io_write("/no/such/file", "x", 1, &err), SM_IO);
    assert_string_equal(err.sentence,
                        "cannot create a file beside /no/such/file: No such file or directory");
    assert_int_equal(sm_io_write(folder, "x", 1, &err), SM_IO);
    assert_non_null(strstr(err.sentence, "Is a directory"));
    char name[5000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_int_equal(sm_io_write(name, "x", 1, &err), SM_IO);
    sm_arena_free(arena);
}

/* The disk fills in the middle of a write: what was there stays, nothing is left beside it. */
static void a_failed_write_changes_nothing(void **state) {
    struct rlimit old, small;
    sm_error err = {0};
    char text[10000] = {0};
    entries(true);
    put(in_folder("kept"), "before");
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    sm_status status = sm_io_write(in_folder("kept"), text, sizeof text, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, SM_IO);
    assert_non_null(strstr(err.sentence, "File too large"));
    assert_content(in_folder("kept"), "before", 6);
    assert_int_equal(entries(false), 1);
}

/* A temporary name that is taken is not overwritten. */
static void taken_names_are_passed_over(void **state) {
    char taken[64];
    snprintf(taken, sizeof taken, "f.%ld-0.tmp", (long)getpid());
    entries(true);
    int file = open(in_folder(taken), O_CREAT | O_WRONLY, 0600);
    assert_true(file >= 0);
    close(file);
    put(in_folder("f"), "mine");
    assert_content(in_folder(taken), "", 0);
    assert_int_equal(entries(false), 2);
}

static void refused_memory_is_said(void **state) {
    put(in_folder("some"), "some text");
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_source source;
        sm_arena *arena = sm_arena_new();
        if (!arena) continue;
        sm_status status = sm_io_read(in_folder("some"), arena, &source, NULL);
        if (failing_alloc_refused(&loop)) assert_int_equal(status, SM_INTERNAL);
        else assert_int_equal(status, SM_OK);
        sm_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(what_can_be_written_is_told_before),
        cmocka_unit_test(replacing_leaves_one_file),
        cmocka_unit_test(permissions_are_kept),
        cmocka_unit_test(links_are_followed),
        cmocka_unit_test(devices_are_written_in_place),
        cmocka_unit_test(pipes_are_read_to_the_end),
        cmocka_unit_test(failures_name_the_file_and_the_reason),
        cmocka_unit_test(a_failed_write_changes_nothing),
        cmocka_unit_test(taken_names_are_passed_over),
        cmocka_unit_test(refused_memory_is_said),
    };
    return cmocka_run_group_tests_name("files", tests, make_folder, remove_folder);
}
