/* chip_schema: the keys of a chip in a system file, one list for reading and writing.
 * Private to src/io; docs/system-file.md is its manual. */
#pragma once
#include "scalemodel/hw.h"

/* key = field, what it is, least value (0 is always allowed: unknown), greatest value */
#define SM_CHIP_FACTS(X)                                                                           \
    X(vector_flops_per_s, "FLOP/s of the vector unit", 1, 1e21)                                    \
    X(memory_bytes, "bytes of device memory", 1, 1e18)                                             \
    X(memory_bytes_per_s, "bytes/s of device memory", 1, 1e18)                                     \
    X(driver_memory_bytes, "bytes of device memory that the driver reports", 1, 1e18)              \
    X(onchip_bytes, "bytes of VMEM or L2", 1, 1e18)                                                \
    X(onchip_bytes_per_s, "bytes/s of VMEM or L2", 1, 1e18)                                        \
    X(shared_bytes, "bytes of shared memory over all cores", 1, 1e18)                              \
    X(clock_hz, "Hz", 1, 1e12)                                                                     \
    X(link_bytes_per_s_oneway, "bytes/s of one link, one way", 1, 1e18)                            \
    X(hop_latency_s, "seconds per hop of a torus", 1e-12, 3600)                                    \
    X(host_bytes, "bytes of DRAM of a host", 1, 1e18)                                              \
    X(host_bytes_per_s, "bytes/s of a host's DRAM, reads and writes", 1, 1e18)                     \
    X(pcie_bytes_per_s_oneway, "bytes/s to the host per chip, one way", 1, 1e18)                   \
    X(dcn_bytes_per_s_oneway, "bytes/s to the data-center network per chip, one way", 1, 1e18)     \
    X(dcn_latency_s, "seconds per message between slices or nodes", 1e-12, 3600)                   \
    X(launch_latency_s, "seconds to start a kernel", 1e-12, 3600)                                  \
    X(tdp_w, "watts", 1e-3, 1e6)                                                                   \
    X(interruptions_per_chip_hour, "unplanned ends of a run, per chip and hour", 1e-12, 10)

/* key = field, greatest value; all are whole numbers from 1 */
#define SM_CHIP_COUNTS(X)                                                                          \
    X(cores, 1 << 20)                                                                              \
    X(devices, 1 << 20)                                                                            \
    X(matrix_units_per_core, 1 << 20)                                                              \
    X(peer_chips, 1 << 20)                                                                         \
    X(chips_per_host, 1 << 20)

#define SM_CHIP_TEXTS(X)                                                                           \
    X(name)                                                                                        \
    X(aliases)                                                                                     \
    X(title)                                                                                       \
    X(vendor)                                                                                      \
    X(conflicts)                                                                                   \
    X(calibration)                                                                                 \
    X(constants_like)

/* Keys read and written one by one. */
#define SM_CHIP_OTHERS(X)                                                                          \
    X(base)                                                                                        \
    X(flops_per_s)                                                                                 \
    X(narrow_bytes_per_s)                                                                          \
    X(tile)                                                                                        \
    X(links_per_chip)                                                                              \
    X(fabric)                                                                                      \
    X(pod_shape)                                                                                   \
    X(wrap_rule)                                                                                   \
    X(tree)                                                                                        \
    X(prices)                                                                                      \
    X(sources)

/* Keys of `chip NAME --json` that follow from the others: passed over when it is read back. */
#define SM_CHIP_DERIVED(X)                                                                         \
    X(ridge_flops_per_byte)                                                                        \
    X(ridges)                                                                                      \
    X(links)
