#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <braid/autograd/value_and_grad.h>
#include <braid/nn/optim/accumulate.h>
#include <braid/nn/saving.h>

namespace braid::examples {

/// Where there are several ranks; every rank calls the same.
class OtherRanks {
 public:
  using Loss = std::function<Var(const std::vector<Var>& parameters, std::int64_t block)>;

  virtual ~OtherRanks() = default;
  virtual int rank() = 0;
  virtual int size() = 0;
  virtual int sharing_processors() = 0;
  virtual bool any(bool here) = 0;
  virtual std::string broadcast(const std::string& bytes) = 0;
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;
  virtual void check_same(const std::string& what, const std::string& value) = 0;
  virtual std::pair<double, std::vector<Var>> accumulate(std::int64_t blocks, const std::vector<Var>& parameters,
                                                         const Loss& loss) = 0;
  [[noreturn]] virtual void fail(const std::string& why, int code) = 0;
};

/// The processes of a run: those that mpirun or another launcher started, or this one alone. A handle.
class Ranks {
 public:
  /// This process alone; nothing of MPI is touched.
  Ranks() = default;
  explicit Ranks(std::shared_ptr<OtherRanks> others) : others_(std::move(others)) {}

  int rank() const { return others_ ? others_->rank() : 0; }
  int size() const { return others_ ? others_->size() : 1; }
  /// The one that prints and writes.
  bool is_first() const { return rank() == 0; }

  // Every rank calls these, in the same order.

  /// Whether it is true on any rank.
  bool any(bool here) const { return others_ ? others_->any(here) : here; }
  /// The numbers of all ranks, in order; each gives one list.
  std::vector<std::vector<double>> gather(const std::vector<double>& numbers) const;
  /// What rank 0 has.
  nn::NamedTensors broadcast(const nn::NamedTensors& tensors) const;
  std::string broadcast(const std::string& bytes) const { return others_ ? others_->broadcast(bytes) : bytes; }
  /// Throws Error naming the first rank where `what` has another value than on rank 0.
  void check_same(const std::string& what, const std::string& value) const {
    if (others_) others_->check_same(what, value);
  }

  /// nn::accumulate of `loss(parameters, block)` and its gradients: each rank computes some of the blocks.
  template <Parametric P, class Loss>
  std::pair<double, P> accumulate(std::int64_t blocks, const P& parameters, Loss loss) const {
    if (!others_)
      return nn::accumulate(blocks, [&](std::int64_t block) {
        return value_and_grad([&](const P& p) { return loss(p, block); })(parameters);
      });
    P given = parameters;
    std::vector<Var*> places;
    std::vector<Var> values;
    for_each_param(given, [&](const std::string&, Var& p) { places.push_back(&p), values.push_back(p); });
    const auto give = [&](const std::vector<Var>& vars) {
      for (std::size_t i = 0; i < vars.size(); ++i) *places[i] = vars[i];
    };
    const auto [mean, grads] =
        others_->accumulate(blocks, values, [&](const std::vector<Var>& vars, std::int64_t block) {
          give(vars);
          return loss(std::as_const(given), block);
        });
    give(grads);
    return {mean, std::move(given)};
  }

 private:
  std::shared_ptr<OtherRanks> others_;
};

}  // namespace braid::examples
