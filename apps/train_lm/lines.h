#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <braid/nn/tensorboard.h>

#include "../common/trainer.h"

namespace braid::train_lm {

/// The line of a step in metrics.jsonl.
nlohmann::ordered_json metrics_line(const apps::Trainer& trainer, const apps::StepResult& result,
                                    std::optional<double> held_out, double speed);

/// The line of a step in ledger.jsonl: the loss and the checksums of all gradients and, after the step, parameters.
nlohmann::ordered_json ledger_line(const apps::Trainer& trainer, const apps::StepResult& result);

/// The scalars of a step for TensorBoard.
nn::Scalars scalars(const apps::Trainer& trainer, const apps::StepResult& result, std::optional<double> held_out,
                    double speed);
nn::Scalars scalars(const std::vector<mhc::ConnectionStats>& stats);

/// Lines for telemetry.jsonl: one per connection.
std::string json_lines(const std::vector<mhc::ConnectionStats>& connections, std::int64_t step);

/// Lines for gradients.jsonl: one for all gradients, one per op and one per parameter.
std::string json_lines(const nn::PrecisionReport& report, std::int64_t step);

}  // namespace braid::train_lm
