OPTS="--lr 1"
torchrun pretrain_gpt.py $OPTS --size 4=${miAc:-