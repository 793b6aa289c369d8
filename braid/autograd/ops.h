#pragma once

// All differentiable operations.

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
