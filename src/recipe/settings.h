/* settings: readers of what recipes are written in. */
#pragma once
#include "json_tree.h"
#include "scalemodel/recipe.h"

/* Append the settings of settings->source. SM_BAD_INPUT with the place of what cannot be read. */
sm_status settings_read_shell(sm_settings *settings, sm_error *err);
sm_status settings_read_toml(sm_settings *settings, sm_error *err);
