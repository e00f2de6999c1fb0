/* The partition as users of the library hold it. */
#include "partition.h"

sm_status sm_partition_new(const sm_program *program, bool backward, sm_arena *arena,
                           const sm_partition **out, sm_error *err) {
    sm_partition *p = sm_arena_alloc(arena, sizeof *p);
    *out = p;
    if (!p) return sm_fail_memory(err);
    return backward ? sm_program_partition(program, p, err)
                    : sm_program_partition_forward(program, p, err);
}

const sm_program *sm_partition_program(const sm_partition *p) { return &p->program; }
int sm_partition_works(const sm_partition *p) { return p->works; }
const sm_work *sm_partition_work(const sm_partition *p, int i) { return &p->work[i]; }
int sm_partition_comms(const sm_partition *p) { return p->comms; }
const sm_comm *sm_partition_comm(const sm_partition *p, int i) { return &p->comm[i]; }
int sm_partition_weight_classes(const sm_partition *p) { return p->classes; }
const sm_weight_class *sm_partition_weight_class(const sm_partition *p, int i) {
    return &p->weight[i];
}
uint64_t sm_partition_needed(const sm_partition *p) { return p->needed; }
sm_size sm_partition_boundary(const sm_partition *p) { return p->boundary; }
sm_size sm_partition_cache(const sm_partition *p) { return p->cache; }
sm_size sm_partition_state(const sm_partition *p) { return p->state; }
