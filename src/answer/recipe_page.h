/* recipe_page: recipes of other frameworks in answers about training and serving. */
#pragma once
#include "scalemodel/page.h"
#include "scalemodel/recipe.h"

/* What a recipe says: understood, assumed, passed over; as page and as data. */
void sm_recipe_page(sm_report *r, const sm_recipe *recipe);
/* The recipe of a plan, in place of the page. Errors as sm_recipe_write. */
sm_status sm_recipe_emit(sm_report *r, const sm_framework *framework, const sm_recipe_job *job,
                         sm_error *err);
