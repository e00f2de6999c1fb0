/* checkpoint_folder: what the files of a checkpoint folder hold together. Private to src/io. */
#pragma once
#include "scalemodel/io.h"

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
