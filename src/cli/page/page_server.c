/* page: the page for browsers, served from its installed files on this machine alone. A program of
 * its own, so that only it needs libmicrohttpd: `scalemodel page` starts it.
 *
 * It listens on 127.0.0.1 and answers only those who ask for that name, so that no other site can
 * reach it under a name of its own (DNS rebinding). It sends the files of one folder and nothing
 * else; what the page may do stands in its policy: its own scripts, WebAssembly, and a worker. */
#include "our_name.h"
#include "program.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char policy[] =
    "default-src 'none'; script-src 'self' blob: 'wasm-unsafe-eval'; worker-src 'self' blob:; "
    "connect-src 'self' blob:; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri "
    "'none'; "
    "form-action 'none'; frame-ancestors 'none'";

typedef struct values {
    int port;
} page_options;

typedef struct served {
    char folder[CLI_PATH_ROOM];
    unsigned port;
} served;

static const char *type_of(const char *name) {
    static const char *const types[][2] = {{".html", "text/html; charset=utf-8"},
                                           {".js", "text/javascript; charset=utf-8"},
                                           {".css", "text/css; charset=utf-8"}};
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end != NULL && i < sizeof types / sizeof *types; i++)
        if (strcmp(end, types[i][0]) == 0) return types[i][1];
    return NULL;
}

/* A file of the folder: letters, digits, "._-", no folder within it; -1 when there is none. */
static int open_file(const served *s, const char *name, struct stat *is) {
    char path[2 * CLI_PATH_ROOM];
    if (type_of(name) == NULL || name[0] == '.' || strlen(name) > 80 ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-")] != '\0')
        return -1;
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0 && (fstat(file, is) != 0 || !S_ISREG(is->st_mode))) {
        close(file);
        file = -1;
    }
    return file;
}

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response, const char *type) {
    if (response == NULL) return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Content-Security-Policy", policy);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Cache-Control", "no-cache");
    enum MHD_Result sent = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return sent;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, char *why) {
    return reply(connection, status,
                 MHD_create_response_from_buffer(strlen(why), why, MHD_RESPMEM_PERSISTENT),
                 "text/plain; charset=utf-8");
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *bytes, void **request) {
    const served *s = context;
    struct stat is;
    static char elsewhere[] = "Ask for 127.0.0.1 or localhost.\n", only[] = "GET and HEAD only.\n",
                none[] = "There is no such file.\n";
    (void)version, (void)data, (void)bytes, (void)request;
    if (!is_our_name(connection, s->port)) return refuse(connection, MHD_HTTP_FORBIDDEN, elsewhere);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, only);
    const char *name = strcmp(url, "/") == 0 ? "index.html" : url + 1;
    int file = open_file(s, name, &is);
    if (file < 0) return refuse(connection, MHD_HTTP_NOT_FOUND, none);
    return reply(connection, MHD_HTTP_OK, MHD_create_response_from_fd((size_t)is.st_size, file),
                 type_of(name));
}

static sm_status find_folder(served *s, sm_error *err) {
    static const char *const places[] = {"page", "../page", "../share/scalemodel/page"};
    struct stat is;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!cli_beside(places[i], s->folder)) break;
        int file = open_file(s, "scalemodel.js", &is);
        if (file >= 0) return close(file), SM_OK;
    }
    return sm_fail(err, SM_IO,
                   "the page is not installed: 'make page' builds it (emscripten), and 'make "
                   "install' then installs it");
}

static sm_status listen_on(served *s, int port, struct MHD_Daemon **daemon, sm_error *err) {
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer, s,
                               MHD_OPTION_SOCK_ADDR, &here, MHD_OPTION_CONNECTION_LIMIT, 64u,
                               MHD_OPTION_CONNECTION_TIMEOUT, 60u, MHD_OPTION_END);
    if (*daemon == NULL)
        return sm_fail(err, SM_IO, "cannot listen on port %d of 127.0.0.1: %s", port,
                       strerror(errno));
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(*daemon, MHD_DAEMON_INFO_BIND_PORT);
    s->port = info != NULL ? info->port : (unsigned)port;
    return SM_OK;
}

static sm_status run_page(const cli_call *call, sm_report *r, sm_error *err) {
    const page_options *options = call->values;
    static served s;
    struct MHD_Daemon *daemon = NULL;
    sigset_t ends;
    int ended;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sm_status status = find_folder(&s, err);
    /* Before the daemon's thread begins, which inherits the mask. */
    if (!status) pthread_sigmask(SIG_BLOCK, &ends, NULL);
    if (!status) status = listen_on(&s, options->port, &daemon, err);
    if (status) return status;
    printf("http://127.0.0.1:%u/  (Ctrl-C ends it)\n", s.port);
    fflush(stdout);
    sigwait(&ends, &ended);
    MHD_stop_daemon(daemon);
    sm_put(r, r->data, "port", s.port);
    return SM_OK;
}

static const cli_verb page_verb = {
    .about = &verbs_page,
    CLI_VALUES(AT("port", port)),
    .tells_progress = true,
    .run = run_page,
};

int main(int argc, char **argv) {
    static const cli_verb *const verbs[] = {&page_verb};
    static const cli_program program = {
        .name = "scalemodel", .summary = "The page.", .verb = verbs, .verbs = 1};
    return cli_main(&program, argc, argv);
}
