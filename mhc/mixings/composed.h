#pragma once

namespace braid::mhc {

/// Whether the fused ops of hyper-connections run their composed forms on this thread: within a Composed scope, or in
/// the whole program if the environment variable BRAID_MHC_PATH is "reference" at the first call. Throws ValueError
/// unless the variable is absent, "fused" or "reference". HigherOrder scopes compose ops without a rule.
bool composed(bool has_rule = false);

}  // namespace braid::mhc
