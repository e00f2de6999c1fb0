#!/bin/bash
# small launch
GPUS_PER_NODE=8
NNODES=${NNODES:-4}
WORLD=$((GPUS_PER_NODE*NNODES))
MODEL_ARGS=(
    --num-layers 32 --hidden-size 4096   # a comment
    --ffn-hidden-size 14336 --num-attention-heads 32
    --group-query-attention --num-query-groups 8 --swiglu
    --seq-length 4096 --max-position-embeddings 4096 --untie-embeddings-and-output-weights
)
OPTS=" --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 \
 --sequence-parallel --use-distributed-optimizer --lr 3e-4"
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --master_addr $MASTER pretrain_gpt.py ${MODEL_ARGS[@]} $OPTS \
  --micro-batch-size 1 --global-batch-size 128 --bf16 --vocab-size 128256
