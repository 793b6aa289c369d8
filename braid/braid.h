#pragma once

// All of braid.

#include <braid/autograd/checkpoint.h>
#include <braid/autograd/gradcheck.h>
#include <braid/autograd/ops.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/broadcast_to.h>
#include <braid/autograd/ops/causal_attention.h>
#include <braid/autograd/ops/concat.h>
#include <braid/autograd/ops/cross_entropy.h>
#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/matmul.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/rms_norm.h>
#include <braid/autograd/ops/slice.h>
#include <braid/autograd/ops/sum.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/autograd/params.h>
#include <braid/autograd/tape.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/core/atomic_file.h>
#include <braid/core/dtype.h>
#include <braid/core/error.h>
#include <braid/core/format.h>
#include <braid/core/gemm.h>
#include <braid/core/map.h>
#include <braid/core/matmul.h>
#include <braid/core/parallel.h>
#include <braid/core/random.h>
#include <braid/core/reduce.h>
#include <braid/core/safetensors.h>
#include <braid/core/safetensors_header.h>
#include <braid/core/shape.h>
#include <braid/core/storage.h>
#include <braid/core/strided.h>
#include <braid/core/tensor.h>
