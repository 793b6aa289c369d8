#pragma once
#include <braid/mhc/ops/sinkhorn.h>
#include <braid/nn/verify/recorded_case.h>

namespace braid::golden {

/// The setting `exact`: "columns" or "rows".
mhc::Marginal exact_marginal(const nn::CaseSettings& settings);

}  // namespace braid::golden
