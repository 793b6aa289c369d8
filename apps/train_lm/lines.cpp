#include "lines.h"

#include <braid/nn/saving.h>

#include "../common/step_record.h"

namespace braid::train_lm {

using Json = nlohmann::ordered_json;

Json metrics_line(const apps::Trainer& trainer, const apps::StepResult& result, std::optional<double> held_out,
                  double speed) {
  Json line{{"step", trainer.step()}, {"train_loss", result.loss}};
  if (held_out) line["val_loss"] = *held_out;
  line["grad_norm"] = result.grad_norm;
  line["learning_rate"] = apps::as_optimizer(trainer.state().optimizer).lr();
  line["tokens_per_s"] = static_cast<std::int64_t>(speed);
  return line;
}

Json ledger_line(const apps::Trainer& trainer, const apps::StepResult& result) {
  std::vector<Tensor> parameters;
  for (const auto& [name, tensor] : nn::to_tensors(trainer.model())) parameters.push_back(tensor);
  return {{"step", trainer.step()},
          {"loss", result.loss},
          {"gradients", result.gradients},
          {"parameters", apps::checksum_of(parameters)}};
}

nn::Scalars scalars(const apps::Trainer& trainer, const apps::StepResult& result, std::optional<double> held_out,
                    double speed) {
  nn::Scalars list{{"loss/train", result.loss},
                   {"gradient_norm", result.grad_norm},
                   {"learning_rate", apps::as_optimizer(trainer.state().optimizer).lr()},
                   {"tokens_per_s", speed}};
  if (held_out) list.emplace_back("loss/held_out", *held_out);
  return list;
}

nn::Scalars scalars(const std::vector<mhc::ConnectionStats>& stats) {
  return {{"gain/forward", stats.back().composed_forward_gain},
          {"gain/backward", stats.front().composed_backward_gain}};
}

/// The lines, each with the step in front.
static std::string of_step(std::int64_t step, const std::vector<Json>& lines) {
  std::string text;
  for (const Json& line : lines) {
    Json stamped{{"step", step}};
    stamped.update(line);
    text += stamped.dump() + "\n";
  }
  return text;
}

std::string json_lines(const std::vector<mhc::ConnectionStats>& connections, std::int64_t step) {
  const auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  std::vector<Json> lines;
  for (const mhc::ConnectionStats& s : connections)
    lines.push_back({{"connection", lines.size()},
                     {"forward_gain", s.forward_gain},
                     {"backward_gain", s.backward_gain},
                     {"composed_forward_gain", s.composed_forward_gain},
                     {"composed_backward_gain", s.composed_backward_gain},
                     {"row_error", s.row_error},
                     {"column_error", s.column_error},
                     {"saturation", number(s.saturation)},
                     {"similarity", number(s.similarity)}});
  return of_step(step, lines);
}

std::string json_lines(const nn::PrecisionReport& r, std::int64_t step) {
  std::vector<Json> lines;
  lines.push_back({{"dtype", name(r.dtype)},
                   {"loss", r.loss},
                   {"loss_error", r.loss_error},
                   {"relative_error", r.relative_error},
                   {"remainder", r.remainder}});
  for (const auto& op : r.ops)
    lines.push_back({{"op", op.name}, {"relative_error", op.relative_error}, {"share", op.share}});
  for (const auto& row : r.rows)
    lines.push_back({{"parameter", row.name},
                     {"gradient", row.gradient},
                     {"relative_error", row.relative_error},
                     {"max_ulps", row.max_ulps},
                     {"worst_op", row.worst_op},
                     {"share", row.share}});
  return of_step(step, lines);
}

}  // namespace braid::train_lm
