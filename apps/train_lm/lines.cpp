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
  std::string text;
  for (const Json& line : lines) {
    Json stamped{{"step", step}};
    stamped.update(line);
    text += stamped.dump() + "\n";
  }
  return text;
}

}  // namespace braid::train_lm
