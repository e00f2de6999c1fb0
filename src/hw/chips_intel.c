/* Intel Gaudi: Ethernet on the chip, 21 of its 24 ports inside a box of eight, 3 leaving it. */
#include "catalogue.h"

#define BOX "21 of 24 ports inside the box, " STAS_NETWORK
#define OUTSIDE "3 of 24 ports leave the box, " STAS_NETWORK
#define LAUNCH "estimate: as measured on an H100 (" BOOK_GPUS ", quiz 1.7)"
#define LATENCY "estimate: RoCE in one box, 2 us"
#define NETWORK(n, d, w, s)                                                                        \
    { n, d, FACT(w, s), FACT(2.7e-6, NCCL_TUNING), false, NULL }
#define CONFLICT                                                                                   \
    "stas00 gives the sum of all 24 ports as the egress of a chip; inside a box 21 of them "       \
    "count. "

static const sm_chip chips[] = {
    {.name = "gaudi2",
     .aliases = "gaudi-2 hl-225",
     .title = "Gaudi 2",
     .vendor = "Intel",
     .flops_per_s[SM_BF16] = FACT(432e12, STAS_ACCELERATOR),
     .flops_per_s[SM_FP8] = FACT(865e12, STAS_ACCELERATOR),
     .memory_bytes = FACT(96e9, STAS_ACCELERATOR),
     .memory_bytes_per_s = FACT(2460e9, STAS_ACCELERATOR),
     .onchip_bytes = FACT(50331648.0, STAS_ACCELERATOR),
     .tile_m = 256,
     .tile_n = 256,
     .tile_k = 64,
     .cores = 1,
     .matrix_units_per_core = 2,
     .clock_hz = FACT(1650e6, STAS_ACCELERATOR),
     .fabric = SM_FABRIC_SWITCH,
     .link_bytes_per_s_oneway = FACT(262.5e9, BOX),
     .links_per_chip = 21,
     .tree_levels = 4,
     .tree = {{"roce", 8, FACT(262.5e9, BOX), FACT(2e-6, LATENCY), false, NULL},
              NETWORK("leaf", 32, 300e9, OUTSIDE),
              NETWORK("spine", 8, 9.6e12, "estimate: full bisection above the leaf"),
              NETWORK("core", 64, 76.8e12, "estimate: full bisection above the leaf")},
     .chips_per_host = 8,
     .pcie_bytes_per_s_oneway = FACT(31e9, "PCIe 4 x16, " STAS_NETWORK),
     .dcn_bytes_per_s_oneway = FACT(37.5e9, OUTSIDE),
     .dcn_latency_s = FACT(2.7e-6, NCCL_TUNING),
     .launch_latency_s = FACT(1.5e-6, LAUNCH),
     .tdp_w = FACT(600, STAS_ACCELERATOR),
     .conflicts = CONFLICT},
    {.name = "gaudi3",
     .aliases = "gaudi-3 hl-325",
     .title = "Gaudi 3",
     .vendor = "Intel",
     .flops_per_s[SM_BF16] = FACT(1677e12, STAS_ACCELERATOR),
     .flops_per_s[SM_FP8] = FACT(1677e12, STAS_ACCELERATOR),
     .flops_per_s[SM_TF32] = FACT(459e12, STAS_ACCELERATOR),
     .flops_per_s[SM_FP32] = FACT(229e12, STAS_ACCELERATOR),
     .memory_bytes = FACT(128e9, STAS_ACCELERATOR),
     .memory_bytes_per_s = FACT(3700e9, STAS_ACCELERATOR),
     .onchip_bytes = FACT(100663296.0, STAS_ACCELERATOR),
     .tile_m = 256,
     .tile_n = 256,
     .tile_k = 64,
     .cores = 1,
     .matrix_units_per_core = 8,
     .clock_hz = FACT(1600e6, STAS_ACCELERATOR),
     .fabric = SM_FABRIC_SWITCH,
     .link_bytes_per_s_oneway = FACT(525e9, BOX),
     .links_per_chip = 21,
     .tree_levels = 4,
     .tree = {{"roce", 8, FACT(525e9, BOX), FACT(2e-6, LATENCY), false, NULL},
              NETWORK("leaf", 32, 600e9, OUTSIDE),
              NETWORK("spine", 8, 19.2e12, "estimate: full bisection above the leaf"),
              NETWORK("core", 64, 153.6e12, "estimate: full bisection above the leaf")},
     .chips_per_host = 8,
     .pcie_bytes_per_s_oneway = FACT(63e9, "PCIe 5 x16, " STAS_NETWORK),
     .dcn_bytes_per_s_oneway = FACT(75e9, OUTSIDE),
     .dcn_latency_s = FACT(2.7e-6, NCCL_TUNING),
     .launch_latency_s = FACT(1.5e-6, LAUNCH),
     .tdp_w = FACT(900, STAS_ACCELERATOR),
     .conflicts =
         CONFLICT "bf16 1677e12 at the shipped 1600 MHz against 1835e12 in the whitepaper, "
                  "which needs 1750 MHz: shipped."},
};
const sm_vendor_chips sm_chips_intel = {chips, sizeof chips / sizeof chips[0]};
