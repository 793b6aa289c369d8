#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <braid/autograd/profile.h>
#include <braid/autograd/tape.h>

namespace braid {

/// What a Drawing shows besides ops, shapes and bytes.
struct DrawingSettings {
  std::vector<std::string> names = {};             ///< of the watched variables, in their order
  std::map<std::size_t, Profile::Row> times = {};  ///< Profile::ops() of the tape's probe
  std::optional<std::size_t> wrong = {};           ///< the index of an op to be shown in red: GradcheckResult::wrong_op
};

/// The ops of a tape and the values that pass between them, as a picture.
///
///     Profile profile;
///     Tape tape(&profile);
///     const Var loss = model(tape.watch(x));
///     const Drawing drawing = draw(tape);  // before backward(), which forgets the ops
///     tape.backward(loss);
///     std::ofstream("tape.html") << drawing.html({.times = profile.ops()});
class Drawing {
 public:
  /// For Graphviz (`dot -Tsvg tape.dot`): a box for each op, an ellipse for each watched variable. A box has the shape,
  /// dtype and bytes of its outputs; its inputs, constants included, are its tooltip.
  std::string dot(const DrawingSettings& settings = {}) const;
  /// A page that needs no other file: a line for each op, in the order of execution, with the names of the watched
  /// variables that it reads, and an arc from the op that made a value to each that reads it.
  std::string html(const DrawingSettings& settings = {}) const;

 private:
  friend Drawing draw(const Tape& tape);

  struct Input {
    std::string type;                  // `[8, 4] f32`
    std::optional<std::size_t> maker;  // the op that made it, or what was watched; a constant has none
  };
  struct Op {
    std::string name;
    std::vector<Input> inputs;  // a watched variable has none
    std::string outputs;        // `[8, 4] f32, [4] f32`
    double bytes;               // of the outputs
  };

  /// The name of each op, and of each watched variable.
  std::vector<std::string> names(const DrawingSettings& settings) const;

  std::vector<Op> ops_;
};

/// What is on the tape now. Throws Error after backward().
Drawing draw(const Tape& tape);

}  // namespace braid
