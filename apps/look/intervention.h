#pragma once
#include <cstdint>
#include <string>

namespace braid::look {

enum class Action { scale, swap, rescue };
enum class Target { stream, write, path };

/// A change of what passes through the connections of one run. Sites are the connections in order of evaluation, from
/// 0, and after the last one the head.
struct Intervention {
  std::string text = {};  ///< `ablate stream:2@3`
  Action action = Action::scale;
  Target target = Target::stream;
  std::int64_t index = 0;            ///< the stream; the site that writes, also of a path
  std::int64_t other = 0;            ///< the stream to swap with; the site that a path reaches
  std::int64_t first = 0, last = 0;  ///< of a stream: the sites before which it is changed
  double factor = 0;                 ///< of Action::scale; 0 ablates

  bool changes_stream(std::int64_t site) const { return target == Target::stream && first <= site && site <= last; }
};

/// Reads the value of --ablate, --scale, --swap or --rescue, `verb` without the dashes:
///
///     ablate, rescue    stream:I    stream:I@SITE    stream:I@SITE-SITE    write:SITE    path:SITE:SITE
///     scale             the same, followed by :FACTOR
///     swap              stream:I:J, stream:I:J@SITE, stream:I:J@SITE-SITE
///
/// Throws ValueError naming the option, what it takes and what it got.
Intervention parse_intervention(const std::string& verb, const std::string& value);

/// Without sites, a stream is changed at all of them. Throws ValueError unless the streams and the sites exist.
void complete(Intervention& change, std::int64_t streams, std::int64_t connections);

}  // namespace braid::look
