/* Of a server on this machine: do those who ask mean it? No other site can, through a browser (DNS
 * rebinding). */
#pragma once
#include <microhttpd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static inline bool is_our_name(struct MHD_Connection *connection, unsigned port) {
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    char number[64], name[64];
    snprintf(number, sizeof number, "127.0.0.1:%u", port);
    snprintf(name, sizeof name, "localhost:%u", port);
    return host && (strcmp(host, number) == 0 || strcmp(host, name) == 0);
}
