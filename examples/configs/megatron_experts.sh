#!/bin/bash
# Experts over half of the tensor parallel groups and four replicas, with context and pipeline parallelism.
TP=2
PP=2

MODEL=(
  --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --ffn-hidden-size 4096
  --seq-length 4096 --max-position-embeddings 4096 --position-embedding-type rope
  --swiglu --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights
  --num-experts 8 --moe-ffn-hidden-size 2048
)

torchrun pretrain_gpt.py "${MODEL[@]}" \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --context-parallel-size 2 \
  --expert-model-parallel-size 8 --expert-tensor-parallel-size 1 --sequence-parallel \
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
  --micro-batch-size 1 --global-batch-size 256 --bf16
