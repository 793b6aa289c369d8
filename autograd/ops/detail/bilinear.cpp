#include <braid/autograd/ops/detail/bilinear.h>

#include <braid/autograd/ops/arithmetic.h>

namespace braid::detail {
namespace {

std::vector<Var> bilinear_vjp(const Bilinear& map, std::span<const Var> inputs, const Var& dy);

/// The cotangents of the inputs and of dy for `moves`, those of the vjp's results. <moves, vjp> is the move of <dy, y>
/// when the inputs move by them: linear in these, in the inputs on the other side, and in dy.
std::vector<Var> second_vjp(const Bilinear& map, std::span<const Var> inputs, const Var& dy, std::vector<Var> moves) {
  for (std::size_t i = 0; i < moves.size(); ++i)
    if (!moves[i].value().defined()) moves[i] = zeros(inputs[i].shape(), inputs[i].dtype());
  std::vector<Var> left_moves(inputs.begin(), inputs.end()), right_moves = moves;
  for (std::size_t i = 0; i < map.left; ++i) std::swap(left_moves[i], right_moves[i]);
  std::vector<Var> dxs = bilinear_vjp(map, moves, dy);
  dxs.push_back(bilinear(map, left_moves) + bilinear(map, right_moves));
  return dxs;
}

std::vector<Var> bilinear_vjp(const Bilinear& map, std::span<const Var> inputs, const Var& dy) {
  std::vector<Var> all(inputs.begin(), inputs.end());
  all.push_back(dy);
  std::vector<Var> constants;
  for (const Var& v : all) constants.push_back(detach(v));
  const auto vjp = [map, constants](std::span<const Tensor> moves, const Needs&) {
    const std::vector<Var> dxs =
        second_vjp(map, std::span(constants).first(moves.size()), constants.back(), {moves.begin(), moves.end()});
    return std::vector<Tensor>(dxs.begin(), dxs.end());
  };
  const auto rule = [map](const Applied& at) {
    return second_vjp(map, at.inputs.first(at.dys.size()), at.inputs.back(), {at.dys.begin(), at.dys.end()});
  };
  const Needs everything(inputs.size(), true);
  return record(map.vjp_op, map.vjp(map.lay_out(inputs), dy.value(), everything), all, vjp, {}, rule);
}

}  // namespace

Var bilinear(const Bilinear& map, std::span<const Var> inputs) {
  const std::vector<Tensor> values = map.lay_out(inputs);
  return record(
      map.op, map.forward(values), inputs,
      [map, values](const Tensor& dy, const Needs& needs) { return map.vjp(values, dy, needs); },
      [map](const Applied& at) { return bilinear_vjp(map, at.inputs, at.dy()); });
}

}  // namespace braid::detail
