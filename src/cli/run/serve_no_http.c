/* serve_no_http: in place of serve_http.c where libmicrohttpd was not there to build with. */
#include "serve_engine.h"

sm_status serve_http_begin(const serve_http_job *job, serve_http **out, int *port, sm_error *err) {
    (void)job, (void)port;
    *out = NULL;
    return sm_fail(err, SM_IO,
                   "nothing can be served over HTTP: this program was built without libmicrohttpd "
                   "(libmicrohttpd-dev)");
}

void serve_http_hurry(serve_http *http) { (void)http; }

serve_http_counts serve_http_end(serve_http *http) {
    (void)http;
    return (serve_http_counts){.taken = 0};
}
