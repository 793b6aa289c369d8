#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <braid/mhc/streams/connection_hook.h>

namespace braid::mhc {

/// Statistics of one connection. Gains and errors are of H_res, a maximum over rows or columns, averaged
/// over tokens; arXiv:2512.24880, section 3.1, looks at the same gains.
struct ConnectionStats {
  double forward_gain = 1;            ///< max |row sum|: the growth of a signal that all streams share
  double backward_gain = 1;           ///< max |column sum|: the same for a gradient
  double composed_forward_gain = 1;   ///< gain of the product from the first connection to this one
  double composed_backward_gain = 1;  ///< gain of the product from this connection to the last one
  double row_error = 0;               ///< max |row sum - 1|
  double column_error = 0;            ///< max |column sum - 1|
  std::optional<double> saturation;   ///< share of sigmoid gates below 0.01 or above 0.99; none without gates
  std::optional<double> similarity;   ///< mean cosine between streams, 1: they are copies; none for one stream
  bool begins_stage = false;          ///< streams have other sizes than before, and composed gains begin anew
};

/// While one is alive, it records the connections that this thread evaluates, in order. Meant for one forward pass; two
/// of one size look like a network of twice the depth, and two of different sizes like stages:
///
///     mhc::Telemetry telemetry;
///     model(tokens);
///     fmt::print("{}", mhc::table(telemetry.connections()));
class Telemetry : public ConnectionHook {
 public:
  /// Called by connections. x [..., n, C] is the connection's input.
  void record(const StreamMaps& maps, const Var& x) override;

  /// One entry per connection, in the order of evaluation.
  std::vector<ConnectionStats> connections() const;

 private:
  struct Record {
    ConnectionStats stats;
    Tensor h_res;   // f64 [tokens or 1, n, n]
    Shape streams;  // [.., n, C]
  };
  std::vector<Record> records_;
};

/// A readable table, one line per connection, and an empty one between stages; without any, a line that says so.
std::string table(std::span<const ConnectionStats> connections);

}  // namespace braid::mhc
