#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <braid/core/bits.h>
#include <braid/core/dtype.h>

namespace braid::apps {

/// The commit of the checkout that the program was built in; "unknown" outside one.
std::string git_commit();

/// What the bits of results depend on: kernel_target() and, for bf16 activations and for f32 under matmul_precision(),
/// the unit that computes their products; `portable` for portable bits, which depend on neither.
std::string arithmetic(DType dtype = DType::f32, Bits bits = Bits::fast);

/// Processor, cores, threads in use, system and compiler: what results depend on besides their configuration.
nlohmann::ordered_json machine_info();

/// `20260131-142501`, local time: names a new results folder.
std::string time_stamp();

/// Runs a script of the folder plots/ next to the program. Returns false if it fails, with a line on stderr that says
/// why and what the script `needs`.
bool run_script(const std::string& script, const std::vector<std::string>& arguments, const std::string& needs);

/// Runs a script that draws with matplotlib, as `SCRIPT in out`.
bool run_plot_script(const std::string& script, const std::filesystem::path& in, const std::filesystem::path& out);

}  // namespace braid::apps
