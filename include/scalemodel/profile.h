/* profile: what a compiled program (module.h) costs on a machine, and where its time goes: each
 * kernel by the rooflines and efficiencies of cost.h, each collective on the part of the machine
 * where its groups lie, both laid over each other as the schedule of the program has them. */
#pragma once
#include "scalemodel/breakdown.h"
#include "scalemodel/cost.h"
#include "scalemodel/module.h"

SM_DECLARATIONS_BEGIN

typedef enum sm_profile_bound {
    SM_PROFILE_MATRIX, /* FLOPs of the matrix unit */
    SM_PROFILE_VECTOR, /* FLOPs of the vector unit */
    SM_PROFILE_HBM,
    SM_PROFILE_ONCHIP, /* bytes of memory on the chip */
    SM_PROFILE_HOST,   /* bytes over PCIe */
    SM_PROFILE_LAUNCH  /* nothing that takes longer than to start it */
} sm_profile_bound;
/* "compute", "vector", "memory", "on-chip memory", "host link", "launch". Static text. */
const char *sm_profile_bound_name(sm_profile_bound bound);

/* A kernel. Work and times are of one run of it. */
typedef struct sm_profile_op {
    const sm_instruction *instruction;
    int computation;
    double times;
    sm_module_work work;
    double lower_s, expected_s, upper_s;
    double measured_s;          /* of one run, where a trace has it; otherwise NAN */
    const sm_instruction *done; /* of a copy that is started: what awaits it */
    sm_profile_bound bound;
    bool copies;            /* it only moves bytes, beside what else runs */
    bool moves;             /* it only copies, in another order or type */
    double tile_efficiency; /* of its largest product: the part of the tiles that is no padding */
} sm_profile_op;

/* A collective. Bytes and times are of one run of it. */
typedef struct sm_profile_collective {
    const sm_instruction
        *instruction;           /* the collective itself, in a fusion where it stands there */
    int computation;            /* that runs it */
    const sm_instruction *by;   /* what runs it there: itself, a fusion, a start */
    const sm_instruction *done; /* what awaits it; NULL: itself */
    sm_collective op;
    sm_axes axes; /* of the profile's mesh; 0: none of its sets of axes */
    int members;  /* of a group */
    sm_group group;
    double times;
    double bytes;          /* V, as in sm_step */
    double bytes_per_chip; /* sent on a ring */
    double lower_s, expected_s, upper_s;
    double exposed_s;  /* of expected: what nothing hides */
    double measured_s; /* of one run: itself, or its start and the wait for it; NAN: no trace */
    bool sliced;       /* an all-reduce of which each device keeps a slice */
    bool latency_bound, starts; /* starts: others run until it is done */
    const char *algorithm;
} sm_profile_collective;

typedef struct sm_profile_time {
    double lower_s;    /* the longer of all kernels and all collectives at datasheet rates */
    double expected_s; /* the timeline under the calibration */
    double upper_s;    /* nothing overlaps */
    /* parts of expected_s */
    double compute_s, exposed_s, copies_s;
    double overlapped_s; /* communication that compute hides: not a part of it */
} sm_profile_time;

/* What would save time. */
typedef struct sm_profile_finding {
    double seconds;    /* of the expected step, at most */
    int count;         /* kernels or collectives that it adds up */
    const char *about; /* where in the user's program, "": in many places */
    const char *what, *change;
} sm_profile_finding;

/* A trace beside the prices: of one run on one device, averages of all. */
typedef struct sm_profile_measured {
    double runs;                               /* over all devices; 0: there is no trace */
    double step_s;                             /* NAN: the trace does not say */
    double kernels_s, collectives_s, copies_s; /* of what was found in the module */
    double idle_s;                             /* the rest of the step; NAN: not known */
} sm_profile_measured;

typedef struct sm_profile {
    const sm_module *module;
    const sm_system *system;
    const sm_calibration *calibration;
    sm_mesh mesh; /* as asked for, as the module names it, or as its groups lie */
    bool mesh_named;
    int ops, collectives;
    const sm_profile_op *op;
    const sm_profile_collective *collective;
    int findings; /* of at least 3 % of the step, at most 10, the largest first */
    const sm_profile_finding *finding;
    sm_profile_time time;
    sm_profile_measured measured;
    sm_module_work work;           /* of a device, all runs */
    double custom;                 /* runs of kernels whose work is not known: priced as bytes */
    double tile_flops, tile_bytes; /* that padding to tiles adds: FLOPs beyond work.matrix_flops,
                                      bytes of work.bytes */
    bool guessed;                  /* some loops or branches count by a guess */
    double peak_bytes;             /* HBM of a device: arguments, results and what lives between */
    double argument_bytes, result_bytes, temporary_bytes;
    const struct sm_profile_schedule *schedule; /* for sm_profile_slices */
} sm_profile;

typedef struct sm_profile_setup {
    const sm_module *module;
    const sm_system *system; /* at least as many chips as the module has devices */
    const sm_calibration *calibration;
    const sm_mesh *mesh;              /* NULL: the module's own */
    const sm_trace_program *measured; /* runs of this module; NULL: none */
} sm_profile_setup;
/* Price a module. All lives in the arena. SM_BAD_INPUT when the system has too few chips or the
 * mesh is not of the module's devices, SM_INTERNAL when out of memory. */
sm_status sm_profile_new(const sm_profile_setup *setup, sm_arena *arena, const sm_profile **out,
                         sm_error *err);

/* A run of a kernel or a collective in the expected step. */
typedef struct sm_profile_slice {
    int op, collective; /* of the profile; the other is -1 */
    double start_s, seconds;
} sm_profile_slice;
/* The expected step, loops unrolled, in the order of the schedule: at most `most` slices, *n of
 * them. NULL when out of memory. */
const sm_profile_slice *sm_profile_slices(const sm_profile *profile, int most, sm_arena *arena,
                                          int *n);

/* ---- a trace without a module ---- */
/* What ran, against the rooflines of the chip that it ran on, and what would save time. */
typedef struct sm_profile_ran {
    const sm_trace_breakdown *time;
    const sm_system *system; /* NULL: not told */
    const double *lower_s;   /* of each row: all its calls at datasheet rates; NAN: not known */
    const sm_profile_bound *bound;
    double link_bytes_per_s; /* of a chip within its node or slice, one way; NAN: not known */
    double flops;            /* of a step of one device, of ops whose shapes are known */
    int findings;            /* of at least 3 % of a step, at most 10, the largest first */
    const sm_profile_finding *finding;
} sm_profile_ran;
/* All lives in the arena. SM_INTERNAL when out of memory. */
sm_status sm_profile_ran_on(const sm_trace_breakdown *time, const sm_system *system,
                            sm_arena *arena, const sm_profile_ran **out, sm_error *err);

SM_DECLARATIONS_END
