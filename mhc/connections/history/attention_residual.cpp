#include <braid/mhc/connections/history/attention_residual.h>

#include <braid/mhc/connections/residual_connection.h>
#include <braid/mhc/ops/attention_residual.h>

namespace braid::mhc {

AttentionResidual::AttentionResidual(std::int64_t channels, std::int64_t index,
                                     const AttentionResidualSettings& settings)
    : index(index), settings(settings) {
  check_value(channels >= 1, "AttentionResidual: channels must be >= 1 but is {}", channels);
  check_value(index >= 0, "AttentionResidual: index must be >= 0 but is {}", index);
  check_value(settings.block >= 1, "AttentionResidual: block must be >= 1 but is {}", settings.block);
  query = zeros({channels}, settings.dtype);
  norm = ones({channels}, settings.dtype);
}

void AttentionResidual::add(DepthSources& state, const Var& f) const {
  check_shape(f.shape() == state.x.shape(), "AttentionResidual: layer must keep the shape {} but returned {}",
              state.x.shape(), f.shape());
  if (Telemetry* telemetry = Telemetry::active())  // each source is passed on as it is
    telemetry->record(ResidualConnection::identity_maps(f.dtype()), expand_dims(state.x, -2));
  if (index % settings.block == 0)
    state.sources.push_back(f);
  else
    state.sources.back() = state.sources.back() + f;
  state.x = attention_residual(query, norm, state.sources, settings.eps);
}

}  // namespace braid::mhc
