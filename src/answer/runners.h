/* runners: the frameworks that can run a plan, of training and of serving alike: the space of a
 * search, and who runs what it found. */
#pragma once
#include "question.h"

typedef struct sm_runners {
    const sm_frameworks *all;
    sm_plan_job job; /* its system is known */
    sm_plan_use use;
    const sm_framework *kept_to; /* the one that --framework names; NULL */
    const sm_framework *emit;    /* the one that --emit names, and then this one alone; NULL */
    int unsearched;              /* types and kernels, which no search chooses: of a plan that */
    const sm_plan_key *unsearch; /* does not give them they are what the framework has */
} sm_runners;

/* Keep a search to what any of the frameworks can run of what is given of a plan: its space becomes
 * theirs, each within `own`, a list in the report's arena. Where none can (*kept is false) it stays
 * as it is. SM_BAD_INPUT past SM_MOST_SPACES. */
sm_status sm_runners_any(const sm_runners *of, sm_report *r, const sm_plan *given,
                         const sm_plan_space *own, const sm_plan_space **searched, bool *kept,
                         sm_error *err);
/* The space of the one kept to, within `space`; SM_BAD_INPUT where it cannot run what is given of
 * the plan, whose text is there to be shown. */
sm_status sm_runners_one(const sm_runners *of, sm_report *r, const sm_plan *given,
                         const sm_source *text, sm_plan_space *space, sm_error *err);
/* SM_BAD_INPUT where one that an option names does not run on the system. */
sm_status sm_runners_named(const sm_runners *of, sm_error *err);
/* Can a framework run a plan, all of whose keys have a value? */
bool sm_runners_run(const sm_runners *of, const sm_framework *f, const sm_plan *plan);
/* Who runs a plan: the data "runs_in", and their titles, "vLLM, SGLang". */
const char *sm_runners_of(const sm_runners *of, sm_report *r, const sm_plan *plan);

/* ---- recipes of other frameworks in answers about training and serving ---- */
/* What a recipe says: understood, assumed, passed over; as page and as data. */
void sm_recipe_page(sm_report *r, const sm_recipe *recipe);
/* The recipes of n plans, in place of the page. Errors as sm_recipe_write. */
sm_status sm_recipe_emit(sm_report *r, const sm_framework *framework, const sm_recipe_job *job,
                         int n, sm_error *err);
