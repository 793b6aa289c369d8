#pragma once
#include <cmath>
#include <vector>

#include <nlohmann/json.hpp>

#include <braid/mhc/connection.h>
#include <braid/mhc/streams/telemetry.h>
#include <braid/nn/optim/clip.h>

namespace braid::stability {

/// The root mean square of all streams.
double activation_norm(const mhc::Connection::Stream& stream);

/// Passes `inputs` through a model, sublayer by sublayer, calling `see(stream)` after each; returns its prediction.
template <class Model>
Var forward(const Model& model, const Tensor& inputs, auto&& see) {
  mhc::Connection::Stream stream;
  const mhc::Connection* last = nullptr;
  model.each_sublayer([&](const auto& sublayer) {
    if (!last) stream = sublayer.connection.open(model.embed(inputs));
    stream = sublayer(stream);
    last = &sublayer.connection;
    see(stream);
  });
  return model.predict(last->close(stream));
}

/// Measurements of every sublayer, as lists over depth.
struct Probe {
  std::vector<double> gradient_norm;    // of the sublayer's own weights, which all modes have
  std::vector<double> activation_norm;  // of the stream after the sublayer
  std::vector<mhc::ConnectionStats> connections;
};

/// Measures a model: gradient norms from `grads`, of the training batch, everything else on `inputs`.
template <class Model>
Probe probe(const Model& model, const Model& grads, const Tensor& inputs) {
  Probe result;
  grads.each_sublayer([&](const auto& sublayer) {
    std::vector<const Tensor*> tensors;
    const auto take = [&](const std::string&, const Var& grad) { tensors.push_back(&grad.value()); };
    for_each_param(sublayer.norm, take);
    for_each_param(sublayer.body, take);
    result.gradient_norm.push_back(nn::global_norm(tensors));
  });
  const mhc::Telemetry telemetry;
  forward(model, inputs, [&](const auto& stream) { result.activation_norm.push_back(activation_norm(stream)); });
  result.connections = telemetry.connections();
  return result;
}

nlohmann::ordered_json to_json(const Probe& probe);

/// The gains of all connections together, the largest errors, and the similarity of the streams before the last
/// connection; null before the first probe.
nlohmann::ordered_json summary(const Probe& probe);

}  // namespace braid::stability
