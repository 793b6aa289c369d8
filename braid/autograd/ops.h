#pragma once

// All differentiable operations.

#include <braid/autograd/ops/abs.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/broadcast_to.h>
#include <braid/autograd/ops/causal_attention.h>
#include <braid/autograd/ops/clamp.h>
#include <braid/autograd/ops/concat.h>
#include <braid/autograd/ops/cross_entropy.h>
#include <braid/autograd/ops/embedding.h>
#include <braid/autograd/ops/exp.h>
#include <braid/autograd/ops/gelu.h>
#include <braid/autograd/ops/layer_norm.h>
#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/log.h>
#include <braid/autograd/ops/matmul.h>
#include <braid/autograd/ops/maximum.h>
#include <braid/autograd/ops/mse_loss.h>
#include <braid/autograd/ops/pow.h>
#include <braid/autograd/ops/relu.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/rms_norm.h>
#include <braid/autograd/ops/rotary_embedding.h>
#include <braid/autograd/ops/sigmoid.h>
#include <braid/autograd/ops/silu.h>
#include <braid/autograd/ops/slice.h>
#include <braid/autograd/ops/sqrt.h>
#include <braid/autograd/ops/sum.h>
#include <braid/autograd/ops/tanh.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/autograd/ops/where.h>
