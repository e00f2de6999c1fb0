/* hw: chips, their links, and systems built of them. The catalogue is compiled in; every number has
 * a source. */
#pragma once
#include "scalemodel/text.h"
#include "scalemodel/units.h"

SM_DECLARATIONS_BEGIN

enum { SM_MAX_LEVELS = 8, SM_MAX_PRICES = 4, SM_MAX_TREE = 5 };

/* A datasheet value and where it comes from. value 0: unknown or not applicable, no source. */
typedef struct sm_fact {
    double value;
    const char *source;
} sm_fact;
typedef struct sm_price {
    double usd_per_chip_hour;
    const char *provider, *date, *source;
} sm_price;

typedef enum sm_fabric { SM_FABRIC_TORUS, SM_FABRIC_SWITCH, SM_FABRIC_NONE } sm_fabric;
typedef enum sm_wrap_rule {
    SM_WRAP_NEVER,
    SM_WRAP_AXIS_16,        /* v5e, v6e: an axis wraps iff its length is 16 */
    SM_WRAP_ALL_MULTIPLE_4, /* v4, v5p, v7: all axes wrap iff every axis is a multiple of 4 */
    SM_WRAP_FULL_POD,       /* v2, v3: only the full pod shape wraps */
    SM_WRAP_ALWAYS          /* trn2 4x4 torus */
} sm_wrap_rule;
/* Their names in files, in their order. */
#define SM_FABRIC_NAMES "torus", "switch", "none"
#define SM_WRAP_NAMES "never", "axis-16", "all-multiple-4", "full-pod", "always"

/* One level of a switched system above the chip, innermost first (node, leaf, spine, ...). */
typedef struct sm_tree_level {
    const char *name; /* "nvlink", "leaf", "spine", "core" */
    int degree;       /* children per unit: 8 chips, 32 nodes, ...; the last may grow */
    /* link of ONE CHILD of this level: a chip's 450e9 in a node; a node's 400e9 at the leaf */
    sm_fact child_bytes_per_s_oneway;
    sm_fact hop_latency_s; /* one message across this level, software included */
    /* no switch: each child has a link of its own, or several, to each other one (xGMI) */
    bool full_mesh;
    bool in_network_reduction; /* NVLink SHARP / IB SHARP present */
    const char *in_network_source;
} sm_tree_level;

/* A chip (the unit the software sees as one device: a GPU package, a TPU chip). */
typedef struct sm_chip {
    const char *name;    /* "tpu-v5p", "h100-sxm": lower case, what users type */
    const char *aliases; /* space separated: "v5p tpu_v5p", or "" */
    const char *title, *vendor;
    sm_fact flops_per_s[SM_DTYPE_COUNT]; /* dense peak of the matrix unit; 0 where not supported */
    /* weights of fewer bits than the arithmetic has, read and converted; 0: as fast as memory */
    sm_fact narrow_bytes_per_s[SM_DTYPE_COUNT];
    sm_fact vector_flops_per_s;               /* fp32 vector unit, no FMA doubling on TPUs */
    sm_fact memory_bytes, memory_bytes_per_s; /* HBM (or DRAM) */
    sm_fact driver_memory_bytes;              /* of it, as the driver reports; 0: not known */
    sm_fact onchip_bytes, onchip_bytes_per_s; /* TPU VMEM; GPU L2 */
    sm_fact shared_bytes;                     /* GPU SMEM over all SMs; 0 on TPU */
    /* what a matmul is padded to: TPU 8x128x128 (v6e, v7: 8x256x256), GPU CTA 128x128x64 */
    int tile_m, tile_n, tile_k;
    int cores;   /* TensorCores of a TPU, SMs or CUs of a GPU: what tiles are spread over */
    int devices; /* that a program sees of it, a rank each: 2 on TPU7x, 1 on most */
    int matrix_units_per_core;
    sm_fact clock_hz;
    sm_fabric fabric;
    /* torus */
    int torus_axes;   /* 2 or 3; 0 for switches */
    int pod_shape[3]; /* largest slice */
    /* per link and direction (torus); per chip egress into the node (switch) */
    sm_fact link_bytes_per_s_oneway;
    int links_per_chip;
    sm_wrap_rule wrap_rule;
    sm_fact hop_latency_s; /* torus hop */
    /* switch */
    int tree_levels, peer_chips; /* so many of a node read one another's memory in a kernel */
    sm_tree_level tree[SM_MAX_TREE];
    /* both */
    int chips_per_host;
    sm_fact host_bytes;              /* DRAM of a host */
    sm_fact host_bytes_per_s;        /* its bandwidth, reads and writes together */
    sm_fact pcie_bytes_per_s_oneway; /* per chip */
    sm_fact dcn_bytes_per_s_oneway;  /* per chip: between slices (TPU), share of a NIC (GPU) */
    sm_fact dcn_latency_s;
    sm_fact launch_latency_s; /* starting a kernel */
    sm_fact tdp_w;
    sm_fact interruptions_per_chip_hour; /* of a run on many, whatever the cause */
    int prices;
    sm_price price[SM_MAX_PRICES]; /* [0] is the default */
    const char *conflicts;         /* where sources disagree and what was chosen, "" if none */
    /* Whose measured constants turn its bounds into expected times (sm_calibration_of): names of
     * calibrations, separated by blanks. NULL: the chip's own name; no relative. */
    const char *calibration;    /* its own, where they go by other names than its */
    const char *constants_like; /* of its nearest relatives, nearest first */
} sm_chip;

/* How many chips the catalogue has. */
size_t sm_chip_count(void);
/* The i-th chip of the catalogue, from 0. NULL beyond the end. */
const sm_chip *sm_chip_at(size_t i);
/* The catalogue's chip of this name or alias (`length` bytes), in any case of letters; NULL if
 * absent. */
const sm_chip *sm_chip_find(const char *name, size_t length);
/* US dollars an hour for one chip, by the default price; 0 when none is known. */
double sm_chip_usd_per_hour(const sm_chip *chip);
/* Bytes of memory that programs can have: what its driver reports, else what the datasheet says. */
const sm_fact *sm_chip_memory(const sm_chip *chip);
/* Chips that share a host: at least 1. */
double sm_chip_host_sharers(const sm_chip *chip);
/* A chip's share of its host's memory, bytes; 0 when the host's is not known. */
double sm_chip_host_bytes(const sm_chip *chip);
/* Bytes/s that a chip moves to its host while as many come back and the other chips of the host do
 * the same: of its PCIe link, or its share of the host's memory. 0 when no link is known. */
double sm_chip_host_bytes_per_s_oneway(const sm_chip *chip);

/* One level of an actual system, INNERMOST FIRST: the torus dimensions in the order written
 * (16x20x28: level 0 has size 16) or the switch levels from the node outwards; then slices over
 * DCN. Levels of size 1 are left out, but at least one level is kept. */
typedef enum sm_level_kind { SM_LEVEL_TORUS, SM_LEVEL_SWITCH } sm_level_kind;
typedef struct sm_level {
    sm_level_kind kind;
    char name[16];             /* "ici" for a torus dimension; "nvlink", "leaf", "dcn", ... */
    int size;                  /* torus: length of the dimension; switch: children per unit */
    bool wrap;                 /* torus only */
    double bytes_per_s_oneway; /* torus: one link; switch: link of one child, for all below it */
    double hop_latency_s;
    int mesh; /* so many children share out their rate evenly over links to one another; 0: a switch
               */
    bool in_network_reduction;
} sm_level;

typedef struct sm_system {
    sm_chip chip;   /* a copy: --system files may alter it */
    char text[128]; /* canonical text: parses back to the same system */
    int chips;      /* total, over all slices */
    int slices;
    int levels;
    sm_level level[SM_MAX_LEVELS];
    int torus_dims; /* levels [0, torus_dims) are torus dimensions of one slice */
} sm_system;

/* CHIP[:SHAPE][xNslices]: "tpu-v5p:16x20x28", "tpu-v5e:16x16x4slices", "h100-sxm:128x8",
 * "gb200-nvl72:8x72", "h100-sxm:1024", "tpu-v5p:8960", "tpu-v5p" (one chip), "cpu-host".
 * chips: extra chips from --system FILE, searched first (may be NULL, 0).
 * Switch shapes are written outer to inner (128x8 = 128 nodes of 8); deeper levels are filled from
 * the chip's tree (128 nodes of H100 = leaf groups of 32 nodes, 4 of them under a spine). A bare
 * count takes the natural shape. Allocates nothing. At most 1,048,576 chips. SM_BAD_INPUT with the
 * place when the chip is not known (and names the nearest) or has no such shape. */
sm_status sm_system_parse(const sm_source *source, const sm_chip *chips, size_t n_chips,
                          sm_system *system, sm_error *err);
/* Give the same system another number of chips (natural shape), for sweeps over --chips.
 * SM_BAD_INPUT when the chip has no slice of that number. */
sm_status sm_system_resize(const sm_system *system, int chips, sm_system *out, sm_error *err);
/* So many of a system's chips, as a system of their own: of slices some of them or a part of one,
 * of a torus the natural shape of that number, of switches the first groups; its links are the
 * whole's. False: the system has no such part. */
bool sm_system_part(const sm_system *whole, int chips, sm_system *part);
/* Whether a plan of so many of its chips runs on such a part: they are fewer and do not divide all.
 */
bool sm_system_in_part(const sm_system *whole, int chips);
/* What a machine could have more or less of. */
#define SM_RESOURCES(X)                                                                            \
    X(FLOPS, "flops", "FLOP/s, in every type")                                                     \
    X(HBM, "hbm", "memory bandwidth")                                                              \
    X(MEMORY, "memory", "bytes of memory")                                                         \
    X(LINK, "link", "links between chips")                                                         \
    X(LATENCY, "latency", "of links and launches")                                                 \
    X(HOST, "host", "its memory and link")
#define SM_RESOURCE_ID(id, ...) SM_RESOURCE_##id,
typedef enum sm_resource { SM_RESOURCES(SM_RESOURCE_ID) SM_RESOURCE_COUNT } sm_resource;
extern const char *const sm_resource_names[SM_RESOURCE_COUNT];
/* Multiply a resource of a system. */
void sm_system_scale(sm_system *system, sm_resource resource, double factor);
/* "link=2x,hbm=1.5x,latency=0.5x,domain=72": a system with so much more or less, domain chips in
 * its innermost switch. SM_BAD_INPUT with the place. */
sm_status sm_system_what_if(const sm_source *text, const sm_system *system, sm_system *out,
                            sm_error *err);
/* Does axis `axis` of a torus slice of this shape (`dims` sizes) close to a ring, by the chip's
 * wrap rule? Axes shorter than 3 do not. */
bool sm_wraps(const sm_chip *chip, const int *shape, int dims, int axis);
SM_DECLARATIONS_END
