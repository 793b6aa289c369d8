#pragma once
#include <vector>

#include <braid/mhc/connection.h>
#include <braid/nn/block.h>

#include "config.h"

namespace braid::stability {

/// The data of a training step.
struct Batch {
  Tensor inputs, targets;
};

/// A deep stack of small MLPs, each after a norm and inside a connection: a transformer without attention.
/// Output layers of sublayers start smaller by a factor of sqrt(sublayers), as in nn::Transformer.
struct DeepMLP {
  using Sublayer = nn::Sublayer<nn::MLP, mhc::Connection>;

  nn::Linear in;
  std::vector<Sublayer> sublayers;
  nn::RMSNorm norm;
  nn::Linear head;

  DeepMLP(const TaskConfig& sizes, const mhc::ConnectionConfig& connection, Rng& rng, Rng& connection_rng);

  Var embed(const Tensor& inputs) const { return in(inputs); }
  Var predict(const Var& state) const { return head(norm(state)); }
  void each_sublayer(auto&& visit) const {
    for (const Sublayer& sublayer : sublayers) visit(sublayer);
  }

  void params(auto&& visit) {
    visit("in", in);
    visit("sublayers", sublayers);
    visit("norm", norm);
    visit("head", head);
  }
};

/// Regression: the outputs of a fixed random network, `W2 tanh(W1 x)`, for normal x; mean squared error.
class TeacherStudent {
 public:
  using Model = DeepMLP;

  TeacherStudent(const TaskConfig& sizes, Rng& rng);

  Model model(const mhc::ConnectionConfig& connection, Rng& rng, Rng& connection_rng) const;
  Batch sample(Rng& rng) const;
  static Var loss(const Var& prediction, const Tensor& targets);

 private:
  TaskConfig sizes_;
  Var first_, second_;  // [hidden, features], [outputs, hidden]
};

/// Classification: normal clouds around random centers, four centers a class, so that no plane separates the classes;
/// cross entropy.
class Clusters {
 public:
  using Model = DeepMLP;

  Clusters(const TaskConfig& sizes, Rng& rng);

  Model model(const mhc::ConnectionConfig& connection, Rng& rng, Rng& connection_rng) const;
  Batch sample(Rng& rng) const;
  static Var loss(const Var& prediction, const Tensor& targets);

 private:
  TaskConfig sizes_;
  Tensor centers_;  // [centers, features]
};

}  // namespace braid::stability
