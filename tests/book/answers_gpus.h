/* The GPU chapter is in two files: chips and networks, and the rooflines of training. */
#pragma once
#include "book.h"
#include "instruments.h"

/* A cluster with 8192 children at one level (0 node, 1 leaf), where (n-1)/n is 1: the chapter's
 * first-order costs B/W. */
sm_system book_gpu_limit(const char *chip, int level);

void gpu_data(book_item *item);
void gpu_data_llama(book_item *item);
void gpu_data_deepseek(book_item *item);
void gpu_data_experts(book_item *item);
void gpu_data_2_nodes(book_item *item);
void gpu_tensor(book_item *item);
void gpu_experts(book_item *item);
void gpu_pipeline(book_item *item);
void gpu_deepseek(book_item *item);
void gpu_llama(book_item *item);
void gpu_b200(book_item *item);
void gpu_nvl72(book_item *item);
void gpu_70b_memory(book_item *item);
void gpu_70b_days(book_item *item);
void gpu_70b_tensor(book_item *item);
void gpu_70b_per_gpu(book_item *item);
void gpu_70b_tokens(book_item *item);
void gpu_70b_pipeline(book_item *item);
void gpu_megatron(book_item *item);
void gpu_gb200_gain(book_item *item);
