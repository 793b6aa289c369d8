#pragma once

// All of braid.

#include <braid/core/dtype.h>
#include <braid/core/error.h>
#include <braid/core/gemm.h>
#include <braid/core/map.h>
#include <braid/core/matmul.h>
#include <braid/core/parallel.h>
#include <braid/core/random.h>
#include <braid/core/reduce.h>
#include <braid/core/shape.h>
#include <braid/core/storage.h>
#include <braid/core/strided.h>
#include <braid/core/tensor.h>

#include <braid/autograd/checkpoint.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/params.h>
#include <braid/autograd/tape.h>
#include <braid/autograd/value_and_grad.h>
