/* catalogue: the tables of chips, one file per vendor. Private to src/hw.
 * A source that ends in "not re-read" was written down from general knowledge of that document. */
#ifndef SCALEMODEL_HW_CATALOGUE_H
#define SCALEMODEL_HW_CATALOGUE_H
#include "scalemodel/hw.h"

#define FACT(v, s)                                                                                 \
    { .value = (v), .source = (s) }

typedef struct sm_vendor_chips {
    const sm_chip *chip;
    size_t count;
} sm_vendor_chips;

/* Whether word is the chip's name or one of its aliases, in any case. */
bool sm_chip_is_named(const sm_chip *chip, const char *word, size_t length);

extern const sm_vendor_chips sm_chips_google, sm_chips_nvidia, sm_chips_nvidia_cards, sm_chips_amd,
    sm_chips_intel, sm_chips_amazon, sm_chips_cpu;

#define BOOK_TPUS                                                                                  \
    "How To Scale Your Model, part 2 (TPUs), https://jax-ml.github.io/scaling-book/tpus"
#define BOOK_GPUS                                                                                  \
    "How To Scale Your Model, part 12 (GPUs), https://jax-ml.github.io/scaling-book/gpus"
#define STAS_ACCELERATOR                                                                           \
    "stas00/ml-engineering compute/accelerator (2026-08), "                                        \
    "https://github.com/stas00/ml-engineering"
#define STAS_NETWORK                                                                               \
    "stas00/ml-engineering network (2026-08), https://github.com/stas00/ml-engineering"
/* The least latency of one ring step that NCCL's own tuner assumes: LL protocol, 0.6 us on NVLink,
 * 1.0 us on PCIe, 2.7 us on a network. */
#define NCCL_TUNING "NCCL 2.2x src/graph/tuning.cc hwLat, ring, LL, https://github.com/NVIDIA/nccl"
#endif
