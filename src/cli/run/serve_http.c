/* serve_http: POST /v1/completions, whole or as server-sent events; GET /v1/models and /health.
 *
 * One thread of libmicrohttpd reads and writes; a connection that waits for tokens is suspended
 * until the engine wakes it. Bodies, connections and the queue are bounded: what comes beyond is
 * answered with 413, 503 and 429; so is the time that a client takes over a request or over an
 * answer that is whole, byte by byte or not at all. On loopback only those who ask for that name
 * are answered, and only JSON is taken, so that no other site can reach it through a browser (DNS
 * rebinding, cross-origin forms). */
#include "our_name.h"
#include "serve_engine.h"
#include "scalemodel/json.h"
#include "scalemodel/page.h"
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <math.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

enum { MOST_BODY = 4 << 20, MOST_CONNECTIONS = 1024, LINGER_MS = 3000 };
/* Bodies with pictures, and all that are on their way together. */
enum { MOST_SEEN = 16 << 20, MOST_HELD = 512 << 20 };

struct serve_http {
    serve_http_job job;
    struct MHD_Daemon *daemon;
    unsigned port;
    bool loopback;
    size_t held;          /* bytes of bodies that are not read yet */
    pthread_mutex_t lock; /* of what follows */
    int asking;           /* requests whose answers are not sent yet */
    serve_http_counts counts;
    uint64_t number;
    double due_s[FD_SETSIZE]; /* of each socket, while its client's turn lasts; 0, INFINITY: none */
};

/* A request on its way, from its first byte to the last of its answer. */
typedef struct asked {
    serve_http *http;
    struct MHD_Connection *connection;
    char *body;
    size_t bytes, room;
    bool too_large, too_many; /* too_many: bytes of all that ask */
    sm_completion wants;      /* its texts are gone once it is on the desk */
    serve_request *q;         /* on the desk; NULL: not yet */
    bool whole;               /* an answer in one piece, which waits for the end */
    bool suspended;           /* under the desk's lock */
    uint64_t number;
    long created;
    /* a stream */
    size_t sent; /* tokens */
    bool told_end;
    char *part; /* the event under way */
    size_t part_bytes, part_at;
} asked;

/* ---- connections ---- */

/* Whose turn it is: the client's, for so long, or the engine's (INFINITY). */
static void give_turn(serve_http *http, struct MHD_Connection *connection, double seconds) {
    const union MHD_ConnectionInfo *its =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    pthread_mutex_lock(&http->lock);
    http->due_s[its->connect_fd] = sm_clock_s() + seconds; /* select takes no larger ones */
    pthread_mutex_unlock(&http->lock);
}

static void come_or_go(void *context, struct MHD_Connection *connection, void **place,
                       enum MHD_ConnectionNotificationCode what) {
    serve_http *http = context;
    bool comes = what == MHD_CONNECTION_NOTIFY_STARTED;
    (void)place;
    give_turn(http, connection, comes ? http->job.patience_s : INFINITY);
}

void serve_http_hurry(serve_http *http) {
    if (!http) return;
    pthread_mutex_lock(&http->lock);
    for (int i = 0; i < FD_SETSIZE; i++)
        if (http->due_s[i] > 0 && http->due_s[i] < sm_clock_s()) shutdown(i, SHUT_RDWR);
    pthread_mutex_unlock(&http->lock);
}

/* ---- answers ---- */

/* A report of which only the data are wanted: one line of JSON. NULL when out of memory. */
static char *json_of(sm_report *r, size_t *bytes) {
    char *text = NULL;
    sm_error err;
    if (!r || sm_json_format(r->data, SM_JSON_LINE, r->arena, &text, bytes, &err)) return NULL;
    return r->out_of_memory ? NULL : text;
}

/* Sends the data of a report, and frees it. */
static enum MHD_Result send_json(struct MHD_Connection *connection, unsigned status, sm_report *r) {
    size_t bytes = 0;
    char *text = json_of(r, &bytes);
    struct MHD_Response *response =
        text ? MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_COPY) : NULL;
    sm_report_free(r);
    if (!response) return MHD_NO;
    MHD_add_response_header(response, "Content-Type", "application/json");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(response, "Retry-After", "1");
    enum MHD_Result sent = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return sent;
}

/* As the API words errors. */
static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status,
                              const char *sentence) {
    sm_report *r = sm_report_new();
    if (!r) return MHD_NO;
    sm_put(r, sm_put_object(r, r->data, "error"), "message|type|param|code", sentence,
           status == MHD_HTTP_TOO_MANY_REQUESTS       ? "rate_limit_error"
           : status >= MHD_HTTP_INTERNAL_SERVER_ERROR ? "server_error"
                                                      : "invalid_request_error",
           NAN, NAN);
    return send_json(connection, status, r);
}

static void count(serve_http *http, double *which) {
    pthread_mutex_lock(&http->lock);
    ++*which;
    pthread_mutex_unlock(&http->lock);
}

/* Tokens [from, to) of a completion: their text, where words are bytes, and their numbers. */
static void put_choice(sm_report *r, sm_data *list, const asked *a, size_t from, size_t to,
                       serve_end end) {
    const int32_t *token = a->q->token + a->q->prompt;
    sm_data *choice = sm_put_object(r, list, NULL);
    char *text = sm_report_room(r, 3 * (to - from) + 1, 1);
    size_t n = 0;
    for (size_t i = from; text && a->wants.bytes && i < to; i++)
        if (token[i]) text[n++] = (char)token[i];
        else n += (size_t)snprintf(text + n, 4, "\xEF\xBF\xBD"); /* what no text here holds */
    sm_put(r, choice, "index|text", 0, text);
    sm_data *numbers = sm_put_array(r, choice, "token_ids");
    for (size_t i = from; i < to; i++) sm_put(r, numbers, NULL, token[i]);
    sm_put(r, choice, "logprobs", NAN);
    if (end == SERVE_LENGTH || end == SERVE_STOP)
        sm_put(r, choice, "finish_reason", end == SERVE_STOP ? "stop" : "length");
    else sm_put(r, choice, "finish_reason", NAN);
}

/* Returns the list of its choices. */
static sm_data *put_head(sm_report *r, const asked *a) {
    sm_put(r, r->data, "id|object|created|model",
           sm_textf(r, "cmpl-%llu", (unsigned long long)a->number), "text_completion",
           (double)a->created, a->http->job.limits.model);
    return sm_put_array(r, r->data, "choices");
}

static void put_usage(sm_report *r, const asked *a) {
    double prompt = (double)a->q->prompt, made = (double)a->q->made;
    sm_put(r, sm_put_object(r, r->data, "usage"), "prompt_tokens|completion_tokens|total_tokens",
           prompt, made, prompt + made);
}

static enum MHD_Result answer_whole(asked *a) {
    if (a->q->end == SERVE_ABANDONED)
        return refuse(a->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                      "The engine ended before the completion did.");
    sm_report *r = sm_report_new();
    if (!r) return MHD_NO;
    put_choice(r, put_head(r, a), a, 0, a->q->made, a->q->end);
    put_usage(r, a);
    return send_json(a->connection, MHD_HTTP_OK, r);
}

/* ---- a stream ---- */

/* Bytes that begin a character whose rest is not there yet wait for it, unless nothing follows. */
static size_t whole_characters(const asked *a, size_t to) {
    const int32_t *token = a->q->token + a->q->prompt;
    for (size_t back = 1; back <= 3 && back <= to - a->sent; back++) {
        unsigned byte = (unsigned)token[to - back];
        size_t needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
        if (byte < 0x80) return to;
        if (byte >= 0xc0) return needs > back ? to - back : to;
    }
    return to;
}

/* "data: {...}", appended to the part under way; frees the report. */
static bool add_event(asked *a, sm_report *r) {
    size_t bytes = 0;
    const char *text = json_of(r, &bytes);
    char *wider = text ? sm_realloc(a->part, a->part_bytes + bytes + 32) : NULL;
    if (wider) {
        a->part = wider;
        a->part_bytes += (size_t)sprintf(wider + a->part_bytes, "data: %s\n\n", text);
    }
    sm_report_free(r);
    return wider != NULL;
}

/* The next event, of which the desk's lock is held: false when there is none yet. */
static bool next_event(asked *a, bool *failed) {
    static const char done[] = "data: [DONE]\n\n";
    serve_request *q = a->q;
    size_t to = q->shown;
    bool ends = q->end != SERVE_GOES_ON;
    if (a->wants.bytes && !ends) to = whole_characters(a, to);
    if (to <= a->sent && !ends) return false;
    sm_report *r = sm_report_new();
    a->part_bytes = a->part_at = 0;
    if (r) put_choice(r, put_head(r, a), a, a->sent, to, q->end);
    *failed = !r || !add_event(a, r);
    if (!*failed && ends && a->wants.usage) {
        r = sm_report_new();
        if (r) put_head(r, a);
        if (r) put_usage(r, a);
        *failed = !r || !add_event(a, r);
    }
    if (!*failed && ends) {
        memcpy(a->part + a->part_bytes, done, sizeof done - 1); /* add_event left room */
        a->part_bytes += sizeof done - 1;
    }
    a->sent = to;
    a->told_end = ends;
    return true;
}

static ssize_t read_stream(void *context, uint64_t at, char *to, size_t most) {
    asked *a = context;
    serve_desk *desk = a->http->job.desk;
    (void)at;
    if (a->part && a->part_at == a->part_bytes) {
        sm_free(a->part);
        a->part = NULL;
        if (a->told_end) return MHD_CONTENT_READER_END_OF_STREAM;
    }
    if (!a->part) {
        bool failed = false;
        pthread_mutex_lock(&desk->lock);
        bool there = next_event(a, &failed);
        if (!there) {
            a->suspended = true;
            MHD_suspend_connection(a->connection);
        }
        pthread_mutex_unlock(&desk->lock);
        if (failed) return MHD_CONTENT_READER_END_WITH_ERROR;
        if (!there) return 0;
    }
    size_t n = a->part_bytes - a->part_at < most ? a->part_bytes - a->part_at : most;
    memcpy(to, a->part + a->part_at, n);
    a->part_at += n;
    return (ssize_t)n;
}

static enum MHD_Result answer_stream(asked *a) {
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream, a, NULL);
    if (!response) return MHD_NO;
    MHD_add_response_header(response, "Content-Type", "text/event-stream");
    MHD_add_response_header(response, "Cache-Control", "no-cache");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    enum MHD_Result sent = MHD_queue_response(a->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return sent;
}

/* ---- completions ---- */

/* By the engine, under the desk's lock. */
static void wake(void *context) {
    asked *a = context;
    if (a->q->end != SERVE_GOES_ON) give_turn(a->http, a->connection, a->http->job.patience_s);
    if (!a->suspended || (a->whole && a->q->end == SERVE_GOES_ON)) return;
    a->suspended = false;
    MHD_resume_connection(a->connection);
}

/* Numbers beyond what normed pixels are would only make scores overflow. */
static sm_status take_pictures(const asked *a, serve_request *q, sm_arena *arena, sm_error *err) {
    enum { LARGEST = 100 };
    const seen_shape *shape = a->http->job.shape;
    const size_t numbers = shape->places * shape->width;
    sm_safetensors file;
    size_t n;
    sm_status status = serve_request_look(q, a->wants.pictures, numbers, err);
    for (size_t k = 0; !status && k < q->pictures; k++) {
        const sm_source *source = &a->wants.picture[k];
        status = sm_io_safetensors_held(source, arena, &file, err);
        if (!status) status = seen_count(shape, &file, source->name, &n, err);
        if (!status && n > 1)
            status = sm_fail(err, SM_BAD_INPUT, "each of images is one picture, and %zu has %zu",
                             k + 1, n);
        if (!status) status = seen_take(shape, &file, q->given + k * numbers, err);
    }
    for (size_t i = 0; !status && i < q->pictures * numbers; i++)
        if (!(fabsf(q->given[i]) <= LARGEST))
            status = sm_fail(err, SM_BAD_INPUT, "numbers of a picture lie within -%d and %d",
                             LARGEST, LARGEST);
    return status;
}

static sm_status make_request(asked *a, sm_arena *arena, sm_error *err) {
    const sm_completion *c = &a->wants;
    serve_request *q = NULL;
    sm_status status = serve_request_new(c->prompt, c->prompt_tokens, c->most, &q, err);
    if (!status && c->pictures) status = take_pictures(a, q, arena, err);
    if (status) {
        serve_request_free(q);
        return status;
    }
    q->words = c->bytes ? SM_COMPLETION_BYTES : a->http->job.words;
    q->temperature = c->temperature;
    q->seed = c->seeded ? c->seed : a->number;
    q->stops = c->stops;
    for (int i = 0; i < c->stops; i++) {
        q->stop_bytes[i] = strlen(c->stop[i]);
        memcpy(q->stop[i], c->stop[i], q->stop_bytes[i]);
        if (q->stop_bytes[i] > q->longest_stop) q->longest_stop = q->stop_bytes[i];
    }
    q->stop_words = c->stop_words;
    for (size_t i = 0; i < c->stop_words; i++) q->stop_word[i] = c->stop_word[i];
    if (c->stop_words && q->longest_stop < 1) q->longest_stop = 1;
    q->tell = wake;
    q->context = a;
    a->q = q;
    return SM_OK;
}

static enum MHD_Result refuse_body(asked *a, const sm_error *err) {
    char sentence[sizeof err->sentence + 64];
    if (err->status != SM_BAD_INPUT)
        return refuse(a->connection, MHD_HTTP_INTERNAL_SERVER_ERROR, err->sentence);
    count(a->http, &a->http->counts.refused);
    snprintf(sentence, sizeof sentence, err->line ? "%s (line %d, column %d)" : "%s", err->sentence,
             err->line, err->column);
    return refuse(a->connection, MHD_HTTP_BAD_REQUEST, sentence);
}

static enum MHD_Result refuse_put(asked *a, serve_put why) {
    serve_request_free(a->q);
    a->q = NULL;
    give_turn(a->http, a->connection, a->http->job.patience_s);
    if (why == SERVE_FULL) count(a->http, &a->http->counts.full);
    return why == SERVE_FULL
               ? refuse(a->connection, MHD_HTTP_TOO_MANY_REQUESTS, "The queue is full. Come again.")
               : refuse(a->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                        "The engine takes in nothing more.");
}

static void drop_body(asked *a) {
    a->http->held -= a->room;
    sm_free(a->body);
    a->body = NULL;
    a->bytes = a->room = 0;
}

/* The body is whole: on to the desk. */
static enum MHD_Result ask(asked *a) {
    serve_http *http = a->http;
    sm_error err = {.status = SM_OK};
    sm_arena *arena = sm_arena_new();
    if (!arena) return MHD_NO;
    const sm_source source = {
        .name = "the request", .text = a->body ? a->body : "", .length = a->bytes};
    pthread_mutex_lock(&http->lock);
    a->number = http->number++;
    pthread_mutex_unlock(&http->lock);
    a->created = (long)time(NULL);
    sm_status status = sm_completion_parse(&source, &http->job.limits, arena, &a->wants, &err);
    if (!status) status = make_request(a, arena, &err);
    sm_arena_free(arena);
    drop_body(a);
    if (status) return refuse_body(a, &err);
    a->whole = !a->wants.stream;
    give_turn(http, a->connection, INFINITY);
    serve_put put = serve_desk_put(http->job.desk, a->q, -1);
    if (put != SERVE_TAKEN) return refuse_put(a, put);
    count(http, &http->counts.taken);
    if (a->wants.stream) return answer_stream(a);
    pthread_mutex_lock(&http->job.desk->lock);
    a->suspended = a->q->end == SERVE_GOES_ON;
    if (a->suspended) MHD_suspend_connection(a->connection);
    bool waits = a->suspended;
    pthread_mutex_unlock(&http->job.desk->lock);
    return waits ? MHD_YES : answer_whole(a);
}

/* ---- requests ---- */

static enum MHD_Result tell_models(serve_http *http, struct MHD_Connection *connection) {
    sm_report *r = sm_report_new();
    if (!r) return MHD_NO;
    sm_put(r, r->data, "object", "list");
    sm_data *model = sm_put_object(r, sm_put_array(r, r->data, "data"), NULL);
    sm_put(r, model, "id|object|owned_by|max_model_len", http->job.limits.model, "model",
           "scalemodel", (double)http->job.limits.most_tokens);
    return send_json(connection, MHD_HTTP_OK, r);
}

static enum MHD_Result tell_health(struct MHD_Connection *connection) {
    sm_report *r = sm_report_new();
    if (!r) return MHD_NO;
    sm_put(r, r->data, "status", "ok");
    return send_json(connection, MHD_HTTP_OK, r);
}

static bool add_body(asked *a, const char *data, size_t n) {
    const size_t most = a->http->job.limits.pictures ? MOST_SEEN : MOST_BODY;
    a->too_large = a->too_large || a->bytes + n > most;
    if (!a->too_large && a->bytes + n + 1 > a->room) {
        size_t room = 2 * (a->bytes + n + 1);
        a->too_many = a->too_many || a->http->held + room - a->room > MOST_HELD;
        char *wider = a->too_many ? NULL : sm_realloc(a->body, room);
        if (!wider && !a->too_many) return false;
        if (wider) {
            a->body = wider;
            a->http->held += room - a->room;
            a->room = room;
        }
    }
    if (a->too_large || a->too_many) return true;
    memcpy(a->body + a->bytes, data, n);
    a->bytes += n;
    a->body[a->bytes] = 0;
    return true;
}

static bool is_json(struct MHD_Connection *connection) {
    static const char json[] = "application/json";
    const char *type = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Type");
    size_t n = sizeof json - 1;
    return type && strncasecmp(type, json, n) == 0 && (type[n] == 0 || strchr("; ", type[n]));
}

static enum MHD_Result complete(asked *a, const char *data, size_t *bytes) {
    if (a->q) return answer_whole(a); /* woken */
    if (*bytes) {
        bool kept = add_body(a, data, *bytes);
        *bytes = 0;
        return kept ? MHD_YES : MHD_NO;
    }
    if (a->too_large)
        return refuse(a->connection, MHD_HTTP_CONTENT_TOO_LARGE,
                      a->http->job.limits.pictures ? "A request has at most 16 MiB."
                                                   : "A request has at most 4 MiB.");
    if (a->too_many) return refuse_put(a, SERVE_FULL);
    if (!is_json(a->connection))
        return refuse(a->connection, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                      "A request is application/json.");
    return ask(a);
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *bytes, void **request) {
    serve_http *http = context;
    asked *a = *request;
    (void)version;
    if (!a) {
        a = *request = sm_calloc(1, sizeof *a);
        if (!a) return MHD_NO;
        a->http = http;
        a->connection = connection;
        give_turn(http, connection, http->job.patience_s);
        pthread_mutex_lock(&http->lock);
        http->asking++;
        pthread_mutex_unlock(&http->lock);
        if (http->loopback && !is_our_name(connection, http->port))
            return refuse(connection, MHD_HTTP_FORBIDDEN, "Ask for 127.0.0.1 or localhost.");
        return MHD_YES;
    }
    bool posts = strcmp(method, "POST") == 0, gets = strcmp(method, "GET") == 0;
    if (strcmp(url, "/v1/completions") == 0 && posts) return complete(a, data, bytes);
    if (*bytes) { /* a body that nobody reads */
        *bytes = 0;
        return MHD_YES;
    }
    if (strcmp(url, "/v1/models") == 0 && gets) return tell_models(http, connection);
    if (strcmp(url, "/health") == 0 && gets) return tell_health(connection);
    bool there = strcmp(url, "/v1/completions") == 0 || strcmp(url, "/v1/models") == 0 ||
                 strcmp(url, "/health") == 0;
    return there ? refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                          "POST /v1/completions, GET /v1/models, GET /health.")
                 : refuse(connection, MHD_HTTP_NOT_FOUND,
                          "There are POST /v1/completions, GET /v1/models and GET /health.");
}

/* The answer is sent, or the client has gone. */
static void completed(void *context, struct MHD_Connection *connection, void **request,
                      enum MHD_RequestTerminationCode why) {
    serve_http *http = context;
    asked *a = *request;
    (void)why;
    if (!a) return;
    give_turn(http, connection, http->job.patience_s);
    if (a->q) serve_desk_leave(http->job.desk, a->q);
    drop_body(a);
    sm_free(a->part);
    sm_free(a);
    *request = NULL;
    pthread_mutex_lock(&http->lock);
    http->asking--;
    pthread_mutex_unlock(&http->lock);
}

/* ---- begin and end ---- */

sm_status serve_http_begin(const serve_http_job *job, serve_http **out, int *port, sm_error *err) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)job->port)};
    *out = NULL;
    if (inet_pton(AF_INET, job->address, &here.sin_addr) != 1)
        return sm_fail(err, SM_BAD_INPUT, "\"%.60s\" is no IPv4 address", job->address);
    serve_http *http = sm_calloc(1, sizeof *http);
    if (!http) return sm_fail_memory(err);
    http->job = *job;
    http->loopback = ntohl(here.sin_addr.s_addr) >> 24 == 127;
    pthread_mutex_init(&http->lock, NULL);
    http->daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                         answer, http, MHD_OPTION_SOCK_ADDR, &here, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)MOST_CONNECTIONS, MHD_OPTION_NOTIFY_CONNECTION, come_or_go, http,
                         MHD_OPTION_NOTIFY_COMPLETED, completed, http, MHD_OPTION_END);
    if (!http->daemon) {
        sm_status status = sm_fail(err, SM_IO, "cannot listen on port %d of %.60s: %s", job->port,
                                   job->address, strerror(errno));
        pthread_mutex_destroy(&http->lock);
        sm_free(http);
        return status;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
    http->port = info ? info->port : (unsigned)job->port;
    *port = (int)http->port;
    *out = http;
    return SM_OK;
}

serve_http_counts serve_http_end(serve_http *http) {
    enum { EACH_MS = 10 };
    if (!http) return (serve_http_counts){.taken = 0};
    for (int waited = 0; waited < LINGER_MS; waited += EACH_MS) {
        pthread_mutex_lock(&http->lock);
        int asking = http->asking;
        pthread_mutex_unlock(&http->lock);
        if (!asking) break;
        nanosleep(&(struct timespec){0, EACH_MS * 1000000L}, NULL);
    }
    MHD_stop_daemon(http->daemon);
    serve_http_counts counts = http->counts;
    pthread_mutex_destroy(&http->lock);
    sm_free(http);
    return counts;
}
