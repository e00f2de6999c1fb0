/* Google TPUs. Bandwidths of links are those of How To Scale Your Model (what a collective
 * achieves); Google's documents give about 11 % more per port, which is kept in `conflicts`. */
#include "catalogue.h"

#define GCP "Google Cloud documentation, https://cloud.google.com/tpu/docs/"
#define GCP_V4 GCP "v4 (read 2026)"
#define GCP_V5E GCP "v5e (read 2026)"
#define GCP_V5P GCP "v5p (read 2026)"
#define GCP_V6E GCP "v6e (read 2026)"
#define GCP_7X GCP "tpu7x (read 2026)"
#define GCP_PRICE_BOOK                                                                             \
    "How To Scale Your Model, part 8, quoting https://cloud.google.com/tpu/pricing (2025-02)"
#define GCP_PRICE "https://cloud.google.com/tpu/pricing, not re-read"
#define JAX_TPU_INFO                                                                               \
    "jax jax/_src/pallas/mosaic/tpu_info.py (04c6362), https://github.com/jax-ml/jax"
#define BOOK_TPUS_2026 "How To Scale Your Model, part 2 (TPUs), 2026 revision for TPU7x"
#define CACM_2020                                                                                  \
    "Jouppi et al., A domain-specific supercomputer for training DNNs, CACM 63(7), 2020, not "     \
    "re-read"
#define ISCA_2023 "Jouppi et al., TPU v4, ISCA 2023, https://arxiv.org/abs/2304.01433, not re-read"
#define GOOGLE_NEXT_2026 "Google Cloud Next, 2026-04-22, as reported by storagereview.com"
#define VPU_2 "derived: lanes 8 x 128, 2 ALUs each (assumed), per core and cycle"
#define VPU_4 "derived: 8 x 128 x 4 ALUs per core and cycle (" BOOK_TPUS ")"
#define VMEM_22 "derived: 22 x HBM bandwidth (" BOOK_TPUS ")"
#define HOP "about 1 us per hop (" BOOK_TPUS ")"
#define DCN_LATENCY "estimate: no public figure; 10 us for a message between slices"
#define LAUNCH "estimate: no public figure; an XLA program starts its own ops, 1 us each at most"
#define PCIE_TYPICAL "typical of TPU hosts, 1.5e10 to 1.6e10 (" BOOK_TPUS ")"

static const sm_chip chips[] = {
    {.name = "tpu-v2",
     .aliases = "tpu_v2 v2 tpuv2",
     .title = "TPU v2",
     .vendor = "Google",
     .flops_per_s[SM_BF16] = FACT(46e12, JAX_TPU_INFO),
     .vector_flops_per_s = FACT(2.8672e12, VPU_2),
     .memory_bytes = FACT(17179869184.0, JAX_TPU_INFO),
     .memory_bytes_per_s = FACT(716e9, JAX_TPU_INFO),
     .onchip_bytes = FACT(33554432.0, JAX_TPU_INFO),
     .onchip_bytes_per_s = FACT(15.752e12, VMEM_22),
     .tile_m = 8,
     .tile_n = 128,
     .tile_k = 128,
     .cores = 2,
     .matrix_units_per_core = 1,
     .clock_hz = FACT(700e6, CACM_2020),
     .fabric = SM_FABRIC_TORUS,
     .torus_axes = 2,
     .pod_shape = {16, 16},
     .link_bytes_per_s_oneway = FACT(62e9, CACM_2020),
     .links_per_chip = 4,
     .wrap_rule = SM_WRAP_FULL_POD,
     .hop_latency_s = FACT(1e-6, HOP),
     .chips_per_host = 4,
     .pcie_bytes_per_s_oneway = FACT(16e9, PCIE_TYPICAL),
     .dcn_bytes_per_s_oneway = FACT(3.125e9, "estimate: as TPU v5e (" BOOK_TPUS ")"),
     .dcn_latency_s = FACT(10e-6, DCN_LATENCY),
     .launch_latency_s = FACT(1e-6, LAUNCH),
     .tdp_w = FACT(280, CACM_2020),
     .conflicts =
         "HBM bandwidth 716e9 (jax) against 700e9 (CACM 2020): jax, it is what its kernels "
         "are tuned to. The book's part 9 uses 1.2e11 both ways per link, which is 2 x 62e9 "
         "rounded."},
    {.name = "tpu-v3",
     .aliases = "tpu_v3 v3 tpuv3",
     .title = "TPU v3",
     .vendor = "Google",
     .flops_per_s[SM_BF16] = FACT(123e12, CACM_2020),
     .vector_flops_per_s = FACT(3.85024e12, VPU_2),
     .memory_bytes = FACT(34359738368.0, BOOK_TPUS),
     .memory_bytes_per_s = FACT(900e9, BOOK_TPUS),
     .onchip_bytes = FACT(33554432.0, JAX_TPU_INFO),
     .onchip_bytes_per_s = FACT(19.8e12, VMEM_22),
     .tile_m = 8,
     .tile_n = 128,
     .tile_k = 128,
     .cores = 2,
     .matrix_units_per_core = 2,
     .clock_hz = FACT(940e6, CACM_2020),
     .fabric = SM_FABRIC_TORUS,
     .torus_axes = 2,
     .pod_shape = {32, 32},
     .link_bytes_per_s_oneway = FACT(100e9, BOOK_TPUS),
     .links_per_chip = 4,
     .wrap_rule = SM_WRAP_FULL_POD,
     .hop_latency_s = FACT(1e-6, HOP),
     .chips_per_host = 8,
     .pcie_bytes_per_s_oneway = FACT(16e9, PCIE_TYPICAL),
     .dcn_bytes_per_s_oneway = FACT(3.125e9, "estimate: as TPU v5e (" BOOK_TPUS ")"),
     .dcn_latency_s = FACT(10e-6, DCN_LATENCY),
     .launch_latency_s = FACT(1e-6, LAUNCH),
     .tdp_w = FACT(450, CACM_2020),
     .conflicts =
         "bf16 123e12 (Google, CACM 2020) against 1.4e14 (book, jax): 123e12 is "
         "4 units x 2 x 128 x 128 x 940 MHz. HBM 900e9 (book) against 825e9 (jax): book. "
         "ICI link 1e11 (book) against 656 Gb/s = 82e9 (CACM 2020): book, as for every TPU "
         "here. Host 4x2 (book); a v3-8 virtual machine has 4 chips."},
    {.name = "tpu-v4",
     .aliases = "tpu_v4 v4 v4p tpu-v4p tpuv4",
     .title = "TPU v4",
     .vendor = "Google",
     .flops_per_s[SM_BF16] = FACT(275e12, GCP_V4),
     .flops_per_s[SM_INT8] = FACT(275e12, GCP_V4),
     .vector_flops_per_s = FACT(8.6016e12, VPU_4),
     .memory_bytes = FACT(34359738368.0, GCP_V4),
     .memory_bytes_per_s = FACT(1200e9, GCP_V4),
     .onchip_bytes = FACT(33554432.0, JAX_TPU_INFO),
     .onchip_bytes_per_s = FACT(26.4e12, VMEM_22),
     .tile_m = 8,
     .tile_n = 128,
     .tile_k = 128,
     .cores = 2,
     .matrix_units_per_core = 4,
     .clock_hz = FACT(1050e6, ISCA_2023),
     .fabric = SM_FABRIC_TORUS,
     .torus_axes = 3,
     .pod_shape = {16, 16, 16},
     .link_bytes_per_s_oneway = FACT(45e9, BOOK_TPUS),
     .links_per_chip = 6,
     .wrap_rule = SM_WRAP_ALL_MULTIPLE_4,
     .hop_latency_s = FACT(1e-6, HOP),
     .chips_per_host = 4,
     .pcie_bytes_per_s_oneway = FACT(16e9, BOOK_TPUS),
     .dcn_bytes_per_s_oneway = FACT(6.25e9, "2.5e10 per host of 4 (" BOOK_TPUS ")"),
     .dcn_latency_s = FACT(10e-6, DCN_LATENCY),
     .launch_latency_s = FACT(1e-6, LAUNCH),
     .tdp_w = FACT(192, GCP_V4),
     .prices = 1,
     .price = {{3.22, "Google Cloud us-central2, on demand", "2024", GCP_PRICE}},
     .conflicts =
         "ICI link 4.5e10 (book) against 5e10 (ISCA 2023): book, the achieved rate. HBM "
         "1.2e12 (Google) against 1.23e12 (jax): Google. Slices of 2A=B=C or 2A=2B=C can be "
         "twisted tori; twisting is not in the costs. 128 MiB of CMEM are not counted."},
    {.name = "tpu-v5e",
     .aliases = "tpu_v5e v5e v5litepod tpu-v5-lite tpuv5e",
     .title = "TPU v5e",
     .vendor = "Google",
     .flops_per_s[SM_BF16] = FACT(197e12, GCP_V5E),
     .flops_per_s[SM_INT8] = FACT(393e12, GCP_V5E),
     .flops_per_s[SM_INT4] = FACT(788e12, JAX_TPU_INFO),
     .vector_flops_per_s = FACT(6.144e12, VPU_4),
     .memory_bytes = FACT(17179869184.0, GCP_V5E),
     .memory_bytes_per_s = FACT(819e9, GCP_V5E),
     .onchip_bytes = FACT(134217728.0, JAX_TPU_INFO),
     .onchip_bytes_per_s = FACT(17.82e12, "22 x 8.1e11 (" BOOK_TPUS ")"),
     .tile_m = 8,
     .tile_n = 128,
     .tile_k = 128,
     .cores = 1,
     .matrix_units_per_core = 4,
     .clock_hz = FACT(1500e6, BOOK_TPUS),
     .fabric = SM_FABRIC_TORUS,
     .torus_axes = 2,
     .pod_shape = {16, 16},
     .link_bytes_per_s_oneway = FACT(45e9, BOOK_TPUS),
     .links_per_chip = 4,
     .wrap_rule = SM_WRAP_AXIS_16,
     .hop_latency_s = FACT(1e-6, HOP),
     .chips_per_host = 8,
     .host_bytes = FACT(549755813888.0, GCP_V5E),
     .pcie_bytes_per_s_oneway = FACT(16e9, PCIE_TYPICAL),
     .dcn_bytes_per_s_oneway = FACT(3.125e9, "2.5e10 per host of 8 (" BOOK_TPUS ")"),
     .dcn_latency_s = FACT(10e-6, DCN_LATENCY),
     .launch_latency_s = FACT(1e-6, LAUNCH),
     .prices = 1,
     .price = {{1.20, "Google Cloud", "2025-02", GCP_PRICE_BOOK}},
     .conflicts =
         "HBM bandwidth 819e9 (Google) against 8.1e11 (book part 2) and 8.2e11 (book part 1, "
         "jax): Google. int8 393e12 (Google) against 394e12 (book): Google. ICI link 4.5e10 "
         "(book, achieved) against 400 GB/s both ways over 4 ports = 5e10 (Google): book. "
         "4 units x 2 x 128 x 128 x 1.5 GHz = 1.966e14."},
    {.name = "tpu-v5p",
     .aliases = "tpu_v5p v5p tpuv5p",
     .title = "TPU v5p",
     .vendor = "Google",
     .flops_per_s[SM_BF16] = FACT(459e12, GCP_V5P),
     .flops_per_s[SM_FP8] = FACT(459e12, GCP_V5P),
     .flops_per_s[SM_INT8] = FACT(918e12, BOOK_TPUS),
     .flops_per_s[SM_INT4] = FACT(1840e12, JAX_TPU_INFO),
     .vector_flops_per_s = FACT(14.336e12, BOOK_TPUS),
     .memory_bytes = FACT(102005473280.0, GCP_V5P),
     .memory_bytes_per_s = FACT(2765e9, GCP_V5P),
     .onchip_bytes = FACT(134217728.0, JAX_TPU_INFO),
     .onchip_bytes_per_s = FACT(60.83e12, VMEM_22),
     .tile_m = 8,
     .tile_n = 128,
     .tile_k = 128,
     .cores = 2,
     .matrix_units_per_core = 4,
     .clock_hz = FACT(1750e6, BOOK_TPUS),
     .fabric = SM_FABRIC_TORUS,
     .torus_axes = 3,
     .pod_shape = {16, 20, 28},
     .link_bytes_per_s_oneway = FACT(90e9, BOOK_TPUS),
     .links_per_chip = 6,
     .wrap_rule = SM_WRAP_ALL_MULTIPLE_4,
     .hop_latency_s = FACT(1e-6, HOP),
     .chips_per_host = 4,
     .host_bytes = FACT(448e9, GCP_V5P),
     .pcie_bytes_per_s_oneway = FACT(16e9, PCIE_TYPICAL),
     .dcn_bytes_per_s_oneway = FACT(6.25e9, GCP_V5P),
     .dcn_latency_s = FACT(10e-6, DCN_LATENCY),
     .launch_latency_s = FACT(1e-6, LAUNCH),
     .prices = 1,
     .price = {{4.20, "Google Cloud", "2025-02", GCP_PRICE_BOOK}},
     .conflicts =
         "HBM bandwidth 2765e9 (Google) against 2.8e12 (book table), 2.5e12 (book text, 2025) "
         "and 2.46e12 (jax): Google. HBM capacity 95 GiB usable (Google; 96 GiB physical) "
         "against 96e9 (book): Google. ICI link 9e10 (book, achieved) against 1200 GB/s both "
         "ways over 6 ports = 1e11 (Google): book. The largest job Google schedules is "
         "16x16x24 (6144 chips) although a pod has 8960."},
    {.name = "tpu-v6e",
     .aliases = "tpu_v6e v6e trillium tpu-v6 tpuv6e",
     .title = "TPU v6e (Trillium)",
     .vendor = "Google",
     .flops_per_s[SM_BF16] = FACT(918e12, GCP_V6E),
     .flops_per_s[SM_FP8] = FACT(918e12, GCP_7X),
     .flops_per_s[SM_INT8] = FACT(1836e12, GCP_V6E),
     .flops_per_s[SM_INT4] = FACT(3680e12, JAX_TPU_INFO),
     .vector_flops_per_s = FACT(7.168e12, VPU_4),
     .memory_bytes = FACT(34359738368.0, GCP_V6E),
     .memory_bytes_per_s = FACT(1638e9, GCP_V6E),
     .onchip_bytes = FACT(134217728.0, JAX_TPU_INFO),
     .onchip_bytes_per_s = FACT(36.036e12, VMEM_22),
     .tile_m = 8,
     .tile_n = 256,
     .tile_k = 256,
     .cores = 1,
     .matrix_units_per_core = 2,
     .clock_hz = FACT(1750e6, "derived: 918e12 / (2 units x 2 x 8 x 256 x 256 / 4 per cycle)"),
     .fabric = SM_FABRIC_TORUS,
     .torus_axes = 2,
     .pod_shape = {16, 16},
     .link_bytes_per_s_oneway = FACT(90e9, BOOK_TPUS),
     .links_per_chip = 4,
     .wrap_rule = SM_WRAP_AXIS_16,
     .hop_latency_s = FACT(1e-6, HOP),
     .chips_per_host = 8,
     .host_bytes = FACT(1649267441664.0, GCP_V6E),
     .pcie_bytes_per_s_oneway = FACT(32e9, BOOK_TPUS),
     .dcn_bytes_per_s_oneway = FACT(12.5e9, BOOK_TPUS_2026),
     .dcn_latency_s = FACT(10e-6, DCN_LATENCY),
     .launch_latency_s = FACT(1e-6, LAUNCH),
     .prices = 1,
     .price = {{2.70, "Google Cloud us-east, on demand", "2025", GCP_PRICE}},
     .conflicts =
         "bf16 918e12 (Google) against 9.1e14 (book part 1) and 9.2e14 (book part 2, jax): "
         "Google. ICI link 9e10 (book, achieved) against 800 GB/s both ways over 4 ports = "
         "1e11 (Google): book."},
    {.name = "tpu-v7",
     .aliases = "tpu_v7 v7 tpu-v7x tpu_v7x v7x tpu7x ironwood tpuv7",
     .title = "TPU7x (Ironwood)",
     .vendor = "Google",
     .flops_per_s[SM_BF16] = FACT(2307e12, GCP_7X),
     .flops_per_s[SM_FP8] = FACT(4614e12, GCP_7X),
     .vector_flops_per_s = FACT(18.0224e12, BOOK_TPUS_2026),
     .memory_bytes = FACT(206158430208.0, GCP_7X),
     .memory_bytes_per_s = FACT(7380e9, GCP_7X),
     .onchip_bytes = FACT(134217728.0, BOOK_TPUS_2026),
     .onchip_bytes_per_s = FACT(51.8e12, BOOK_TPUS_2026),
     .tile_m = 8,
     .tile_n = 256,
     .tile_k = 256,
     .cores = 2,
     .matrix_units_per_core = 2,
     .clock_hz = FACT(2200e6, BOOK_TPUS_2026),
     .fabric = SM_FABRIC_TORUS,
     .torus_axes = 3,
     .pod_shape = {16, 24, 24},
     .link_bytes_per_s_oneway = FACT(100e9, GCP_7X),
     .links_per_chip = 6,
     .wrap_rule = SM_WRAP_ALL_MULTIPLE_4,
     .hop_latency_s = FACT(1e-6, HOP),
     .chips_per_host = 4,
     .host_bytes = FACT(944e9, GCP "tpu7x, memory of a 4-chip VM, not re-read"),
     .pcie_bytes_per_s_oneway = FACT(32e9, "estimate: as TPU v6e (" BOOK_TPUS ")"),
     .dcn_bytes_per_s_oneway = FACT(12.5e9, GCP_7X),
     .dcn_latency_s = FACT(10e-6, DCN_LATENCY),
     .launch_latency_s = FACT(1e-6, LAUNCH),
     .prices = 1,
     .price = {{12.00, "Google Cloud list, on demand", "2025-11", GCP_PRICE}},
     .conflicts =
         "ICI link 1e11 (Google: 1200 GB/s both ways over 6 ports) against 9e10 (book, 2026): "
         "Google, as the book's chapter on it is a draft with slips (7.92e12 for HBM). Pod of "
         "9216 chips (Google) written 4x4x576 in the book: the 144 cubes may be joined in any "
         "arrangement, 16x24x24 is the most cubic. No int8 or int4 path (jax). JAX shows two "
         "devices per chip."},
    {.name = "tpu-v8t",
     .aliases = "tpu_v8t v8t tpu-8t sunfish",
     .title = "TPU 8t (announced 2026-04)",
     .vendor = "Google",
     .flops_per_s[SM_FP4] = FACT(12.6e15, GOOGLE_NEXT_2026),
     .memory_bytes = FACT(216e9, GOOGLE_NEXT_2026),
     .memory_bytes_per_s = FACT(6500e9, GOOGLE_NEXT_2026),
     .onchip_bytes = FACT(128e6, GOOGLE_NEXT_2026),
     .tile_m = 8,
     .tile_n = 256,
     .tile_k = 256,
     .cores = 2,
     .matrix_units_per_core = 2,
     .fabric = SM_FABRIC_TORUS,
     .torus_axes = 3,
     .pod_shape = {20, 20, 24},
     .link_bytes_per_s_oneway =
         FACT(200e9, "derived: twice Ironwood, 19.2 Tb/s in all (" GOOGLE_NEXT_2026 ")"),
     .links_per_chip = 6,
     .wrap_rule = SM_WRAP_ALL_MULTIPLE_4,
     .hop_latency_s = FACT(1e-6, HOP),
     .chips_per_host = 4,
     .dcn_bytes_per_s_oneway = FACT(
         50e9, "Google's description of TPU 8t as discussed on reddit, 2026-05-01, second hand"),
     .dcn_latency_s = FACT(10e-6, DCN_LATENCY),
     .launch_latency_s = FACT(1e-6, LAUNCH),
     .conflicts =
         "Only the fp4 peak is published: no bf16, no fp8. Tile, cores and units are assumed "
         "as on TPU7x; 20x20x24 is the most cubic arrangement of the 150 cubes of a "
         "9600-chip pod."},
};
const sm_vendor_chips sm_chips_google = {chips, sizeof chips / sizeof chips[0]};
