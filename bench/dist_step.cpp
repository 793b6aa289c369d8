// A training step over ranks, and the cost of its sum: mpirun -n 2 build/bin/dist_step. Prints one JSON line.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/braid.h>
#include <braid/dist/accumulate.h>
#include <braid/dist/mpi/communicator.h>

#include <apps/common/run_main.h>

namespace {

using namespace braid;

struct Options {
  std::string connection = "residual";
  std::int64_t channels = 384, context = 256, batch = 8, vocab = 65, blocks = 0;
  int layers = 6, heads = 6, steps = 10, threads = apps::threads_or(1);
};

using Model = nn::Transformer<mhc::Connection>;
using Gradients = std::pair<double, Model>;

/// One model, and several ways to compute its gradients.
class Step {
 public:
  Step(const Options& o, dist::Communicator& ranks)
      : ranks_(ranks),
        threads_(o.threads),
        blocks_(o.blocks),
        tokens_(randint(0, o.vocab, {o.blocks, o.batch / o.blocks, o.context}, rng_)),
        targets_(randint(0, o.vocab, {o.blocks, o.batch / o.blocks, o.context}, rng_)),
        model_(
            nn::TransformerConfig{
                .vocab = o.vocab, .context = o.context, .channels = o.channels, .layers = o.layers, .heads = o.heads},
            rng_, [&](int index) {
              return mhc::Connection({.kind = mhc::connection_kind(o.connection)}, o.channels, index, rng_);
            }) {}

  /// Rank 0 computes all blocks, with the threads of all ranks.
  Gradients alone() {
    set_num_threads(threads_ * ranks_.size());
    Gradients gradients = nn::accumulate(blocks_, [&](std::int64_t block) { return block_gradients(block); });
    update(gradients);
    set_num_threads(threads_);
    return gradients;
  }

  Gradients over_ranks() {
    Gradients gradients =
        dist::accumulate(ranks_, blocks_, model_, [&](const Model& m, std::int64_t block) { return loss(m, block); });
    update(gradients);
    return gradients;
  }

  /// Each rank computes its own blocks, without a sum over the ranks.
  Gradients without_sum() {
    Gradients gradients = own_gradients();
    update(gradients);
    return gradients;
  }

  /// The usual way: MPI sums all gradients after the backward pass, in its own order.
  Gradients plain_sum() {
    Gradients gradients = own_gradients();
    for_each_param(gradients.second, [&](const std::string&, Var& grad) {
      Tensor& g = grad.mutable_value();
      if (!g.unshared() || !g.is_contiguous()) g = g.clone();
      MPI_Allreduce(MPI_IN_PLACE, g.mutable_data<float>(), static_cast<int>(g.numel()), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
    });
    update(gradients);
    return gradients;
  }

  /// The sum alone, of gradients computed before.
  void sum_alone(const Model& gradients) {
    std::vector<Tensor> values;
    for_each_param(gradients, [&](const std::string&, const Var& g) { values.push_back(g.value().clone()); });
    std::vector<Tensor> others;
    for (const Tensor& value : values) others.push_back(value.clone());
    auto start = Clock::now();
    for (std::size_t i = 0; i < values.size(); ++i) add(others[i], values[i]);
    add_ms.push_back(since(start));
    ranks_.any(false);
    start = Clock::now();
    const auto sum = ranks_.block_sum(ranks_.size(), values);
    for (std::size_t i = values.size(); i-- > 0;) sum->add(ranks_.rank(), i, std::exchange(values[i], {}));
    sum->total();
    sum_ms.push_back(since(start));
  }

  using Clock = std::chrono::steady_clock;
  static double since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }

  std::int64_t parameters() const { return num_params(model_); }

  std::vector<double> sum_ms, update_ms, add_ms;

 private:
  Var loss(const Model& m, std::int64_t block) const {
    return m.loss(tokens_.select(0, block), targets_.select(0, block));
  }
  Gradients block_gradients(std::int64_t block) const {
    return value_and_grad([&](const Model& m) { return loss(m, block); })(model_);
  }
  static void add(Tensor& sum, const Tensor& term) {
    const std::array<Tensor*, 1> sums{&sum};
    const std::array<const Tensor*, 1> terms{&term};
    nn::add_in_place(sums, terms);
  }
  Gradients own_gradients() const {
    const std::int64_t count = blocks_ / ranks_.size(), first = count * ranks_.rank();
    return nn::accumulate(count, [&](std::int64_t block) { return block_gradients(first + block); });
  }
  void update(Gradients& gradients) {
    const auto start = Clock::now();
    optimizer_.step(model_, gradients.second, nn::clipping(gradients.second, 1.0).factor);
    if (num_threads() == threads_) update_ms.push_back(since(start));
  }

  dist::Communicator& ranks_;
  int threads_;
  std::int64_t blocks_;
  Rng rng_{0};
  Tensor tokens_, targets_;
  Model model_;
  nn::AdamW optimizer_{{.lr = 0}};  // all ways see the same weights
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// In turn, so that other load on the machine affects all of them.
void measure(const Options& o, dist::Communicator& ranks) {
  Step step(o, ranks);
  std::map<std::string, std::vector<double>> ms;
  const auto timed = [&](const std::string& name, bool here, const std::function<void()>& work) {
    ranks.any(false);
    const auto start = Step::Clock::now();
    if (here) work();
    ranks.any(false);
    ms[name].push_back(Step::since(start));
  };
  std::vector<double> beside, after, bytes;
  const auto plain = [&] { timed("plain_sum", true, [&] { step.plain_sum(); }); };
  for (int i = 0; i < o.steps + 2; ++i) {
    timed("alone", ranks.rank() == 0, [&] { step.alone(); });
    timed("without_sum", true, [&] { step.without_sum(); });
    if (i % 2 == 0) plain();
    const dist::Traffic before = ranks.traffic();
    std::optional<Gradients> gradients;
    timed("ranks", true, [&] { gradients = step.over_ranks(); });
    if (i % 2 == 1) plain();
    beside.push_back(1e3 * (ranks.traffic().seconds_beside - before.seconds_beside));
    after.push_back(1e3 * (ranks.traffic().seconds_after - before.seconds_after));
    bytes.push_back(ranks.traffic().bytes_sent - before.bytes_sent);
    step.sum_alone(gradients->second);
    if (i < 2)
      ms.clear(), beside.clear(), after.clear(), step.sum_ms.clear(), step.update_ms.clear(), step.add_ms.clear();
  }
  if (ranks.rank() > 0) return;
  std::vector<double> over_plain_sum;
  for (std::size_t i = 0; i < ms["ranks"].size(); ++i)
    over_plain_sum.push_back(ms["ranks"][i] / ms["plain_sum"][i] - 1);
  const double sum = median(step.sum_ms);
  fmt::print(
      R"({{"ranks": {}, "threads": {}, "connection": "{}", "channels": {}, "layers": {}, "context": {}, )"
      R"("batch": {}, "blocks": {}, "parameters": {}, "ms_alone": {:.2f}, "ms_ranks": {:.2f}, "ms_without_sum": {:.2f}, )"
      R"("ms_plain_sum": {:.2f}, "ms_update": {:.2f}, "ms_add": {:.2f}, "ms_sum_alone": {:.2f}, "ms_beside_backward": {:.2f}, )"
      R"("ms_after_backward": {:.2f}, "hidden": {:.3f}, "over_plain_sum": {:.4f}, "mb_sent": {:.2f}}})"
      "\n",
      ranks.size(), o.threads, o.connection, o.channels, o.layers, o.context, o.batch, o.blocks, step.parameters(),
      median(ms["alone"]), median(ms["ranks"]), median(ms["without_sum"]), median(ms["plain_sum"]),
      median(step.update_ms), median(step.add_ms), sum, median(beside), median(after), 1 - median(after) / sum,
      median(over_plain_sum), bytes.back() / 1e6);
}

void add_options(CLI::App& app, Options& o) {
  const auto count = [&](const char* flag, auto& value, const char* help = "") {
    app.add_option(flag, value, help)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  };
  app.add_option("--connection", o.connection, "residual, hc, mhc, ..")->capture_default_str();
  count("--channels", o.channels);
  count("--layers", o.layers);
  count("--heads", o.heads);
  count("--context", o.context);
  count("--batch", o.batch, "windows per step, of all ranks together");
  app.add_option("--blocks", o.blocks, "number of blocks of the batch; 0: one per rank")->capture_default_str();
  count("--vocab", o.vocab);
  count("--steps", o.steps, "timed steps; reports medians");
  count("--threads", o.threads, "threads of each rank; unless given, BRAID_NUM_THREADS or 1");
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_main("dist_step", [&] {
    Options o;
    CLI::App app("Times a training step of the reference transformer over the ranks that mpirun started.");
    add_options(app, o);
    apps::parse_command_line(app, argc, argv);
    dist::MPICommunicator ranks("dist_step");
    if (o.blocks == 0) o.blocks = ranks.size();
    if (o.blocks % ranks.size() != 0 || o.batch % o.blocks != 0)
      ranks.fail("--blocks: must be a multiple of the ranks and divide --batch", 2);
    set_num_threads(o.threads);
    measure(o, ranks);
    return 0;
  });
}
