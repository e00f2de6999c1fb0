/* AWS Trainium and Inferentia. Sixteen chips of a trn1 or trn2 instance form a 4x4 torus, twelve of
 * an inf2 instance a ring. */
#include "catalogue.h"

#define NEURON "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/"
#define TRN1 NEURON "neuron-hardware/trainium.html (read 2026)"
#define TRN1_ARCH NEURON "neuron-hardware/trn1-arch.html (read 2026)"
#define INF2 NEURON "neuron-hardware/inferentia2.html (read 2026)"
#define INF2_RING                                                                                  \
    "2 links of 48 GB/s each way in a ring, as those of Trainium1; written as a switch"
#define TRN2 NEURON "neuron-hardware/trainium2.html (read 2026)"
#define TRN2_ARCH NEURON "neuron-hardware/trn2-arch.html (read 2026)"
#define TRN3 NEURON "neuron-hardware/trainium3.html (read 2026)"
#define HOP "estimate: as one TPU hop (" BOOK_TPUS ")"
#define EFA_LATENCY "estimate: EFA, 10 us"
#define LAUNCH "estimate: no public figure; as a GPU kernel (" BOOK_GPUS ", quiz 1.7)"

static const sm_chip chips[] = {
    {.name = "trn1",
     .aliases = "trainium trainium1",
     .title = "Trainium1",
     .vendor = "AWS",
     .flops_per_s[SM_BF16] = FACT(190e12, TRN1),
     .flops_per_s[SM_FP16] = FACT(190e12, TRN1),
     .flops_per_s[SM_TF32] = FACT(190e12, TRN1),
     .flops_per_s[SM_FP8] = FACT(190e12, TRN1),
     .flops_per_s[SM_INT8] = FACT(380e12, TRN1),
     .flops_per_s[SM_FP32] = FACT(47.5e12, TRN1),
     .memory_bytes = FACT(34359738368.0, TRN1),
     .memory_bytes_per_s = FACT(880468295680.0, TRN1),
     .onchip_bytes = FACT(50331648.0, NEURON "neuron-core-v2, 24 MiB per core, not re-read"),
     .tile_m = 128,
     .tile_n = 128,
     .tile_k = 128,
     .cores = 2,
     .matrix_units_per_core = 1,
     .fabric = SM_FABRIC_TORUS,
     .torus_axes = 2,
     .pod_shape = {4, 4},
     .link_bytes_per_s_oneway =
         FACT(48e9, "384 GB/s per chip both ways over 4 links, NeuronLink-v2, not re-read"),
     .links_per_chip = 4,
     .wrap_rule = SM_WRAP_ALWAYS,
     .hop_latency_s = FACT(1e-6, HOP),
     .chips_per_host = 16,
     .host_bytes = FACT(549755813888.0, TRN1_ARCH),
     .pcie_bytes_per_s_oneway = FACT(16e9, "estimate: PCIe 4 x8 per chip"),
     .dcn_bytes_per_s_oneway = FACT(6.25e9, "800 Gb/s EFA for 16 chips, " TRN1_ARCH),
     .dcn_latency_s = FACT(10e-6, EFA_LATENCY),
     .launch_latency_s = FACT(1.5e-6, LAUNCH),
     .conflicts =
         "820 GiB/s against 820 GB/s, int8 380e12 against 420e12 between versions of the "
         "documents: the later. EFA 800 Gb/s (trn1), 1600 (trn1n): trn1. AWS calls the "
         "network a 4-dimensional hypercube, which with 4-rings is the same graph as a 4x4 "
         "torus."},
    {.name = "inf2",
     .aliases = "inferentia2 inferentia-2",
     .title = "Inferentia2",
     .vendor = "AWS",
     .flops_per_s[SM_BF16] = FACT(190e12, INF2),
     .flops_per_s[SM_FP16] = FACT(190e12, INF2),
     .flops_per_s[SM_TF32] = FACT(190e12, INF2),
     .flops_per_s[SM_FP8] = FACT(190e12, INF2),
     .flops_per_s[SM_INT8] = FACT(380e12, INF2),
     .flops_per_s[SM_FP32] = FACT(47.5e12, INF2),
     .memory_bytes = FACT(34359738368.0, INF2),
     .memory_bytes_per_s = FACT(880468295680.0, INF2),
     .onchip_bytes = FACT(50331648.0, NEURON "neuron-core-v2, 24 MiB per core, not re-read"),
     .tile_m = 128,
     .tile_n = 128,
     .tile_k = 128,
     .cores = 2,
     .matrix_units_per_core = 1,
     .fabric = SM_FABRIC_SWITCH,
     .link_bytes_per_s_oneway = FACT(96e9, INF2_RING),
     .links_per_chip = 2,
     .tree_levels = 1,
     .tree = {{"neuronlink", 12, FACT(96e9, INF2_RING), FACT(1e-6, HOP), false, NULL}},
     .chips_per_host = 12,
     .pcie_bytes_per_s_oneway = FACT(16e9, "estimate: PCIe 4 x8 per chip"),
     .launch_latency_s = FACT(1.5e-6, LAUNCH),
     .conflicts = "820 GiB/s against 820 GB/s between versions of the documents: the later. One "
                  "instance only: more chips are refused."},
    {.name = "trn2",
     .aliases = "trainium2 trainium-2",
     .title = "Trainium2",
     .vendor = "AWS",
     .flops_per_s[SM_BF16] = FACT(667e12, TRN2),
     .flops_per_s[SM_FP16] = FACT(667e12, TRN2),
     .flops_per_s[SM_TF32] = FACT(667e12, TRN2),
     .flops_per_s[SM_FP8] = FACT(1299e12, TRN2),
     .flops_per_s[SM_FP32] = FACT(181e12, TRN2),
     .memory_bytes = FACT(103079215104.0, TRN2),
     .memory_bytes_per_s = FACT(2900e9, TRN2),
     .onchip_bytes = FACT(234881024.0, TRN2),
     .tile_m = 128,
     .tile_n = 128,
     .tile_k = 128,
     .cores = 8,
     .matrix_units_per_core = 1,
     .fabric = SM_FABRIC_TORUS,
     .torus_axes = 2,
     .pod_shape = {4, 4},
     .link_bytes_per_s_oneway =
         FACT(160e9, "derived: 1.28 TB/s per chip both ways over 4 links, " STAS_NETWORK),
     .links_per_chip = 4,
     .wrap_rule = SM_WRAP_ALWAYS,
     .hop_latency_s = FACT(1e-6, HOP),
     .chips_per_host = 16,
     .host_bytes = FACT(2199023255552.0, TRN2_ARCH),
     .pcie_bytes_per_s_oneway = FACT(32e9, "estimate: PCIe 5 x8 per chip"),
     .dcn_bytes_per_s_oneway = FACT(25e9, "3.2 Tb/s EFA for 16 chips, " STAS_NETWORK),
     .dcn_latency_s = FACT(10e-6, EFA_LATENCY),
     .launch_latency_s = FACT(1.5e-6, LAUNCH),
     .conflicts = "HBM 2.9e12 against 3e12 between versions of the guide: 2.9e12. 1.28 TB/s is "
                  "documented without a direction: read as both ways. An UltraServer joins four "
                  "instances by slower rings of four; here they are slices over EFA, which "
                  "underrates it."},
    {.name = "trn3",
     .aliases = "trainium3 trainium-3",
     .title = "Trainium3",
     .vendor = "AWS",
     .flops_per_s[SM_BF16] = FACT(671e12, TRN3),
     .flops_per_s[SM_FP16] = FACT(671e12, TRN3),
     .flops_per_s[SM_TF32] = FACT(671e12, TRN3),
     .flops_per_s[SM_FP8] = FACT(2517e12, TRN3),
     .flops_per_s[SM_FP4] = FACT(2517e12, TRN3),
     .flops_per_s[SM_MXFP4] = FACT(2517e12, TRN3),
     .flops_per_s[SM_FP32] = FACT(183e12, TRN3),
     .memory_bytes = FACT(154618822656.0, TRN3),
     .memory_bytes_per_s = FACT(4900e9, TRN3),
     .onchip_bytes = FACT(268435456.0, TRN3),
     .tile_m = 128,
     .tile_n = 128,
     .tile_k = 128,
     .cores = 8,
     .matrix_units_per_core = 1,
     .fabric = SM_FABRIC_SWITCH,
     .link_bytes_per_s_oneway = FACT(1280e9, "derived: half of 2.56 TB/s, " TRN3),
     .links_per_chip = 4,
     .tree_levels = 1,
     .tree = {{"neuronswitch", 144, FACT(1280e9, "derived: half of 2.56 TB/s, " TRN3),
               FACT(1e-6, "estimate: as one NeuronLink hop"), false, NULL}},
     .chips_per_host = 4,
     .pcie_bytes_per_s_oneway = FACT(32e9, "estimate: PCIe 5 x8 per chip"),
     .launch_latency_s = FACT(1.5e-6, LAUNCH),
     .conflicts =
         "HBM 4.9e12 (architecture page) against 4.7e12 (NKI guide): 4.9e12. The largest "
         "UltraServer has 144 chips on one NeuronSwitch (AWS announcement, not re-read); the "
         "network above it is not documented, so larger systems are refused."},
};
const sm_vendor_chips sm_chips_amazon = {chips, sizeof chips / sizeof chips[0]};
