/* sm_io_model_load: a model by its name in the catalogue, or from a file. */
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "scalemodel/io.h"

/* What the catalogue has for a name: the nearest, and "a, b and 3 more" that the name begins. */
typedef struct like {
    const char *nearest; /* NULL: none is near */
    size_t begun;
    char list[400];
} like;

static like models_like(const char *name) {
    enum { MOST = 5 };
    like l = {.list = ""};
    size_t n = strlen(name), used = 0;
    for (size_t i = 0; i < sm_catalogue_count(); i++) {
        const char *other = sm_catalogue_at(i)->name, *two[] = {l.nearest, other};
        l.nearest = sm_nearest(name, n, two, 2);
        if (!n || strncasecmp(other, name, n) != 0 || (other[n] != '-' && name[n - 1] != '-'))
            continue;
        if (l.begun++ < MOST && used < sizeof l.list)
            used += (size_t)snprintf(l.list + used, sizeof l.list - used, "%s%s", used ? ", " : "",
                                     other);
    }
    if (l.begun > MOST && used < sizeof l.list)
        snprintf(l.list + used, sizeof l.list - used, " and %zu more", l.begun - MOST);
    return l;
}

/* A pasted Hugging Face id looks like a path: nothing is fetched, but the catalogue may have the
 * model. */
static void suggest_model(const char *path, sm_error *err) {
    const char *slash = strrchr(path, '/');
    const char *near = slash ? models_like(slash + 1).nearest : NULL;
    bool id = slash && strchr(path, '/') == slash && path[0] != '.' && !strstr(slash, ".json");
    size_t n = err ? strlen(err->sentence) : 0;
    if (err && near)
        snprintf(err->sentence + n, sizeof err->sentence - n, "; the catalogue has %s", near);
    else if (err && id)
        snprintf(err->sentence + n, sizeof err->sentence - n,
                 "; a hub's id that the catalogue lacks: give the path of its config.json");
}

static sm_status fail_unknown_name(const char *name, sm_error *err) {
    sm_source source = sm_source_of("model", name);
    sm_span all = {0, source.length};
    const like l = models_like(name);
    const char *near = l.nearest;
    if (l.begun > 1)
        return sm_fail_at(err, &source, all, "the name of more than one model: %s", l.list);
    return sm_fail_at(err, &source, all, "there is no model of this name in the catalogue; %s%s",
                      near ? "the nearest is "
                           : "a path of a config.json contains '/' or ends in .json",
                      near ? near : "");
}

enum { MOST_CONFIG_BYTES = 64 << 20 };

/* Behind the object that begins here or later. */
static const char *behind_object(const char *text) {
    int depth = 0;
    for (;; text++) {
        if (*text == '{') depth++;
        if (*text == '}' && --depth == 0) return text + 1;
    }
}

/* The config of a model of the catalogue, stored as the end of its id says; in place of its own
 * way, where that has one. */
static sm_status config_of(const sm_catalogue_entry *entry, const char *stored, sm_arena *arena,
                           sm_source *source, sm_error *err) {
    static const char key[] = "\"quantization_config\"";
    const char *text = entry->config_json, *own = stored ? strstr(text, key) : NULL;
    const char *at = own ? own : strchr(text, '{') + 1, *rest = own ? behind_object(own) : at;
    if (stored)
        text = sm_arena_printf(arena, "%.*s%s: %s%s%s", (int)(at - text), text, key, stored,
                               own ? "" : ", ", rest);
    if (!text) return sm_fail_memory(err);
    *source = sm_source_of(entry->name, text);
    return SM_OK;
}

sm_status sm_io_model_source(const char *name_or_path, sm_arena *arena, sm_source *source,
                             sm_error *err) {
    struct stat is;
    if (strcmp(name_or_path, "-") == 0)
        return sm_io_read_packed("-", MOST_CONFIG_BYTES, arena, source, err);
    size_t n = strlen(name_or_path);
    if (name_or_path[0] == '{') { /* no path: the config itself */
        *source = sm_source_of("MODEL", name_or_path);
        return SM_OK;
    }
    bool is_path =
        strchr(name_or_path, '/') || (n > 5 && strcmp(name_or_path + n - 5, ".json") == 0);
    const char *stored = NULL;
    const sm_catalogue_entry *entry = is_path ? NULL : sm_catalogue_find(name_or_path, n);
    bool whole = entry && sm_is_called(entry->name, entry->aliases, name_or_path, n);
    bool there = !whole && stat(name_or_path, &is) == 0;
    if (there && S_ISDIR(is.st_mode)) { /* a checkpoint's folder */
        while (n > 1 && name_or_path[n - 1] == '/') n--;
        const char *config = sm_arena_printf(arena, "%.*s/config.json", (int)n, name_or_path);
        return config ? sm_io_read(config, arena, source, err) : sm_fail_memory(err);
    }
    /* "meta-llama/Llama-3.1-8B-Instruct" is an id; what begins at a folder, "./Llama", is a path */
    bool id =
        !strchr("./", name_or_path[0]) && strchr(name_or_path, '/') == strrchr(name_or_path, '/');
    if (!entry && !there && id) entry = sm_catalogue_of_id(name_or_path, &stored);
    if (entry) return config_of(entry, stored, arena, source, err);
    if (!is_path) return fail_unknown_name(name_or_path, err);
    sm_status status = sm_io_read(name_or_path, arena, source, err);
    if (status == SM_IO) suggest_model(name_or_path, err);
    return status;
}

sm_status sm_io_model_load(const char *name_or_path, sm_arena *arena, sm_model *model,
                           sm_error *err) {
    sm_source source;
    memset(model, 0, sizeof *model);
    model->note = "";
    sm_status status = sm_io_model_source(name_or_path, arena, &source, err);
    return status == SM_OK ? sm_model_parse(NULL, NULL, &source, arena, model, err) : status;
}

sm_status sm_io_library(const char *const *path, size_t n, sm_arena *arena, const sm_library **out,
                        sm_error *err) {
    sm_library *own;
    *out = sm_library_shipped();
    if (n == 0) return SM_OK;
    sm_status status = sm_library_new(arena, *out, &own, err);
    for (size_t i = 0; i < n && !status; i++) {
        sm_source source;
        status = sm_io_read(path[i], arena, &source, err);
        if (!status) status = sm_library_read(own, &source, err);
    }
    if (!status) status = sm_library_check(own, err);
    *out = own;
    return status;
}
