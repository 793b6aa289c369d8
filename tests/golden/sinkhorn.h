#pragma once
#include <braid/mhc/ops/sinkhorn.h>

#include <tests/golden/golden_case.h>

namespace braid::golden {

/// The setting `exact`: "columns" or "rows".
mhc::Marginal exact_marginal(const Config& config);

}  // namespace braid::golden
