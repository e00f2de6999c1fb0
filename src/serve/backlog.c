/* A record is the number, as what it is above the one before; the arrival, as the bits that differ
 * from the one before, so that in a burst it takes a byte; the tokens of prompt and output, and, as
 * the lowest bit of these says, prefixes and blocks, the class and the next turn. Numbers take
 * seven bits a byte (LEB128). */
#include "backlog.h"

#include <assert.h>
#include <string.h>

enum { PART_BYTES = 1 << 16, NUMBER_BYTES = 10 };

struct sim_backlog_part {
    struct sim_backlog_part *next;
    size_t written, read, room;
    uint8_t byte[];
};

static void put_number(sim_backlog_part *p, uint64_t value) {
    for (; value > 127; value >>= 7) p->byte[p->written++] = (uint8_t)(value | 128);
    p->byte[p->written++] = (uint8_t)value;
}

static uint64_t take_number(sim_backlog_part *p) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = p->byte[p->read++];
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

/* Room for so many bytes in one part. */
static sm_status reserve(sim_backlog *b, size_t bytes, sm_error *err) {
    if (b->last && b->last->room - b->last->written >= bytes) return SM_OK;
    size_t room = bytes > PART_BYTES ? bytes : PART_BYTES;
    sim_backlog_part *p = sm_malloc(sizeof *p + room);
    if (!p) return sm_fail_memory(err);
    *p = (sim_backlog_part){.room = room};
    if (b->last) b->last->next = p;
    else b->first = p;
    b->last = p;
    return SM_OK;
}

static sm_status reserve_blocks(sim_backlog *b, int blocks, sm_error *err) {
    if (blocks <= b->block_room) return SM_OK;
    uint64_t *block = sm_realloc(b->block, (size_t)blocks * sizeof *block);
    if (!block) return sm_fail_memory(err);
    b->block = block;
    b->block_room = blocks;
    return SM_OK;
}

sm_status sim_backlog_put(sim_backlog *b, const sim_packed *packed, sm_error *err) {
    const sm_request *q = &packed->request;
    uint64_t number = packed->number;
    int blocks = q->block && q->block_tokens >= 1.0 && q->blocks > 0 ? q->blocks : 0;
    bool shared = q->prefix || q->conversation || q->shared_prefix > 0.0 || blocks > 0 ||
                  packed->kind > 0 || packed->turn >= 0;
    uint64_t arrival;
    memcpy(&arrival, &q->arrival_s, sizeof arrival);
    assert(number >= b->written.number);
    sm_status status = reserve(b, 12 * NUMBER_BYTES + 8 * (size_t)blocks, err);
    if (!status) status = reserve_blocks(b, blocks, err);
    if (status) return status;
    sim_backlog_part *p = b->last;
    put_number(p, number - b->written.number);
    put_number(p, arrival ^ b->written.arrival);
    put_number(p, (uint64_t)q->prompt);
    put_number(p, (uint64_t)q->output << 1 | shared);
    b->written = (sim_backlog_end){number, arrival};
    b->n++;
    if (!shared) return SM_OK;
    put_number(p, q->prefix);
    put_number(p, q->conversation);
    put_number(p, (uint64_t)q->shared_prefix);
    put_number(p, (uint64_t)packed->kind);
    put_number(p, (uint64_t)packed->turn + 1);
    put_number(p, (uint64_t)blocks);
    if (blocks == 0) return SM_OK;
    put_number(p, (uint64_t)q->block_tokens);
    memcpy(p->byte + p->written, q->block, (size_t)blocks * sizeof *q->block);
    p->written += (size_t)blocks * sizeof *q->block;
    return SM_OK;
}

/* Parts that have been read are given back; an empty last one is written to anew. */
static sim_backlog_part *part_to_read(sim_backlog *b) {
    while (b->first->read == b->first->written) {
        sim_backlog_part *read = b->first;
        assert(read->next);
        b->first = read->next;
        sm_free(read);
    }
    return b->first;
}

void sim_backlog_take(sim_backlog *b, sim_packed *packed) {
    assert(b->n > 0 && b->first);
    sim_backlog_part *p = part_to_read(b);
    sm_request *q = &packed->request;
    uint64_t number = b->read.number + take_number(p);
    uint64_t arrival = take_number(p) ^ b->read.arrival;
    *packed = (sim_packed){number, {.prompt = 0.0}, 0, -1};
    memcpy(&q->arrival_s, &arrival, sizeof arrival);
    q->prompt = (double)take_number(p);
    uint64_t output = take_number(p);
    q->output = (double)(output >> 1);
    b->read = (sim_backlog_end){number, arrival};
    b->n--;
    if (!(output & 1)) return;
    q->prefix = take_number(p);
    q->conversation = take_number(p);
    q->shared_prefix = (double)take_number(p);
    packed->kind = (int)take_number(p);
    packed->turn = (int)take_number(p) - 1;
    q->blocks = (int)take_number(p);
    if (q->blocks == 0) return;
    q->block_tokens = (double)take_number(p);
    memcpy(b->block, p->byte + p->read, (size_t)q->blocks * sizeof *b->block);
    p->read += (size_t)q->blocks * sizeof *b->block;
    q->block = b->block;
}

void sim_backlog_end_all(sim_backlog *b) {
    for (sim_backlog_part *p = b->first, *next; p; p = next) {
        next = p->next;
        sm_free(p);
    }
    sm_free(b->block);
    *b = (sim_backlog){.n = 0};
}
