#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include <braid/autograd/params.h>
#include <braid/autograd/tape.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/dist/communicator.h>
#include <braid/nn/optim/clip.h>

namespace braid::dist {

/// The mean of `loss(model, block)`, a scalar, over the blocks of a batch, and its gradients: the bits of
/// nn::accumulate, for any number of ranks up to the number of blocks. Every rank calls it with the same model and
/// computes some of the blocks. Gradients travel while those of earlier layers are computed.
///
///     dist::MPICommunicator ranks("train");  // or dist::Communicator ranks; for this process alone
///     auto [loss, grads] = dist::accumulate(ranks, 8, model, [&](const Model& m, std::int64_t block) {
///       return m.loss(tokens[block], targets[block]);
///     });
///     optimizer.step(model, grads);  // the same on every rank
///
/// `probe` sees the ops of this rank's blocks. If a rank throws, the others wait for it: catch the exception before it
/// leaves the communicator's scope and call fail(), which passes its text on.
/// Throws ShapeError if the loss is not a scalar, ValueError if there are more ranks than blocks, Error if the loss
/// depends on no parameter or parameters are on a tape.
template <class M, class Loss>
std::pair<double, M> accumulate(Communicator& ranks, std::int64_t blocks, const M& model, Loss&& loss,
                                Probe* probe = nullptr) {
  M traced = model;  // copies the structure, shares the storage
  std::vector<NamedParam> params = named_params(traced);
  std::vector<Tensor> values;
  for (const NamedParam& p : params) {
    braid::detail::check_constant("accumulate", p.name, *p.param);
    values.push_back(p.param->value());
  }
  values.push_back(scalar(0, DType::f64));  // the loss
  const std::unique_ptr<detail::BlockSum> sum = ranks.block_sum(blocks, values);
  for (auto [block, end] = sum->own_blocks(); block < end; ++block) {
    Tape tape(probe);
    for (std::size_t i = 0; i < params.size(); ++i) *params[i].param = tape.watch(values[i]);
    const Var y = loss(std::as_const(traced), block);
    check_shape(y.value().numel() == 1, "accumulate: the loss must be a scalar but has shape {}", y.shape());
    check<Error>(y.requires_grad() || params.empty(), "accumulate: the loss does not depend on the parameters");
    sum->add(block, params.size(), scalar(y.item(), DType::f64));
    tape.backward(y, [&](std::size_t i, Tensor gradient) { sum->add(block, i, std::move(gradient)); });
  }
  std::vector<Tensor> totals = sum->total();
  for (std::size_t i = 0; i < params.size(); ++i) *params[i].param = std::move(totals[i]);
  const auto count = static_cast<double>(blocks);
  if (blocks > 1) nn::scale_grads(traced, 1 / count);
  return {totals.back().item() / count, std::move(traced)};
}

}  // namespace braid::dist
