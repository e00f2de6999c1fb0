/* file_parts: how files are written, and what is said where the system refuses. A file written
 * under a temporary name beside its place, which takes the place at once when all of it is on the
 * disk. Private to src/io. */
#pragma once
#include "scalemodel/base.h"

typedef struct replacement replacement;
/* A symbolic link is kept and its target replaced; devices and pipes are written in place. path
 * must outlive it. */
sm_status replacement_begin(const char *path, replacement **out, sm_error *err);
int replacement_file(const replacement *r); /* the descriptor to write to */
/* reason: 0, or the errno of a write that failed, which leaves what was there. Frees r. */
sm_status replacement_end(replacement *r, int reason, sm_error *err);
void replacement_abandon(replacement *r); /* leaves what was there; frees r; NULL is fine */

/* Every byte, however the system cuts it up: 0 or errno. */
int write_bytes(int file, const void *bytes, size_t length);

/* ---- what the operating system refused, as one sentence ---- */
/* "cannot VERB PATH: reason"; reason: an errno. SM_IO. */
sm_status sm_fail_system(sm_error *err, const char *verb, const char *path, int reason);
