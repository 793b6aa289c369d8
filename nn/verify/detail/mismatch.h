#pragma once
#include <string>
#include <vector>

#include <braid/nn/verify/detail/trace.h>
#include <braid/nn/verify/recorded_case.h>

namespace braid::nn::detail {

/// A value of the tape that a recorded part may be: `layout` permutes its axes first.
struct Candidate {
  const TracedValue* value;
  std::vector<int> layout;  // empty: its elements as they are, row-major
  double error;
};

/// Where a module leaves its recorded parts. Parts and values are paired by their elements alone, in the order of rows
/// or with axes permuted, so that neither names nor shapes need to be those of the recorded code.
class Mismatch {
 public:
  Mismatch(const RecordedCase& recorded, const Trace& trace, double tolerance);

  /// A line about the first part that no op has computed although its sources are all right.
  std::string first_part() const;
  /// A line about the first part, from the output back, that another gradient has reached.
  std::string first_gradient() const;

 private:
  struct Part {
    const RecordedPart& recorded;
    std::string title;  // 'attention.q' [2, 8, 16]
    std::vector<Candidate> matches{};
    bool hidden = false;  // without a match, but something computed from it has one
  };

  /// The values of as many elements, except those whose error is seen at once to be above `limit`.
  std::vector<Candidate> candidates(const Tensor& part, double limit) const;
  /// The values that a part is, with the errors of their cotangents.
  std::vector<Candidate> gradients(const Part& part) const;
  std::string gradient_line(const Part& part, const Candidate& gradient) const;
  std::string closest(const Part& part) const;
  std::string op_of(const Candidate& candidate) const;  // op 'linear' (#3 of 40)
  std::string sources(const Part& part) const;

  const RecordedCase& recorded_;
  const Trace& trace_;
  double tolerance_;
  std::vector<Part> parts_;
};

}  // namespace braid::nn::detail
