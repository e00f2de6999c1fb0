/* safetensors_front: what stands in a safetensors file before the data. Private to src/io. */
#pragma once
#include "scalemodel/io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FRONT_PREFIX_BYTES = 8, FRONT_SINGLE_BYTES = 4 };

size_t tensor_bytes(const sm_safetensor *t);
/* Length and header, filled up so that the data stands aligned; of the same length whatever the
 * checksums (NULL: zeros). In the arena. */
sm_status front_write(size_t n, const sm_safetensor *tensor, uint64_t steps,
                      const uint32_t *checksum, sm_arena *arena, sm_source *front, sm_error *err);
/* "NAME is no whole safetensors file: TENSOR WHAT" */
sm_status front_refuse(const char *path, const char *tensor, const char *what, sm_error *err);
void tensors_sort(sm_safetensors *file); /* by name */
/* The header of a file, in the arena; the data is not looked at. */
sm_status safetensors_header_read(const char *path, sm_arena *arena, sm_source *header,
                                  sm_error *err);

/* ---- what the files of a checkpoint folder hold together ---- */
#define CHECKPOINT_LATEST "latest"

/* Of one safetensors file. */
sm_status safetensors_file_read(const char *path, sm_arena *arena, sm_safetensors *out,
                                sm_error *err);
sm_status checkpoint_folder_read(const char *path, sm_arena *arena, sm_safetensors *out,
                                 sm_error *err);
/* The name of a file or folder beside others: no way out of the folder, and not hidden. */
bool is_plain_name(const char *name);
/* The version that latest names, "" where there is no latest. SM_BAD_INPUT when it names none. */
sm_status read_latest(const char *folder, char name[SM_CHECKPOINT_NAME], sm_error *err);
