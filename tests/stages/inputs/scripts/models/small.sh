MODEL_ARGS=(
   --num-layers 4
   --hidden-size 64
   --rotary-base "${ROTARY_BASE:-10000}"
)
