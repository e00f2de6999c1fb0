/* The catalogue of chips: look-up by name and alias, in any case. */
#include "chip_table.h"
#include <string.h>

size_t sm_chip_count(void) { return sm_chip_table_count; }

const sm_chip *sm_chip_at(size_t i) { return i < sm_chip_table_count ? &sm_chip_table[i] : NULL; }

/* Most ask by the very name, which no other chip is called by. */
const sm_chip *sm_chip_find(const char *name, size_t length) {
    for (size_t i = 0; i < sm_chip_table_count; i++)
        if (strlen(sm_chip_table[i].name) == length &&
            memcmp(sm_chip_table[i].name, name, length) == 0)
            return &sm_chip_table[i];
    for (size_t i = 0; i < sm_chip_table_count; i++)
        if (sm_is_called(sm_chip_table[i].name, sm_chip_table[i].aliases, name, length))
            return &sm_chip_table[i];
    return NULL;
}

double sm_chip_host_sharers(const sm_chip *chip) {
    return chip->chips_per_host > 0 ? chip->chips_per_host : 1;
}

double sm_chip_host_bytes(const sm_chip *chip) {
    return chip->host_bytes.value / sm_chip_host_sharers(chip);
}

double sm_chip_host_bytes_per_s_oneway(const sm_chip *chip) {
    double link = chip->pcie_bytes_per_s_oneway.value;
    double memory = chip->host_bytes_per_s.value / 2 / sm_chip_host_sharers(chip);
    return memory > 0 && memory < link ? memory : link;
}

const sm_fact *sm_chip_memory(const sm_chip *chip) {
    return chip->driver_memory_bytes.value > 0 ? &chip->driver_memory_bytes : &chip->memory_bytes;
}

double sm_chip_usd_per_hour(const sm_chip *chip) {
    return chip->prices > 0 ? chip->price[0].usd_per_chip_hour : 0;
}
