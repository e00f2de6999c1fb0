/* NVIDIA cards on PCIe: data-centre, workstation and GeForce. Servers of them differ; here eight
 * cards share a host, some bridged in pairs, and half of 400 Gb/s per node leaves it. Peaks are
 * dense and accumulate in fp32, which is what bf16 and fp16 matmuls of libraries do. */
#include "catalogue.h"

#define DATASHEET(x) "NVIDIA " x " datasheet, not re-read"
#define AMPERE_GA102 "NVIDIA Ampere GA102 GPU architecture whitepaper, not re-read"
#define ADA "NVIDIA Ada GPU architecture whitepaper, not re-read"
#define RTX_BLACKWELL "NVIDIA RTX Blackwell PRO GPU architecture whitepaper, not re-read"
#define AT_1860 "derived: 82 SMs at 1860 MHz, rates per cycle of " AMPERE_GA102
#define AT_2640 "derived: 128 SMs at 2640 MHz, rates per cycle of " ADA
#define LAUNCH "estimate: as measured on an H100 (" BOOK_GPUS ", quiz 1.7)"
#define ESTIMATE "estimate: 8 cards share 400 Gb/s of NIC"
#define PCIE_4 "PCIe 4 x16, " STAS_NETWORK

#define GPU_TILE .tile_m = 128, .tile_n = 128, .tile_k = 64
#define PCIE(degree, w, s)                                                                         \
    { "pcie", degree, FACT(w, s), FACT(1.0e-6, NCCL_TUNING), false, NULL }
#define BRIDGE(w, s)                                                                               \
    { "nvlink", 2, FACT(w, s), FACT(0.6e-6, NCCL_TUNING), false, NULL }
#define ETHERNET                                                                                   \
    { "ethernet", 32, FACT(50e9, ESTIMATE), FACT(2.7e-6, NCCL_TUNING), false, NULL }
#define OF_A_CARD                                                                                  \
    .chips_per_host = 8, .dcn_bytes_per_s_oneway = FACT(6.25e9, ESTIMATE),                         \
    .dcn_latency_s = FACT(2.7e-6, NCCL_TUNING), .launch_latency_s = FACT(1.5e-6, LAUNCH)
#define ON_A_BRIDGE(w, s)                                                                          \
    .fabric = SM_FABRIC_SWITCH, .link_bytes_per_s_oneway = FACT(w, s), .links_per_chip = 4,        \
    .tree_levels = 3, .tree = {BRIDGE(w, s), PCIE(4, 62e9, "2 x " PCIE_4), ETHERNET}, OF_A_CARD,   \
    .pcie_bytes_per_s_oneway = FACT(31e9, PCIE_4)
#define ON_PCIE(w, s)                                                                              \
    .fabric = SM_FABRIC_SWITCH, .link_bytes_per_s_oneway = FACT(w, s), .links_per_chip = 1,        \
    .tree_levels = 2, .tree = {PCIE(8, w, s), ETHERNET}, OF_A_CARD,                                \
    .pcie_bytes_per_s_oneway = FACT(w, s)

static const sm_chip chips[] = {
    {.name = "a100-pcie",
     .aliases = "a100_pcie a100-pcie-80 a100-pcie-80gb",
     .title = "A100 PCIe 80GB",
     .vendor = "NVIDIA",
     .flops_per_s[SM_BF16] = FACT(312e12, DATASHEET("A100 80GB PCIe")),
     .flops_per_s[SM_FP16] = FACT(312e12, DATASHEET("A100 80GB PCIe")),
     .flops_per_s[SM_TF32] = FACT(156e12, DATASHEET("A100 80GB PCIe")),
     .flops_per_s[SM_FP32] = FACT(19.5e12, DATASHEET("A100 80GB PCIe")),
     .flops_per_s[SM_INT8] = FACT(624e12, DATASHEET("A100 80GB PCIe")),
     .flops_per_s[SM_INT4] = FACT(1248e12, DATASHEET("A100 80GB PCIe")),
     .vector_flops_per_s = FACT(19.5e12, DATASHEET("A100 80GB PCIe")),
     .memory_bytes = FACT(85899345920.0, DATASHEET("A100 80GB PCIe")),
     .memory_bytes_per_s = FACT(1935e9, DATASHEET("A100 80GB PCIe")),
     .onchip_bytes = FACT(40e6, BOOK_GPUS),
     .shared_bytes = FACT(108 * 196608.0, BOOK_GPUS),
     GPU_TILE,
     .cores = 108,
     .matrix_units_per_core = 4,
     .clock_hz = FACT(1410e6, "as A100 SXM, " STAS_ACCELERATOR),
     ON_A_BRIDGE(300e9, "bridge of two cards, " DATASHEET("A100 80GB PCIe")),
     .tdp_w = FACT(300, DATASHEET("A100 80GB PCIe")),
     .conflicts = "The same peaks as the SXM module at 300 W: sustained clocks are lower."},
    {.name = "a40",
     .aliases = "a40-48",
     .title = "A40 48GB",
     .vendor = "NVIDIA",
     .flops_per_s[SM_BF16] = FACT(149.7e12, DATASHEET("A40")),
     .flops_per_s[SM_FP16] = FACT(149.7e12, DATASHEET("A40")),
     .flops_per_s[SM_TF32] = FACT(74.8e12, DATASHEET("A40")),
     .flops_per_s[SM_FP32] = FACT(37.4e12, DATASHEET("A40")),
     .flops_per_s[SM_INT8] = FACT(299.3e12, DATASHEET("A40")),
     .flops_per_s[SM_INT4] = FACT(598.7e12, DATASHEET("A40")),
     .vector_flops_per_s = FACT(37.4e12, DATASHEET("A40")),
     .memory_bytes = FACT(51539607552.0, DATASHEET("A40")),
     .memory_bytes_per_s = FACT(696e9, DATASHEET("A40")),
     .onchip_bytes = FACT(6291456.0, AMPERE_GA102),
     .shared_bytes = FACT(84 * 131072.0, AMPERE_GA102),
     GPU_TILE,
     .cores = 84,
     .matrix_units_per_core = 4,
     .clock_hz = FACT(1740e6, "derived: 149.7e12 / (84 SMs x 4 x 256 per cycle)"),
     ON_A_BRIDGE(56.25e9, "bridge of two cards, 112.5 GB/s both ways, " DATASHEET("A40")),
     .tdp_w = FACT(300, DATASHEET("A40")),
     .conflicts = ""},
    {.name = "rtx-a5000",
     .aliases = "rtx_a5000 a5000",
     .title = "RTX A5000 24GB",
     .vendor = "NVIDIA",
     .flops_per_s[SM_BF16] = FACT(111.1e12, AMPERE_GA102),
     .flops_per_s[SM_FP16] = FACT(111.1e12, AMPERE_GA102),
     .flops_per_s[SM_TF32] = FACT(55.6e12, AMPERE_GA102),
     .flops_per_s[SM_FP32] = FACT(27.8e12, DATASHEET("RTX A5000")),
     .flops_per_s[SM_INT8] = FACT(222.2e12, AMPERE_GA102),
     .flops_per_s[SM_INT4] = FACT(444.4e12, AMPERE_GA102),
     .vector_flops_per_s = FACT(27.8e12, DATASHEET("RTX A5000")),
     .memory_bytes = FACT(25769803776.0, DATASHEET("RTX A5000")),
     .memory_bytes_per_s = FACT(768e9, DATASHEET("RTX A5000")),
     .onchip_bytes = FACT(6291456.0, AMPERE_GA102),
     .shared_bytes = FACT(64 * 131072.0, AMPERE_GA102),
     GPU_TILE,
     .cores = 64,
     .matrix_units_per_core = 4,
     .clock_hz = FACT(1695e6, "derived: 111.1e12 / (64 SMs x 4 x 256 per cycle)"),
     ON_A_BRIDGE(56.25e9, "bridge of two cards, 112.5 GB/s both ways, " DATASHEET("RTX A5000")),
     .tdp_w = FACT(230, DATASHEET("RTX A5000")),
     .conflicts = "The datasheet prints 222.2e12 with sparsity: halved."},
    {.name = "rtx-a6000",
     .aliases = "rtx_a6000 a6000",
     .title = "RTX A6000 48GB",
     .vendor = "NVIDIA",
     .flops_per_s[SM_BF16] = FACT(154.8e12, AMPERE_GA102),
     .flops_per_s[SM_FP16] = FACT(154.8e12, AMPERE_GA102),
     .flops_per_s[SM_TF32] = FACT(77.4e12, AMPERE_GA102),
     .flops_per_s[SM_FP32] = FACT(38.7e12, DATASHEET("RTX A6000")),
     .flops_per_s[SM_INT8] = FACT(309.7e12, AMPERE_GA102),
     .flops_per_s[SM_INT4] = FACT(619.4e12, AMPERE_GA102),
     .vector_flops_per_s = FACT(38.7e12, DATASHEET("RTX A6000")),
     .memory_bytes = FACT(51539607552.0, DATASHEET("RTX A6000")),
     .memory_bytes_per_s = FACT(768e9, DATASHEET("RTX A6000")),
     .onchip_bytes = FACT(6291456.0, AMPERE_GA102),
     .shared_bytes = FACT(84 * 131072.0, AMPERE_GA102),
     GPU_TILE,
     .cores = 84,
     .matrix_units_per_core = 4,
     .clock_hz = FACT(1800e6, AMPERE_GA102),
     ON_A_BRIDGE(56.25e9, "bridge of two cards, 112.5 GB/s both ways, " DATASHEET("RTX A6000")),
     .tdp_w = FACT(300, DATASHEET("RTX A6000")),
     .conflicts = "The datasheet prints 309.7e12 with sparsity: halved."},
    {.name = "rtx-3090",
     .aliases = "rtx3090 rtx_3090",
     .title = "GeForce RTX 3090 24GB",
     .vendor = "NVIDIA",
     .flops_per_s[SM_BF16] = FACT(78.1e12, AT_1860),
     .flops_per_s[SM_FP16] = FACT(78.1e12, AT_1860),
     .flops_per_s[SM_TF32] = FACT(39.05e12, AT_1860),
     .flops_per_s[SM_FP32] = FACT(39.05e12, AT_1860),
     .flops_per_s[SM_INT8] = FACT(312.4e12, AT_1860),
     .flops_per_s[SM_INT4] = FACT(624.8e12, AT_1860),
     .vector_flops_per_s = FACT(39.05e12, AT_1860),
     .memory_bytes = FACT(25769803776.0, AMPERE_GA102),
     .memory_bytes_per_s = FACT(936.2e9, AMPERE_GA102),
     .onchip_bytes = FACT(6291456.0, AMPERE_GA102),
     .shared_bytes = FACT(82 * 131072.0, AMPERE_GA102),
     GPU_TILE,
     .cores = 82,
     .matrix_units_per_core = 4,
     .clock_hz = FACT(1860e6, "ASUS ROG Strix RTX 3090 OC boost clock, not re-read"),
     ON_A_BRIDGE(56.25e9, "bridge of two cards, 112.5 GB/s both ways, " AMPERE_GA102),
     .tdp_w = FACT(350, AMPERE_GA102),
     .conflicts =
         "Peaks at 1860 MHz, the fastest rated boost of partner cards, so that they bound: public "
         "matmuls exceed the 71.2e12 of the reference card (1695 MHz). GeForce halves the rate of "
         "16-bit matmuls that accumulate in fp32."},
    {.name = "rtx-4090",
     .aliases = "rtx4090 rtx_4090",
     .title = "GeForce RTX 4090 24GB",
     .vendor = "NVIDIA",
     .flops_per_s[SM_BF16] = FACT(173e12, AT_2640),
     .flops_per_s[SM_FP16] = FACT(173e12, AT_2640),
     .flops_per_s[SM_TF32] = FACT(86.5e12, AT_2640),
     .flops_per_s[SM_FP32] = FACT(86.5e12, AT_2640),
     .flops_per_s[SM_FP8] = FACT(346e12, AT_2640),
     .flops_per_s[SM_INT8] = FACT(692e12, AT_2640),
     .flops_per_s[SM_INT4] = FACT(1384e12, AT_2640),
     .vector_flops_per_s = FACT(86.5e12, AT_2640),
     .memory_bytes = FACT(25769803776.0, ADA),
     .memory_bytes_per_s = FACT(1008e9, ADA),
     .onchip_bytes = FACT(75497472.0, ADA),
     .shared_bytes = FACT(128 * 131072.0, ADA),
     GPU_TILE,
     .cores = 128,
     .matrix_units_per_core = 4,
     .clock_hz = FACT(2640e6, "ASUS ROG Strix RTX 4090 OC boost clock, not re-read"),
     ON_PCIE(31e9, PCIE_4),
     .tdp_w = FACT(450, ADA),
     .conflicts = "Peaks at 2640 MHz, the fastest rated boost of partner cards, so that they "
                  "bound; 165.2e12 "
                  "in bf16 at the reference 2520 MHz. GeForce halves the rate of 16-bit and fp8 "
                  "matmuls that "
                  "accumulate in fp32."},
    {.name = "rtx-pro-6000",
     .aliases = "rtx_pro_6000 rtx-pro-6000-server rtx_pro_6000_server",
     .title = "RTX PRO 6000 Blackwell Server Edition 96GB",
     .vendor = "NVIDIA",
     .flops_per_s[SM_BF16] = FACT(503.8e12, RTX_BLACKWELL),
     .flops_per_s[SM_FP16] = FACT(503.8e12, RTX_BLACKWELL),
     .flops_per_s[SM_TF32] = FACT(251.9e12, RTX_BLACKWELL),
     .flops_per_s[SM_FP32] = FACT(126e12, RTX_BLACKWELL),
     .flops_per_s[SM_FP8] = FACT(1007.6e12, RTX_BLACKWELL),
     .flops_per_s[SM_INT8] = FACT(1007.6e12, RTX_BLACKWELL),
     .flops_per_s[SM_FP4] = FACT(2015.2e12, RTX_BLACKWELL),
     .flops_per_s[SM_MXFP4] = FACT(2015.2e12, RTX_BLACKWELL),
     .vector_flops_per_s = FACT(126e12, RTX_BLACKWELL),
     .memory_bytes = FACT(103079215104.0, DATASHEET("RTX PRO 6000 Blackwell Server Edition")),
     .memory_bytes_per_s = FACT(1597e9, DATASHEET("RTX PRO 6000 Blackwell Server Edition")),
     .onchip_bytes = FACT(134217728.0, RTX_BLACKWELL),
     .shared_bytes = FACT(188 * 131072.0, RTX_BLACKWELL),
     GPU_TILE,
     .cores = 188,
     .matrix_units_per_core = 4,
     .clock_hz = FACT(2617e6, "derived: 503.8e12 / (188 SMs x 4 x 256 per cycle)"),
     ON_PCIE(63e9, "PCIe 5 x16, " STAS_NETWORK),
     .tdp_w = FACT(600, DATASHEET("RTX PRO 6000 Blackwell Server Edition")),
     .conflicts =
         "The server edition prints 120e12 of fp32 against 126e12 of the workstation card, whose "
         "memory reaches 1792e9: peaks of the GPU, memory of the server card."},
};
const sm_vendor_chips sm_chips_nvidia_cards = {chips, sizeof chips / sizeof chips[0]};
