#include <braid/autograd/draw.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <braid/autograd/detail/tape_state.h>
#include <braid/core/utf8.h>

namespace braid {
namespace {

std::string type(const auto& value) { return fmt::format("{} {}", value.shape, name(value.dtype)); }

std::string size(double bytes) {
  return bytes < 1e4 ? fmt::format("{:.0f} B", bytes)
                     : fmt::format("{:.3g} {}", bytes < 1e6 ? bytes / 1e3 : bytes / 1e6, bytes < 1e6 ? "kB" : "MB");
}

std::string in_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '&' || c == '<' ? fmt::format("&#{};", int{c}) : std::string(1, c);
  return escaped;
}

constexpr std::string_view kPage = R"(<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>A tape</title>
<style>
:root {{ color-scheme: light dark; --line: light-dark(#999, #777); --wrong: light-dark(#fcc, #722) }}
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 1em }}
div {{ display: flex; overflow-x: auto }}
svg {{ flex: none; width: min({0}px, 15vw); height: {1}px; fill: none; stroke: var(--line) }}
table {{ border-collapse: collapse; white-space: nowrap }}
tr {{ height: {2}px }} td, th {{ padding: 0 .6em; text-align: left; font-weight: normal }}
td:nth-child(n + 4):nth-child(-n + 6) {{ text-align: right; font-variant-numeric: tabular-nums }}
tr.wrong {{ background: var(--wrong) }} tr:hover {{ outline: 1px solid }}
</style>
<h1>A tape of {3} ops</h1>
<div><svg viewBox="0 0 {0} {1}" preserveAspectRatio="none">{4}</svg>
<table><tr><th>#<th>op<th>outputs<th>bytes<th>forward<th>backward<th>inputs
{5}</table></div>
</html>
)";

}  // namespace

std::vector<std::string> Drawing::names(const DrawingSettings& settings) const {
  std::vector<std::string> all;
  std::size_t watched = 0;
  for (const Op& op : ops_) {
    all.push_back(op.name);
    if (op.inputs.empty() && watched++ < settings.names.size()) all.back() = settings.names[watched - 1];
  }
  return all;
}

std::string Drawing::dot(const DrawingSettings& settings) const {
  const std::vector<std::string> names = this->names(settings);
  std::string text = "digraph tape {\nnode [shape=box, style=filled, fillcolor=white, fontname=sans]\n";
  for (std::size_t k = 0; k < ops_.size(); ++k) {
    const Op& op = ops_[k];
    std::string label = fmt::format("{}\n{}\n{}", names[k], op.outputs, size(op.bytes));
    if (const auto row = settings.times.find(k); row != settings.times.end())
      label += fmt::format("\n{:.3g} + {:.3g} ms", 1e3 * row->second.forward_s, 1e3 * row->second.backward_s);
    text +=
        fmt::format("{} [label={}, tooltip={}{}{}]\n", k, json_string(label),
                    json_string(fmt::format("{}", fmt::join(op.inputs | std::views::transform(&Input::type), ", "))),
                    op.inputs.empty() ? ", shape=ellipse" : "", settings.wrong == k ? ", fillcolor=red" : "");
    for (const Input& input : op.inputs)
      if (input.maker) text += fmt::format("{} -> {}\n", *input.maker, k);
  }
  return text + "}\n";
}

std::string Drawing::html(const DrawingSettings& settings) const {
  constexpr int kWidth = 100, kHeight = 24;  // of all arcs, of a line
  const std::vector<std::string> names = this->names(settings);
  std::string arcs, lines;
  std::vector<int> line_of;  // by op
  int line = 0;
  for (std::size_t k = 0; k < ops_.size(); ++k) {
    const Op& op = ops_[k];
    line_of.push_back(op.inputs.empty() ? 0 : ++line);
    if (op.inputs.empty()) continue;
    std::string reads;
    for (const auto& [type, maker] : op.inputs) {
      const bool watched = maker && line_of[*maker] == 0;
      reads += fmt::format("{}{}{}", reads.empty() ? "" : ", ", watched ? in_html(names[*maker] + " ") : "", type);
      if (!maker || watched) continue;
      const int from = kHeight * line_of[*maker] + kHeight / 2, to = kHeight * line + kHeight / 2;
      const double reach = kWidth - std::min(1.3 * kWidth, 10 * std::sqrt(line - line_of[*maker]));
      arcs += fmt::format("<path d='M{0},{1}C{2:.0f},{1} {2:.0f},{3} {0},{3}'/>\n", kWidth, from, reach, to);
    }
    std::string time = "<td><td>";
    if (const auto row = settings.times.find(k); row != settings.times.end())
      time = fmt::format("<td>{:.3f} ms<td>{:.3f} ms", 1e3 * row->second.forward_s, 1e3 * row->second.backward_s);
    lines += fmt::format("<tr{}><td>{}<td>{}<td>{}<td>{}{}<td>{}\n", settings.wrong == k ? " class=wrong" : "", line,
                         in_html(names[k]), op.outputs, size(op.bytes), time, reads);
  }
  return fmt::format(kPage, kWidth, kHeight * (line + 1), kHeight, line, arcs, lines);
}

Drawing draw(const Tape& tape) {
  const detail::TapeState& state = *tape.state_;
  check<Error>(state.stage == detail::Stage::recording,
               "draw: backward has forgotten the ops of the tape; draw it before");
  Drawing drawing;
  std::vector<std::size_t> makers;  // by ValueId
  for (const detail::Node& node : state.nodes) {
    Drawing::Op op{node.op, {}, "", 0};
    for (const detail::Input& input : node.inputs)
      op.inputs.push_back({type(input), input.id ? std::optional(makers[*input.id]) : std::nullopt});
    for (const detail::Input& output : std::span(state.values).subspan(node.first_output, node.outputs)) {
      op.outputs += fmt::format("{}{}", op.outputs.empty() ? "" : ", ", type(output));
      op.bytes += static_cast<double>(output.shape.numel()) * static_cast<double>(size_of(output.dtype));
      makers.push_back(drawing.ops_.size());
    }
    drawing.ops_.push_back(std::move(op));
  }
  return drawing;
}

}  // namespace braid
